"""Stored graphs as nodes: what they hold when a query is registered, then their changes, each at its instant.

A pattern over one predicate of one graph that is joined with windows is a leaf of their join, and its facts
are probed where they lie (`StoredLeaf`). Any other triple pattern sends its facts as deltas
(`StoredPattern`). What has no incremental form is asked again at each instant at which something has changed
that it reads (`Asked`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from kelda.engine.clock import NEVER
from kelda.engine.deltas import Deltas, Ids
from kelda.engine.nodes import Node, Step
from kelda.engine.window_join import Facts, Leaf
from kelda.rdf.dictionary import Dictionary
from kelda.store import tables_kernels as kernels
from kelda.store.moments import BITS, LAST
from kelda.store.store import Store
from kelda.store.tables_kernels import GRAPH, PREDICATE
from kelda.store.view import TableView


@dataclass(frozen=True, slots=True)
class StoredLeaf:
    """A triple pattern over the facts of one predicate in one graph. `columns` tells where in a record each
    variable is."""

    facts: Facts
    columns: dict[str, int]

    @property
    def leaf(self) -> Leaf:
        """As a leaf of a join."""
        return Leaf(tuple(self.columns), facts=self.facts, places=tuple(self.columns.values()))


@dataclass
class Watch:
    """Follows the changes of some tables from the moment `since` on: those whose graph and predicate are
    wanted."""

    store: Store
    wants: Callable[[int, int], bool]
    since: int
    _seen: dict[int, tuple[int, int]] = field(default_factory=dict)
    _looked: int = 0  # tables among which it has looked for its own
    _mine: list[int] = field(default_factory=list)

    def tables(self) -> list[int]:
        """Those that there are by now."""
        cells = self.store.heap.cells
        every = self.store.tables.all()
        for table in every[self._looked :]:
            if self.wants(int(cells[table + GRAPH]), int(cells[table + PREDICATE])):
                self._mine.append(table)
        self._looked = len(every)
        return self._mine

    def there(self, table: int) -> TableView:
        """What a table holds at the beginning."""
        return TableView(self.store.tables, table, 0, 0, self._upto(table, self.since)[0], self.since)

    def changed(self, moment: int) -> Iterator[tuple[int, tuple[Ids, Ids, Ids, Ids]]]:
        """Up to a moment: tables with what has changed in them (subjects, objects, moments, signs)."""
        cells = self.store.heap.cells
        for table in self.tables():
            seen = self._seen.get(table)
            if seen is None:
                seen = self._upto(table, self.since)
            now = max(seen, self._upto(table, moment))  # updates may have been seen before their instant
            if now != seen:
                self._seen[table] = now
                yield table, kernels.news(cells, table, seen[0], now[0], seen[1], now[1])

    def _upto(self, table: int, moment: int) -> tuple[int, int]:
        cells = self.store.heap.cells
        rows = self.store.tables.rows(table)
        return int(kernels.begun(cells, table, rows, moment)), int(kernels.ended(cells, table, moment))


class StoredPattern(Node):
    """A triple pattern over stored graphs. `wanted` has the ids that subject, predicate and object must have,
    or None; `columns` the position of each variable, GRAPH_NAME for that of the graph; `equal` pairs of
    positions that hold one variable twice."""

    def __init__(
        self,
        watch: Watch,
        wanted: tuple[int | None, int | None, int | None],
        columns: dict[str, int],
        equal: Sequence[tuple[int, int]],
        terms: Dictionary,
    ) -> None:
        super().__init__()
        self.columns = tuple(columns)
        self._watch, self._wanted, self._equal = watch, wanted, equal
        self._positions = tuple(columns.values())
        self._terms = terms
        self._begins = True

    def advance(self, step: Step) -> Deltas:
        parts = []
        if self._begins:
            self._begins = False
            parts += [self._there(table) for table in self._watch.tables()]
        for table, (s, o, moment, sign) in self._watch.changed(step.moment):
            parts.append(self._matching(table, s, o, (moment + LAST) >> BITS, sign))
        deltas = Deltas.concat(parts, self.columns)
        bring(self._watch.store, self._terms, deltas.values)
        return deltas

    def _there(self, table: int) -> Deltas:
        """What a table holds at the beginning."""
        view, (s, _, o) = self._watch.there(table), self._wanted
        if s is not None:
            _, objects = view.by_subject(np.array([s], np.int64))
            subjects = np.full(len(objects), s)
        elif o is not None:
            _, subjects = view.by_object(np.array([o], np.int64))
            objects = np.full(len(subjects), o)
        else:
            subjects, objects = view.scan()
        size = len(subjects)
        return self._matching(table, subjects, objects, np.full(size, NEVER), np.ones(size, np.int64))

    def _matching(self, table: int, s: Ids, o: Ids, time: Ids, sign: Ids) -> Deltas:
        cells = self._watch.store.heap.cells
        graph, predicate = (np.full(len(s), cells[table + i]) for i in (GRAPH, PREDICATE))
        parts = (s, predicate, o, graph)
        fits = np.ones(len(s), np.bool_)
        for part, wanted in zip(parts, self._wanted, strict=False):
            if wanted is not None:
                fits &= part == wanted
        for a, b in self._equal:
            fits &= parts[a] == parts[b]
        which = np.flatnonzero(fits)
        order = which[np.argsort(time[which], kind="stable")]
        values = np.array([parts[position][order] for position in self._positions], np.int64)
        return Deltas(self.columns, time[order], sign[order], values.reshape(len(self.columns), len(order)))

    def say(self) -> str:
        return "stored triples: " + (" ".join("?" + c for c in self.columns) or "no variables")


GRAPH_NAME = 3  # the position of the graph's name, behind those of a triple


class Asked(Node):
    """A stored sub-query without an incremental form. `ask` gives its rows at a moment."""

    def __init__(self, columns: tuple[str, ...], watch: Watch, ask: Callable[[int], Ids], why: str) -> None:
        super().__init__()
        self.columns, self._watch, self._ask, self._why = columns, watch, ask, why
        self._rows: Ids | None = None

    def advance(self, step: Step) -> Deltas:
        moments = sorted({int(m) for _, news in self._watch.changed(step.moment) for m in np.unique(news[2])})
        # Those of one instant are seen together.
        last = {(moment + LAST) >> BITS: moment for moment in moments}
        parts = []
        if self._rows is None:
            self._rows = self._ask(self._watch.since)
            parts.append(self._signed(self._rows, NEVER, 1))
        for instant, moment in last.items():
            before, self._rows = self._rows, self._ask(moment)
            parts += [self._signed(before, instant, -1), self._signed(self._rows, instant, 1)]
        return Deltas.concat(parts, self.columns).consolidated()

    def _signed(self, rows: Ids, time: int, sign: int) -> Deltas:
        size = rows.shape[1]
        return Deltas(self.columns, np.full(size, time), np.full(size, sign), rows)

    def say(self) -> str:
        return f"stored sub-query, asked again when what it reads has changed: {self._why}"


def bring(store: Store, terms: Dictionary, ids: Ids) -> None:
    """Have terms of the store known where they are needed."""
    if ids.size:
        unknown = terms.unknown(ids.ravel())
        if len(unknown):
            terms.add_entries(store.dictionary.entries_of(unknown))


def facts_of(store: Store, graph: int, predicate: int, s: int, o: int, since: int) -> Facts:
    """Facts as a leaf reads them, whether there are any yet or not."""
    return Facts(store.tables, store.tables.make(graph, predicate), s, o, since)
