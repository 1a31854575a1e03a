"""What has no operator of ours: Oxigraph answers it, over a copy of what it can touch."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
from pyoxigraph import NamedNode, Quad

from kelda.ask.facts import Facts, Graph
from kelda.ask.node import At, Node, named
from kelda.ask.table import Ids, Table
from kelda.engine.oneshot import evaluate_ids
from kelda.lang import algebra as A
from kelda.lang.scope import certainly_bound, visible_vars
from kelda.lang.walk import nodes, transform
from kelda.rdf.graphstore import GraphStore
from kelda.rdf.ids import encode
from kelda.rdf.times import ms_to_literal


class ByOxigraph(Node):
    """A pattern that Oxigraph answers, and the reason."""

    def __init__(self, pattern: A.Pattern, base: str | None, reason: str) -> None:
        self._variables = tuple(sorted(visible_vars(pattern)))
        self._pattern, self._base, self._reason = pattern, base, reason
        self.columns = tuple(v.name for v in self._variables)
        self.bound = frozenset(v.name for v in certainly_bound(pattern))

    def run(self, at: At, only: Table | None = None) -> Ids:
        store = GraphStore()
        predicates = touched(self._pattern)
        store.extend(_quads(at, at.graph, None, predicates))
        if any(isinstance(node, A.InGraph) for node in nodes(self._pattern)):
            for graph in at.dataset.named_graphs(at.view):
                store.extend(_quads(at, Graph(at.view, (graph,)), graph, predicates))
        now = A.Const(ms_to_literal(at.now))

        def fixed(node: object) -> object:
            return now if isinstance(node, A.Call) and node.op == "NOW" else node

        pattern = A.Project(transform(self._pattern, fixed), self._variables)
        return evaluate_ids(A.Query(A.Form.SELECT, pattern, base=self._base), store, at.dictionary)

    def say(self) -> str:
        return f"ask Oxigraph for {named(self.columns)}: {self._reason}"


def touched(pattern: A.Pattern) -> frozenset[NamedNode] | None:
    """The predicates that a pattern can match; None: all."""
    found: set[NamedNode] = set()
    for node in nodes(pattern):
        match node:
            case A.TriplePattern(_, NamedNode() as p, _) | A.Link(p):
                found.add(p)
            case A.TriplePattern() | A.NegatedSet() | A.Repeat(_, 0, _):
                return None
    return frozenset(found)


def _quads(
    at: At, graph: Graph, name: int | None, predicates: Collection[NamedNode] | None
) -> Iterator[Quad]:
    tables: list[Facts | None]
    if predicates is None:
        tables = list(graph.tables())
    else:
        tables = [graph.table(encode(p, at.dictionary.seed)) for p in predicates]
    for table in tables:
        if table is None:
            continue
        subjects, objects = map(at.dictionary.terms, table.scan())
        p, *rest = at.dictionary.terms(np.array([table.predicate, *([] if name is None else [name])]))
        for s, o in zip(subjects, objects, strict=True):
            yield Quad(s, p, o, *rest)  # type: ignore[arg-type]
