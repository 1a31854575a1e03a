"""The multiway join of windows and stored relations, by intervals.

A row of a leaf (a triple pattern over a window, or a stored sub-query) stands in its window during
[enter, leave). A result is one row per leaf that agree on their shared variables; it stands during

    [ max enter , min leave )        if that is any time at all

so it is new at its start and gone at its end, and nothing is joined again when rows leave. A result
is found once, by the row that was inserted last: that row probes the other leaves one after another,
in the order that the sizes of the indexes suggest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kelda.engine import window_join_kernels as kernels
from kelda.engine.clock import FOREVER, NEVER
from kelda.engine.deltas import Deltas, Ids


@dataclass(frozen=True, slots=True)
class Leaf:
    """What a leaf brings: its variables, and its rows if they are stored.

    `graph`: its window is a graph, in which a row that comes again replaces its earlier copy."""

    columns: tuple[str, ...]
    stored: Ids | None = None  # (columns, rows)
    graph: bool = False
    grows: bool = False  # stored rows may be added later (`add_stored`)


@dataclass(frozen=True, slots=True)
class NewRows:
    """Rows of leaf number `leaf` in the order of `time`, their arrival."""

    leaf: int
    time: Ids
    values: Ids
    enter: Ids
    leave: Ids
    unit: Ids | None = None  # what the window counts, if that is asked for later


class _Packed(NamedTuple):
    """All indexes, as the kernel takes them."""

    leaf: Ids
    keys: Ids
    start: Ids
    size: Ids
    hashes: NDArray[np.uint64]
    heads: Ids
    used: Ids


@dataclass
class _Index:
    leaf: int
    keys: tuple[int, ...]
    hashes: NDArray[np.uint64]
    heads: Ids
    used: int = 0


SAMPLE = 256  # rows of a leaf that are looked at to choose an order
COLUMNS = ("leaf", "enter", "leave", "fades", "unit")  # of each row, beside its values


@dataclass
class _Table:
    """The columns of all rows; see the kernels for the places of rows."""

    width: int
    stored: int
    capacity: int = 1024
    values: Ids = field(init=False)
    leaf: Ids = field(init=False)
    enter: Ids = field(init=False)
    leave: Ids = field(init=False)
    fades: Ids = field(init=False)
    unit: Ids = field(init=False)

    def __post_init__(self) -> None:
        size = self.stored + self.capacity
        self.values = np.zeros((self.width, size), np.int64)
        for name in COLUMNS:
            setattr(self, name, np.zeros(size, np.int64))

    @property
    def mask(self) -> int:
        return self.capacity - 1

    def place(self, rows: Ids) -> Ids:
        return np.where(rows < self.stored, rows, self.stored + ((rows - self.stored) & self.mask))


class WindowJoin:
    """The join of its leaves; `step` takes new rows and gives the results' deltas."""

    def __init__(self, leaves: Sequence[Leaf]) -> None:
        self.leaves = tuple(leaves)
        self.columns = tuple(dict.fromkeys(name for leaf in leaves for name in leaf.columns))
        self._home = {
            name: next((i, leaf.columns.index(name)) for i, leaf in enumerate(leaves) if name in leaf.columns)
            for name in self.columns
        }
        self._stored = sum(0 if leaf.stored is None else leaf.stored.shape[1] for leaf in leaves)
        # Room for stored rows to come, so that the rows behind them need not be renumbered each time.
        stored = self._stored + (max(64, self._stored) if any(leaf.grows for leaf in leaves) else 0)
        width = max((len(leaf.columns) for leaf in leaves), default=0)
        self._table = _Table(max(width, 1), stored)
        self._oldest = self._joined = self._end = stored  # rows [joined, end) are not in the indexes yet
        self._indexes: list[_Index] = []
        self._by_key: dict[tuple[int, tuple[int, ...]], int] = {}
        self._before = np.full((0, stored + self._table.capacity), -1, np.int64)
        self._live = np.zeros(len(leaves), np.int64)  # rows inserted and not yet swept, per leaf
        self._alive = np.zeros(len(leaves))  # rows that stand at one time, about
        self._samples = [np.zeros((len(leaf.columns), 0), np.int64) for leaf in leaves]
        k = len(leaves)
        self._rows = np.zeros((0, k), np.int64)
        self._start = np.zeros(0, np.int64)
        self._sent = np.zeros(0, np.bool_)
        self.probes = np.zeros((k, max(k - 1, 1)), np.int64)
        # For a new row of each leaf: the leaves it probes in turn, and how many matches were expected.
        self.order: list[list[tuple[int, float]]] = [[] for _ in leaves]
        self.conditions: list[Callable[[Deltas], NDArray[np.bool_]]] = []  # that results must meet
        self._told = NEVER  # results were given up to here
        self._packed: _Packed | None = None
        self._planned: tuple[tuple[int, ...], tuple[Ids, Ids, Ids, Ids, Ids]] | None = None
        n = max(k - 1, 1)
        self._scratch = [np.zeros(size, np.int64) for size in (n, k, n, n)]
        self._load_stored()
        self._copies = np.array(
            [
                self._index(i, tuple(range(len(leaf.columns)))) if leaf.graph else -1
                for i, leaf in enumerate(leaves)
            ],
            np.int64,
        )

    def _load_stored(self) -> None:
        at, table = 0, self._table
        for i, leaf in enumerate(self.leaves):
            if leaf.stored is None:
                continue
            size = leaf.stored.shape[1]
            table.values[: len(leaf.columns), at : at + size] = leaf.stored
            table.leaf[at : at + size] = i
            table.enter[at : at + size] = NEVER
            table.leave[at : at + size] = FOREVER
            table.fades[at : at + size] = FOREVER
            self._live[i] = size
            self._survey(i, leaf.stored, size)
            at += size

    @property
    def nbytes(self) -> int:
        """Bytes of rows, indexes and standing results."""
        table = self._table
        arrays = [table.values, self._before, self._rows, *(getattr(table, name) for name in COLUMNS)]
        arrays += [a for index in self._indexes for a in (index.hashes, index.heads)]
        return sum(a.nbytes for a in arrays)

    @property
    def standing(self) -> int:
        """How many results stand or are about to."""
        return len(self._start)

    # -------------------------------------------------------------------- steps

    def add_stored(self, leaf: int, values: Ids) -> tuple[Ids, int]:
        """More rows of a leaf that grows; gives their numbers, and by how much the numbers of the
        windows' rows have grown to make room."""
        size, shift = values.shape[1], 0
        if self._stored + size > self._table.stored:
            shift = max(size, self._table.stored)
            self._shift(shift)
        first, self._stored = self._stored, self._stored + size
        table, rows = self._table, slice(first, first + size)
        table.values[: len(values), rows] = values
        table.leaf[rows] = leaf
        table.enter[rows] = NEVER
        table.leave[rows] = table.fades[rows] = FOREVER
        self._live[leaf] += size
        if size:
            self._survey(leaf, values, float(self._live[leaf]))
        self._room_in_tables(size)
        for d, index in enumerate(self._indexes):
            if index.leaf == leaf:
                self._fill(d, first, first + size)
        return np.arange(first, first + size), shift

    def _shift(self, by: int) -> None:
        """Make room for `by` more stored rows: all rows of windows get higher numbers."""
        table = self._table
        wider = _Table(table.width, table.stored + by, table.capacity)
        live = np.concatenate([np.arange(self._stored), np.arange(self._oldest, self._end)])
        moved = np.where(live < table.stored, live, live + by)
        old, new = table.place(live), wider.place(moved)
        wider.values[:, new] = table.values[:, old]
        for name in COLUMNS:
            getattr(wider, name)[new] = getattr(table, name)[old]
        before = np.full((len(self._indexes), wider.stored + wider.capacity), -1, np.int64)
        chains = self._before[:, old]
        before[:, new] = np.where(chains >= table.stored, chains + by, chains)
        for index in self._indexes:
            index.heads = np.where(index.heads >= table.stored, index.heads + by, index.heads)
        self._packed = None
        self._rows = np.where(self._rows >= table.stored, self._rows + by, self._rows)
        self._oldest, self._joined, self._end = self._oldest + by, self._joined + by, self._end + by
        self._table, self._before = wider, before

    def cell(self, column: int, rows: Ids) -> Ids:
        """A column of some rows."""
        return self._table.values[column, self._table.place(rows)]

    def entered(self, rows: Ids) -> Ids:
        """When rows entered their windows."""
        return self._table.enter[self._table.place(rows)]

    def unit(self, rows: Ids) -> Ids:
        """The units of rows."""
        return self._table.unit[self._table.place(rows)]

    @property
    def next_row(self) -> int:
        """The number that the next row of a window will have."""
        return self._end

    def settle(self, rows: Ids, leave: Ids) -> None:
        """Tell when rows leave whose end was open (`leave` FOREVER) when they were added."""
        places = self._table.place(rows)
        self._table.fades[places] = leave
        # A copy may have ended the stay of a row of a graph window already.
        self._table.leave[places] = np.minimum(self._table.leave[places], leave)

    def add(self, batches: Sequence[NewRows]) -> list[Ids]:
        """Append new rows and join them; gives the row numbers of each batch."""
        total = sum(len(b.time) for b in batches)
        numbers = [np.zeros(0, np.int64) for _ in batches]
        if not total:
            return numbers
        self._make_room(total)
        table, first = self._table, self._end
        time = np.concatenate([b.time for b in batches])
        rank = np.empty(total, np.int64)
        rank[np.argsort(time, kind="stable")] = np.arange(total)
        at = 0
        for n, batch in enumerate(batches):
            size = len(batch.time)
            numbers[n] = first + rank[at : at + size]
            at += size
            places = table.place(numbers[n])
            table.values[: len(batch.values), places] = batch.values
            table.leaf[places] = batch.leaf
            table.enter[places] = batch.enter
            table.leave[places] = batch.leave
            table.fades[places] = batch.leave
            if batch.unit is not None:
                table.unit[places] = batch.unit
            self._live[batch.leaf] += size
            if size:
                alive = min(_standing_at_once(batch), float(self._live[batch.leaf]))
                self._survey(batch.leaf, batch.values, alive)
        self._end = first + total
        self._probe(first)
        self._joined = self._end
        return numbers

    def results(self, until: int, bound: Callable[[Ids], Ids] | None = None) -> Deltas:
        """The deltas of all instants up to `until` that were not given yet.

        `bound` may make results end earlier: given their rows, it tells an end for each."""
        table, rows = self._table, self._rows
        places = table.place(rows)
        end = table.leave[places].min(axis=1) if len(rows) else np.zeros(0, np.int64)
        if bound is not None and len(rows):
            end = np.minimum(end, bound(rows))
        real = self._start < end
        comes = real & ~self._sent & (self._start <= until)
        goes = real & (end <= until)
        coming, going = np.flatnonzero(comes), np.flatnonzero(goes)
        time = np.concatenate([self._start[coming], end[going]])
        weight = np.ones(len(time), np.int64)
        weight[len(coming) :] = -1
        order = np.argsort(time, kind="stable")
        told = self._values(rows[np.concatenate([coming, going])[order]])
        out = Deltas(self.columns, time[order], weight[order], told)
        kept = real & ~goes
        self._rows, self._start = rows[kept], self._start[kept]
        self._sent = (self._sent | comes)[kept]
        self._sweep(until)
        return out

    def routed(self, until: int, bounds: Callable[[Ids], Ids], column: str) -> Deltas:
        """As `results`, for many readers: `bounds` tells for each result (a row of its answer) and each
        reader (a column) when it ends for that one. Readers are numbered from 1, in `column`."""
        table, rows, start = self._table, self._rows, self._start
        end = table.leave[table.place(rows)].min(axis=1) if len(rows) else np.zeros(0, np.int64)
        ends = np.minimum(bounds(rows), end[:, None])
        real = ends > start[:, None]
        fresh = ~self._sent & (start <= until)
        coming, reader = np.nonzero(real & fresh[:, None])
        since = np.where(fresh, start, self._told)
        going, leaver = np.nonzero(
            real & (self._sent | fresh)[:, None] & (ends > since[:, None]) & (ends <= until)
        )
        which = np.concatenate([coming, going])
        time = np.concatenate([start[coming], ends[going, leaver]])
        weight = np.concatenate([np.ones(len(coming), np.int64), np.full(len(going), -1, np.int64)])
        whose = np.concatenate([reader, leaver]) + 1
        order = np.argsort(time, kind="stable")
        values = self._values(rows[which[order]])
        columns = (*self.columns, column)
        out = Deltas(columns, time[order], weight[order], np.concatenate([values, whose[order][None, :]]))
        kept = (real & (ends > until)).any(axis=1)
        self._rows, self._start, self._sent = rows[kept], start[kept], (self._sent | fresh)[kept]
        self._told = until
        self._sweep(until)
        return out

    def _values(self, rows: Ids) -> Ids:
        """The columns of results."""
        places = self._table.place(rows)
        values = np.empty((len(self.columns), len(rows)), np.int64)
        for i, name in enumerate(self.columns):
            leaf, column = self._home[name]
            values[i] = self._table.values[column, places[:, leaf]]
        return values

    def _fitting(self, rows: Ids, start: Ids) -> tuple[Ids, Ids]:
        """The results that meet all conditions."""
        for holds in self.conditions:
            ones = np.ones(len(rows), np.int64)
            fits = holds(Deltas(self.columns, start, ones, self._values(rows)))
            rows, start = rows[fits], start[fits]
        return rows, start

    def _sweep(self, until: int) -> None:
        """Let go of rows that have left; what they took is reused."""
        table = self._table
        was = self._oldest
        self._oldest = kernels.first_live(was, self._end, table.leave, table.stored, table.mask, until)
        if self._oldest > was:
            gone = table.leaf[table.place(np.arange(was, self._oldest))]
            self._live -= np.bincount(gone, minlength=len(self.leaves))

    # -------------------------------------------------------------------- probing

    def _probe(self, first: int) -> None:
        table, k = self._table, len(self.leaves)
        plan = self._current_plan()
        packed = self._pack()
        scratch = self._scratch
        row, inside = first, False
        capacity = max(4096, self._end - first)
        found_rows, found_starts = [self._rows], [self._start]
        while row < self._end:
            out_rows, out_start = np.empty((capacity, k), np.int64), np.empty(capacity, np.int64)
            row, found, inside = kernels.join(
                row,
                inside,
                self._end,
                table.values,
                table.leaf,
                table.enter,
                table.leave,
                table.fades,
                table.stored,
                table.mask,
                self._oldest,
                self._copies,
                packed.leaf,
                packed.keys,
                packed.start,
                packed.size,
                packed.hashes,
                packed.heads,
                packed.used,
                self._before,
                *plan,
                out_rows,
                out_start,
                *scratch,
                self.probes,
            )
            if found:
                rows, starting = self._fitting(out_rows[:found], out_start[:found])
                found_rows.append(rows)
                found_starts.append(starting)
            elif inside:
                capacity *= 4  # one row alone has more results than fit
        for d, index in enumerate(self._indexes):
            index.used = int(packed.used[d])
        self._rows = np.concatenate(found_rows)
        self._start = np.concatenate(found_starts)
        self._sent = np.concatenate([self._sent, np.zeros(len(self._start) - len(self._sent), np.bool_)])

    def _pack(self) -> _Packed:
        """The tables of all indexes in one array, as the kernel takes them; made anew only when one of
        them was replaced."""
        if self._packed is None:
            sizes = np.array([len(i.heads) for i in self._indexes], np.int64)
            starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
            widest = max([len(i.keys) for i in self._indexes], default=1) or 1
            keys = np.full((len(self._indexes), widest), -1, np.int64)
            for d, index in enumerate(self._indexes):
                keys[d, : len(index.keys)] = index.keys
            hashes = np.concatenate([i.hashes for i in self._indexes] or [np.zeros(0, np.uint64)])
            heads = np.concatenate([i.heads for i in self._indexes] or [np.zeros(0, np.int64)])
            for d, index in enumerate(self._indexes):  # from now on, parts of the whole
                index.hashes, index.heads = (a[starts[d] : starts[d + 1]] for a in (hashes, heads))
            leaf = np.array([i.leaf for i in self._indexes], np.int64)
            used = np.zeros(len(self._indexes), np.int64)
            self._packed = _Packed(leaf, keys, starts[:-1], sizes, hashes, heads, used)
        self._packed.used[:] = [i.used for i in self._indexes]
        return self._packed

    def _current_plan(self) -> tuple[Ids, Ids, Ids, Ids, Ids]:
        """The plan, thought over again when a leaf has doubled or halved since the last time."""
        counts = tuple(int(n).bit_length() for n in self._alive)
        if self._planned is None or self._planned[0] != counts:
            self._planned = (counts, self._plan())
        return self._planned[1]

    def _plan(self) -> tuple[Ids, Ids, Ids, Ids, Ids]:
        """For a new row of each leaf, the order in which the others are probed: always the one that
        is expected to match the fewest rows next, by what was seen of the leaves."""
        k = len(self.leaves)
        orders: list[list[tuple[int, int, list[tuple[int, int]], list[tuple[int, int, int]]]]] = []
        for j, start in enumerate(self.leaves):
            homes = {name: (j, c) for c, name in enumerate(start.columns)}
            left = [i for i in range(k) if i != j]
            steps = []
            self.order[j] = []
            while left:
                _, matches, best = min(self._expected(i, homes) for i in left)
                left.remove(best)
                self.order[j].append((best, matches))
                names = self.leaves[best].columns
                shared = [(c, homes[n]) for c, n in enumerate(names) if n in homes]
                d = self._index(best, tuple(c for c, _ in shared))
                steps.append((best, d, [home for _, home in shared], [(c, *home) for c, home in shared]))
                for c, name in enumerate(names):
                    homes.setdefault(name, (best, c))
            orders.append(steps)
        widest = max([len(s[2]) for steps in orders for s in steps], default=1) or 1
        n = max(k - 1, 1)
        plan_leaf, plan_index = np.zeros((k, k - 1), np.int64), np.zeros((k, n), np.int64)
        plan_from, check = np.zeros((k, n, widest, 2), np.int64), np.zeros((k, n, widest, 3), np.int64)
        check_count = np.zeros((k, n), np.int64)
        for j, steps in enumerate(orders):
            for i, (leaf, d, sources, checks) in enumerate(steps):
                plan_leaf[j, i], plan_index[j, i], check_count[j, i] = leaf, d, len(checks)
                for c, source in enumerate(sources):
                    plan_from[j, i, c] = source
                    check[j, i, c] = checks[c]
        return plan_leaf, plan_index, plan_from, check_count, check

    def _expected(self, leaf: int, homes: dict[str, tuple[int, int]]) -> tuple[bool, float, int]:
        """How many rows of `leaf` a probe is expected to find; an unconnected leaf comes last."""
        keys = [c for c, name in enumerate(self.leaves[leaf].columns) if name in homes]
        return not keys, self._alive[leaf] * self._repetition(leaf, keys), leaf

    def _repetition(self, leaf: int, keys: list[int]) -> float:
        """The chance that two rows of a leaf have one key, by a sample: frequent keys are probed often
        and found often."""
        sample = self._samples[leaf]
        size = sample.shape[1]
        if not keys:
            return 1.0
        if size < 2:
            return 0.5 ** len(keys)
        key = sample[keys[0]]
        for column in keys[1:]:
            key = key * np.int64(-7046029254386353131) + sample[column]
        _, counts = np.unique(key, return_counts=True)
        return max(float((counts * (counts - 1)).sum()) / (size * (size - 1)), 0.5 / size**2)

    def _survey(self, leaf: int, values: Ids, alive: float) -> None:
        """Take note of what the rows of a leaf look like, and of how many stand at a time."""
        self._samples[leaf] = values[:, :: max(1, values.shape[1] // SAMPLE)][:, :SAMPLE].copy()
        self._alive[leaf] = alive

    # -------------------------------------------------------------------- indexes and room

    def _index(self, leaf: int, keys: tuple[int, ...]) -> int:
        """The index of a leaf on some of its columns, built when it is first asked for."""
        if (leaf, keys) not in self._by_key:
            d = len(self._indexes)
            rows = int(self._live[leaf])
            index = _Index(leaf, keys, *_empty_table(2 * rows + 64))
            self._indexes.append(index)
            self._packed = None
            self._by_key[leaf, keys] = d
            table = self._table
            self._before = np.concatenate(
                [self._before, np.full((1, table.stored + table.capacity), -1, np.int64)]
            )
            self._fill(d, 0, self._stored)
            self._fill(d, self._oldest, self._joined)
        return self._by_key[leaf, keys]

    def _fill(self, d: int, first: int, end: int) -> None:
        """Put the rows [first, end) that belong to an index into it."""
        index, table = self._indexes[d], self._table
        index.used = kernels.fill(
            first,
            end,
            d,
            index.leaf,
            np.array(index.keys or (-1,), np.int64),
            table.values,
            table.leaf,
            table.stored,
            table.mask,
            self._oldest,
            index.hashes,
            index.heads,
            self._before,
            index.used,
        )

    def _make_room(self, rows: int) -> None:
        """Room for so many more rows in the ring and in every hash table."""
        table = self._table
        needed = self._end - self._oldest + rows
        if needed > table.capacity:
            bigger = _Table(table.width, table.stored, 1 << (needed * 2 - 1).bit_length())
            live = np.concatenate([np.arange(self._stored), np.arange(self._oldest, self._end)])
            old, new = table.place(live), bigger.place(live)
            bigger.values[:, new] = table.values[:, old]
            for name in COLUMNS:
                getattr(bigger, name)[new] = getattr(table, name)[old]
            before = np.full((len(self._indexes), table.stored + bigger.capacity), -1, np.int64)
            before[:, new] = self._before[:, old]
            self._table, self._before = bigger, before
        self._room_in_tables(rows)

    def _room_in_tables(self, rows: int) -> None:
        for index in self._indexes:
            if 2 * (index.used + rows) > len(index.heads):
                oldest = 0 if self.leaves[index.leaf].stored is not None else self._oldest
                size = 4 * (int(self._live[index.leaf]) + rows) + 64
                hashes, heads = _empty_table(size)
                index.used = kernels.rehash(index.hashes, index.heads, hashes, heads, oldest)
                if len(heads) == len(index.heads):  # in its place, and nothing is to be packed anew
                    index.hashes[:], index.heads[:] = hashes, heads
                else:
                    index.hashes, index.heads = hashes, heads
                    self._packed = None


def _standing_at_once(batch: NewRows) -> float:
    """How many rows of a batch stand in their window at one time, on average."""
    size = len(batch.enter)
    span = float(batch.enter[-1] - batch.enter[0]) + 1
    stay = float((np.minimum(batch.leave, batch.enter + (1 << 40)) - batch.enter).mean())
    return size * stay / span


def _empty_table(size: int) -> tuple[NDArray[np.uint64], Ids]:
    slots = 1 << max(size - 1, 63).bit_length()
    return np.zeros(slots, np.uint64), np.full(slots, -1, np.int64)
