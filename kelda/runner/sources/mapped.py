"""Text of a file as memory, without a copy: for files that stay as they are.

A file that somebody cuts short at the very moment at which it is looked at would end the process. It is
looked at some megabytes at a time, each time after a look at how long it is; so it is nearly always found too
short instead, which whoever reads it tells.
"""

from __future__ import annotations

import mmap
import os

import numpy as np
from numpy.typing import NDArray

LEAST = 1 << 19  # bytes; fewer are copied as fast


def mapped(file: int, at: int, size: int, *, behind: int = 0) -> NDArray[np.uint8] | None:
    """`size` bytes of an open file from `at` on, and some more `behind` them; None if they are few, or if the
    file is too short. To write to them does not change the file."""
    if size < LEAST or at + size + behind > os.fstat(file).st_size:
        return None
    begin = at - at % mmap.ALLOCATIONGRANULARITY
    memory = mmap.mmap(file, at + size + behind - begin, access=mmap.ACCESS_COPY, offset=begin)
    return np.frombuffer(memory, np.uint8, size + behind, at - begin)
