"""Streams that become stored facts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kelda.engine.deltas import Ids
from kelda.engine.stream_rows import StreamRows
from kelda.rdf import wire
from kelda.store.changes import Changes
from kelda.store.moments import BITS


@wire.plain
@dataclass(frozen=True, slots=True)
class Absorb:
    """Where the elements of a stream are stored: in a graph (None: the default graph); all of them, or those
    with one of some predicates."""

    graph: str | None = None
    predicates: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Absorbing:
    """The same as ids."""

    graph: int
    predicates: Ids | None

    def changes(self, rows: StreamRows) -> Changes:
        """What rows of a stream add to the graph, each at its instant."""
        which = np.flatnonzero(rows.s)  # others are there for their time alone
        if self.predicates is not None:
            which = which[np.isin(rows.p[which], self.predicates)]
        time = rows.time[which]
        size = len(which)
        graph, ones = np.full(size, self.graph), np.ones(size, np.int64)
        return Changes(graph, rows.s[which], rows.p[which], rows.o[which], time << BITS, ones)
