"""SPARQL 1.1 Update as small immutable nodes: a request is operations, carried out one after another.

WITH has gone into what it stands for (the graph of template triples that name none, and the default graph
of the pattern), and so has DELETE WHERE, which is a `Modify` like any other. A graph is there as long as it
holds a triple, so CLEAR and DROP are the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from pyoxigraph import NamedNode

from kelda.lang.algebra import Query, TriplePattern

Template = tuple[TriplePattern, ...]
"""Triples to fill in; a `QuadPattern` belongs to its graph, the others to the default graph."""

Place = NamedNode | None
"""One graph; None is the default graph."""


class Operation:
    """Base of operations."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class InsertData(Operation):
    """Triples as they stand; blank nodes are `Var` with a dot name, each a new blank node."""

    quads: Template


@dataclass(frozen=True, slots=True)
class DeleteData(Operation):
    quads: Template


@dataclass(frozen=True, slots=True)
class Modify(Operation):
    """For all solutions of `where` at once: what `delete` makes of them goes, then what `insert` makes of
    them comes. `where` is a SELECT without projection, over the dataset that WITH and USING say; blank nodes
    of `insert` are `Var` with a dot name that it does not bind: a fresh one for each solution."""

    delete: Template
    insert: Template
    where: Query


@dataclass(frozen=True, slots=True)
class Load(Operation):
    """What is read from `source` is added; in a format with graphs, to those, unless `into` is said."""

    source: NamedNode
    into: Place = None
    silent: bool = False


class Graphs(Enum):
    """What CLEAR and DROP can name beside one graph."""

    DEFAULT = "default"
    NAMED = "named"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Clear(Operation):
    """CLEAR and DROP."""

    graphs: NamedNode | Graphs
    silent: bool = False


@dataclass(frozen=True, slots=True)
class Create(Operation):
    graph: NamedNode
    silent: bool = False


class How(Enum):
    """ADD leaves what is there, COPY replaces it, MOVE takes the source away too."""

    ADD = "add"
    MOVE = "move"
    COPY = "copy"


@dataclass(frozen=True, slots=True)
class Transfer(Operation):
    """All triples of one graph into another."""

    how: How
    source: Place
    target: Place
    silent: bool = False


@dataclass(frozen=True, slots=True)
class Update:
    """A request. `depth` is how deep its text nests; see `kelda.lang.deep`."""

    operations: tuple[Operation, ...]
    depth: int = field(default=0, compare=False)
