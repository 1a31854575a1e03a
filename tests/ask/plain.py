"""Stored graphs as plain arrays: what `kelda.store.view.View` promises, in the simplest way."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Quad

from kelda.ask.table import Ids
from kelda.rdf.dictionary import Dictionary


class PlainTable:
    """The facts of one predicate in one graph."""

    def __init__(self, graph: int, predicate: int, s: Ids, o: Ids) -> None:
        self.graph, self.predicate, self._s, self._o = graph, predicate, s, o

    @property
    def rows(self) -> int:
        return len(self._s)

    def scan(self) -> tuple[Ids, Ids]:
        return self._s.copy(), self._o.copy()

    def by_subject(self, keys: Ids) -> tuple[Ids, Ids]:
        which, row = np.nonzero(keys[:, None] == self._s[None, :])
        return which, self._o[row]

    def by_object(self, keys: Ids) -> tuple[Ids, Ids]:
        which, row = np.nonzero(keys[:, None] == self._o[None, :])
        return which, self._s[row]

    def holds(self, s: Ids, o: Ids) -> NDArray[np.bool_]:
        there = set(zip(self._s.tolist(), self._o.tolist(), strict=True))
        return np.array([pair in there for pair in zip(s.tolist(), o.tolist(), strict=True)], np.bool_)

    def subjects(self) -> int:
        return len(np.unique(self._s))

    def objects(self) -> int:
        return len(np.unique(self._o))


class PlainView:
    """All graphs."""

    def __init__(self, quads: Iterable[Quad], dictionary: Dictionary) -> None:
        facts: dict[tuple[int, int], dict[tuple[int, int], None]] = {}
        for q in quads:
            g, s, p, o = map(dictionary.encode, (q.graph_name, q.subject, q.predicate, q.object))
            facts.setdefault((g, p), {})[s, o] = None
        self._tables = {
            (g, p): PlainTable(g, p, *np.array(list(pairs), np.int64).T) for (g, p), pairs in facts.items()
        }

    def graphs(self) -> list[int]:
        return list(dict.fromkeys(g for g, _ in self._tables))

    def tables(self, graph: int) -> list[PlainTable]:
        return [table for (g, _), table in self._tables.items() if g == graph]

    def table(self, graph: int, predicate: int) -> PlainTable | None:
        return self._tables.get((graph, predicate))
