"""The memory of a store: one array of int64, in this process alone or in a file that all processes of a
machine map.

It is as large as anybody will need, and takes memory (and room on the disk) only where something was written:
so nothing in it ever moves, and a place in it is the same for all who have mapped it. What was allocated is
not given back before the whole is.
"""

from __future__ import annotations

import ctypes
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
FIXED = 0x10  # at this address and no other
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

    def lay(self, file: int, offset: int, count: int) -> None:
        """Have what a file has from `offset` on, a page's beginning, as the first `count` cells. What is
        changed in them is not changed in the file. Of a heap of this process alone."""
        assert self.path is None and count <= len(self.cells)
        begin = self.cells.ctypes.data
        if _lay(begin, count * 8, file, offset) != begin:  # then it is read instead
            left, at = self.cells[:count].data.cast("B"), offset
            while left:
                done = os.preadv(file, [left[: 1 << 30]], at)
                if not done:
                    raise OSError("it is cut off")
                left, at = left[done:], at + done

    @property
    def nbytes(self) -> int:
        """Bytes that are allocated; of large blocks, not all may have been touched yet."""
        return int(self.cells[USED]) * 8


class NoHeap:
    """For kernels that want one, where nothing is stored."""

    cells: NDArray[np.int64] = np.zeros(1, np.int64)
    halves: NDArray[np.int32] = np.zeros(2, np.int32)


NO_HEAP = NoHeap()


def _lay(begin: int, size: int, file: int, offset: int) -> int:
    """Map a part of a file at an address, in the place of what was mapped there; where it is now."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    number, address, integer = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int
    libc.mmap.argtypes = [address, number, integer, integer, integer, ctypes.c_int64]
    access, how = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | FIXED
    found: int | None = libc.mmap(begin, size, access, how, file, offset)
    return found or 0


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
