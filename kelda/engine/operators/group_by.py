"""GROUP BY, kept up to date.

    out(t) = { (k, agg(G_k)) }      G_k the rows of the input at t whose keys are k

A change of a group at an instant sends its old row with weight -1 and its new one with +1. With keys, a
group is there while it has rows; without, there is one group, always: `initial` is its row before any input.
What each aggregate says is in `kelda.engine.operators.aggregates`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kelda.engine.clock import NEVER
from kelda.engine.deltas import Deltas, Ids
from kelda.engine.operators.aggregates.count_rows import CountRows
from kelda.engine.operators.aggregates.runs import Members, Runs, runs_of
from kelda.engine.operators.aggregates.runs_kernels import by_group, by_number
from kelda.engine.operators.aggregates.spec import AggregateSpec
from kelda.engine.operators.group_table import LEAST_ROOM, GroupTable, resized
from kelda.errors import UsageError
from kelda.rdf.dictionary import Dictionary


class GroupBy:
    """The operator. `columns` are the keys and the aggregates' names."""

    origin = NEVER
    """The time of `initial`."""

    def __init__(
        self,
        columns_in: tuple[str, ...],
        keys: tuple[str, ...],
        aggregates: tuple[tuple[str, AggregateSpec], ...],
        dictionary: Dictionary,
    ) -> None:
        self.columns_in, self.keys = tuple(columns_in), tuple(keys)
        self.columns = self.keys + tuple(name for name, _ in aggregates)
        self._specs = tuple(spec for _, spec in aggregates)
        for spec in self._specs:
            spec.check(self.columns_in)
        missing = [key for key in self.keys if key not in self.columns_in]
        if missing:
            raise UsageError(f"GROUP BY {missing[0]}: the input has no such column; it has {self.columns_in}")
        self._key_places = [self.columns_in.index(key) for key in self.keys]
        self._groups, self._rows = GroupTable(len(self.keys)), CountRows()
        self._aggregates = tuple(
            spec.build(self._rows, len(self.columns_in), dictionary) for spec in self._specs
        )
        self._last = np.zeros((len(self._specs), LEAST_ROOM), np.int64)  # what was said of each group
        self._states = tuple(dict.fromkeys([self._rows, *self._aggregates]))  # each of them once
        if not self.keys:
            self._groups.find(np.zeros((0, 1), np.int64))
            self._last[:, 0] = [aggregate.empty for aggregate in self._aggregates]

    def initial(self) -> Deltas:
        """What is there before any input: without keys the row of the empty group, at `origin`."""
        if self.keys:
            return Deltas.empty(self.columns)
        row = np.array([[aggregate.empty] for aggregate in self._aggregates], np.int64).reshape(-1, 1)
        return Deltas(self.columns, np.array([self.origin], np.int64), np.ones(1, np.int64), row)

    def step(self, *inputs: Deltas, until: int) -> Deltas:
        """See `Operator.step`."""
        (deltas,) = inputs
        if not len(deltas):
            return Deltas.empty(self.columns)
        deltas = deltas.project(self.columns_in)
        group = self._groups.find(deltas.values[self._key_places])
        self._make_room()
        order = by_group(group, self._groups.room)
        runs, run = runs_of(group[order], deltas.time, order)
        members = Members.of(runs, group, deltas.weight[order], run)
        had_rows = self._rows.has_rows(runs.group)
        counted = self._rows.step(runs, members)
        has_rows = counted != CountRows.empty
        ids = np.zeros((len(self._specs), len(runs)), np.int64)
        values: dict[str | None, Ids] = {}
        for i, (spec, aggregate) in enumerate(zip(self._specs, self._aggregates, strict=True)):
            if aggregate is self._rows:
                ids[i] = counted
                continue
            if spec.column not in values:
                values[spec.column] = _in_order(deltas, spec.column, order)
            ids[i] = aggregate.step(runs, replace(members, value=values[spec.column]))
        out = self._changes(runs, had_rows, has_rows, ids)
        if self.keys:
            gone = runs.group[runs.last & ~has_rows]
            self._last[:, gone] = 0
            self._groups.drop(gone)
            self._compact()
        return out

    def _changes(
        self, runs: Runs, had_rows: NDArray[np.bool_], has_rows: NDArray[np.bool_], ids: Ids
    ) -> Deltas:
        """Old rows taken away, new ones added, where they differ. `had_rows` is before the batch."""
        first = runs.start == np.arange(len(runs))
        now, was = has_rows, np.where(first, had_rows, np.roll(has_rows, 1))
        if not self.keys:
            now = was = np.ones(len(runs), np.bool_)
        old = np.where(first, self._last[:, runs.group], np.roll(ids, 1, axis=1))
        self._last[:, runs.group[runs.last]] = ids[:, runs.last]
        differs = (was != now) | (old != ids).any(axis=0)
        minus, plus = np.flatnonzero(differs & was), np.flatnonzero(differs & now)
        which = np.concatenate([minus, plus])
        keys = self._groups.keys[:, runs.group[which]]
        values = np.concatenate([keys, np.concatenate([old[:, minus], ids[:, plus]], axis=1)])
        weight = np.repeat(np.array([-1, 1], np.int64), [len(minus), len(plus)])
        order = by_number(runs.instant[which], int(runs.instant.max()) + 1)
        return Deltas(self.columns, runs.time[which[order]], weight[order], values[:, order])

    def _make_room(self) -> None:
        room = self._last.shape[1]
        if self._groups.room > room:
            self._resize(np.arange(room), self._groups.room)

    def _compact(self) -> None:
        """Let go of memory that groups long gone took."""
        if self._groups.sparse:
            kept = self._groups.compact()
            self._resize(kept, self._groups.room)

    def _resize(self, kept: Ids, room: int) -> None:
        self._last = resized(self._last, kept, room)
        for state in self._states:
            state.resize(kept, room)

    def __len__(self) -> int:
        """How many groups there are."""
        return len(self._groups)

    @property
    def nbytes(self) -> int:
        """Bytes of state held."""
        return self._last.nbytes + self._groups.nbytes + sum(state.nbytes for state in self._states)


def _in_order(deltas: Deltas, column: str | None, order: Ids) -> Ids:
    """The members of an aggregate: a column, or whole rows."""
    return deltas.values[:, order] if column is None else deltas.column(column)[order]
