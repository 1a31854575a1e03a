"""The stored graphs at a moment: nothing changes in them while they are read, whoever writes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kelda.store import tables_kernels as kernels
from kelda.store.changes import Ids
from kelda.store.tables import Tables
from kelda.store.tables_kernels import (
    GONE,
    GRAPH,
    OBJECT,
    PREDICATE,
    ROWS,
    SUBJECT,
)


@dataclass(frozen=True, slots=True)
class TableView:
    """The facts of one predicate in one graph."""

    tables: Tables
    table: int  # where its description is
    graph: int
    predicate: int
    rows: int  # how many facts there are at most
    at: int

    def scan(self) -> tuple[Ids, Ids]:
        """Subjects and objects of all facts."""
        return kernels.scan(self.tables.heap.cells, self.table, self.rows, self.at)

    def by_subject(self, keys: Ids) -> tuple[Ids, Ids]:
        """For each fact with one of these subjects: which (its place in `keys`), and the object."""
        return self._by(SUBJECT, keys)

    def by_object(self, keys: Ids) -> tuple[Ids, Ids]:
        """For each fact with one of these objects: which (its place in `keys`), and the subject."""
        return self._by(OBJECT, keys)

    def _by(self, column: int, keys: Ids) -> tuple[Ids, Ids]:
        block, heap = self.tables.index(self.table, column), self.tables.heap
        return kernels.probe(heap.cells, heap.halves, self.table, block, column, self.rows, self.at, keys)

    def holds(self, s: Ids, o: Ids) -> NDArray[np.bool_]:
        """Which of these pairs are facts."""
        heap, out = self.tables.heap, np.empty(len(s), np.int8)
        bounds = (self.rows, self.at)
        if kernels.holds(heap.cells, heap.halves, self.table, *bounds, s, o, out):
            block = self.tables.index(self.table, SUBJECT)
            kernels.earlier(heap.cells, heap.halves, self.table, block, *bounds, s, o, out)
        return out.view(np.bool_)

    def subjects(self) -> int:
        """About how many different ones there are."""
        return self.tables.keys(self.table, SUBJECT)

    def objects(self) -> int:
        """About how many different ones there are."""
        return self.tables.keys(self.table, OBJECT)

    def __len__(self) -> int:
        return len(self.scan()[0]) if self.tables.heap.cells[self.table + GONE] else self.rows


@dataclass(slots=True)
class View:
    """All graphs at the moment `at`."""

    store: Tables
    at: int
    _known: dict[tuple[int, int], TableView | None] = field(default_factory=dict)

    def table(self, graph: int, predicate: int) -> TableView | None:
        """The facts of a predicate in a graph (0: the default graph), if there may be any."""
        key = (graph, predicate)
        if key not in self._known:
            table = self.store.find(graph, predicate)
            self._known[key] = self._view(table) if table else None
        return self._known[key]

    def _view(self, table: int) -> TableView | None:
        cells = self.store.heap.cells
        graph, predicate, rows = (int(cells[table + i]) for i in (GRAPH, PREDICATE, ROWS))
        rows = int(kernels.begun(cells, table, rows, self.at))
        return TableView(self.store, table, graph, predicate, rows, self.at) if rows else None

    def tables(self, graph: int) -> list[TableView]:
        """One for each predicate that has facts in a graph."""
        views = (self._view(table) for table in self._of_graph(graph))
        return [view for view in views if view is not None and self._any(view)]

    def _of_graph(self, graph: int) -> list[int]:
        cells = self.store.heap.cells
        return [table for table in self.store.all() if cells[table + GRAPH] == graph]

    def graphs(self) -> list[int]:
        """The graphs that hold anything (0: the default graph)."""
        found: dict[int, None] = {}
        for table in self.store.all():
            graph = int(self.store.heap.cells[table + GRAPH])
            if graph not in found and (view := self._view(table)) and self._any(view):
                found[graph] = None
        return list(found)

    def _any(self, view: TableView) -> bool:
        return bool(kernels.any_there(self.store.heap.cells, view.table, view.rows, self.at))

    def __len__(self) -> int:
        """How many facts there are."""
        return sum(len(view) for graph in self.graphs() for view in self.tables(graph))
