"""Which variables the solutions of a pattern bind, and what a variable may not do twice.

`visible` is the table of SPARQL 1.1 section 18.2.1 over the algebra: what FILTER, the right side of
MINUS and the inside of a sub-select mention does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from kelda.lang import algebra as A
from kelda.lang.walk import nodes

NEW_EACH_TIME = frozenset(["RAND", "UUID", "STRUUID", "BNODE"])  # functions whose value no argument decides

Streams = Mapping[str, Any]


def visible(pattern: A.Pattern, streams: Streams | None = None) -> tuple[A.Var, ...]:
    """The variables that a solution of `pattern` may bind, in the order of the text, hidden ones too.

    `streams` tells the stream of a window by its name: a `Var` there is bound by `InWindow`."""
    seen: dict[A.Var, None] = {}
    left: list[object] = [pattern]
    while left:
        item = left.pop()
        if type(item) is A.Var:
            seen[item] = None
        elif isinstance(item, A.InWindow):
            left += (item.pattern, streams and streams.get(item.window))
        elif isinstance(item, A.Pattern):
            left.extend(reversed(_SHOWS[type(item)](item)))
    return tuple(seen)


def selected(pattern: A.Pattern) -> tuple[str, ...]:
    """The variables of the outermost projection."""
    while not isinstance(pattern, A.Project):
        inner = getattr(pattern, "pattern", None)
        if not isinstance(inner, A.Pattern):
            return ()
        pattern = inner
    return tuple(v.name for v in pattern.vars if not v.name.startswith("."))


def visible_vars(pattern: A.Pattern) -> frozenset[A.Var]:
    """The variables that a solution of `pattern` may bind."""
    return frozenset(visible(pattern))


def certainly_bound(pattern: A.Pattern) -> frozenset[A.Var]:
    """The variables that every solution of `pattern` binds."""
    match pattern:
        case A.Triples() | A.PathPattern():
            return visible_vars(pattern)
        case A.Join(left, right):
            return certainly_bound(left) | certainly_bound(right)
        case A.LeftJoin(left, _) | A.Minus(left, _):
            return certainly_bound(left)
        case A.Union(left, right):
            return certainly_bound(left) & certainly_bound(right)
        case A.Filter(_, inner) | A.Extend(inner, _, _) | A.Distinct(inner) | A.InWindow(_, inner):
            return certainly_bound(inner)
        case A.OrderBy(inner, _) | A.Slice(inner):
            return certainly_bound(inner)
        case A.InGraph(name, inner):
            return certainly_bound(inner) | (frozenset([name]) if isinstance(name, A.Var) else frozenset())
        case A.Project(inner, variables):
            return certainly_bound(inner) & frozenset(variables)
        case A.Values(variables, rows):
            return frozenset(v for i, v in enumerate(variables) if all(row[i] is not None for row in rows))
        case A.Group(inner, keys, aggregates):
            counts = frozenset(v for v, a in aggregates if a.op == "COUNT")
            return (certainly_bound(inner) & frozenset(keys)) | counts
    return frozenset()


def is_repeatable(node: object) -> bool:
    """False if evaluating an expression twice may give two values."""
    return not any(isinstance(n, A.Call) and n.op in NEW_EACH_TIME for n in nodes(node))


def _inner(pattern: A.Filter | A.OrderBy | A.Distinct | A.Reduced | A.Slice) -> tuple[A.Pattern]:
    return (pattern.pattern,)


# What of a pattern shows its variables: terms and patterns, in the order of the text.
_SHOWS: dict[type, Callable[[Any], Sequence[object]]] = {
    A.Triples: lambda p: [term for t in p.patterns for term in (t.s, t.p, t.o)],
    A.PathPattern: attrgetter("s", "o"),
    A.Join: attrgetter("left", "right"),
    A.LeftJoin: attrgetter("left", "right"),
    A.Union: attrgetter("left", "right"),
    A.Minus: lambda p: (p.left,),
    A.Filter: _inner,
    A.OrderBy: _inner,
    A.Distinct: _inner,
    A.Reduced: _inner,
    A.Slice: _inner,
    A.Extend: attrgetter("pattern", "var"),
    A.Values: attrgetter("vars"),
    A.InGraph: attrgetter("name", "pattern"),
    A.Service: attrgetter("name", "pattern"),
    A.Group: lambda p: (*p.keys, *(v for v, _ in p.aggregates)),
    A.Project: attrgetter("vars"),
}
