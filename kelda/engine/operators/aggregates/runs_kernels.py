"""Kernels that put deltas in order."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def by_group(groups, room):  # type: ignore[no-untyped-def]
    """Positions in the order of groups (of first appearance), in the given order within each group."""
    n = groups.shape[0]
    local = np.full(room, -1, np.int64)
    counts = np.zeros(n + 1, np.int64)
    number = np.empty(n, np.int64)
    seen = 0
    for i in range(n):
        g = groups[i]
        if local[g] < 0:
            local[g] = seen
            seen += 1
        number[i] = local[g]
        counts[local[g] + 1] += 1
    for j in range(seen):
        counts[j + 1] += counts[j]
    order = np.empty(n, np.int64)
    for i in range(n):
        order[counts[number[i]]] = i
        counts[number[i]] += 1
    return order


@njit(cache=True)
def by_number(numbers, many):  # type: ignore[no-untyped-def]
    """Positions in the order of numbers below `many`, in the given order where they are equal."""
    counts = np.zeros(many + 1, np.int64)
    for i in range(numbers.shape[0]):
        counts[numbers[i] + 1] += 1
    for j in range(many):
        counts[j + 1] += counts[j]
    order = np.empty(numbers.shape[0], np.int64)
    for i in range(numbers.shape[0]):
        order[counts[numbers[i]]] = i
        counts[numbers[i]] += 1
    return order
