"""The numbers under which terms are remembered, by their ids."""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np
from numba import njit

from kelda.store.tables_kernels import mix


@njit(cache=True, inline="always")
def _slot(slots, id):
    """Where an id is among the slots (id, number), or would be."""
    mask = len(slots) - 1
    at = np.int64(mix(np.uint64(3), id)) & mask
    while slots[at, 1] != 0 and slots[at, 0] != id:
        at = (at + 1) & mask
    return at


@njit(cache=True)
def number(slots, known, ids, begin, out, fresh):
    """Write the number of each id from `begin` on; 0 is that of id 0. An id that has none gets the next:
    there are `known` so far, and `fresh` is told of it. Gives how many are known then, and the place in `ids`
    up to which there was room: at most half of the slots are taken."""
    first = known
    for i in range(begin, len(ids)):
        if ids[i] == 0:
            out[i] = 0
            continue
        at = _slot(slots, ids[i])
        if slots[at, 1] == 0:
            if 2 * (known + 1) > len(slots) or known - first == len(fresh):
                return known, i
            fresh[known - first] = ids[i]
            known += 1
            slots[at, 0] = ids[i]
            slots[at, 1] = known
        out[i] = slots[at, 1]
    return known, len(ids)


@njit(cache=True)
def move(old, slots):
    """Put what is in some slots into more."""
    for i in range(len(old)):
        if old[i, 1] != 0:
            slots[_slot(slots, old[i, 0])] = old[i]
