"""A group of patterns as stars, other parts and conditions, in the order in which they are joined.

A *star* is what a basic graph pattern asks of one subject. A condition that looks at the variables of one
star alone belongs to it: filtering before a join is filtering behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from kelda.lang import algebra as A
from kelda.lang.scope import visible_vars
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
    seen = visible_vars(pattern)
    left: list[A.Expr] = []
    for condition in conditions:
        looks_at = mentioned(condition) & seen
        home = next((s for s, star in stars.items() if looks_at <= star.variables), None)
        if home is None or exists_in(condition):
            left.append(condition)
        else:
            stars[home] = replace(stars[home], conditions=(*stars[home].conditions, condition))
    return Conjunction(tuple(_connected([*sorted(stars.values(), key=_openness), *others])), tuple(left))


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


def _openness(star: Star) -> tuple[bool, bool, int]:
    return star.openness
