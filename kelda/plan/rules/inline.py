"""Sums and products that only conditions look at are put where their variables stand.

    BIND(?a - ?b AS ?d) FILTER(?d * ?d < 4)   becomes   FILTER((?a - ?b) * (?a - ?b) < 4)

A number that is only reckoned with needs no spelling, and a condition on what was there before may be
tested earlier. An error is the same in both places: the condition does not hold.
"""

from __future__ import annotations

from dataclasses import replace

from kelda.lang import algebra as A
from kelda.lang.walk import nodes, transform

ARITHMETIC = frozenset(["+", "-", "*", "/", "U+", "U-"])
LARGEST = 40  # nodes of an expression: one that stands in several places is reckoned in each

Inlined = dict[A.Var, A.Expr]


def inlined(query: A.Query) -> A.Query:
    """The rule."""
    query = transform(query, _rewrite)
    if query.form is A.Form.ASK:
        return replace(query, pattern=_without_unseen(query.pattern, frozenset()))
    if query.form is A.Form.CONSTRUCT:
        return replace(query, pattern=_without_unseen(query.pattern, _variables(query.template)))
    return query


def _rewrite(node: object) -> object:
    if isinstance(node, A.Project):
        return replace(node, pattern=_without_unseen(node.pattern, frozenset(node.vars)))
    return node


def _without_unseen(pattern: A.Pattern, seen: frozenset[A.Var]) -> A.Pattern:
    """The pattern without those variables of BIND that are arithmetic and not seen from above."""
    if isinstance(pattern, A.OrderBy):
        return replace(pattern, pattern=_without_unseen(pattern.pattern, seen | _variables(pattern.keys)))
    steps: list[A.Filter | A.Extend] = []
    while isinstance(pattern, A.Filter | A.Extend):
        steps.append(pattern)
        pattern = pattern.pattern
    gone: Inlined = {}
    while steps:
        step = steps.pop()
        if isinstance(step, A.Filter):
            pattern = A.Filter(_put(step.condition, gone), pattern)
            continue
        expr = _put(step.expr, gone)
        above = tuple(s.condition if isinstance(s, A.Filter) else s.expr for s in steps)
        if step.var not in seen and _is_arithmetic(expr) and not _asked_whether_bound(step.var, above):
            gone[step.var] = expr
        else:
            pattern = A.Extend(pattern, step.var, expr)
    return pattern


def _put(expr: A.Expr, gone: Inlined) -> A.Expr:
    def rule(node: object) -> object:
        if isinstance(node, A.VarRef) and isinstance(node.var, A.Var):
            return gone.get(node.var, node)
        return node

    return transform(expr, rule)


def _is_arithmetic(expr: A.Expr) -> bool:
    return isinstance(expr, A.Call) and expr.op in ARITHMETIC and sum(1 for _ in nodes(expr)) <= LARGEST


def _asked_whether_bound(var: A.Var, exprs: tuple[A.Expr, ...]) -> bool:
    """Whether it matters that it is a variable: BOUND tells an error from a value, EXISTS joins with it."""
    return any(
        isinstance(node, A.Exists) or (isinstance(node, A.Call) and node.op == "BOUND")
        for node in nodes(exprs)
        if var in _variables(node)
    )


def _variables(node: object) -> frozenset[A.Var]:
    return frozenset(n for n in nodes(node) if isinstance(n, A.Var))
