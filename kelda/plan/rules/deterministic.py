"""Make a query a function of its input where SPARQL leaves a choice to the implementation.

    LIMIT / OFFSET   ties of ORDER BY (and its absence) are broken by the projected terms' text
    SAMPLE           the least value
    GROUP_CONCAT     the values in order

Each is one of the answers that SPARQL allows. Without this, the answer could depend on the order in which a
store happens to hold its triples, and so on how the input was cut into batches.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from kelda.lang import algebra as A
from kelda.lang.deep import roomy
from kelda.lang.scope import Streams, visible
from kelda.lang.walk import transform


@roomy()
def deterministic(query: A.Query) -> A.Query:
    """The rule."""
    streams = {w.name: w.stream for w in query.windows}
    return transform(query, partial(_rewrite, streams=streams))


def _rewrite(node: object, streams: Streams) -> object:
    match node:
        case A.Slice(pattern):
            return replace(node, pattern=_totally_ordered(pattern, streams))
        case A.Aggregate(op="SAMPLE"):
            return replace(node, op="MIN")
        case A.Group(pattern, _, aggregates):
            joined = [a.arg for _, a in aggregates if a.op == "GROUP_CONCAT" and a.arg is not None]
            if joined:
                keys = tuple((key, False) for expr in joined for key in _text(expr))
                return replace(node, pattern=A.OrderBy(pattern, keys))
    return node


def _totally_ordered(pattern: A.Pattern, streams: Streams) -> A.Pattern:
    match pattern:
        case A.Distinct(inner) | A.Reduced(inner):
            return replace(pattern, pattern=_totally_ordered(inner, streams))
        case A.Project(inner, variables):
            return A.Project(_ordered_by(inner, variables), variables)
    return _ordered_by(pattern, tuple(sorted(visible(pattern, streams))))


def _ordered_by(pattern: A.Pattern, variables: tuple[A.Var, ...]) -> A.Pattern:
    keys: tuple[tuple[A.Expr, bool], ...] = ()
    if isinstance(pattern, A.OrderBy):
        keys, pattern = pattern.keys, pattern.pattern
    keys += tuple((key, False) for v in variables for key in _text(A.VarRef(v)))
    return A.OrderBy(pattern, keys) if keys else pattern


def _text(expr: A.Expr) -> tuple[A.Expr, ...]:
    """Keys that tell any two terms apart, blank nodes excepted."""
    return (
        A.Call("STR", (expr,)),
        A.Call("STR", (A.Call("DATATYPE", (expr,)),)),
        A.Call("LANG", (expr,)),
    )
