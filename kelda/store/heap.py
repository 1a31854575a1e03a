"""The memory of a store: one array of int64, in this process alone or in a file that all processes of a
machine map.

It is as large as anybody will need, and takes memory (and room on the disk) only where something was written:
so nothing in it ever moves, and a place in it is the same for all who have mapped it. What was allocated is
not given back before the whole is.
"""

from __future__ import annotations

import mmap
import os
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kelda.errors import EnvironmentProblem

SIZE = 1 << 37  # bytes of address space
LEAST = 1 << 32  # that will do where there is no more to be had
HEADER = 64  # cells
USED = 0  # the cell that tells how many cells are allocated
LINE = 8  # cells of a cache line
NO_RESERVE = 0x4000 if sys.platform == "linux" else 0  # addresses that nothing is set aside for yet


class Heap:
    """`cells` as int64, `halves` the same as int32. One process at a time allocates."""

    def __init__(self, path: Path | None = None, *, size: int = SIZE) -> None:
        self.path = path
        self._map = _map(path, size)
        self.cells: NDArray[np.int64] = np.frombuffer(self._map, np.int64)
        self.halves: NDArray[np.int32] = self.cells.view(np.int32)
        if not self.cells[USED]:
            self.cells[USED] = HEADER

    def allocate(self, count: int) -> int:
        """Where `count` more cells begin, all 0."""
        begin = int(self.cells[USED])
        end = begin + -(-count // LINE) * LINE
        if end > len(self.cells):
            raise EnvironmentProblem(f"the store takes more than {len(self.cells) * 8:,} bytes of addresses")
        self.cells[USED] = end
        return begin

    @property
    def nbytes(self) -> int:
        """Bytes that are allocated; of large blocks, not all may have been touched yet."""
        return int(self.cells[USED]) * 8


class NoHeap:
    """For kernels that want one, where nothing is stored."""

    cells: NDArray[np.int64] = np.zeros(1, np.int64)
    halves: NDArray[np.int32] = np.zeros(2, np.int32)


NO_HEAP = NoHeap()


def _map(path: Path | None, size: int) -> mmap.mmap:
    if path is None:
        while True:
            try:
                return mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE)
            except OSError:
                if size <= LEAST:
                    raise
                size //= 2
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        there = os.fstat(file).st_size
        while not there:
            try:
                os.ftruncate(file, size)  # takes no room: a file of holes
                there = size
            except OSError:
                if size <= LEAST:
                    raise
                size //= 2
        return mmap.mmap(file, there, mmap.MAP_SHARED)
    finally:
        os.close(file)
