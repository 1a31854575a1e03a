"""Property paths over windows as joins and unions of triple patterns: what stands inside `a?`.

    a / b    a join on what is between          a | b    a union
    !(a|b)   a triple pattern with a filter     a?       what a finds, and every term to itself, once each
    ^a       the other way round

Outside `?`, `*` and `+` paths are patterns already (`kelda.lang.paths`). These three see the window as a
graph, in every dialect, and tell each pair of ends once. Paths of any length (`*`, `+`) have no such form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kelda.engine.expressions import Compiled
from kelda.engine.nodes import Extended, Filtered, Node, Operated, Projected, United
from kelda.engine.operators.distinct import Distinct
from kelda.engine.operators.join import DeltaJoin
from kelda.engine.partly_bound import united, words
from kelda.lang import algebra as A

Triple = Callable[[A.TriplePattern], Node]
Expression = Callable[[A.Expr, Node], Compiled]
Constant = Callable[[A.Values], Node]


class Paths:
    """Compiles paths. `triple` gives the node of a triple pattern over the graph, `constant` that of rows
    that are always there; `names` are new names for variables between."""

    def __init__(
        self, triple: Triple, expression: Expression, constant: Constant, names: Iterator[int]
    ) -> None:
        self._triple, self._expression, self._constant, self._names = triple, expression, constant, names

    def node(self, s: A.TermOrVar, path: A.Path, o: A.TermOrVar) -> Node | None:
        """The ways from s to o; None for a path of any length."""
        match path:
            case A.Link(iri):
                return self._triple(A.TriplePattern(s, iri, o))
            case A.Inverse(inner):
                return self.node(o, inner, s)
            case A.Sequence(parts):
                return self._sequence(s, parts, o)
            case A.Alternative(parts):
                ways = [self.node(s, part, o) for part in parts]
                found = [way for way in ways if way is not None]
                return united(found) if len(found) == len(ways) else None
            case A.NegatedSet(forward, inverse):
                there = [self._others(s, forward, o)] if forward or not inverse else []
                back = [self._others(o, inverse, s)] if inverse else []
                return united([*there, *back])
            case A.Repeat(inner, 0, False):
                return self._perhaps(s, inner, o)
        return None

    def _sequence(self, s: A.TermOrVar, parts: tuple[A.Path, ...], o: A.TermOrVar) -> Node | None:
        between = [self._fresh() for _ in parts[1:]]
        stops = [s, *between, o]
        joined: Node | None = None
        for part, start, end in zip(parts, stops[:-1], stops[1:], strict=True):
            step = self.node(start, part, end)
            if step is None:
                return None
            if joined is not None:
                on = tuple(c for c in joined.columns if c in step.columns)
                join = DeltaJoin(joined.columns, step.columns, on)
                step = Operated(join, (joined, step), words("join", on))
            joined = step
        assert joined is not None
        return Projected(joined, _columns(s, o))

    def _others(self, s: A.TermOrVar, excluded: tuple[A.Term, ...], o: A.TermOrVar) -> Node:
        """Triples of other predicates than these."""
        predicate = self._fresh()
        node = self._triple(A.TriplePattern(s, predicate, o))
        for iri in excluded:
            differs = A.Call("!=", (A.VarRef(predicate), A.Const(iri)))
            node = Filtered(node, self._expression(differs, node))
        return Projected(node, _columns(s, o))

    def _perhaps(self, s: A.TermOrVar, inner: A.Path, o: A.TermOrVar) -> Node | None:
        ways = self.node(s, inner, o)
        if ways is None:
            return None
        stay = self._stay(s, o)
        return _distinct(ways if stay is None else United((Projected(ways, _columns(s, o)), stay)))

    def _stay(self, s: A.TermOrVar, o: A.TermOrVar) -> Node | None:
        """The paths of length zero: each term of the graph to itself, and a term that the query names."""
        if not isinstance(s, A.Var) and not isinstance(o, A.Var):
            return self._constant(A.Values((), ((),))) if s == o else None
        if not isinstance(s, A.Var):
            return self._constant(A.Values((o,), ((s,),)))  # type: ignore[arg-type]
        if not isinstance(o, A.Var):
            return self._constant(A.Values((s,), ((o,),)))
        as_subject = self._triple(A.TriplePattern(s, self._fresh(), self._fresh()))
        as_object = self._triple(A.TriplePattern(self._fresh(), self._fresh(), s))
        terms: Node = United((Projected(as_subject, (s.name,)), Projected(as_object, (s.name,))))
        if s == o:
            return terms
        terms = Extended(terms, o.name, self._expression(A.VarRef(s), terms))
        return Projected(terms, _columns(s, o))

    def _fresh(self) -> A.Var:
        return A.Var(f".between{next(self._names)}")


def _distinct(node: Node) -> Node:
    return Operated(Distinct(node.columns), (node,), "distinct")


def _columns(s: A.TermOrVar, o: A.TermOrVar) -> tuple[str, ...]:
    return tuple(dict.fromkeys(v.name for v in (s, o) if isinstance(v, A.Var)))
