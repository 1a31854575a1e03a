"""Changes of stored graphs, as columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Quad

from kelda.rdf import wire
from kelda.rdf.dictionary import Dictionary

if TYPE_CHECKING:
    from kelda.store.view import View

Ids = NDArray[np.int64]


@wire.plain
@dataclass(frozen=True, slots=True)
class Changes:
    """Facts that are added (sign 1) and removed (sign -1), in the order in which that is carried out. In each
    graph moments do not fall, and removals come first within one."""

    graph: Ids
    s: Ids
    p: Ids
    o: Ids
    moment: Ids
    sign: Ids

    def __len__(self) -> int:
        return len(self.s)

    @property
    def columns(self) -> tuple[Ids, ...]:
        return (self.graph, self.s, self.p, self.o, self.moment, self.sign)

    @classmethod
    def none(cls) -> Changes:
        """No change at all."""
        return cls(*(np.zeros(0, np.int64) for _ in range(6)))

    @classmethod
    def concat(cls, parts: Sequence[Changes]) -> Changes:
        """One after another."""
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return cls.none()
        return cls(*(np.concatenate(columns) for columns in zip(*(p.columns for p in parts), strict=True)))

    def select(self, which: NDArray[np.bool_] | NDArray[np.int64]) -> Changes:
        """Some of them."""
        return Changes(*(column[which] for column in self.columns))


def changes_of(quads: Iterable[Quad], dictionary: Dictionary, moment: int, sign: int = 1) -> Changes:
    """Quads that are added at a moment (or removed)."""
    encode = dictionary.encode
    rows = [(encode(q.graph_name), encode(q.subject), encode(q.predicate), encode(q.object)) for q in quads]
    graph, s, p, o = np.array(rows, np.int64).reshape(-1, 4).T.copy()
    size = len(rows)
    return Changes(graph, s, p, o, np.full(size, moment), np.full(size, sign))


def cleared(view: View, graph: int, moment: int) -> Changes:
    """All facts of a graph are removed at a moment."""
    parts = []
    for table in view.tables(graph):
        s, o = table.scan()
        g, p, at, sign = (np.full(len(s), n) for n in (graph, table.predicate, moment, -1))
        parts.append(Changes(g, s, p, o, at, sign))
    return Changes.concat(parts)
