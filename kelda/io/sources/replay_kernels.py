"""Kernels of the replay: where lines end and which time each begins with."""

from __future__ import annotations

import numpy as np
from numba import njit

NO_TIME = np.int64(-(2**63))


@njit(cache=True)
def line_times(data, ends, times):  # type: ignore[no-untyped-def]
    """Per line of `data`, the position behind it and the number before its first TAB (NO_TIME: none).

    The last line needs no line break. Stops when `ends` is full; returns how many lines it found.
    """
    count, at, size = 0, 0, len(data)
    while at < size and count < len(ends):
        while at < size and data[at] == 32:
            at += 1
        minus = at < size and data[at] == 45
        if minus:
            at += 1
        value, digits = np.int64(0), 0
        while at < size and 48 <= data[at] <= 57 and digits < 19:
            value = value * 10 + (data[at] - 48)
            at += 1
            digits += 1
        while at < size and data[at] == 32:
            at += 1
        timed = 0 < digits < 19 and at < size and data[at] == 9
        times[count] = (-value if minus else value) if timed else NO_TIME
        while at < size and data[at] != 10:
            at += 1
        at += 1
        ends[count] = min(at, size)
        count += 1
    return count
