"""Property paths as the patterns they are shorthands for, by SPARQL 1.1 sections 9.3 and 18.2.2.

    s ^a o        o a s
    s a/b o       s a ?between . ?between b o
    s a|b o       { s a o } UNION { s b o }
    s !(a|^b) o   { s ?p o FILTER(?p NOT IN (a)) } UNION { o ?p s FILTER(?p NOT IN (b)) }

Their solutions are bags: one for each way. What is left is `a?`, `a*` and `a+`, whose solutions are sets,
whatever stands inside. No store is handed any other path, for stores differ in how often they tell a way.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from pyoxigraph import NamedNode

from kelda.lang.algebra import (
    Alternative,
    Call,
    Const,
    Filter,
    Inverse,
    Join,
    Link,
    NegatedSet,
    Path,
    PathPattern,
    Pattern,
    Sequence,
    TermOrVar,
    TriplePattern,
    Triples,
    Union,
    Var,
    VarRef,
)

Fresh = Callable[[], Var]
Part = TriplePattern | Pattern


def spelled(s: TermOrVar, path: Path, o: TermOrVar, fresh: Fresh) -> list[Part]:
    """The parts whose join is `s path o`; `fresh` makes variables that no user can write."""
    match path:
        case Link(iri):
            return [TriplePattern(s, iri, o)]
        case Inverse(inner):
            return spelled(o, inner, s, fresh)
        case Sequence(parts):
            stops = [s, *(fresh() for _ in parts[1:]), o]
            steps = zip(stops[:-1], parts, stops[1:], strict=True)
            return [found for start, part, end in steps for found in spelled(start, part, end, fresh)]
        case Alternative(parts):
            return [union([_joined(spelled(s, part, o, fresh)) for part in parts])]
        case NegatedSet(forward, inverse):
            ways = [_others(s, forward, o, fresh())] if forward or not inverse else []
            ways += [_others(o, inverse, s, fresh())] if inverse else []
            return [union(ways)]
    return [PathPattern(s, path, o)]


def union(ways: list[Pattern]) -> Pattern:
    """The union of all: as flat a tree as can be, for there may be thousands."""
    while len(ways) > 1:
        pairs = [Union(a, b) for a, b in zip(ways[::2], ways[1::2], strict=False)]
        ways = [*pairs, *ways[len(pairs) * 2 :]]
    return ways[0]


def _others(s: TermOrVar, excluded: tuple[NamedNode, ...], o: TermOrVar, predicate: Var) -> Pattern:
    """Triples with other predicates than these."""
    triple = Triples((TriplePattern(s, predicate, o),))
    if not excluded:
        return triple
    return Filter(Call("NOT IN", (VarRef(predicate), *map(Const, excluded))), triple)


def _joined(parts: list[Part]) -> Pattern:
    return reduce(Join, [Triples((p,)) if isinstance(p, TriplePattern) else p for p in parts])
