"""Rows with their counts, kept in order from the changes: what ORDER BY with a slice shows is their front."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np

from kelda.engine import ranked_kernels as kernels
from kelda.engine.budget import Budget
from kelda.engine.deltas import Deltas, Ids
from kelda.engine.labels import Labels
from kelda.engine.operators.rows import RowTable, are_sparse
from kelda.engine.operators.rows_kernels import FIELDS, Table, live_slots
from kelda.engine.ranked_kernels import (
    COUNTERS,
    INSTANT,
    LEVELS,
    MANY,
    NO_LABELS,
    PLACES,
    RANDOM,
    SENT,
    STOPPED,
)
from kelda.engine.term_order import Aspect, TermOrder

By = tuple[int, Aspect, bool]  # a place in the row, what of it is compared, whether downwards

MOST_SENT = 1 << 16  # rows, about, before the budget is asked


class Ranked:
    """Rows of `width` columns, ordered by some keys and then by their ids. What is shown of them are
    solutions, their first `shown` columns, from `offset` on to `end`; `distinct`: each once."""

    def __init__(
        self,
        width: int,
        by: Sequence[By],
        order: TermOrder,
        *,
        shown: int,
        offset: int,
        end: int | None,
        distinct: bool,
    ) -> None:
        self._by = tuple(by)
        self._which = np.array([at for at, _, _ in by], np.int64)
        self._every = np.arange(width)
        self._slice = (offset, -1 if end is None else end, int(distinct))
        self.labels = [Labels(order, aspect) for _, aspect, _ in by]
        # Of most pairs the first key decides: the others get no labels until they are needed.
        self._depth = min(1, len(by))
        self._epochs = [-1] * len(by)  # of the labels that rows have
        self.last = np.zeros((0, shown), np.int64)  # shown at the last report
        self._total = 0  # of all weights
        self._begin_anew(width)

    def _begin_anew(self, width: int) -> None:
        self._rows = RowTable(width)
        self._counters = np.zeros(COUNTERS, np.int64)
        self._counters[RANDOM] = 88172645463325252
        self._keys = np.zeros((0, len(self._by)), np.int64)
        self._links = np.zeros((0, 2 * LEVELS), np.int32)
        self._heights = np.zeros(0, np.int8)

    def apart(self) -> Ranked:
        """Another one in the same state, which goes its own way."""
        other = copy(self)
        other._rows = copy(self._rows)
        other._rows.table = Table(*(array.copy() for array in self._rows.table))
        for name in ("_counters", "_keys", "_links", "_heights"):
            setattr(other, name, getattr(self, name).copy())
        other._epochs = list(self._epochs)
        return other

    def step(self, moved: Deltas, instants: Ids, wanted: int, budget: Budget) -> Ids:
        """What is sent at instants, given the changes up to the last one, netted: rows of when, whether it is
        new (1) or gone (-1), and the solution."""
        if are_sparse(self._rows, batch=len(moved)):
            self._make_anew()
        self._reserve(len(moved))
        self._forget_labels(moved.values)
        weights, values = moved.weight, np.ascontiguousarray(moved.values)
        cuts = moved.time.searchsorted(instants, "right")
        changes = (weights, values, self._labelled(values), self._depth)
        most = self._most_shown(weights)
        rows = np.empty((max(len(self.last), most) + most, self.last.shape[1]), np.int64)
        rows[: len(self.last)] = self.last
        scratch = np.empty((3, _power_of_two(2 * len(rows))), np.int64)
        room = max(len(rows), min(MOST_SENT, len(rows) * len(instants)))
        progress = np.zeros(PLACES, np.int64)
        progress[MANY] = len(self.last)
        parts: list[Ids] = []
        size = 0
        while progress[INSTANT] < len(instants):
            out = np.empty((room, SENT + rows.shape[1]), np.int64)
            many = kernels.report(
                self._rows.table, self._order, changes, cuts, instants, self._slice, wanted,
                rows, scratch, out, progress,
            )  # fmt: skip
            parts.append(out[:many])
            size += parts[-1].nbytes
            budget.check(2 * size)  # while they are put together, both are there
            if progress[STOPPED] == NO_LABELS:
                self._depth += 1
                changes = (weights, values, self._labelled(values), self._depth)
            progress[STOPPED] = 0
        self.last = rows[: progress[MANY]].copy()
        return parts[0] if len(parts) == 1 else np.concatenate([out[:0], *parts])

    def _most_shown(self, weights: Ids) -> int:
        """How many solutions there can be at an instant, up to the end of the slice."""
        held = self._total
        self._total += int(weights.sum())
        most = held + int(weights[weights > 0].sum())
        end = self._slice[1]
        return most if end < 0 else min(most, end)

    @property
    def _order(self) -> tuple[Ids, np.ndarray, np.ndarray, Ids, Ids, Ids]:
        return self._keys, self._links, self._heights, self._counters, self._which, self._every

    def _reserve(self, more: int) -> None:
        """Room for so many rows more."""
        self._rows.reserve(more)
        room = self._rows.capacity + 1
        for name in ("_keys", "_links", "_heights"):
            old = getattr(self, name)
            if len(old) < room:
                new = np.zeros((room, *old.shape[1:]), old.dtype)
                new[: len(old)] = old
                setattr(self, name, new)

    def _make_anew(self) -> None:
        """Give back the room that is not needed."""
        weights, values = self._rows.rows()
        self._begin_anew(self._rows.width)
        self._reserve(len(weights))
        changes = (weights, values, self._labelled(values), self._depth)
        done = kernels.change(self._rows.table, self._order, changes, 0, len(weights))
        assert done == len(weights), "rows that were in order have the labels for it"

    # -------------------------------------------------------------------- labels

    def _labelled(self, values: Ids) -> Ids:
        """Labels of the keys of rows to come, in their directions. The rows that are there get new ones where
        those of before do not hold any more."""
        out = np.zeros((len(self._by), values.shape[1]), np.int64)
        settled = False
        while not settled:
            settled = True
            for k in range(self._depth):
                out[k] = self._of(k, values[self._which[k]])
                epoch = self.labels[k].epoch
                if epoch != self._epochs[k]:
                    slots = self._live()
                    ids = self._rows.table.slots[slots, FIELDS + self._which[k]]
                    kernels.relabel(self._rows.table, self._order, slots, self._of(k, ids), k)
                    self._epochs[k], settled = epoch, False
        return out

    def _of(self, k: int, ids: Ids) -> Ids:
        labels = self.labels[k].of(ids)
        return ~labels if self._by[k][2] else labels

    def _live(self) -> Ids:
        slots: Ids = live_slots(self._rows.table.buckets, len(self._rows))
        return slots

    def _forget_labels(self, values: Ids) -> None:
        """Forget the labels that neither rows that are there nor some to come need, if they are many."""
        for k, labels in enumerate(self.labels):
            if labels.are_many:
                held = self._rows.table.slots[self._live(), FIELDS + self._which[k]]
                labels.keep(np.concatenate([held, values[self._which[k]]]))


def _power_of_two(size: int) -> int:
    return 1 << max(size, 4).bit_length()
