"""What is not asked on a cluster, found before anything runs."""

from __future__ import annotations

from collections.abc import Iterator

from kelda.engine.compile import DEEPEST_EXPRESSION, NOT_PLAIN
from kelda.engine.expressions import supports
from kelda.engine.functions import check_functions
from kelda.errors import UsageError
from kelda.lang import algebra as A
from kelda.lang.scope import certainly_bound, visible_vars
from kelda.lang.walk import depth, exists_in, has, mentioned, nodes
from kelda.spark.sql.conjunction import conjuncts

DEEPEST = 100  # levels of patterns; Spark plans by recursion, too


def check(query: A.Query) -> None:
    """A UsageError with the first reason why the query cannot be asked here."""
    check_functions(query)
    reason = next(_reasons(query), None)
    if reason is not None:
        raise UsageError(f'{reason} cannot be asked on a cluster; ask the query without on="spark"')


def _reasons(query: A.Query) -> Iterator[str]:
    if query.windows:
        yield "a query over windows"
    if query.form is A.Form.DESCRIBE:
        yield "DESCRIBE"
    if depth(query.pattern) > DEEPEST:
        yield f"a query that nests more than {DEEPEST} deep"
    for node in nodes(query.pattern):
        match node:
            case A.PathPattern():
                yield "a property path with ?, * or +"
            case A.Service():
                yield "SERVICE"
            case A.InGraph(A.Var(), inner) if has(inner, A.Slice):
                yield "LIMIT or OFFSET inside GRAPH ?variable"
            case A.InGraph(A.Var(), inner) if any(map(_is_one_group, nodes(inner))):
                yield "an aggregate without GROUP BY inside GRAPH ?variable"
            case A.Extend(_, _, expr):
                yield from _of_expression(expr)
            case A.Filter(condition, inner):
                for part in conjuncts(condition):
                    yield from _of_condition(part, inner)
            case A.LeftJoin(left, right, A.Expr() as condition):
                for part in conjuncts(condition):
                    yield from _of_condition(part, A.Join(left, right))
            case A.Group(_, _, aggregates):
                for _, aggregate in aggregates:
                    yield from _of_expression(aggregate.arg)
            case A.OrderBy(_, keys):
                for expr, _ in keys:
                    yield from _of_expression(expr)


def _is_one_group(node: object) -> bool:
    return isinstance(node, A.Group) and not node.keys


def _of_expression(expr: A.Expr | None) -> Iterator[str]:
    if expr is None:
        return
    if exists_in(expr):
        yield "EXISTS inside an expression"
    elif not supports(expr):
        yield "RAND, UUID, STRUUID or BNODE"
    elif depth(expr) > DEEPEST_EXPRESSION:
        yield f"an expression that nests more than {DEEPEST_EXPRESSION} deep"


def _of_condition(part: A.Expr, inner: A.Pattern) -> Iterator[str]:
    """EXISTS fills in values before it evaluates: for plain groups alone that is a join."""
    found = existence(part)
    if found is None:
        yield from _of_expression(part)
        return
    group, _ = found
    outer = visible_vars(inner)
    if outer & mentioned(group) - visible_vars(group):
        yield "EXISTS whose group looks at variables from outside"
    if outer & visible_vars(group) - certainly_bound(group) and has(group, NOT_PLAIN):
        yield "EXISTS with a variable that its group may leave unbound"


def existence(part: A.Expr) -> tuple[A.Pattern, bool] | None:
    """The group of EXISTS (True) or NOT EXISTS (False), if the condition is one."""
    match part:
        case A.Exists(group):
            return group, True
        case A.Call("!", (A.Exists(group),)):
            return group, False
    return None
