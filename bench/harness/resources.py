"""What a process and its children use: CPU seconds, memory, and how fast the machine is just now."""

from __future__ import annotations

import ctypes
import os
import resource
import time
from pathlib import Path

import numpy as np

PROC = Path("/proc")
TICK = os.sysconf("SC_CLK_TCK")
PAGE = resource.getpagesize()
PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


def adopt_orphans() -> None:
    """Have processes below this one that leave their parents counted, and ended, as its own (Linux).

    The hosts of a pipeline's shards do so, to outlive a Python worker of Spark's."""
    if PROC.exists():
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def family_of(root: int) -> list[int]:
    """The process and all processes below it that live now (Linux; elsewhere the process alone)."""
    children: dict[int, list[int]] = {}
    for entry in PROC.glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended since
            continue
        children.setdefault(int(fields[1]), []).append(int(entry.parent.name))
    found, todo = [], [root]
    while todo:
        pid = todo.pop()
        found.append(pid)
        todo += children.get(pid, [])
    return found


def cpu_seconds(root: int | None = None) -> float:
    """CPU seconds of the process and everything below it so far, processes that have ended among them."""
    if not PROC.exists():
        used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(u.ru_utime + u.ru_stime for u in used)
    total = 0
    for pid in family_of(root or os.getpid()):
        try:
            fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(int(f) for f in fields[11:15])  # own and waited-for children's, user and system
    return total / TICK


def resident(root: int | None = None) -> int:
    """Bytes of memory that the process and everything below it have now."""
    if not PROC.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    total = 0
    for pid in family_of(root or os.getpid()):
        try:
            total += int((PROC / str(pid) / "statm").read_text().split()[1]) * PAGE
        except OSError:
            continue
    return total


def calibrate(times: int = 3) -> float:
    """CPU seconds of a fixed piece of work: sorting, probing, a loop. The least of some runs.

    Two measurements taken at different times or places are compared by their CPU time in units of this."""
    rng = np.random.Generator(np.random.PCG64(1))
    keys = rng.integers(0, 1 << 62, 300_000)

    def once() -> float:
        begin = time.process_time()
        order = np.argsort(keys, kind="stable")
        np.searchsorted(keys[order], keys)
        counts: dict[int, int] = {}
        for key in (keys[:100_000] & 1023).tolist():
            counts[key] = counts.get(key, 0) + 1
        return time.process_time() - begin

    return min(once() for _ in range(times))
