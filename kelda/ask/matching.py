"""Which rows of two tables belong together.

Two solutions are compatible if no variable has different values in both; an unbound one is compatible with
all. So each side is split by which of the shared columns are bound: between two such classes, compatibility
is equality on what both bind.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kelda.ask.table import Ids
from kelda.engine.operators.aggregates.runs_kernels import by_number
from kelda.engine.operators.group_table import GroupTable

_NOBODY = np.zeros(0, np.int64)


def distinct(rows: Ids) -> Ids:
    """The positions of the distinct rows, each where it first comes."""
    if rows.shape[1] < 2:
        return np.arange(rows.shape[1])
    numbers = GroupTable(rows.shape[0]).find(rows)
    highest = np.maximum.accumulate(numbers)  # numbers are given in order
    first = np.ones(len(numbers), np.bool_)
    np.greater(highest[1:], highest[:-1], out=first[1:])
    return first.nonzero()[0]


def equal_pairs(left: Ids, right: Ids) -> tuple[Ids, Ids]:
    """The positions of all pairs of equal rows, in the order of the left ones, then of the right ones."""
    if not left.shape[1] or not right.shape[1]:
        return _NOBODY, _NOBODY
    table = GroupTable(left.shape[0])
    of_right = table.find(right)
    of_left = table.find(left)
    many = len(table)
    order = by_number(of_right, many)
    counts = np.bincount(of_right, minlength=many)
    starts = np.cumsum(counts) - counts
    each = counts[of_left]
    which = np.repeat(np.arange(len(of_left)), each)
    place = np.arange(len(which)) + np.repeat(starts[of_left] - (np.cumsum(each) - each), each)
    return which, order[place]


def compatible_pairs(left: Ids, right: Ids, *, sharing: bool = False) -> tuple[Ids, Ids]:
    """The positions of all pairs of compatible rows, in the order of the left ones. The rows are those of the
    shared columns. `sharing`: only of pairs that bind a variable in common, as MINUS has it."""
    unbound_left, unbound_right = left == 0, right == 0
    if not unbound_left.any() and not unbound_right.any():
        return (_NOBODY, _NOBODY) if sharing and not left.shape[0] else equal_pairs(left, right)
    found = []
    for mine, unbound in classes(unbound_left):
        for theirs, also in classes(unbound_right):
            both = (~(unbound | also)).nonzero()[0]
            if sharing and not len(both):
                continue
            a, b = equal_pairs(left[both][:, mine], right[both][:, theirs])
            found.append((mine[a], theirs[b]))
    if not found:
        return _NOBODY, _NOBODY
    which, others = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.argsort(which, kind="stable")
    return which[order], others[order]


def classes(unbound: NDArray[np.bool_]) -> list[tuple[Ids, NDArray[np.bool_]]]:
    """The positions of the rows that leave the same columns unbound, and which these are."""
    table = GroupTable(unbound.shape[0])
    numbers = table.find(unbound.astype(np.int64))
    return [((numbers == i).nonzero()[0], table.keys[:, i] != 0) for i in range(len(table))]
