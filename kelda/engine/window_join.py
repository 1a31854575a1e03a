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
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kelda.engine import window_join_kernels as kernels
from kelda.engine.budget import NO_LIMIT
from kelda.engine.clock import FOREVER, NEVER
from kelda.engine.deltas import Deltas, Ids
from kelda.engine.window_join_kernels import (
    BASE,
    COPIES,
    EMPTY,
    END,
    ENTER,
    EQUAL,
    EVERY,
    FADES,
    FIXED,
    HELD,
    INDEXES,
    JOINED,
    KEYS,
    LEAF,
    LEAVE,
    MASK,
    OF_OBJECT,
    OF_PAIR,
    OF_SUBJECT,
    OLDEST,
    SIZE,
    START,
    STRIDE,
    TABLE,
    UNIT,
    USED,
    VALUES,
)
from kelda.store import tables_kernels as fact_kernels
from kelda.store.heap import NO_HEAP
from kelda.store.tables import Tables
from kelda.store.tables_kernels import OBJECT, SUBJECT


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts of the store that a leaf reads: those of a table, with this subject and this object (0: any).
    `since`: those that begin after this moment come as new rows."""

    tables: Tables
    table: int
    s: int = 0
    o: int = 0
    since: int = NEVER

    @property
    def fixed(self) -> dict[int, int]:
        """The places of a record whose value is given."""
        return {place: id for place, id in ((SUBJECT, self.s), (OBJECT, self.o)) if id}


@dataclass(frozen=True, slots=True)
class Leaf:
    """What a leaf brings: its variables, and its rows if they are there already, or facts.

    `graph`: its window is a graph, in which a row that comes again replaces its earlier copy. `places`: where
    in a record of a fact each variable is."""

    columns: tuple[str, ...]
    stored: Ids | None = None  # (columns, rows)
    graph: bool = False
    facts: Facts | None = None
    places: tuple[int, ...] = ()

    def place(self, column: int) -> int:
        """Where in a record a column is."""
        return self.places[column] if self.facts is not None else VALUES + column


@dataclass(frozen=True, slots=True)
class NewRows:
    """Rows of leaf number `leaf` in the order in which they enter."""

    leaf: int
    values: Ids
    enter: Ids
    leave: Ids
    unit: Ids | None = None  # what the window counts, if that is asked for later


@dataclass(frozen=True, slots=True)
class _Index:
    """An index of a leaf on some of its columns, and where its chain is in a record."""

    leaf: int
    keys: tuple[int, ...]
    chain: int


SAMPLE = 256  # rows of a leaf that are looked at to choose an order
_NO_BOUNDS = np.zeros(0, np.int64)
LEAST_ROWS, LEAST_RESULTS = 64, 64  # that there is room for from the beginning
MANY_RESULTS = 64 * LEAST_RESULTS  # up to here, room is not given back


class WindowJoin:
    """The join of its leaves; `add` takes new rows, `results` gives the results' deltas."""

    def __init__(self, leaves: Sequence[Leaf]) -> None:
        k = len(leaves)
        self.leaves = tuple(leaves)
        self.columns = tuple(dict.fromkeys(name for leaf in leaves for name in leaf.columns))
        home = {
            name: next((i, leaf.columns.index(name)) for i, leaf in enumerate(leaves) if name in leaf.columns)
            for name in self.columns
        }
        places = [(i, leaves[i].place(c)) for i, c in home.values()]
        self._homes = np.array(places, np.int64).reshape(-1, 2)
        heaps = [leaf.facts.tables.heap for leaf in leaves if leaf.facts is not None]
        self._heap = heaps[0] if heaps else NO_HEAP
        self._constants = np.array([id for leaf in leaves for id in _fixed(leaf).values()], np.int64)
        self._rooms = [LEAST_ROWS] * k  # records of each leaf
        self._cells = np.zeros(0, np.int64)
        self._leaf = np.zeros((k, INDEXES), np.int64)  # as the kernels take it
        self._indexes: list[_Index] = []
        self._by_key: dict[tuple[int, tuple[int, ...]], int] = {}
        self._index_table = np.zeros((0, KEYS), np.int64)  # as the kernels take it
        self._slots = np.zeros((0, 2), np.int64)
        self._alive = [0.0] * k  # rows that stand at one time, about
        self._samples = [np.zeros((len(leaf.columns), 0), np.int64) for leaf in leaves]
        self._plan_table = np.zeros((k, 1, EQUAL), np.int64)  # as the kernels take it
        self._planned: list[float] | None = None  # what `_alive` was when the plan was made
        # For a new row of each leaf: the leaves it probes in turn, and how many matches were expected.
        self.order: list[list[tuple[int, float]]] = [[] for _ in leaves]
        self.probes = np.zeros((k, max(k - 1, 1)), np.int64)
        self.conditions: list[Callable[[Deltas], NDArray[np.bool_]]] = []  # that results must meet
        self.standing = 0  # how many results stand or are about to; the arrays below have room for more
        self._rows = np.zeros((LEAST_RESULTS, k), np.int64)
        self._start = np.zeros(LEAST_RESULTS, np.int64)
        self._sent = np.zeros(LEAST_RESULTS, np.bool_)
        self._told = NEVER  # results were given up to here
        self.budget = NO_LIMIT  # of the step
        self._leaf[:, COPIES] = -1
        self._readers = [(i, leaf.facts) for i, leaf in enumerate(leaves) if leaf.facts is not None]
        for i, facts in self._readers:
            self._leaf[i, [TABLE, FIXED, FIXED + 1]] = facts.table, facts.s, facts.o
            self._leaf[i, [JOINED, END]] = self._begun(facts, facts.since)
            self._alive[i] = float(facts.tables.rows(facts.table))
        for i, leaf in enumerate(leaves):
            if leaf.stored is not None:
                self._rooms[i] = leaf.stored.shape[1]
        self._lay_out(self._rooms)
        for i, leaf in enumerate(leaves):
            if leaf.stored is not None:
                self.add_stored(i, leaf.stored)
            if leaf.graph:
                self._leaf[i, COPIES] = self._index(i, tuple(range(len(leaf.columns))))

    @property
    def nbytes(self) -> int:
        """Bytes of rows, indexes and standing results."""
        return sum(a.nbytes for a in (self._cells, self._slots, self._rows, self._start, self._sent))

    # -------------------------------------------------------------------- rows

    def reach(self, moment: int) -> bool:
        """Facts that begin by a moment come as new rows, with the next `add`; whether there are any."""
        news = False
        for i, facts in self._readers:
            end = self._begun(facts, moment)
            if end > self._leaf[i, END]:
                self._leaf[i, END] = end
                self._alive[i] = float(end)
                news = True
        return news

    def _begun(self, facts: Facts, moment: int) -> int:
        rows = facts.tables.rows(facts.table)
        return int(fact_kernels.begun(self._heap.cells, facts.table, rows, moment))

    def add_stored(self, leaf: int, values: Ids, enter: Ids | None = None, leave: Ids | None = None) -> None:
        """More rows of a stored leaf, before rows of windows that they are to be joined with. They are there
        always, or from `enter` on until `leave`, neither of which may fall."""
        size = values.shape[1]
        enter = np.full(size, NEVER) if enter is None else enter
        leave = np.full(size, FOREVER) if leave is None else leave
        self._make_room([(leaf, size)])
        first = int(self._leaf[leaf, END])
        kernels.append(self._cells, self._leaf, leaf, np.ascontiguousarray(values), enter, leave, enter)
        self._leaf[leaf, JOINED] = self._leaf[leaf, END]
        if size:
            self._survey(leaf, values, first + size)
        for d, index in enumerate(self._indexes):
            if index.leaf == leaf:
                self._fill(d, first)

    def rows_of(self, leaf: int) -> NewRows:
        """The rows of a leaf that have not been let go, as they came."""
        rows = np.arange(self._leaf[leaf, OLDEST], self._leaf[leaf, END])
        at = self._places(leaf, rows)
        values = self._cells[at + VALUES + np.arange(len(self.leaves[leaf].columns))[:, None]]
        return NewRows(leaf, values, self._cells[at + ENTER], self._cells[at + FADES], self._cells[at + UNIT])

    def cell(self, leaf: int, column: int, rows: Ids) -> Ids:
        """A column of some rows of a leaf."""
        return self._cells[self._places(leaf, rows) + VALUES + column]

    def entered(self, leaf: int, rows: Ids) -> Ids:
        """When rows entered their window."""
        return self._cells[self._places(leaf, rows) + ENTER]

    def unit(self, leaf: int, rows: Ids) -> Ids:
        """The units of rows."""
        return self._cells[self._places(leaf, rows) + UNIT]

    def _places(self, leaf: int, rows: Ids) -> Ids:
        base, mask, stride = self._leaf[leaf, :OLDEST]
        return base + (rows & mask) * stride

    @property
    def oldest_rows(self) -> Ids:
        """For each leaf, the number of the first row that has not been let go."""
        return self._leaf[:, OLDEST].copy()

    @property
    def next_rows(self) -> Ids:
        """For each leaf, the number that its next row will have."""
        return self._leaf[:, END].copy()

    def settle(self, leaf: int, rows: Ids, leave: Ids) -> None:
        """Tell when rows leave whose end was open (`leave` FOREVER) when they were added."""
        places = self._places(leaf, rows)
        self._cells[places + FADES] = leave
        # A copy may have ended the stay of a row of a graph window already.
        self._cells[places + LEAVE] = np.minimum(self._cells[places + LEAVE], leave)

    def add(self, batches: Sequence[NewRows]) -> list[int]:
        """Append new rows and join them; gives the number of the first row of each batch."""
        self._make_room([(batch.leaf, len(batch.enter)) for batch in batches])
        firsts = []
        for batch in batches:
            leaf, size = batch.leaf, len(batch.enter)
            firsts.append(int(self._leaf[leaf, END]))
            if not size:
                continue
            values = np.ascontiguousarray(batch.values)
            unit = batch.enter if batch.unit is None else batch.unit
            stay = kernels.append(self._cells, self._leaf, leaf, values, batch.enter, batch.leave, unit)
            span = float(batch.enter[-1] - batch.enter[0]) + 1
            live = float(self._leaf[leaf, END] - self._leaf[leaf, OLDEST])
            self._survey(leaf, values, min(stay / span, live))
        self._join()
        return firsts

    # -------------------------------------------------------------------- results

    def results(self, until: int, bound: Callable[[Ids], Ids] | None = None) -> Deltas:
        """The deltas of all instants up to `until` that were not given yet.

        `bound` may make results end earlier: given their rows, it tells an end for each."""
        n = self.standing
        rows, start, sent = self._rows[:n], self._start[:n], self._sent[:n]
        self.budget.check(8 * n * (len(self._homes) + 3))
        bounds = _NO_BOUNDS if bound is None or not n else bound(rows)
        time, weight, values, ordered, kept = kernels.tell(
            (rows, start, sent), bounds, until, self._cells, self._heap.cells, self._leaf, self._homes
        )
        self._keep(kept, until)
        if ordered:
            return Deltas(self.columns, time, weight, values)
        order = time.argsort(kind="stable")
        return Deltas(self.columns, time[order], weight[order], values.take(order, axis=1))

    def routed(self, until: int, bounds: Callable[[Ids], Ids], column: str) -> Deltas:
        """As `results`, for many readers: `bounds` tells for each result (a row of its answer) and each
        reader (a column) when it ends for that one. Readers are numbered from 1, in `column`."""
        n = self.standing
        rows, start, sent = self._rows[:n], self._start[:n], self._sent[:n]
        ends = np.minimum(
            bounds(rows), kernels.ends_of(rows, self._cells, self._heap.cells, self._leaf)[:, None]
        )
        real = ends > start[:, None]
        fresh = ~sent & (start <= until)
        coming, reader = np.nonzero(real & fresh[:, None])
        since = np.where(fresh, start, self._told)
        going, leaver = np.nonzero(real & (sent | fresh)[:, None] & (ends > since[:, None]) & (ends <= until))
        which = np.concatenate([coming, going])
        time = np.concatenate([start[coming], ends[going, leaver]])
        weight = np.concatenate([np.ones(len(coming), np.int64), np.full(len(going), -1, np.int64)])
        whose = np.concatenate([reader, leaver]) + 1
        order = np.argsort(time, kind="stable")
        values = np.concatenate([self._values(rows[which[order]]), whose[order][None, :]])
        out = Deltas((*self.columns, column), time[order], weight[order], values)
        kept = np.flatnonzero((real & (ends > until)).any(axis=1))
        count = len(kept)
        rows[:count], start[:count], sent[:count] = rows[kept], start[kept], (sent | fresh)[kept]
        self._keep(count, until)
        kernels.sweep(self._cells, self._leaf, until)
        return out

    def told(self, until: int, bound: Callable[[Ids], Ids] | None = None) -> None:
        """What there was to tell up to `until` has been told by another join with the same rows; `bound` as
        for `results`, or `bounds` as for `routed`."""
        n = self.standing
        rows, start, sent = self._rows[:n], self._start[:n], self._sent[:n]
        ends = kernels.ends_of(rows, self._cells, self._heap.cells, self._leaf)
        if bound is not None and n:
            ends = np.minimum(ends, bound(rows).reshape(n, -1).max(axis=1))
        kept = np.flatnonzero((ends > until) & (ends > start))
        count = len(kept)
        rows[:count], start[:count] = rows[kept], start[kept]
        sent[:count] = start[:count] <= until
        self._keep(count, until)

    def _keep(self, count: int, until: int) -> None:
        """So many results stand on beyond `until`."""
        self.standing, self._told = count, until
        if len(self._start) > MANY_RESULTS and len(self._start) > 8 * count:
            self._room_for_results(len(self._start) // 4)

    def _room_for_results(self, room: int) -> None:
        for name in ("_rows", "_start", "_sent"):
            old = getattr(self, name)
            new = np.zeros((room, *old.shape[1:]), old.dtype)
            new[: self.standing] = old[: self.standing]
            setattr(self, name, new)

    def _values(self, rows: Ids) -> Ids:
        """The columns of results."""
        return kernels.gather(rows, self._cells, self._heap.cells, self._leaf, self._homes)

    # -------------------------------------------------------------------- probing

    def _join(self) -> None:
        """Join the rows that were appended."""
        self._think()
        own = (self._cells, self._leaf, self._index_table, self._slots)
        tables = (*own, self._heap.cells, self._heap.halves, self._constants)
        stopped = False
        while True:
            results, many = (self._rows, self._start, self._sent), self.standing
            if len(self.leaves) == 1:
                found, stopped = kernels.alone(tables, results, many)
            else:
                found, stopped = kernels.join(tables, self._plan_table, results, many, self.probes, stopped)
            self._take_in(found)
            if not stopped:
                return
            # With conditions, few may stand of many that are found: these come in large pieces.
            small = len(self._start) < MANY_RESULTS
            if small or 2 * self.standing >= len(self._start) or found == self.standing:
                size = self._start.nbytes + self._rows.nbytes + self._sent.nbytes
                self.budget.check(2 * size)  # while the old ones are copied, both are there
                self._room_for_results(2 * len(self._start))
                self.budget.take(size)

    def _take_in(self, found: int) -> None:
        """Of the results up to `found`, those that are new stand if they meet all conditions."""
        was = self.standing
        rows, start = self._rows[was:found], self._start[was:found]
        if self.conditions:
            self.budget.check(8 * len(rows) * (len(self._homes) + 2))
        for holds in self.conditions:
            if len(rows):
                ones = np.ones(len(rows), np.int64)
                fits = holds(Deltas(self.columns, start, ones, self._values(rows))).nonzero()[0]
                if len(fits) < len(rows):
                    rows, start = rows[fits], start[fits]
        self.standing = was + len(rows)
        if self.standing < found:
            self._rows[was : self.standing], self._start[was : self.standing] = rows, start
        self._sent[was : self.standing] = False

    def _think(self) -> None:
        """Plan, or think over the plan when a leaf has doubled or halved since the last time."""
        if self._planned is None or any(
            now + 1 > 2 * (then + 1) or 2 * (now + 1) < then + 1
            for now, then in zip(self._alive, self._planned, strict=True)
        ):
            self._planned = list(self._alive)
            self._plan_table = self._plan()

    def _plan(self) -> Ids:
        """For a new row of each leaf, the order in which the others are probed: always the one that
        is expected to match the fewest rows next, by what was seen of the leaves."""
        k = len(self.leaves)
        orders: list[list[tuple[int, int, list[tuple[int, int, int]]]]] = []
        for j, start in enumerate(self.leaves):
            homes = {name: (j, start.place(c)) for c, name in enumerate(start.columns)}
            left = [i for i in range(k) if i != j]
            steps = []
            self.order[j] = []
            while left:
                _, matches, best = min(self._expected(i, homes) for i in left)
                left.remove(best)
                self.order[j].append((best, matches))
                leaf, names = self.leaves[best], self.leaves[best].columns
                known = [c for c, n in enumerate(names) if n in homes]
                shared = [(leaf.place(c), *homes[names[c]]) for c in known]
                shared = sorted(shared + self._given(best))
                index = self._index(best, tuple(known)) if leaf.facts is None else _probed(leaf.facts, shared)
                steps.append((best, index, shared))
                for c, name in enumerate(names):
                    homes.setdefault(name, (best, leaf.place(c)))
            orders.append(steps)
        widest = max([len(shared) for steps in orders for _, _, shared in steps], default=0)
        plan = np.zeros((k, max(k - 1, 1), EQUAL + 3 * widest), np.int64)
        for j, steps in enumerate(orders):
            for i, (other, d, shared) in enumerate(steps):
                flat = [n for equal in shared for n in equal]
                plan[j, i, : EQUAL + len(flat)] = [other, d, len(shared), *flat]
        return plan

    def _given(self, leaf: int) -> list[tuple[int, int, int]]:
        """The places of a leaf's records that must be equal to constants."""
        before = sum(len(_fixed(other)) for other in self.leaves[:leaf])
        return [(place, len(self.leaves), before + i) for i, place in enumerate(_fixed(self.leaves[leaf]))]

    def _expected(self, leaf: int, homes: dict[str, tuple[int, int]]) -> tuple[bool, float, int]:
        """Whether every row of `leaf` goes with every result so far, and how many rows a probe is expected to
        find. Such a leaf comes last, unless it is a single row."""
        keys = [c for c, name in enumerate(self.leaves[leaf].columns) if name in homes]
        if (facts := self.leaves[leaf].facts) is not None:
            known = {self.leaves[leaf].places[c] for c in keys} | facts.fixed.keys()
            matches = self._alive[leaf]
            for place in known:
                matches /= facts.tables.keys(facts.table, place)
            return not keys and matches > 1, matches, leaf
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
            d = self._by_key[leaf, keys] = len(self._indexes)
            self._indexes.append(_Index(leaf, keys, int(self._leaf[leaf, STRIDE])))
            self._lay_out(self._rooms)
            widest = max(len(index.keys) for index in self._indexes)
            table = np.zeros((d + 1, KEYS + widest), np.int64)
            table[:d, : self._index_table.shape[1]] = self._index_table
            table[d, :KEYS] = leaf, len(self._slots), 0, 0, self._indexes[d].chain, len(keys)
            table[d, KEYS : KEYS + len(keys)] = [VALUES + c for c in keys]
            self._index_table = table
            self._resize(d, self._live(leaf))
            self._fill(d, int(self._leaf[leaf, OLDEST]))
            self._resize(d, int(self._leaf[leaf, END] - self._leaf[leaf, JOINED]))  # keys may be few
        return self._by_key[leaf, keys]

    def _fill(self, d: int, first: int) -> None:
        """Put the rows from `first` on that are joined already into an index."""
        end = int(self._leaf[self._indexes[d].leaf, JOINED])
        kernels.fill(first, end, d, self._cells, self._leaf, self._index_table, self._slots)

    def _live(self, leaf: int) -> int:
        """Rows of a leaf that have not been let go."""
        return int(self._leaf[leaf, END] - self._leaf[leaf, OLDEST])

    def _make_room(self, news: Sequence[tuple[int, int]]) -> None:
        """Room for so many more rows of some leaves, in their rings and in their hash tables."""
        rooms = self._rooms
        for leaf, size in news:
            is_ring = self.leaves[leaf].stored is None  # else records are not used again
            needed = (self._live(leaf) if is_ring else int(self._leaf[leaf, END])) + size
            if needed > rooms[leaf]:
                rooms = rooms.copy()
                rooms[leaf] = _power_of_two(needed) if is_ring else 2 * needed
        if rooms is not self._rooms:
            self._lay_out(rooms)
        for leaf, size in news:
            for d in self._leaf[leaf, INDEXES : INDEXES + self._leaf[leaf, HELD]].tolist():
                if 2 * (self._index_table[d, USED] + size) > self._index_table[d, SIZE]:
                    self._resize(d, size)

    def _lay_out(self, rooms: list[int]) -> None:
        """Give each leaf an array of so many records, with a place for the chain of each of its indexes."""
        old, was = self._cells, self._leaf
        most = max([sum(i.leaf == j for i in self._indexes) for j in range(len(rooms))], default=0)
        leaf = np.zeros((len(rooms), INDEXES + most), np.int64)
        leaf[:, :INDEXES] = was[:, :INDEXES]
        base = 0
        for j, room in enumerate(rooms):
            mine = [d for d, index in enumerate(self._indexes) if index.leaf == j]
            leaf[j, STRIDE] = VALUES + len(self.leaves[j].columns) + len(mine)
            if leaf[j, TABLE]:
                continue
            # Stored rows are few that leave.
            leaf[j, MASK] = room - 1 if self.leaves[j].stored is None else -1
            leaf[j, BASE] = base
            leaf[j, HELD] = len(mine)
            leaf[j, INDEXES : INDEXES + len(mine)] = mine
            base += room * int(leaf[j, STRIDE])
        cells = np.full(base, EMPTY)
        for j, (a, b) in enumerate(zip(was, leaf, strict=True)):
            if a[OLDEST] == a[END] or a[TABLE]:
                continue
            before, after = _records(old, a, self._rooms[j]), _records(cells, b, rooms[j])
            if len(before) == len(after):
                after[:, : a[STRIDE]] = before
            else:
                rows = np.arange(a[OLDEST], a[END])
                after[rows & b[MASK], : a[STRIDE]] = before[rows & a[MASK]]
        self._rooms, self._cells, self._leaf = list(rooms), cells, leaf

    def _resize(self, d: int, more: int) -> None:
        """A hash table for the keys that an index has and so many more, a third full at most."""
        index = self._index_table[d]
        start, size = int(index[START]), int(index[SIZE])
        oldest = int(self._leaf[index[LEAF], OLDEST])
        needed = kernels.live_keys(self._slots, start, size, oldest) + more
        table = np.full((_power_of_two(max(3 * needed, 64)), 2), EMPTY)
        index[USED] = kernels.rehash(self._slots, start, size, table, oldest)
        if len(table) == size:
            self._slots[start : start + size] = table
            return
        self._slots = np.concatenate([self._slots[:start], table, self._slots[start + size :]])
        index[SIZE] = len(table)
        self._index_table[:, START] += np.where(self._index_table[:, START] > start, len(table) - size, 0)


def _fixed(leaf: Leaf) -> dict[int, int]:
    return {} if leaf.facts is None else leaf.facts.fixed


def _probed(facts: Facts, equal: list[tuple[int, int, int]]) -> int:
    """By which index of the store facts are probed, if these places of their records are known."""
    known = {place for place, _, _ in equal}
    if SUBJECT in known:
        facts.tables.index(facts.table, SUBJECT)
        return OF_PAIR if OBJECT in known else OF_SUBJECT
    if OBJECT in known:
        facts.tables.index(facts.table, OBJECT)
        return OF_OBJECT
    return EVERY


def _records(cells: Ids, leaf: Ids, room: int) -> Ids:
    """The records of a leaf, one per row of the answer."""
    base, stride = int(leaf[BASE]), int(leaf[STRIDE])
    return cells[base : base + room * stride].reshape(room, stride)


def _power_of_two(size: int) -> int:
    """The least one that is not below `size`."""
    return 1 << max(size - 1, 0).bit_length()
