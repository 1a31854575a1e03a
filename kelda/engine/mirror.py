"""The stored graphs for queries by definition: in an Oxigraph store, as they are at the visited instant.

Queries by definition take a step one after another, each instant by instant: so the mirror goes back, too, as
far as the last step.
"""

from __future__ import annotations

import numpy as np
from pyoxigraph import Quad

from kelda.engine.clock import NEVER
from kelda.engine.stored import Watch
from kelda.rdf.graphstore import GraphStore
from kelda.store.moments import instant_of
from kelda.store.store import Store


class Mirror:
    """`graphs` holds what the store holds at the moment to which it was moved last."""

    def __init__(self, store: Store) -> None:
        self.graphs = GraphStore()
        self.position = 0  # how many changes are in `graphs`
        self._store = store
        self._watch = Watch(store, lambda graph, predicate: True, NEVER)
        self._forgotten = 0  # changes that are not undone any more
        self._changes: list[tuple[int, int, Quad]] = []  # moment, sign, quad; those behind them

    def reach(self, moment: int) -> None:
        """Know all changes up to a moment."""
        self.settle()
        terms = self._store.dictionary.terms
        for table, (s, o, moments, sign) in self._watch.changed(moment):
            graph, predicate = terms(self._store.tables.name(table))
            found = terms(np.concatenate([s, o]))
            size = len(s)
            for subject, object, at, plus in zip(
                found[:size], found[size:], moments.tolist(), sign.tolist(), strict=True
            ):
                self._changes.append((at, plus, Quad(subject, predicate, object, graph)))  # type: ignore[arg-type]
        self._changes.sort(key=lambda change: change[:2])

    def settle(self) -> None:
        """Hold all that is known, which is not undone any more."""
        self._move(self._forgotten + len(self._changes))
        self._forgotten += len(self._changes)
        self._changes = []

    def move(self, moment: int) -> None:
        """Hold what the store holds at a moment that was reached, in the last step."""
        known = [at for at, _, _ in self._changes]
        self._move(self._forgotten + int(np.searchsorted(np.array(known, np.int64), moment, "right")))

    def instants(self) -> list[int]:
        """The instants at which something has changed, in the last step."""
        return sorted({instant_of(at) for at, _, _ in self._changes})

    def _move(self, position: int) -> None:
        while self.position < position:
            _, sign, quad = self._changes[self.position - self._forgotten]
            (self.graphs.add if sign > 0 else self.graphs.remove)(quad)
            self.position += 1
        while self.position > position:
            self.position -= 1
            _, sign, quad = self._changes[self.position - self._forgotten]
            (self.graphs.remove if sign > 0 else self.graphs.add)(quad)
