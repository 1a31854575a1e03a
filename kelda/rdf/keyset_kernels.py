"""A set of ids in a flat table: is this id one of many constants?"""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, inline="always")
def _home(id, mask):
    h = np.uint64(id) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((h >> np.uint64(32)) & np.uint64(mask))


@njit(cache=True, inline="always")
def has(table, first, mask, id):
    """Whether an id is in the table of `mask` + 1 places that begins at place `first`."""
    at = _home(id, mask)
    while table[first + at] != 0 and table[first + at] != id:
        at = (at + 1) & mask
    return table[first + at] == id


@njit(cache=True)
def insert(table, ids):
    """Add ids (never 0) to a table that has room; gives how many are new."""
    mask = len(table) - 1
    new = 0
    for id in ids:
        at = _home(id, mask)
        while table[at] != 0 and table[at] != id:
            at = (at + 1) & mask
        if table[at] == 0:
            table[at] = id
            new += 1
    return new


@njit(cache=True)
def members(table, ids, out):
    """out[i]: whether ids[i] is in the table."""
    for i in range(len(ids)):
        out[i] = has(table, 0, len(table) - 1, ids[i])
