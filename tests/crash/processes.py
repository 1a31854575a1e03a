"""Who is who: the processes of one run, found by a mark in their environment, which children inherit."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MARK = "KELDA_CRASH"  # environment variable


@dataclass(frozen=True, slots=True)
class Process:
    """A process, and what it is."""

    pid: int
    kind: str  # driver, jvm, executor, standalone, master, daemon, worker, host, helper

    def kill(self) -> bool:
        """As the out-of-memory killer does it; False if it was gone already."""
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True


def marked(mark: str) -> list[Process]:
    """All processes of the run with this mark."""
    seen = {pid: (parent, words, name) for pid, parent, words, name in _with_mark(mark)}
    kinds = {pid: _kind(words, name) for pid, (_, words, name) in seen.items()}
    found = []
    for pid, (parent, _, _) in seen.items():
        kind = kinds[pid]
        if kind == "daemon" and kinds.get(parent) in ("daemon", "worker"):
            kind = "worker"
        found.append(Process(pid, kind))
    return found


def _with_mark(mark: str) -> Iterator[tuple[int, int, str, str]]:
    wanted = f"{MARK}={mark}\0".encode()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if wanted not in (folder / "environ").read_bytes() + b"\0":
                continue
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            status = (folder / "stat").read_text()
        except OSError:  # it has ended meanwhile, or is another user's
            continue
        name, _, rest = status.rpartition(")")
        state, parent = rest.split()[:2]
        if state != "Z":
            yield int(folder.name), int(parent), words, name.partition("(")[2]


def _kind(words: str, name: str) -> str:
    if name.startswith("kelda-shard"):
        return "host"
    for sign, kind in (
        ("CoarseGrainedExecutorBackend", "executor"),
        ("deploy.worker.Worker", "standalone"),
        ("deploy.master.Master", "master"),
        ("org.apache.spark.deploy.SparkSubmit", "jvm"),
        ("kelda.spark.daemon", "daemon"),
        ("tests.crash.driver", "driver"),
    ):
        if sign in words:
            return kind
    return "helper"  # the shell that starts a JVM; Python that plans beside the driver's JVM
