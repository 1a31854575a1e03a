"""What queries read: the active graph, as tables of facts by predicate, and the dataset that it is of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kelda.ask.any_predicate import by_any
from kelda.ask.matching import distinct
from kelda.ask.table import Ids, no_rows
from kelda.lang import algebra as A
from kelda.rdf.ids import DEFAULT_GRAPH, encode
from kelda.store.view import View


class Facts(Protocol):
    """The facts of one predicate in a graph (`kelda.store.view.TableView`)."""

    @property
    def predicate(self) -> int:
        """Which it is."""
        ...

    @property
    def rows(self) -> int:
        """At most so many."""
        ...

    def scan(self) -> tuple[Ids, Ids]:
        """Subjects and objects of all."""
        ...

    def by_subject(self, keys: Ids) -> tuple[Ids, Ids]:
        """For each match, in the order of the keys: which of them, and the object."""
        ...

    def by_object(self, keys: Ids) -> tuple[Ids, Ids]:
        """For each match, in the order of the keys: which of them, and the subject."""
        ...

    def holds(self, s: Ids, o: Ids) -> NDArray[np.bool_]:
        """Which of these facts there are."""
        ...

    def subjects(self) -> int:
        """About how many distinct ones."""
        ...

    def objects(self) -> int:
        """About how many distinct ones."""
        ...


class Stored(Protocol):
    """Stored graphs at a moment (`kelda.store.view.View`)."""

    def graphs(self) -> list[int]:
        """Those that hold anything; 0 is the default graph."""
        ...

    def tables(self, graph: int) -> Sequence[Facts]:
        """One for each predicate that the graph has facts of."""
        ...

    def table(self, graph: int, predicate: int) -> Facts | None:
        """That of one predicate."""
        ...


class Graph:
    """The graph that patterns are matched with: one that is stored, or the merge of several."""

    def __init__(self, view: Stored, names: tuple[int, ...]) -> None:
        self.names = names
        self._view = view
        self._found: dict[int, Facts | None] = {}
        self._all: list[Facts] | None = None

    def table(self, predicate: int) -> Facts | None:
        """The facts of a predicate."""
        if predicate not in self._found:
            tables = [self._view.table(name, predicate) for name in self.names]
            self._found[predicate] = _merged([table for table in tables if table is not None])
        return self._found[predicate]

    def tables(self) -> list[Facts]:
        """Those of all predicates."""
        if self._all is None:
            by_predicate: dict[int, list[Facts]] = {}
            for name in self.names:
                for table in self._view.tables(name):
                    by_predicate.setdefault(table.predicate, []).append(table)
            merged = (_merged(tables) for tables in by_predicate.values())
            self._all = [table for table in merged if table is not None]
        return self._all

    def by_any(self, keys: Ids, *, subjects: bool) -> tuple[Ids, Ids, Ids]:
        """For each fact with one of these subjects (or objects): which, the predicate, and the other end."""
        if len(self.names) == 1 and isinstance(self._view, View):
            return by_any(self._view, self.names[0], keys, subjects=subjects)
        parts = [no_rows(3)]
        for table in self.tables():
            which, ends = table.by_subject(keys) if subjects else table.by_object(keys)
            parts.append(np.stack([which, np.full(len(which), table.predicate), ends]))
        which, predicates, ends = np.concatenate(parts, axis=1)
        return which, predicates, ends

    def nodes(self) -> Ids:
        """All subjects and objects, each once."""
        parts = [ids for table in self.tables() for ids in table.scan()]
        return np.unique(np.concatenate(parts)) if parts else np.zeros(0, np.int64)

    def has_nodes(self, ids: Ids) -> NDArray[np.bool_]:
        """Which of these are subjects or objects."""
        there = np.zeros(len(ids), np.bool_)
        for subjects in (True, False):
            there[self.by_any(ids, subjects=subjects)[0]] = True
        return there


class Merged:
    """Tables of one predicate in several graphs, as one: a fact that is in two of them is there once."""

    def __init__(self, tables: list[Facts]) -> None:
        self._tables = tables
        self.predicate = tables[0].predicate

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self._tables)

    def scan(self) -> tuple[Ids, Ids]:
        return self._once([table.scan() for table in self._tables])

    def by_subject(self, keys: Ids) -> tuple[Ids, Ids]:
        return self._in_order([table.by_subject(keys) for table in self._tables])

    def by_object(self, keys: Ids) -> tuple[Ids, Ids]:
        return self._in_order([table.by_object(keys) for table in self._tables])

    def holds(self, s: Ids, o: Ids) -> NDArray[np.bool_]:
        there: NDArray[np.bool_] = np.logical_or.reduce([table.holds(s, o) for table in self._tables])
        return there

    def subjects(self) -> int:
        return max(table.subjects() for table in self._tables)

    def objects(self) -> int:
        return max(table.objects() for table in self._tables)

    def _in_order(self, parts: list[tuple[Ids, Ids]]) -> tuple[Ids, Ids]:
        which, other = self._once(parts)
        order = np.argsort(which, kind="stable")
        return which[order], other[order]

    @staticmethod
    def _once(parts: list[tuple[Ids, Ids]]) -> tuple[Ids, Ids]:
        pairs = np.concatenate([np.stack(part) for part in parts], axis=1)
        first, second = pairs[:, distinct(pairs)]
        return first, second


def _merged(tables: list[Facts]) -> Facts | None:
    if len(tables) > 1:
        return Merged(tables)
    return tables[0] if tables else None


@dataclass(frozen=True, slots=True)
class Dataset:
    """The ids of the graphs that FROM and FROM NAMED name; None: not said."""

    default: tuple[int, ...]
    named: tuple[int, ...] | None

    @staticmethod
    def of(dataset: A.Dataset, seed: int) -> Dataset:
        """That of a query."""

        def ids(names: tuple[A.NamedNode, ...]) -> tuple[int, ...]:
            return tuple(dict.fromkeys(encode(name, seed) for name in names))

        default = (DEFAULT_GRAPH,) if dataset.default is None else ids(dataset.default)
        return Dataset(default, None if dataset.named is None else ids(dataset.named))

    def named_graphs(self, view: Stored) -> list[int]:
        """The graphs that GRAPH ranges over."""
        there = [graph for graph in view.graphs() if graph != DEFAULT_GRAPH]
        return there if self.named is None else [graph for graph in there if graph in self.named]
