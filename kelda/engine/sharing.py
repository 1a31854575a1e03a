"""The parameters of queries that share one network: a relation with a row for queries that are equal.

Equal queries that were registered at the same instant have the same solutions for ever, so they are one
*class*: row c has the class's number (from 1, in column `.q`) and its constants; beside it, for each window,
the size that its queries gave it. The network's windows are as large as the largest; a result that is too old
for a class's own windows ends earlier for it, or never is. What a class finds is told to each of its queries
(`Parameters.told_to`) at the very end.

The network may join with the relation in several places (the alternatives of a UNION): each of them remembers
how many rows it has let in, so each sees every class once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from kelda.engine.deltas import Ids
from kelda.engine.intervals import Intervals
from kelda.plan.shape import QUERY, constant_column
from kelda.rdf.keyset import KeySet


def _grown(array: Ids, more: Ids) -> Ids:
    return np.concatenate([array, more])


@dataclass
class Parameters:
    """What the queries of one shape differ in. Queries have numbers too, from 1, in the order they came."""

    constants: int
    windows: dict[str, Intervals]  # those whose size differs, by name
    keys: list[KeySet] = field(init=False)
    sizes: dict[str, Ids] = field(init=False)  # by class
    alive: Ids = field(default_factory=lambda: np.zeros(0, np.int64))  # how many queries of a class are
    registered: Ids = field(default_factory=lambda: np.zeros(0, np.int64))  # where the clock stood then
    names: list[str] = field(default_factory=list)  # of all queries, by number
    numbers: dict[str, int] = field(default_factory=dict)  # of those that are registered now
    classes: Ids = field(default_factory=lambda: np.zeros(0, np.int64))  # of each query, from 0
    readers: list[Callable[[Ids], None]] = field(default_factory=list)  # are told the constants that come
    _parts: list[Ids] = field(init=False)  # the relation, in the pieces in which it came
    _open: dict[bytes, int] = field(default_factory=dict)  # classes that a query may still come to
    _members: tuple[Ids, Ids] | None = None  # of all classes, one after another, and where each begins

    def __post_init__(self) -> None:
        self.keys = [KeySet() for _ in range(self.constants)]
        self.sizes = {name: np.zeros(0, np.int64) for name in self.windows}
        self._parts = [np.zeros((1 + self.constants, 0), np.int64)]

    def __len__(self) -> int:
        """How many classes there are."""
        return len(self.alive)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the relation."""
        return (QUERY, *(constant_column(i) for i in range(self.constants)))

    def add(self, names: list[str], constants: Ids, sizes: dict[str, Ids], now: int) -> None:
        """More queries: `constants` is (constants, queries), `sizes` one array per window. They see the
        stream after `now`."""
        rows = np.concatenate([constants, *(sizes[window][None, :] for window in self.windows)])
        new, classes, opened = self._classes(rows)
        for told in self.readers:  # may fail: nothing has changed then
            told(constants[:, new])
        self._open |= opened
        numbers = range(len(self.names) + 1, len(self.names) + len(names) + 1)
        self.names += names
        self.numbers.update(zip(names, numbers, strict=True))
        self.classes = _grown(self.classes, classes)
        first = len(self) + 1
        self.alive = _grown(self.alive, np.zeros(len(new), np.int64))
        np.add.at(self.alive, classes, 1)
        self.registered = _grown(self.registered, np.full(len(new), now))
        for i, key in enumerate(self.keys):
            key.add(constants[i, new])
        for name, intervals in self.windows.items():
            self.sizes[name] = _grown(self.sizes[name], sizes[name][new])
            intervals.grow(int(sizes[name].max(initial=1)))
        self._parts.append(np.concatenate([np.arange(first, first + len(new))[None, :], constants[:, new]]))
        self._members = None

    def _classes(self, columns: Ids) -> tuple[Ids, Ids, dict[bytes, int]]:
        """Of these queries, a column each: the first ones of new classes, the class of each, and the new ones
        by what makes them."""
        opened: dict[bytes, int] = {}
        new: list[int] = []
        classes = np.empty(columns.shape[1], np.int64)
        for i, row in enumerate(np.ascontiguousarray(columns.T)):
            key = row.tobytes()
            known = self._open.get(key, opened.get(key))
            if known is None:
                known = opened[key] = len(self) + len(new)
                new.append(i)
            classes[i] = known
        return np.array(new, np.int64), classes, opened

    def close(self) -> None:
        """A step begins: who comes later sees less of the stream, and is in another class."""
        self._open.clear()

    def drop(self, name: str) -> int:
        """A query gets nothing any more; gives its number."""
        number = self.numbers.pop(name)
        self.alive[self.classes[number - 1]] -= 1
        self._members = None
        return number

    def told_to(self, classes: Ids) -> tuple[Ids, Ids] | None:
        """To whom rows of these classes (from 1) are told: (row, number of the query), a pair for each time.
        None where each class is one query, of the same number, and none was dropped."""
        if len(self.names) == len(self) == len(self.numbers):
            return None
        if self._members is None:
            there = np.fromiter(self.numbers.values(), np.int64, len(self.numbers))
            there.sort()
            order = np.argsort(self.classes[there - 1], kind="stable")
            begins = np.searchsorted(self.classes[there - 1][order], np.arange(len(self) + 1))
            self._members = there[order], begins
        members, begins = self._members
        first, count = begins[classes - 1], begins[classes] - begins[classes - 1]
        rows = np.arange(len(classes)).repeat(count)
        places = np.arange(len(rows)) - (np.cumsum(count) - count).repeat(count)
        return rows, members[first.repeat(count) + places]

    def rows(self, known: int) -> Ids:
        """The rows of all classes but the first `known`."""
        if len(self._parts) > 1:
            self._parts = [np.concatenate(self._parts, axis=1)]
        return self._parts[0][:, known:]
