"""Absorbing: a stream whose elements become facts of a stored graph."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from pyoxigraph import DefaultGraph, NamedNode, Quad

from kelda.engine.deltas import Ids
from kelda.engine.stream_rows import StreamRows
from kelda.rdf import wire
from kelda.store.changes import Changes
from kelda.store.moments import BITS


@wire.plain
@dataclass(frozen=True, slots=True)
class Absorb:
    """Where triples of a stream are stored (None: in the default graph), and which of them (None: all)."""

    graph: str | None = None
    predicates: frozenset[str] | None = None

    def facts(self, quads: Iterable[Quad]) -> list[Quad]:
        """What is stored of an event.

        >>> from pyoxigraph import Literal
        >>> a, b = (NamedNode("http://ex/" + name) for name in "ab")
        >>> event = [Quad(a, a, Literal(1)), Quad(a, b, Literal(2))]
        >>> [str(q) for q in Absorb("http://ex/g", frozenset([b.value])).facts(event)]
        ['<http://ex/a> <http://ex/b> "2"^^<http://www.w3.org/2001/XMLSchema#integer> <http://ex/g>']
        """
        into = DefaultGraph() if self.graph is None else NamedNode(self.graph)
        return [
            Quad(quad.subject, quad.predicate, quad.object, into)
            for quad in quads
            if self.predicates is None or quad.predicate.value in self.predicates
        ]


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
        time, p = rows.time[which], rows.p[which]
        graph = np.full(len(which), self.graph)
        # Ids of predicates are positive: one that is negated says that the triple has gone.
        return Changes(graph, rows.s[which], np.abs(p), rows.o[which], time << BITS, np.sign(p))
