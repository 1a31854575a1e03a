"""A query is a shape and a row of parameters.

Queries that differ only in constants (subjects and objects of triple patterns) and window sizes have
one shape. The constants become hidden variables `.c0`, `.c1`, …, which a *parameter relation* binds,
one row per query; the window sizes become a row of numbers. All queries of a shape run as one network.

What can be shared: joins and unions of windows and stored patterns, with filters, BIND, DISTINCT,
projection and GROUP BY. A window is where a query's rows meet its parameters, so of a UNION all
alternatives must read one, or none.

A constant is lifted where it meets the parameters too: in a pattern over a window, and in a stored pattern
that is joined with one in the same group. Others stay in the shape: queries that differ there do not share.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kelda.lang import algebra as A
from kelda.lang.deep import roomy
from kelda.lang.walk import exists_in, has, nodes

QUERY = ".q"  # the column that says whose row it is


@dataclass(frozen=True, slots=True)
class Lifted:
    """`shape` with hidden variables for `constants` (terms, or parameters still to be bound), and with
    windows of size 1 for `sizes` (one per window; None where the window is part of the shape)."""

    shape: A.Query
    constants: tuple[A.Term | A.Param, ...]
    sizes: tuple[int | A.Param | None, ...]


@roomy()
def lift(query: A.Query) -> Lifted | None:
    """Take a query apart; None if it cannot be shared."""
    if not _is_shared(query.pattern) or query.dataset.windows:
        return None
    constants: list[A.Term | A.Param] = []
    pattern = _lift(query.pattern, constants)
    windows, sizes = [], []
    for window in query.windows:
        if isinstance(window.stream, A.Var | A.Param) or _remembers_its_opening(window.window):
            return None
        size, spec = _size(window.window)
        sizes.append(size)
        windows.append(replace(window, window=spec))
    shape = nameless(replace(query, pattern=pattern, windows=tuple(windows)))
    if has(shape, A.Param):
        return None  # a parameter where no constant can be lifted from
    return Lifted(shape, tuple(constants), tuple(sizes))


def nameless(query: A.Query) -> A.Query:
    """The query without what its text calls it and its answers, and how it writes IRIs."""
    resolves = any(isinstance(n, A.Call) and n.op == "IRI" for n in nodes(query.pattern))
    return replace(query, name=None, stream_out=None, prefixes=(), base=query.base if resolves else None)


def constant_column(number: int) -> str:
    """The column of a lifted constant."""
    return f".c{number}"


def _size(window: A.Window) -> tuple[int | A.Param | None, A.Window]:
    match window:
        case A.TimeWindow(range=size, slide=None, until=0, time_predicate=None):
            return size, A.TimeWindow(1)
        case A.CountWindow(count=size, step=1, unit=unit):
            return size, A.CountWindow(1, 1, unit)
    return None, window


def _remembers_its_opening(window: A.Window) -> bool:
    """Whether an element from before a query was registered has a say in what its window holds later:
    where several elements make a step, and where they make a session."""
    return isinstance(window, A.SessionWindow) or (isinstance(window, A.CountWindow) and window.step != 1)


def _is_shared(pattern: A.Pattern, inside: bool = False) -> bool:
    """Whether the pattern is made of what can be shared; `inside` a window or not."""
    match pattern:
        case A.Triples():
            return True
        case A.Join(left, right):
            return _is_shared(left, inside) and _is_shared(right, inside)
        case A.Union(left, right):
            alike = _reads_window(left, inside) == _reads_window(right, inside)
            return alike and _is_shared(left, inside) and _is_shared(right, inside)
        case A.InGraph(name, inner):
            return not inside and not isinstance(name, A.Param) and _is_group_of_triples(inner)
        case _ if inside:
            return False
        case A.InWindow(_, inner):
            return _is_shared(inner, inside=True)
        case A.Project(inner) | A.Distinct(inner):
            return _is_shared(inner)
        case A.Extend(inner, _, expr):
            return not exists_in(expr) and _is_shared(inner)
        case A.Group(inner, keys, aggregates):
            return bool(keys) and not exists_in(aggregates) and _is_shared(inner)
        case A.Filter(condition, inner):
            return not has(condition, A.Param) and not exists_in(condition) and _is_shared(inner)
    return False


def _is_group_of_triples(pattern: A.Pattern) -> bool:
    match pattern:
        case A.Join(left, right):
            return _is_group_of_triples(left) and _is_group_of_triples(right)
    return isinstance(pattern, A.Triples)


def _group(pattern: A.Pattern, inside: bool) -> Iterator[tuple[A.Pattern, bool]]:
    """The parts that are joined with each other, and whether each reads a window."""
    match pattern:
        case A.Join(left, right):
            yield from _group(left, inside)
            yield from _group(right, inside)
        case A.InWindow(_, inner):
            yield from _group(inner, True)
        case A.Triples(()):
            pass
        case A.Triples():
            yield pattern, inside
        case A.Union(left, right):
            yield pattern, _reads_window(left, inside) or _reads_window(right, inside)
        case A.InGraph():
            yield pattern, False
        case A.Project(inner) | A.Distinct(inner) | A.Extend(inner) | A.Group(inner) | A.Filter(_, inner):
            yield pattern, _reads_window(inner, inside)


def _reads_window(pattern: A.Pattern, inside: bool) -> bool:
    return any(reads for _, reads in _group(pattern, inside))


def _lift(
    pattern: A.Pattern, constants: list[A.Term | A.Param], inside: bool = False, met: bool = False
) -> A.Pattern:
    """The pattern with hidden variables for its constants. `inside`: its triples are read from a window;
    `met`: they are joined with such."""

    def term(value: A.TermOrVar) -> A.TermOrVar:
        if isinstance(value, A.Var):
            return value
        constants.append(value)
        return A.Var(constant_column(len(constants) - 1))

    match pattern:
        case A.Triples(patterns):
            if not inside and not met:
                return pattern
            return A.Triples(tuple(A.TriplePattern(term(t.s), t.p, term(t.o)) for t in patterns))
        case A.Join(left, right):
            met = met or any(isinstance(p, A.Triples) and reads for p, reads in _group(pattern, inside))
            return A.Join(_lift(left, constants, inside, met), _lift(right, constants, inside, met))
        case A.Union(left, right):
            return A.Union(_lift(left, constants, inside), _lift(right, constants, inside))
        case A.InWindow(_, inner):
            return replace(pattern, pattern=_lift(inner, constants, inside=True))
        case A.InGraph(_, inner):
            return replace(pattern, pattern=_lift(inner, constants, met=met))
        case A.Filter(_, inner) | A.Extend(inner):
            met = met and not _reads_window(inner, inside)  # else it meets the parameters by itself
            return replace(pattern, pattern=_lift(inner, constants, met=met))
        case A.Project(inner) | A.Distinct(inner) | A.Group(inner):  # what hides a constant: not met above
            return replace(pattern, pattern=_lift(inner, constants))
    raise TypeError(f"cannot be shared: {pattern!r}")
