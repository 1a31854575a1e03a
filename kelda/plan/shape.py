"""A query is a shape and a row of parameters.

Queries that differ only in constants (subjects and objects of triple patterns) and window sizes have
one shape. The constants become hidden variables `.c0`, `.c1`, …, which a *parameter relation* binds,
one row per query; the window sizes become a row of numbers. All queries of a shape run as one network.

Only conjunctions are shared so far: joins of windows and stored patterns, with filters, BIND, DISTINCT,
projection and GROUP BY above.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kelda.lang import algebra as A
from kelda.lang.walk import nodes

QUERY = ".q"  # the column that says whose row it is


@dataclass(frozen=True, slots=True)
class Lifted:
    """`shape` with hidden variables for `constants` (terms, or parameters still to be bound), and with
    windows of size 1 for `sizes` (one per window; None where the window is part of the shape)."""

    shape: A.Query
    constants: tuple[A.Term | A.Param, ...]
    sizes: tuple[int | A.Param | None, ...]


def lift(query: A.Query) -> Lifted | None:
    """Take a query apart; None if it cannot be shared."""
    if not _is_conjunction(query.pattern) or query.dataset.windows:
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
    shape = replace(query, pattern=pattern, windows=tuple(windows), name=None, prefixes=(), base=None)
    if any(isinstance(node, A.Param) for node in nodes(shape)):
        return None  # a parameter where no constant can be lifted from
    return Lifted(shape, tuple(constants), tuple(sizes))


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


def _is_conjunction(pattern: A.Pattern) -> bool:
    match pattern:
        case A.Project(inner) | A.Distinct(inner) | A.Extend(inner):
            return _is_conjunction(inner)
        case A.Group(inner, keys, _):
            return bool(keys) and _is_conjunction(inner)
        case A.Filter(condition, inner):
            return not any(isinstance(n, A.Exists | A.Param) for n in nodes(condition)) and _is_conjunction(
                inner
            )
        case A.Join(left, right):
            return _is_conjunction(left) and _is_conjunction(right)
        case A.InWindow(_, inner):
            return _is_group_of_triples(inner)
        case A.InGraph(name, inner):
            return not isinstance(name, A.Param) and _is_group_of_triples(inner)
    return _is_group_of_triples(pattern)


def _is_group_of_triples(pattern: A.Pattern) -> bool:
    match pattern:
        case A.Join(left, right):
            return _is_group_of_triples(left) and _is_group_of_triples(right)
    return isinstance(pattern, A.Triples)


def _lift(pattern: A.Pattern, constants: list[A.Term | A.Param]) -> A.Pattern:
    def term(value: A.TermOrVar) -> A.TermOrVar:
        if isinstance(value, A.Var):
            return value
        constants.append(value)
        return A.Var(constant_column(len(constants) - 1))

    match pattern:
        case A.Triples(patterns):
            return A.Triples(tuple(A.TriplePattern(term(t.s), t.p, term(t.o)) for t in patterns))
        case A.Join(left, right):
            return A.Join(_lift(left, constants), _lift(right, constants))
        case A.Filter(condition, inner):
            return A.Filter(condition, _lift(inner, constants))
        case (
            A.Project(inner)
            | A.Distinct(inner)
            | A.Extend(inner)
            | A.Group(inner)
            | A.InWindow(_, inner)
            | A.InGraph(_, inner)
        ):
            return replace(pattern, pattern=_lift(inner, constants))
    raise TypeError(f"not a conjunction: {pattern!r}")
