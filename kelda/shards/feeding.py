"""Queries that feed stored graphs: what they send comes back as a stream that is absorbed.

An answer that is new is an event whose triples are in the graph ADDED, one that has gone an event whose
triples are in REMOVED. Who absorbs them, the level above the query, has a removed triple with its predicate
negated: so a column more is needed nowhere.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from pyoxigraph import NamedNode, Quad

from kelda.engine.answer import Answer
from kelda.engine.deltas import Ids
from kelda.io.job import StreamSource
from kelda.rdf.ids import encode
from kelda.shards.catalog import Register
from kelda.shards.declared import FED

GRAPH = "graph:"  # begins the sink of such a query
ADDED, REMOVED = (NamedNode(f"urn:kelda:{word}") for word in ("added", "removed"))
_ADDED, _REMOVED = encode(ADDED), encode(REMOVED)


def fed_graph(register: Register) -> str | None:
    """The graph that a query feeds, if it does."""
    sink = register.sink
    return sink.removeprefix(GRAPH) if sink is not None and sink.startswith(GRAPH) else None


def feed_of(query: str, graph: str) -> StreamSource:
    """The stream by which a query feeds a graph."""
    return StreamSource(f"urn:kelda:feed:{query}", FED + query, absorb=graph)


def as_changes(answer: Answer) -> Answer:
    """An answer as an event of that stream."""
    graph = ADDED if answer.sign == "+" else REMOVED
    quads = tuple(Quad(t.subject, t.predicate, t.object, graph) for t in answer.triples or ())
    return replace(answer, sign="+", triples=quads)


def signed(s: Ids, p: Ids, o: Ids, g: Ids | None) -> tuple[Ids, Ids, Ids]:
    """The rows of such events as they are absorbed; others (that say the time) are there for their time
    alone."""
    if g is None:
        return np.zeros_like(s), np.zeros_like(p), np.zeros_like(o)
    one_of_both = (g == _ADDED) | (g == _REMOVED)
    predicate = np.where(g == _REMOVED, -p, p)
    return np.where(one_of_both, s, 0), np.where(one_of_both, predicate, 0), np.where(one_of_both, o, 0)
