"""A mirror of a store, brought forward step by step."""

from __future__ import annotations

import numpy as np

from kelda.engine.mirror import Mirror
from kelda.engine.stored import Watch
from kelda.rdf.graphstore import GraphStore
from kelda.store.changes import Changes
from kelda.store.store import Store


class Mirrored:
    """The stored graphs in Oxigraph, with what will come: all that is there at the moment `since`, then the
    changes of each step."""

    def __init__(self, store: Store, since: int) -> None:
        self.graphs = GraphStore()
        self.mirror = Mirror(self.graphs, store.dictionary)
        self.mirror.begin_with(store.view(since))
        self._store, self._reached = store, since
        self._watch = Watch(store, lambda graph, predicate: True, since)

    def reach(self, moment: int) -> None:
        """Know all changes up to a moment; those of the step before are not undone any more."""
        self.mirror.settle(self._reached)
        self._reached = max(self._reached, moment)
        parts = []
        for table, (s, o, moments, sign) in self._watch.changed(moment):
            graph, predicate = (np.full(len(s), id) for id in self._store.tables.name(table))
            parts.append(Changes(graph, s, predicate, o, moments, sign))
        changes = Changes.concat(parts)
        if len(changes):
            self.mirror.take(changes.select(np.lexsort((changes.sign, changes.moment))))
