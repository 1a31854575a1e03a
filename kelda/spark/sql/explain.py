"""How a query will be asked on a cluster, for a person to read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kelda.lang import algebra as A
from kelda.lang.scope import certainly_bound, visible_vars
from kelda.plan.explain import show
from kelda.spark.sql.conjunction import Part, Star, bound, conjunction, variables
from kelda.spark.sql.evaluated import looked_at
from kelda.spark.sql.refused import existence
from kelda.store.parquet import BUCKETS

Vars = frozenset[A.Var]


def explained(query: A.Query) -> str:
    """Its stars, how they are joined, and what is filtered where."""
    head = (
        f"{query.form.value} on a cluster; a star is found by tasks that read {BUCKETS} buckets of subjects"
    )
    return "\n".join([head, *_indented(_lines(query.pattern))])


def _lines(pattern: A.Pattern) -> Iterator[str]:
    match pattern:
        case A.Triples() | A.Join() | A.Filter():
            yield from _conjunction(pattern)
        case A.LeftJoin(left, right, condition):
            yield from _two("optional", left, right, _on(left, right))
            if condition is not None:
                yield f"  if {_condition(condition, visible_vars(left) | visible_vars(right))}"
        case A.Minus(left, right):
            yield from _two("minus", left, right, _on(left, right))
        case A.Union(left, right):
            yield from _two("union", left, right, "")
        case A.Extend(inner, var, expr):
            yield f"bind {show(var)} = {_condition(expr, visible_vars(inner))}"
            yield from _indented(_lines(inner))
        case A.InGraph(graph, inner):
            each = ", all graphs together" if isinstance(graph, A.Var) else ""
            yield f"in graph {show(graph)}{each}"
            yield from _indented(_lines(inner))
        case A.Group(inner, keys, aggregates):
            told = ", ".join(f"{show(var)} = {show(aggregate)}" for var, aggregate in aggregates)
            by = f" by {_names(keys)}" if keys else ""
            yield f"group{by}: Spark counts combinations; {told or 'nothing'} in a task for each group"
            yield from _indented(_lines(inner))
        case A.OrderBy(inner, keys):
            yield "order by " + ", ".join(show(expr) + " down" * down for expr, down in keys)
            yield from _indented(_lines(inner))
        case A.Project(inner, shown):
            yield f"select {_names(shown)}".rstrip()
            yield from _indented(_lines(inner))
        case A.Distinct(inner) | A.Reduced(inner):
            yield type(pattern).__name__.lower()
            yield from _indented(_lines(inner))
        case A.Slice(inner, offset, limit):
            yield f"slice from {offset}" + ("" if limit is None else f", {limit} rows")
            yield from _indented(_lines(inner))
        case A.Values(shown, rows):
            yield f"values {_names(shown)}, {len(rows)} rows"


def _conjunction(pattern: A.Pattern) -> Iterator[str]:
    found = conjunction(pattern)
    seen = visible_vars(pattern)
    for condition in found.conditions:
        exists = existence(condition)
        if exists is None:
            yield f"filter {_condition(condition, seen)}"
        else:
            yield "exists" if exists[1] else "not exists"
            yield from _indented(_lines(exists[0]))
    if not found.parts:
        yield "one empty solution"
    known: Vars = frozenset()
    surely: Vars = frozenset()
    for i, part in enumerate(found.parts):
        yield from _joined(part, _how(known, surely, variables(part), bound(part)) if i else "")
        known, surely = known | variables(part), surely | bound(part)


def _joined(part: Part, how: str) -> Iterator[str]:
    if not isinstance(part, Star):
        if how:
            yield f"join{how}"
        yield from _indented(_lines(part)) if how else _lines(part)
        return
    yield f"star of {show(part.subject)}" + (f", join{how}" if how else "")
    for t in part.patterns:
        yield f"  {show(t.s)} {show(t.p)} {show(t.o)}"
    for condition in part.conditions:
        yield f"  filter in the task {_condition(condition, part.variables)}"


def _two(word: str, left: A.Pattern, right: A.Pattern, on: str) -> Iterator[str]:
    yield from _lines(left)
    yield word + on
    yield from _indented(_lines(right))


def _on(left: A.Pattern, right: A.Pattern) -> str:
    return _how(visible_vars(left), certainly_bound(left), visible_vars(right), certainly_bound(right))


def _how(known: Vars, bound: Vars, more: Vars, more_bound: Vars) -> str:
    shared = known & more
    if not shared:
        return " of all with all"
    if not bound & more_bound & shared:
        return f" on {_names(sorted(shared))}, split by which of them are bound"
    return f" on {_names(sorted(shared))}"


def _condition(expr: A.Expr, seen: Vars) -> str:
    columns = looked_at(expr, tuple(sorted(v.name for v in seen)))
    terms = f"  (looks at terms: ?{' ?'.join(columns)})" if columns else ""
    return show(expr) + terms


def _names(found: Iterable[A.Var]) -> str:
    return " ".join(map(show, found))


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return ("  " + line for line in lines)
