"""The routing in the checkpoint folder: the driver writes it before it holds, ingest reads it where it runs.

Each change is another file under the name `routing`, whole or not there. A machine may still see the one
before; elements that it held back by that would be missing from answers. So each has a number, and whoever
reads needs that of the last change: it is told with a batch by the driver's machine, or read from
`routing.at`, a small file that is always the same one and written in place, since of such a file every
machine sees what was there when it opens it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from kelda.durable import replace_file
from kelda.errors import WireError
from kelda.rdf import wire
from kelda.shards.routing import Routing
from kelda.shards.seen import when_seen


class Change(NamedTuple):
    """Which routing: the n-th of a run."""

    run: str
    number: int

    def is_there_in(self, other: Change) -> bool:
        """Whether another one has all that this one has."""
        return other.run == self.run and other.number >= self.number


class RoutingFile:
    """What the driver writes. A new run begins to count anew."""

    def __init__(self, path: Path, run: str) -> None:
        self.path, self.last = path, Change(run, 0)

    def write(self, routing: Routing) -> None:
        """From now on this one is needed."""
        self.last = Change(self.last.run, self.last.number + 1)
        replace_file(self.path, wire.encode((*self.last, routing.plain())))
        told = f"{self.last.run} {self.last.number:020d}\n".encode()
        file = os.open(_beside(self.path), os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.pwrite(file, told, 0)
            os.ftruncate(file, len(told))
            os.fsync(file)
        finally:
            os.close(file)


def needed(path: Path) -> Change:
    """The last change."""

    def look() -> Change | None:
        try:
            words = _beside(path).read_text("ascii").split()
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as problem:
            raise WireError(f"{_beside(path)} cannot be read ({problem}): {AGAIN}") from problem
        if len(words) != 2 or not words[1].isdigit():
            raise WireError(f"{_beside(path)} is damaged: {AGAIN}")
        return Change(words[0], int(words[1]))

    return when_seen(look, _beside(path), "the number of the routing")


AGAIN = "stop the run and start it again, which writes it anew"

_read: dict[Path, tuple[tuple[int, int, int], Change, Routing]] = {}  # the last one that was


def routing_in(path: Path, at_least: Change | None = None) -> Routing:
    """The routing that is needed, or a later one."""
    need = at_least or needed(path)

    def look() -> Routing | None:
        try:
            about = path.stat()
            seen = (about.st_mtime_ns, about.st_ino, about.st_size)
            last = _read.get(path)
            if last is None or last[0] != seen:
                run, number, rules = wire.decode(path.read_bytes(), f"the routing in {path}")
                last = (seen, Change(run, number), Routing.of(rules))
                _read.clear()
                _read[path] = last
        except FileNotFoundError:
            return None
        _, found, routing = last
        return routing if need.is_there_in(found) else None

    return when_seen(look, path, f"change {need.number} of the routing")


def _beside(path: Path) -> Path:
    return path.with_name(path.name + ".at")
