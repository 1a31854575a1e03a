"""Sums and products are made as late as possible: conditions on them are put below, in their own terms.

    BIND(?a - ?b AS ?d) FILTER(?d * ?d < 4)   becomes   FILTER((?a - ?b) * (?a - ?b) < 4) BIND(?a - ?b AS ?d)

and without the BIND where nobody else looks at ?d. An expression may stand for its variable wherever that is
only reckoned with: arithmetic is a function of its operands, and an error is the same in both places, the
condition does not hold. (Whether it is bound is asked of a variable, and EXISTS joins with one: these stay.)
A number that is only reckoned with needs no spelling, and what a condition drops needs no ?d.
"""

from __future__ import annotations

from dataclasses import replace

from kelda.lang import algebra as A
from kelda.lang.deep import roomy
from kelda.lang.walk import mentioned, nodes, transform

ARITHMETIC = frozenset(["+", "-", "*", "/", "U+", "U-"])
LARGEST = 40  # nodes of an expression: one that stands in several places is reckoned in each

Inlined = dict[A.Var, A.Expr]


@roomy()
def inlined(query: A.Query) -> A.Query:
    """The rule."""
    query = transform(query, _rewrite)
    if query.form is A.Form.ASK:
        return replace(query, pattern=_late(query.pattern, frozenset()))
    if query.form is A.Form.CONSTRUCT:
        return replace(query, pattern=_late(query.pattern, mentioned(query.template)))
    return query


def _rewrite(node: object) -> object:
    if isinstance(node, A.Project):
        return replace(node, pattern=_late(node.pattern, frozenset(node.vars)))
    return node


def _late(pattern: A.Pattern, seen: frozenset[A.Var]) -> A.Pattern:
    """The pattern with its arithmetic last, as far as it is seen from above."""
    if isinstance(pattern, A.OrderBy):
        return replace(pattern, pattern=_late(pattern.pattern, seen | mentioned(pattern.keys)))
    steps: list[A.Filter | A.Extend] = []
    while isinstance(pattern, A.Filter | A.Extend):
        steps.append(pattern)
        pattern = pattern.pattern
    waiting: Inlined = {}
    asked = [
        _asked_whether_bound(step.condition if isinstance(step, A.Filter) else step.expr) for step in steps
    ]
    while steps:
        step = steps.pop()
        asked.pop()
        if isinstance(step, A.Filter):
            pattern = A.Filter(_put(step.condition, waiting), pattern)
            continue
        expr = _put(step.expr, waiting)
        if _is_arithmetic(expr) and not any(step.var in above for above in asked):
            waiting[step.var] = expr
        else:
            pattern = A.Extend(pattern, step.var, expr)
    for var, expr in waiting.items():
        if var in seen:
            pattern = A.Extend(pattern, var, expr)
    return pattern


def _put(expr: A.Expr, gone: Inlined) -> A.Expr:
    def rule(node: object) -> object:
        if isinstance(node, A.VarRef) and isinstance(node.var, A.Var):
            return gone.get(node.var, node)
        return node

    return transform(expr, rule)


def _is_arithmetic(expr: A.Expr) -> bool:
    return isinstance(expr, A.Call) and expr.op in ARITHMETIC and sum(1 for _ in nodes(expr)) <= LARGEST


def _asked_whether_bound(expr: A.Expr) -> frozenset[A.Var]:
    """Those of which it matters that they are variables: BOUND tells an error from a value, EXISTS joins."""
    return frozenset().union(
        *(
            mentioned(node)
            for node in nodes(expr)
            if isinstance(node, A.Exists) or (isinstance(node, A.Call) and node.op == "BOUND")
        )
    )
