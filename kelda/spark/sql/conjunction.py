"""A group of patterns as stars, other parts and conditions, in the order in which they are joined.

A *star* is what a basic graph pattern asks of one subject. A condition that looks at the variables of one
part alone belongs to it: filtering before a join is filtering behind it. So conditions sink to the stars,
also through OPTIONAL, MINUS and BIND.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from kelda.lang import algebra as A
from kelda.lang.scope import certainly_bound, visible_vars
from kelda.lang.walk import exists_in, mentioned


@dataclass(frozen=True, slots=True)
class Star:
    """Triple patterns with one subject, and conditions on what they bind."""

    subject: A.TermOrVar
    patterns: tuple[A.TriplePattern, ...]
    conditions: tuple[A.Expr, ...] = ()

    @property
    def variables(self) -> frozenset[A.Var]:
        return visible_vars(A.Triples(self.patterns))

    @property
    def openness(self) -> tuple[bool, bool, int]:
        """Less for what is likely to have fewer solutions."""
        given = sum(not isinstance(t.o, A.Var) for t in self.patterns)
        return isinstance(self.subject, A.Var), not given, -len(self.patterns) - len(self.conditions)


Part = Star | A.Pattern


@dataclass(frozen=True, slots=True)
class Conjunction:
    """What is joined, in this order, and the conditions on the whole."""

    parts: tuple[Part, ...]
    conditions: tuple[A.Expr, ...]


def conjunction(pattern: A.Pattern) -> Conjunction:
    """That of a pattern: its joins and triple patterns, with the filters above them."""
    conditions: list[A.Expr] = []
    while isinstance(pattern, A.Filter):
        conditions += conjuncts(pattern.condition)
        pattern = pattern.pattern
    stars: dict[A.TermOrVar, Star] = {}
    others: list[Part] = []
    for part in _flat(pattern):
        if isinstance(part, A.TriplePattern):
            known = stars.get(part.s, Star(part.s, ()))
            stars[part.s] = replace(known, patterns=(*known.patterns, part))
        else:
            others.append(part)
    parts: list[Part] = [*stars.values(), *others]
    left = [c for c in conditions if exists_in(c) or not _sinks(c, parts, visible_vars(pattern))]
    stars_first = sorted(parts, key=lambda part: part.openness if isinstance(part, Star) else _LAST)
    return Conjunction(tuple(_connected(stars_first)), tuple(left))


_LAST = (True, True, 1)


def _sinks(condition: A.Expr, parts: list[Part], seen: frozenset[A.Var]) -> bool:
    """Whether a condition could be handed to one of the parts; if so, it was."""
    looks_at = mentioned(condition) & seen
    for i, part in enumerate(parts):
        if len(parts) == 1 or looks_at <= bound(part):
            sunk = _sunk(condition, looks_at, part)
            if sunk is not None:
                parts[i] = sunk
                return True
    return False


def _sunk(condition: A.Expr, looks_at: frozenset[A.Var], part: Part) -> Part | None:
    """A part with a condition inside; None if it must stay outside."""
    match part:
        case Star() if looks_at <= part.variables:
            return replace(part, conditions=(*part.conditions, condition))
        case A.LeftJoin(left, right) if not looks_at & visible_vars(right) - certainly_bound(left):
            return replace(part, left=A.Filter(condition, left))
        case A.Minus(left):
            return replace(part, left=A.Filter(condition, left))
        case A.Extend(inner, var) if var not in looks_at:
            return replace(part, pattern=A.Filter(condition, inner))
    return None


def conjuncts(expr: A.Expr) -> Iterator[A.Expr]:
    """The parts of a condition that all must hold."""
    if isinstance(expr, A.Call) and expr.op == "&&":
        for arg in expr.args:
            yield from conjuncts(arg)
    else:
        yield expr


def _flat(pattern: A.Pattern) -> Iterator[A.TriplePattern | A.Pattern]:
    match pattern:
        case A.Join(left, right):
            yield from _flat(left)
            yield from _flat(right)
        case A.Triples(patterns):
            yield from patterns
        case _:
            yield pattern


def _connected(parts: list[Part]) -> Iterable[Part]:
    """The same parts, each after one that it shares a variable with, if there is one."""
    known: frozenset[A.Var] = frozenset()
    while parts:
        i = next((i for i, part in enumerate(parts) if variables(part) & known), 0)
        known |= variables(parts[i])
        yield parts.pop(i)


def variables(part: Part) -> frozenset[A.Var]:
    """What a part may bind."""
    return part.variables if isinstance(part, Star) else visible_vars(part)


def bound(part: Part) -> frozenset[A.Var]:
    """What a part binds for certain."""
    return part.variables if isinstance(part, Star) else certainly_bound(part)
