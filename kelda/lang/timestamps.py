"""The time stamps of triples, as C-SPARQL asks for them.

    f:timestamp(?s, ?p, ?o)   the time of that triple, in ms since 1970; the latest, if it came often
    timestamp(?v)             that of the triples that bind ?v, by whichever patterns: the latest of them

A triple that no window of the query has (a stored one) has no time stamp; asking for one is an error, as
SPARQL has them: a FILTER drops the solution, a BIND leaves its variable unbound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from kelda.lang.algebra import (
    Call,
    Const,
    Expr,
    FunctionCall,
    Param,
    Pattern,
    TermOrVar,
    TriplePattern,
    Var,
    VarRef,
)
from kelda.lang.walk import nodes, transform

TIMESTAMP = NamedNode("http://larkc.eu/csparql/sparql/jena/ext#timestamp")
_NOTHING = Const(Literal(""))  # no triple has it as its subject

Value = NamedNode | BlankNode | Literal | Triple


def spelled_out(pattern: Pattern) -> Pattern:
    """timestamp(?v) as f:timestamp of the triples that bind ?v, one after the other."""
    triples = [node for node in nodes(pattern) if isinstance(node, TriplePattern)]

    def rule(node: object) -> object:
        match node:
            case Call("TIMESTAMP", (VarRef(Var() as var),)):
                binding = dict.fromkeys(t for t in triples if var in (t.s, t.p, t.o))
                return FunctionCall(TIMESTAMP, tuple(_value(x) for t in binding for x in (t.s, t.p, t.o)))
        return node

    return transform(pattern, rule)


def _value(term: TermOrVar) -> Expr:
    """The term; what is not bound where it is asked for is of no triple, and no error either."""
    if isinstance(term, Var | Param):
        return Call("COALESCE", (VarRef(term), _NOTHING))
    return Const(term)


def asks(pattern: Pattern) -> bool:
    """Whether the pattern asks for time stamps."""
    return any(isinstance(node, FunctionCall) and node.function == TIMESTAMP for node in nodes(pattern))


def latest(times: dict[tuple[object, object, object], int]) -> Callable[..., Literal | None]:
    """The function, where each triple has its latest time."""

    def timestamp(*terms: Value) -> Literal | None:
        asked: Iterable[tuple[Value, ...]] = zip(terms[::3], terms[1::3], terms[2::3], strict=True)
        found = [times[triple] for triple in asked if triple in times]
        return Literal(max(found)) if found else None

    return timestamp
