"""The tables of a store: one for each predicate in each graph, inside one heap (`tables_kernels.py`).

One process at a time writes, under `lock`; all others read meanwhile. Indexes by subject and by object are
built when they are first asked for, once for all processes.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from kelda.store import tables_kernels as kernels
from kelda.store.changes import Changes
from kelda.store.heap import Heap
from kelda.store.moments import NEVER
from kelda.store.tables_kernels import (
    BEGIN,
    BY_OBJECT,
    BY_PAIR,
    BY_SUBJECT,
    DESCRIPTION,
    DONE,
    ENDED,
    ENDED_ROOM,
    EXTENTS,
    FIRST,
    GONE,
    GRAPH,
    LATEST,
    LIST,
    NAMES,
    NAMES_ROOM,
    NEEDS_TABLE,
    OBJECT,
    PREDICATE,
    RECORD,
    ROOM,
    ROWS,
    SLOTS,
    SUBJECT,
    TABLES,
    TABLES_ROOM,
    TAKEN,
)

LEAST_TABLES = 64
LEAST_SLOTS = 64
SAMPLE = 4096  # records that are looked at to tell how many keys there are


class Tables:
    """All tables in a heap. A table is named by where its description is."""

    def __init__(self, heap: Heap) -> None:
        self.heap = heap
        self._within = threading.RLock()
        self._file = None if heap.path is None else os.open(heap.path, os.O_RDONLY | os.O_CLOEXEC)
        self._held = 0
        with self.lock():
            if not heap.cells[NAMES]:
                self._names_for(LEAST_TABLES)

    def close(self) -> None:
        """Let go of the lock's file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Nobody else writes meanwhile, in this process or another."""
        with self._within:
            if self._file is not None and not self._held:
                fcntl.flock(self._file, fcntl.LOCK_EX)
            self._held += 1
            try:
                yield
            finally:
                self._held -= 1
                if self._file is not None and not self._held:
                    fcntl.flock(self._file, fcntl.LOCK_UN)

    # -------------------------------------------------------------------- what there is

    def __len__(self) -> int:
        return int(self.heap.cells[TABLES])

    def find(self, graph: int, predicate: int) -> int:
        """A table, or 0."""
        return int(kernels.find_name(self.heap.cells, np.int64(graph), np.int64(predicate))[0])

    def all(self) -> list[int]:
        """All tables."""
        begin = int(self.heap.cells[LIST])
        tables: list[int] = self.heap.cells[begin : begin + len(self)].tolist()
        return tables

    def name(self, table: int) -> tuple[int, int]:
        """The graph and the predicate of a table."""
        return int(self.heap.cells[table + GRAPH]), int(self.heap.cells[table + PREDICATE])

    def rows(self, table: int) -> int:
        """How many records a table has, ended ones too."""
        return int(self.heap.cells[table + ROWS])

    def index(self, table: int, column: int) -> int:
        """The block of a table's index by subject or object."""
        at = table + (BY_SUBJECT if column == SUBJECT else BY_OBJECT)
        cells = self.heap.cells
        if not cells[at]:
            with self.lock():
                if not cells[at]:  # another may have been first
                    self._build(table, column)
        return int(cells[at])

    def _build(self, table: int, column: int) -> None:
        cells, halves = self.heap.cells, self.heap.halves
        block, done = self._block(self.rows(table) // 8), 0
        while (done := kernels.fill(cells, halves, table, column, block, done)) < self.rows(table):
            larger = self._block(4 * int(cells[block + SLOTS]))
            kernels.move_keys(cells, halves, table, column, block, larger)
            block = larger
        cells[table + (BY_SUBJECT if column == SUBJECT else BY_OBJECT)] = block

    def keys(self, table: int, column: int) -> int:
        """About how many different subjects or objects a table has: by its index, or by a sample."""
        cells = self.heap.cells
        block = int(cells[table + (BY_SUBJECT if column == SUBJECT else BY_OBJECT)])
        if block:
            return max(1, int(cells[block + TAKEN]))
        rows = self.rows(table)
        if not rows:
            return 1
        size = min(rows, SAMPLE)
        many = len(np.unique(kernels.sample(cells, table, column, rows, size)))
        # Where hardly any is twice in the sample, all may be different; else there are not many more.
        return rows if 4 * many > 3 * size else min(rows, 2 * many)

    # -------------------------------------------------------------------- writing

    def apply(self, changes: Changes) -> NDArray[np.bool_]:
        """Carry out changes; which of them have made a difference."""
        made = np.zeros(len(changes), np.bool_)
        columns = [np.ascontiguousarray(column) for column in changes.columns]
        graph, _, p, _, _, _ = columns
        at, left = 0, dict[int, int]()  # by table: how many changes of it there were when it was first full
        with self.lock():
            while True:
                needs, at = kernels.apply(self.heap.cells, self.heap.halves, *columns, made, at)
                if needs == DONE:
                    return made
                if needs == NEEDS_TABLE:
                    self._make(int(graph[at]), int(p[at]))
                else:
                    table = self.find(int(graph[at]), int(p[at]))
                    if table not in left:
                        left[table] = int(((graph[at:] == graph[at]) & (p[at:] == p[at])).sum())
                    self._make_room(table, left[table])

    def make(self, graph: int, predicate: int) -> int:
        """A table, whether there are facts in it or not."""
        with self.lock():
            return self.find(graph, predicate) or self._make(graph, predicate)

    def _make(self, graph: int, predicate: int) -> int:
        cells = self.heap.cells
        if len(self) == cells[TABLES_ROOM]:
            self._names_for(2 * len(self))
        table = self.heap.allocate(DESCRIPTION)
        cells[table + GRAPH], cells[table + PREDICATE], cells[table + LATEST] = graph, predicate, NEVER
        cells[table + BY_PAIR] = self._block(0)
        cells[cells[LIST] + len(self)] = table
        _, slot = kernels.find_name(cells, np.int64(graph), np.int64(predicate))
        cells[slot], cells[slot + 1], cells[slot + 2] = graph, predicate, table
        cells[TABLES] += 1
        return table

    def _names_for(self, room: int) -> None:
        """Room for so many tables."""
        cells = self.heap.cells
        tables = np.array(self.all(), np.int64)
        begin, names = self.heap.allocate(room), self.heap.allocate(2 * room * 3)
        cells[begin : begin + len(tables)] = tables
        if len(tables):
            kernels.name(cells, names, 2 * room, tables)
        cells[LIST], cells[TABLES_ROOM] = begin, room
        cells[NAMES], cells[NAMES_ROOM] = names, 2 * room

    def _make_room(self, table: int, more: int) -> None:
        """Room in a table for one more record at the least, and for `more` where that is cheap."""
        cells, halves = self.heap.cells, self.heap.halves
        while cells[table + ROOM] <= cells[table + ROWS]:
            extent = _extents(int(cells[table + ROOM]))
            size = FIRST << extent
            cells[table + EXTENTS + extent] = self.heap.allocate(size * RECORD)
            cells[table + ROOM] += size
        old = int(cells[table + BY_PAIR])
        if 3 * (cells[old + TAKEN] + 1) > 2 * cells[old + SLOTS]:
            block = self._block(2 * (int(cells[old + TAKEN]) + max(more, int(cells[old + TAKEN]))))
            kernels.move_pairs(cells, halves, table, old, block)
            cells[table + BY_PAIR] = block
        for at, column in ((BY_SUBJECT, SUBJECT), (BY_OBJECT, OBJECT)):
            old = int(cells[table + at])
            if old and 3 * (cells[old + TAKEN] + 1) > 2 * cells[old + SLOTS]:
                block = self._block(4 * int(cells[old + TAKEN]))
                kernels.move_keys(cells, halves, table, column, old, block)
                cells[table + at] = block
        if cells[table + GONE] == cells[table + ENDED_ROOM]:
            room = max(FIRST, 2 * int(cells[table + ENDED_ROOM]))
            ended, many = self.heap.allocate(room), int(cells[table + GONE])
            begin = int(cells[table + ENDED])
            cells[ended : ended + many] = cells[begin : begin + many]
            cells[table + ENDED], cells[table + ENDED_ROOM] = ended, room

    def _block(self, slots: int) -> int:
        """An empty block of an index."""
        slots = 1 << max(slots - 1, LEAST_SLOTS - 1).bit_length()
        block = self.heap.allocate(BEGIN + slots // 2)
        self.heap.cells[block + SLOTS] = slots
        return block


def _extents(room: int) -> int:
    """How many extents make room for so many records."""
    return (room // FIRST + 1).bit_length() - 1
