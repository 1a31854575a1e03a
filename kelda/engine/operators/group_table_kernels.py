"""Kernels of a group table, which numbers rows of ids densely; numbers are used again once a group is gone.

slots    open addressing, group + 1, 0 is free        keys     (columns, room) the ids of each group
spare    a stack of numbers given back                meta     [groups alive, numbers ever given, spare]
"""

from __future__ import annotations

import numpy as np
from numba import njit

_MIX = np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True, inline="always")
def mixed(state, value):  # type: ignore[no-untyped-def]
    state = (state ^ np.uint64(value)) * _MIX
    return state ^ (state >> np.uint64(29))


@njit(cache=True)
def _key_hash(keys, g):  # type: ignore[no-untyped-def]
    state = np.uint64(7)
    for k in range(keys.shape[0]):
        state = mixed(state, keys[k, g])
    return state


@njit(cache=True)
def find_groups(slots, keys, spare, meta, rows):  # type: ignore[no-untyped-def]
    """The group number of each row (a column of `rows`), a new one where there is none yet.

    Of fewer rows, where there is no room for a new one."""
    n = rows.shape[1]
    width = rows.shape[0]
    mask = np.int64(slots.shape[0] - 1)
    found = np.empty(n, np.int64)
    for i in range(n):
        at = np.int64(_key_hash(rows, i) & np.uint64(mask))
        while True:
            g = slots[at] - 1
            if g < 0:
                if meta[2] > 0:
                    meta[2] -= 1
                    g = spare[meta[2]]
                elif meta[1] < spare.shape[0]:
                    g = meta[1]
                    meta[1] += 1
                else:
                    return found[:i]
                meta[0] += 1
                for k in range(width):
                    keys[k, g] = rows[k, i]
                slots[at] = g + 1
                break
            same = True
            for k in range(width):
                if keys[k, g] != rows[k, i]:
                    same = False
                    break
            if same:
                break
            at = (at + 1) & mask
        found[i] = g
    return found


@njit(cache=True)
def place_groups(slots, keys, numbers):  # type: ignore[no-untyped-def]
    """Enter groups into empty slots."""
    mask = np.int64(slots.shape[0] - 1)
    for i in range(numbers.shape[0]):
        at = np.int64(_key_hash(keys, numbers[i]) & np.uint64(mask))
        while slots[at] != 0:
            at = (at + 1) & mask
        slots[at] = numbers[i] + 1


@njit(cache=True)
def drop_groups(slots, keys, spare, meta, gone):  # type: ignore[no-untyped-def]
    """Give the numbers of these groups back."""
    mask = np.int64(slots.shape[0] - 1)
    for i in range(gone.shape[0]):
        g = gone[i]
        at = np.int64(_key_hash(keys, g) & np.uint64(mask))
        while slots[at] != g + 1:
            at = (at + 1) & mask
        # Close the gap: whoever was pushed past it moves up.
        hole = at
        while True:
            at = (at + 1) & mask
            if slots[at] == 0:
                break
            home = np.int64(_key_hash(keys, slots[at] - 1) & np.uint64(mask))
            if (at - home) & mask >= (at - hole) & mask:
                slots[hole] = slots[at]
                hole = at
        slots[hole] = 0
        spare[meta[2]] = g
        meta[2] += 1
        meta[0] -= 1
