"""What tests in a real Spark share: the master, and a look at the processes that belong to it."""

from __future__ import annotations

import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from kelda.rdf.event import Reject
from kelda.spark.session import scratch

MASTER = "local[2]"
PATIENCE = 240.0  # seconds: the machine may be busy


class Told:
    """A progress that keeps what it hears."""

    def __init__(self) -> None:
        self.events: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()
        self.lates: Counter[str] = Counter()
        self.rejects: list[Reject] = []
        self.finished = False

    def read(self, stream: str, events: int, bytes: int) -> None:
        self.events[stream] += events
        self.bytes[stream] += bytes

    def rejected(self, reject: Reject) -> None:
        self.rejects.append(reject)

    def late(self, stream: str, count: int) -> None:
        self.lates[stream] += count

    def done(self) -> None:
        self.finished = True


def hosts() -> dict[int, int]:
    """The host processes of this process's Spark: the shard of each."""
    found = {}
    mine = str(scratch()).encode()  # the interpreter of our workers lies there, and their environment says so
    for folder in Path("/proc").iterdir():
        try:
            name = (folder / "comm").read_text().strip()
            if name.startswith("kelda-shard-") and mine in (folder / "environ").read_bytes():
                found[int(folder.name)] = int(name.rpartition("-")[2])
        except (OSError, ValueError):  # no process, or one that has ended meanwhile
            continue
    return found


def sockets(run: str) -> list[str]:
    """The sockets of a run's hosts."""
    folder = Path(tempfile.gettempdir(), f"kelda-hosts-{os.geteuid()}-{run[:12]}")
    return [path.name for path in folder.glob("*.sock")] if folder.exists() else []


def until(true: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
    """Wait for something to become true."""
    end = time.monotonic() + patience
    while not true():
        if time.monotonic() > end:
            raise AssertionError(f"waited {patience:g} s in vain: {what}")
        time.sleep(0.02)
