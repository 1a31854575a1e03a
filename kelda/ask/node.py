"""The parts of a plan: each gives the solutions of a pattern as columns of ids.

only    what is joined with the solutions later. A node may leave out solutions that agree with no row of
        it on the columns that both have; it need not. So what one side of a join has found narrows what
        is looked up for the other, and a node that cannot use it is as right as one that can.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from kelda.ask.facts import Dataset, Graph, Stored
from kelda.ask.fresh import Fresh
from kelda.ask.matching import distinct
from kelda.ask.table import Ids, Table
from kelda.rdf.dictionary import Dictionary


@dataclass(frozen=True, slots=True)
class At:
    """Where and when a pattern is evaluated: `graph` is the active one, `now` what NOW() says (ms)."""

    view: Stored
    dataset: Dataset
    graph: Graph
    dictionary: Dictionary
    now: int
    fresh: Fresh

    def within(self, graph: int) -> At:
        """Inside GRAPH."""
        return replace(self, graph=Graph(self.view, (graph,)))


class Node(ABC):
    """A part of a plan."""

    columns: tuple[str, ...]
    bound: frozenset[str]
    """Columns that every solution binds."""

    @abstractmethod
    def run(self, at: At, only: Table | None = None) -> Ids:
        """The solutions, a row of the array for each column."""

    def some(self, at: At, many: int) -> Ids:
        """Any `many` of the solutions, or more; all if there are not as many."""
        return self.run(at)

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The nodes that this one reads."""
        return ()

    @abstractmethod
    def say(self) -> str:
        """What it does, in a few words."""

    def lines(self, indent: int = 0) -> Iterator[str]:
        """What it and all below it do."""
        for line in self.say().splitlines():
            yield "  " * indent + line
        for node in self.inputs:
            yield from node.lines(indent + 1)


def narrowed(only: Table | None, columns: Collection[str]) -> Table | None:
    """What is left of `only` where no other columns than these are seen; None if that says nothing."""
    if only is None:
        return None
    places = [i for i, name in enumerate(only.columns) if name in columns]
    if len(places) == len(only.columns):
        return only
    if not places:
        return None
    ids = only.ids[places]
    return Table(tuple(only.columns[i] for i in places), ids[:, distinct(ids)])


def found(columns: tuple[str, ...], ids: Ids, others: Collection[str]) -> Table | None:
    """What solutions say about the columns of others: distinct rows of those they always bind."""
    places = [i for i, name in enumerate(columns) if name in others and ids[i].all()]
    if not places:
        return None
    some = ids[places]
    return Table(tuple(columns[i] for i in places), some[:, distinct(some)])


def named(columns: Collection[str]) -> str:
    """The columns as variables, for a reader."""
    return " ".join("?" + name for name in columns) or "no variables"
