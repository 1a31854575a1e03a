"""Kernels: many ids of few terms, as small numbers."""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np
from numba import njit

_MULTIPLIER = np.uint64(0x9E3779B185EBCA87)


@njit(cache=True, nogil=True)
def numbered(ids):
    """(a number for each id, the id of each number): in the order in which they are first met, but 0 is
    number 0, whether it is there or not."""
    bits = 10
    slots = np.zeros((1 << bits, 2), np.int64)  # an id (0: free) and its number
    found, most = 1, 1 << bits - 1
    numbers = np.empty(len(ids), np.int32)
    last, number = np.int64(0), np.int64(0)
    for i in range(len(ids)):
        id = ids[i]
        if id != last:
            last, number = id, np.int64(0)
            if id != 0:
                at = _slot(slots, bits, id)
                if slots[at, 0] == 0:
                    if found == most:
                        bits, most = bits + 2, 4 * most
                        slots = _larger(slots, bits)
                        at = _slot(slots, bits, id)
                    slots[at, 0], slots[at, 1] = id, found
                    found += 1
                number = slots[at, 1]
        numbers[i] = number
    distinct = np.zeros(found, np.int64)
    for at in range(len(slots)):
        if slots[at, 0] != 0:
            distinct[slots[at, 1]] = slots[at, 0]
    return numbers, distinct


@njit(cache=True, nogil=True)
def _slot(slots, bits, id):
    """Where an id is, or is to be put."""
    at = np.int64((np.uint64(id) * _MULTIPLIER) >> np.uint64(64 - bits))
    while slots[at, 0] != 0 and slots[at, 0] != id:
        at = (at + 1) & (len(slots) - 1)
    return at


@njit(cache=True, nogil=True)
def _larger(slots, bits):
    larger = np.zeros((1 << bits, 2), np.int64)
    for i in range(len(slots)):
        if slots[i, 0] != 0:
            at = _slot(larger, bits, slots[i, 0])
            larger[at, 0], larger[at, 1] = slots[i, 0], slots[i, 1]
    return larger
