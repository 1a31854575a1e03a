"""A query that feeds a stored graph: its CONSTRUCT template makes facts of its solutions.

A triple is there as long as a solution makes it: solutions are counted, so that one that goes takes a triple
along only if no other makes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from pyoxigraph import NamedNode, Quad, Triple

from kelda.engine.by_definition import Told
from kelda.engine.oneshot import instantiate
from kelda.errors import UsageError
from kelda.lang import algebra as A
from kelda.lang.scope import visible


class Feed:
    """The graph that a query feeds, and how many solutions make each of its triples."""

    def __init__(self, query: A.Query, graph: str, fresh: str) -> None:
        self.graph = NamedNode(graph)
        self.made: Counter[Triple] = Counter()
        self._template, self._fresh = query.template, fresh

    def facts(self, t: int, told: Told) -> tuple[list[Quad], list[Quad]]:
        """What goes and what comes with a report at t."""
        count: Counter[Triple] = Counter()
        count.update(self._triples(t, told.new))
        count.subtract(self._triples(t, told.gone))
        gone, new = [], []
        for triple, more in count.items():
            before = self.made[triple]
            self.made[triple] += more
            if not self.made[triple]:
                del self.made[triple]
            if before and before + more == 0:
                gone.append(self._fact(triple))
            elif not before and more:
                new.append(self._fact(triple))
        return gone, new

    def _triples(self, t: int, solutions: Any) -> Iterator[Triple]:
        for i, solution in enumerate(solutions):
            for triple in instantiate(self._template, dict(solution), f"{self._fresh}t{t}s{i}"):
                assert isinstance(triple, Triple)
                yield triple

    def _fact(self, triple: Triple) -> Quad:
        return Quad(triple.subject, triple.predicate, triple.object, self.graph)


def check_feed(name: str, query: A.Query, output: A.Output) -> None:
    """Refuse a query that cannot feed a graph."""
    if query.form is not A.Form.CONSTRUCT:
        raise UsageError(f"query {name!r} cannot feed a graph: only CONSTRUCT makes triples")
    if any(isinstance(triple, A.QuadPattern) for triple in query.template):
        raise UsageError(f"query {name!r} cannot feed a graph: its template has a GRAPH of its own")
    if output is A.Output.DSTREAM:
        raise UsageError(f"query {name!r} cannot feed a graph with DSTREAM: nothing would ever come into it")
    if output is A.Output.CHANGES and _makes_blank_nodes(query):
        raise UsageError(
            f"query {name!r} cannot feed a graph with CHANGES: the blank nodes of its template are new each "
            "time, so what has gone could not be found again; make an IRI of what the solution binds"
        )


def _makes_blank_nodes(query: A.Query) -> bool:
    bound = visible(query.pattern, {w.name: w.stream for w in query.windows})
    terms = (term for triple in query.template for term in (triple.s, triple.p, triple.o))
    return any(isinstance(t, A.Var) and t.name.startswith(".") and t not in bound for t in terms)
