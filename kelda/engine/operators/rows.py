"""A table of rows with their integrated weights: the state of the keyed operators.

A `RowTable` interns rows of int64 columns to dense slots. Slots of released rows are used again; the table
grows by doubling, and `are_sparse` says when tables should be made anew from their `rows`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kelda.engine.deltas import Deltas, Ids
from kelda.engine.operators import rows_kernels as kernels
from kelda.engine.operators.rows_kernels import Table
from kelda.errors import UsageError

_SMALLEST = 16
_WORTH_SHRINKING = 4096


class RowTable:
    """Rows of `width` columns. The kernels work on the arrays of `table`, which change when it grows."""

    def __init__(self, width: int) -> None:
        self.width = width
        buckets = 2 * _SMALLEST
        counters = np.zeros(kernels.COUNTERS, np.int64)
        counters[kernels.SHIFT] = 65 - buckets.bit_length()
        slots = np.zeros((_SMALLEST + 1, kernels.FIELDS + width), np.int64)
        self.table = Table(slots, np.zeros(buckets, np.uint64), counters)

    def __len__(self) -> int:
        return int(self.table.counters[kernels.LIVE])

    @property
    def capacity(self) -> int:
        """Rows there is room for."""
        return len(self.table.slots) - 1

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.table)

    def reserve(self, more: int) -> None:
        """Make room for so many rows more, with at most every other bucket taken."""
        needed, capacity = len(self) + more, self.capacity
        if needed <= capacity:
            return
        while capacity < needed:
            capacity *= 2
        slots, buckets, counters = self.table
        used = int(counters[kernels.USED]) + 1
        more_slots = np.empty((capacity + 1, slots.shape[1]), np.int64)
        more_slots[:used] = slots[:used]
        more_buckets = np.zeros(2 * capacity, np.uint64)
        counters[kernels.SHIFT] = 65 - len(more_buckets).bit_length()
        kernels.rehash(buckets, more_buckets, counters[kernels.SHIFT])
        self.table = Table(more_slots, more_buckets, counters)

    def rows(self) -> tuple[Ids, Ids]:
        """The rows' weights, and their columns."""
        lines = self.table.slots[kernels.live_slots(self.table.buckets, len(self))]
        return lines[:, kernels.WEIGHT].copy(), np.ascontiguousarray(lines[:, kernels.FIELDS :].T)


def are_sparse(*tables: RowTable, batch: int) -> bool:
    """Most of the tables' room is needed neither by their rows nor by another batch of this size.

    Taken together, so that making them all anew costs less than their growth since the last time did."""
    room = sum(table.capacity for table in tables)
    return room > _WORTH_SHRINKING and room > 8 * (sum(len(table) for table in tables) + batch)


def plain(deltas: Deltas, columns: tuple[str, ...]) -> tuple[Ids, Ids, Ids]:
    """Time, weight and values as the kernels want them: contiguous and writable, so that one compiled
    version fits all."""
    deltas = deltas.project(columns)
    time, weight, values = (
        a if a.flags.carray else np.array(a, np.int64, order="C")
        for a in (deltas.time, deltas.weight, deltas.values)
    )
    return time, weight, values


def positions(names: Sequence[str], columns: tuple[str, ...]) -> Ids:
    """Where the named columns are; all of them must be there."""
    missing = [name for name in names if name not in columns]
    if missing:
        raise UsageError(f"no column {', '.join(missing)}: name one of {', '.join(columns) or 'no columns'}")
    return np.array([columns.index(name) for name in names], np.int64)
