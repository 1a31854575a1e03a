"""Queries of different shape that contain one join group share its node: rows, indexes and results.

A group is the patterns over windows that a query joins, with their constants, windows and facts;
the names of variables do not matter, nor does the order of the patterns. The node computes once per step,
and each query reads it through a `JoinReader`, under its own names and with its own filters.

A query sees the stream from its registration on. So a group can be joined while nothing has been delivered
since it was made; who comes later makes a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from weakref import WeakSet

from kelda.engine.deltas import Deltas, Ids
from kelda.engine.expressions import Compiled
from kelda.engine.nodes import JoinWindows, Node, Step, WindowLeaf
from kelda.engine.window_join import Leaf

Key = tuple[object, ...]


class JoinReader(Node):
    """What one query reads of a group. `query` is the query's name."""

    def __init__(self, group: JoinGroup, columns: tuple[str, ...], query: str) -> None:
        super().__init__()
        self.group, self.columns, self.query = group, columns, query
        self._conditions: list[Compiled] = []
        group.readers.add(self)

    def require(self, condition: Compiled) -> None:
        """Only results for which the condition holds."""
        self._conditions.append(condition)

    def hand_down(self) -> None:
        """It is the only reader: what it filters out need not even be kept."""
        if self.columns == self.group.node.columns:
            for condition in self._conditions:
                self.group.node.require(condition)
            self._conditions = []

    def advance(self, step: Step) -> Deltas:
        found = self.group.node.step(step)
        deltas = Deltas(self.columns, found.time, found.weight, found.values)
        for condition in self._conditions:
            if len(deltas):
                deltas = deltas.select(condition.holds(deltas))
        return deltas

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.group.node,)

    def say(self) -> str:
        others = sorted({reader.query for reader in self.group.readers} - {self.query})
        names = ", ".join(others[:5]) + (f" and {len(others) - 5} more" if len(others) > 5 else "")
        return f"one join with {names}" if others else "join"


@dataclass
class JoinGroup:
    """A node and who reads it: dropped queries are forgotten by themselves."""

    node: JoinWindows
    readers: WeakSet[JoinReader] = field(default_factory=WeakSet)


class JoinGroups:
    """The groups that were made since the last step."""

    def __init__(self) -> None:
        self._open: dict[Key, JoinGroup] = {}

    def reader(
        self,
        leaves: Sequence[WindowLeaf],
        stored: Sequence[Leaf],
        graph: bool,
        query: str,
        bring: Callable[[Ids], None],
    ) -> JoinReader:
        """The join of some patterns over windows and facts, for a query: that of an equal group, if there is
        one."""
        leaves = sorted(leaves, key=_pattern)
        names: dict[str, int] = {}
        described = [_described(leaf, names) for leaf in leaves]
        facts = [_facts(leaf, names) for leaf in stored]
        key: Key = (graph, *described, *facts)
        if key not in self._open:
            self._open[key] = JoinGroup(JoinWindows(leaves, list(stored), graph, bring=bring))
        return JoinReader(self._open[key], tuple(names), query)

    def close(self) -> None:
        """A step begins: who comes later makes groups of its own."""
        for group in self._open.values():
            if len(group.readers) == 1:
                next(iter(group.readers)).hand_down()
        self._open.clear()


def _pattern(leaf: WindowLeaf) -> tuple[object, ...]:
    """The stream and the pattern of a leaf, without names."""
    wanted = tuple((w is None, w or 0) for w in leaf.wanted)
    return (leaf.stream, wanted, tuple(leaf.columns.values()), leaf.equal)


def _described(leaf: WindowLeaf, names: dict[str, int]) -> Key:
    """All that makes a leaf what it is, its variables by number; where rows are spread over shards, that
    goes by name."""
    columns = tuple(_number(c, names) for c in leaf.columns)
    spread = None if leaf.owner is None else (leaf.owner, tuple(leaf.columns))
    return (*_pattern(leaf), id(leaf.intervals), columns, spread)


def _number(name: str, names: dict[str, int]) -> int:
    return names.setdefault(name, len(names))


def _facts(leaf: Leaf, names: dict[str, int]) -> Key:
    """The facts that a leaf reads, its variables by number."""
    assert leaf.facts is not None
    columns = tuple(_number(c, names) for c in leaf.columns)
    return (leaf.facts.table, leaf.facts.s, leaf.facts.o, leaf.places, columns)
