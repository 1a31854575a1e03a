"""Which variables a pattern makes visible, and what a variable may not do twice.

`visible` is the table of SPARQL 1.1 section 18.2.1 over the algebra: what FILTER, the right side of
MINUS and the inside of a sub-select mention does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kelda.lang.algebra import (
    Aggregate,
    Call,
    Distinct,
    Expr,
    Extend,
    Filter,
    FunctionCall,
    Group,
    InGraph,
    InWindow,
    Join,
    LeftJoin,
    Minus,
    OrderBy,
    PathPattern,
    Pattern,
    Project,
    Reduced,
    Service,
    Slice,
    Triples,
    Union,
    Values,
    Var,
)

Seen = dict[Var, None]
Streams = Mapping[str, Any]


def visible(pattern: Pattern, streams: Streams | None = None) -> tuple[Var, ...]:
    """The variables that a solution of `pattern` may bind, in the order of the text, hidden ones too.

    `streams` tells the stream of a window by its name: a `Var` there is bound by `InWindow`."""
    seen: Seen = {}
    _VISITORS[type(pattern)](pattern, streams or {}, seen)
    return tuple(seen)


def selected(pattern: Pattern) -> tuple[str, ...]:
    """The variables of the outermost projection."""
    while not isinstance(pattern, Project):
        inner = getattr(pattern, "pattern", None)
        if not isinstance(inner, Pattern):
            return ()
        pattern = inner
    return tuple(v.name for v in pattern.vars if not v.name.startswith("."))


def deterministic(expr: Expr | Aggregate | None) -> bool:
    """False if evaluating `expr` twice may give two values."""
    match expr:
        case Call(op, args):
            return op not in ("RAND", "UUID", "STRUUID", "BNODE") and all(map(deterministic, args))
        case FunctionCall(_, args):
            return all(map(deterministic, args))
        case Aggregate(_, arg):
            return deterministic(arg)
    return True


def _terms(seen: Seen, *terms: object) -> None:
    for term in terms:
        if type(term) is Var:
            seen[term] = None


def _triples(p: Triples, streams: Streams, seen: Seen) -> None:
    for t in p.patterns:
        _terms(seen, t.s, t.p, t.o)


def _both(p: Join | LeftJoin | Union, streams: Streams, seen: Seen) -> None:
    _visit(p.left, streams, seen)
    _visit(p.right, streams, seen)


def _inner(p: Filter | OrderBy | Distinct | Reduced | Slice, streams: Streams, seen: Seen) -> None:
    _visit(p.pattern, streams, seen)


def _named(p: InGraph | Service, streams: Streams, seen: Seen) -> None:
    _terms(seen, p.name)
    _visit(p.pattern, streams, seen)


def _window(p: InWindow, streams: Streams, seen: Seen) -> None:
    _terms(seen, streams.get(p.window))
    _visit(p.pattern, streams, seen)


def _extend(p: Extend, streams: Streams, seen: Seen) -> None:
    _visit(p.pattern, streams, seen)
    seen[p.var] = None


def _visit(pattern: Pattern, streams: Streams, seen: Seen) -> None:
    _VISITORS[type(pattern)](pattern, streams, seen)


_VISITORS: dict[type, Callable[[Any, Streams, Seen], None]] = {
    Triples: _triples,
    PathPattern: lambda p, streams, seen: _terms(seen, p.s, p.o),
    Join: _both,
    LeftJoin: _both,
    Union: _both,
    Minus: lambda p, streams, seen: _visit(p.left, streams, seen),
    Filter: _inner,
    OrderBy: _inner,
    Distinct: _inner,
    Reduced: _inner,
    Slice: _inner,
    Extend: _extend,
    Values: lambda p, streams, seen: _terms(seen, *p.vars),
    InGraph: _named,
    Service: _named,
    InWindow: _window,
    Group: lambda p, streams, seen: _terms(seen, *p.keys, *(v for v, _ in p.aggregates)),
    Project: lambda p, streams, seen: _terms(seen, *p.vars),
}
