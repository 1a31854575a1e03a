"""What makes a batch last in this process: a record before it, and the state behind it, in the checkpoint.

    begun          a line for each batch, the last of the one that is being taken: where it begins and ends
                   in each stream, and which queries hold. When it is long, it begins anew
    state/N.kept   what the shard keeps behind batch N. That it is there is the commit of the batch

A batch that was begun and not committed is taken again, with the same elements and queries; sinks know it. A
file of state has the segments that are new with its batch, and names those that are gone; one that is
`whole` has all, and those before it are needed no more.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import xxhash
import zstandard

from kelda.durable import replace_file, write_all
from kelda.errors import CheckpointError
from kelda.io.sinks.content import Held, has
from kelda.io.sources.together import Offsets
from kelda.kept import RESTORE, reading, writing
from kelda.rdf import wire
from kelda.shards.shard import Outcome

MOST_FILES = 64  # of state; then one is written that has all
MOST_BYTES = 1 << 18  # of lines about batches that were begun


@wire.plain
@dataclass(frozen=True, slots=True)
class Kept:
    """What lies in a file of state."""

    batch: int
    version: int  # of the catalog
    at: bytes  # the offsets behind the batch, as JSON
    whole: bool
    put: dict[int, tuple[int, bytes]]  # segments, with the versions of the catalog that held for them
    removed: list[int]
    memory: bytes
    stored: int  # the last batch whose changes of stored graphs are in files; -1: none


@dataclass(frozen=True, slots=True)
class Begun:
    """A batch that may have been taken or not."""

    batch: int
    begin: Offsets
    end: Offsets
    version: int

    @property
    def content(self) -> str:
        """What is in it, as a digest."""
        told = json.dumps([self.begin, self.end, self.version], sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()[:40]


@dataclass
class State:
    """The shard as it was behind a batch."""

    batch: int = -1
    version: int = 0
    at: Offsets = field(default_factory=dict)
    memory: bytes | None = None
    stored: int = -1
    segments: dict[int, tuple[int, bytes]] = field(default_factory=dict)


class BatchLog:
    """The log in a checkpoint folder, which one process has."""

    def __init__(self, folder: Path) -> None:
        self._begun, self._folder = folder / "begun", folder / "state"
        self._lines: int | None = None  # the file of them, that we have begun, and its size
        self._size = 0
        with writing(self._folder):
            self._folder.mkdir(exist_ok=True)
        self._where: dict[int, Path] = {}  # the file of each segment that is needed
        self._files: list[Path] = []

    # -------------------------------------------------------------------- what it says

    def state(self) -> State:
        """What was committed last."""
        state = State()
        for path, kept in self._since_whole():
            if not kept.whole and kept.batch != state.batch + 1:
                raise self._missing(self._path(kept.batch - 1))
            state.segments |= kept.put
            self._where |= dict.fromkeys(kept.put, path)
            for number in kept.removed:
                state.segments.pop(number, None)
                self._where.pop(number, None)
            with reading(path):
                state.batch, state.version, state.at = kept.batch, kept.version, json.loads(kept.at)
            state.memory, state.stored = kept.memory, kept.stored
            self._files.append(path)
        return state

    def _since_whole(self) -> list[tuple[Path, Kept]]:
        """The files from the last one on that has all. Who died while those before were removed has left
        some of them, in whatever order: they are removed now."""
        found: list[tuple[Path, Kept]] = []
        paths = sorted(self._folder.glob("*.kept"))
        while paths:
            found.append((path := paths.pop(), self._read(path)))
            if found[-1][1].whole:
                self._forget(paths)
                break
        return found[::-1]

    def begun(self, state: State) -> Begun | None:
        """The batch that was begun and not committed."""
        if not self._begun.exists():
            if self._files:
                raise self._missing(self._begun)
            return None
        with reading(self._begun):
            told = json.loads(_last_line(self._begun.read_bytes()))
            begun = Begun(int(told["batch"]), dict(told["begin"]), dict(told["end"]), int(told["version"]))
        if begun.batch < state.batch:
            raise CheckpointError(f"{self._begun} is older than {self._path(state.batch)}; {RESTORE}")
        if begun.batch > state.batch + 1:
            raise self._missing(self._path(begun.batch - 1))
        return begun if begun.batch > state.batch else None

    def _path(self, batch: int) -> Path:
        return self._folder / f"{batch:012d}.kept"

    def _missing(self, path: Path) -> CheckpointError:
        return CheckpointError(f"{path} is missing; {RESTORE}")

    def agree(self, held: Held, begun: Begun) -> None:
        """Refuse a sink that is ahead of the log, which goes on with a batch, or has seen another log."""
        if held.batch >= begun.batch:
            has(held, begun.batch, begun.content)

    # -------------------------------------------------------------------- what it is told

    def begin(self, begun: Begun) -> None:
        """A batch is about to be taken."""
        told = {"batch": begun.batch, "begin": begun.begin, "end": begun.end, "version": begun.version}
        line = _line(json.dumps(told).encode())
        if self._lines is None or self._size > MOST_BYTES:
            self.close()
            replace_file(self._begun, line)
            self._lines, self._size = os.open(self._begun, os.O_WRONLY | os.O_CLOEXEC), 0
        else:
            with writing(self._begun):
                write_all(self._lines, line, self._size)
                os.fsync(self._lines)
        self._size += len(line)

    def commit(self, begun: Begun, outcome: Outcome, stored: int) -> None:
        """It was taken, and its answers with it; `stored` is the last batch in the files of the store."""
        put = {number: (outcome.version, data) for number, data in outcome.put.items()}
        for number in outcome.removed:
            self._where.pop(number, None)
        everything = len(self._files) >= MOST_FILES
        if everything:
            put = self._needed() | put
        path = self._path(begun.batch)
        kept = Kept(
            begun.batch,
            outcome.version,
            json.dumps(begun.end).encode(),
            everything,
            put,
            outcome.removed,
            outcome.memory,
            stored,
        )
        replace_file(path, zstandard.compress(wire.encode(kept), 1))
        self._where |= dict.fromkeys(put, path)
        if everything:
            self._forget(self._files)
            self._files = []
        self._files.append(path)

    def close(self) -> None:
        """Let go of the files."""
        if self._lines is not None:
            os.close(self._lines)
            self._lines = None

    def _needed(self) -> dict[int, tuple[int, bytes]]:
        """All segments that are needed, from the files they lie in."""
        found: dict[int, tuple[int, bytes]] = {}
        for path in dict.fromkeys(self._where.values()):
            kept = self._read(path)
            found |= {number: some for number, some in kept.put.items() if self._where.get(number) == path}
        return found

    def _read(self, path: Path) -> Kept:
        with reading(path):
            try:
                kept = wire.decode(zstandard.decompress(path.read_bytes()), f"the state in {path}")
            except zstandard.ZstdError as problem:
                raise ValueError(str(problem)) from problem
            assert isinstance(kept, Kept)
            return kept

    def _forget(self, files: list[Path]) -> None:
        for path in files:
            path.unlink(missing_ok=True)


class NoLog:
    """Of an engine whose state goes with its process."""

    def state(self) -> State:
        return State()

    def begun(self, state: State) -> Begun | None:
        return None

    def agree(self, held: Held, begun: Begun) -> None:
        """There is nothing to disagree with."""

    def begin(self, begun: Begun) -> None:
        """Nothing lasts."""

    def commit(self, begun: Begun, outcome: Outcome, stored: int) -> None:
        """Nothing lasts."""

    def close(self) -> None:
        """There are no files."""


Log = BatchLog | NoLog


def _line(told: bytes) -> bytes:
    """With a checksum before it."""
    return xxhash.xxh3_64_hexdigest(told).encode() + b" " + told + b"\n"


def _last_line(data: bytes) -> bytes:
    """The last that is whole: behind it, one that somebody was writing who died may be in part."""
    lines = [line for line in data.split(b"\n") if line]
    for line in lines[:-3:-1]:
        check, _, told = line.partition(b" ")
        if xxhash.xxh3_64_hexdigest(told).encode() == check:
            return told
    raise ValueError("no line of it is whole")


def offsets_of(at: Mapping[str, dict[str, object]]) -> Offsets:
    """Offsets as they are read back from a file: plain JSON."""
    plain: Offsets = json.loads(json.dumps(at))
    return plain
