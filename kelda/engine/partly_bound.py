"""Joins on variables that may be unbound.

Two solutions are compatible if no variable has different values in both; an unbound one is compatible with
all. So each side is split by which of the shared variables are bound: between two such classes,
compatibility is equality on what both bind, an ordinary join. The column of an unbound variable is dropped
from its class and comes from the other side, if it is bound there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

from kelda.engine.deltas import Deltas
from kelda.engine.nodes import Node, Operated, Projected, Step, United
from kelda.engine.operators.antijoin import AntiJoin
from kelda.engine.operators.join import DeltaJoin

MOST_CLASSES = 16  # pairs of classes


class BoundAs(Node):
    """The rows in which `bound` are bound and `unbound` are not, without the columns of the latter."""

    def __init__(self, source: Node, bound: tuple[str, ...], unbound: tuple[str, ...]) -> None:
        super().__init__()
        self.source, self.bound, self.unbound = source, bound, unbound
        self.columns = tuple(c for c in source.columns if c not in unbound)

    def advance(self, step: Step) -> Deltas:
        deltas = self.source.step(step)
        for name in self.bound:
            deltas = deltas.select(deltas.column(name) != 0)
        for name in self.unbound:
            deltas = deltas.select(deltas.column(name) == 0)
        return deltas.project(self.columns)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.source,)

    def say(self) -> str:
        parts = [f"?{c} bound" for c in self.bound] + [f"?{c} unbound" for c in self.unbound]
        return "rows with " + ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Sides:
    """The classes of both sides of a join on the `shared` columns."""

    left: tuple[Node, ...]
    right: tuple[Node, ...]
    shared: tuple[str, ...]

    def on(self, left: Node, right: Node) -> tuple[str, ...]:
        """What two classes both bind."""
        return tuple(c for c in self.shared if c in left.columns and c in right.columns)

    def joined(self, left: Node) -> Node:
        """A class of the left side with every compatible row of the right side."""
        return united(
            Operated(DeltaJoin(left.columns, right.columns, on), (left, right), words("join", on))
            for right in self.right
            for on in [self.on(left, right)]
        )

    def without_match(self, left: Node, word: str, *, need_shared: bool) -> tuple[Node, list[Node]]:
        """(rows of the class that no row of the right side is compatible with, and those that have one).

        `need_shared`: only rows that bind a variable in common count, as in MINUS."""
        matched: list[Node] = []
        for right in self.right:
            on = self.on(left, right)
            if need_shared and not on:
                continue
            inputs = (left, Projected(right, on))
            having = AntiJoin(left.columns, on, on, keep_matched=True)
            matched.append(Operated(having, inputs, words(word, on)))
            left = Operated(AntiJoin(left.columns, on, on), inputs, words(f"not {word}", on))
        return left, matched


def sides(left: Node, right: Node, left_bound: Iterable[str], right_bound: Iterable[str]) -> Sides | None:
    """The classes of two nodes, of which these columns are bound for certain; None if they are too many."""
    shared = tuple(c for c in left.columns if c in right.columns)
    left_maybe = tuple(c for c in shared if c not in set(left_bound))
    right_maybe = tuple(c for c in shared if c not in set(right_bound))
    if 2 ** (len(left_maybe) + len(right_maybe)) > MOST_CLASSES:
        return None
    return Sides(_classes(left, left_maybe), _classes(right, right_maybe), shared)


def united(nodes: Iterable[Node]) -> Node:
    """The union of one or more nodes."""
    found = tuple(nodes)
    return found[0] if len(found) == 1 else United(found)


def words(what: str, on: tuple[str, ...]) -> str:
    """A few words on a node that goes by these columns."""
    return what + (" on " + " ".join("?" + c for c in on) if on else "")


def _classes(node: Node, maybe: tuple[str, ...]) -> tuple[Node, ...]:
    if not maybe:
        return (node,)
    return tuple(
        BoundAs(node, tuple(c for c in maybe if c not in unbound), unbound)
        for size in range(len(maybe) + 1)
        for unbound in combinations(maybe, size)
    )
