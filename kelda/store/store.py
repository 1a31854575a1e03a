"""The stored graphs of a deployment: facts in time, with the terms they are made of."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kelda.rdf.dictionary import Dictionary
from kelda.store.changes import Changes
from kelda.store.heap import Heap
from kelda.store.moments import FOREVER, NEVER
from kelda.store.tables import Tables
from kelda.store.view import View

LATEST = 8  # the cell of the heap's header that tells the moment of the last change


class Store:
    """Facts and their terms. With a `path`, the tables are in that file, for all processes of a machine."""

    def __init__(
        self, path: Path | None = None, *, dictionary: Dictionary | None = None, heap: Heap | None = None
    ) -> None:
        self.heap = Heap(path) if heap is None else heap
        self.tables = Tables(self.heap)
        self.dictionary = Dictionary() if dictionary is None else dictionary
        if not self.heap.cells[LATEST]:
            self.heap.cells[LATEST] = NEVER

    @property
    def latest(self) -> int:
        """The moment of the last change."""
        return int(self.heap.cells[LATEST])

    def apply(self, changes: Changes) -> Changes:
        """Carry out changes, in the order in which they were made; those that made a difference."""
        if not len(changes):
            return changes
        made = self.tables.apply(changes)
        self.heap.cells[LATEST] = max(self.latest, int(changes.moment.max()))  # levels are not equally far
        return changes if made.all() else changes.select(np.flatnonzero(made))

    def view(self, at: int | None = None) -> View:
        """The graphs as they are now, or were at a moment."""
        return View(self.tables, FOREVER - 1 if at is None else at)

    def know(self, terms: Dictionary, changes: Changes) -> None:
        """Have the terms of changes, which another dictionary knows."""
        if len(changes):
            ids = np.concatenate(changes.columns[:4])
            unknown = self.dictionary.unknown(ids)
            if len(unknown):
                self.dictionary.add_entries(terms.entries_of(unknown))

    @property
    def facts(self) -> int:
        """How many there are or were."""
        return sum(map(self.tables.rows, self.tables.all()))

    @property
    def nbytes(self) -> int:
        """Bytes that are allocated, terms not counted."""
        return self.heap.nbytes

    def close(self) -> None:
        """Let go of files."""
        self.tables.close()
