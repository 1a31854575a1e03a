"""What tests in a real Spark share: the master, and a look at the processes that belong to it."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import kelda
from kelda.spark.driver import SparkDriver
from kelda.spark.session import scratch

MASTER = "local[2]"
PATIENCE = 240.0  # seconds: the machine may be busy


def driver_of(engine: kelda.Engine) -> SparkDriver:
    """What runs an engine."""
    assert isinstance(engine._driver, SparkDriver)
    return engine._driver


def committed(engine: kelda.Engine) -> bool:
    """Whether Spark has committed the last batch that was answered: it does not come again."""
    return driver_of(engine).run.last_commit() >= engine.figures.batch


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
