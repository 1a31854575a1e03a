"""Kernels: the coordinate of an id on an axis of a grid of shards."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, inline="always")
def _mixed(id):  # type: ignore[no-untyped-def]
    """All bits of the id in all bits of the result: inline ids differ in few of them."""
    x = np.uint64(id)
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True)
def owners(ids, share):  # type: ignore[no-untyped-def]
    """The coordinate of each id."""
    out = np.empty(len(ids), np.int64)
    for i in range(len(ids)):
        out[i] = np.int64(_mixed(ids[i]) % np.uint64(share))
    return out


@njit(cache=True)
def owned(ids, share, coordinate):  # type: ignore[no-untyped-def]
    """Whether each id has this coordinate."""
    out = np.empty(len(ids), np.bool_)
    for i in range(len(ids)):
        out[i] = _mixed(ids[i]) % np.uint64(share) == np.uint64(coordinate)
    return out
