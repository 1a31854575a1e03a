"""The parameters of queries that share one network: a relation with a row per query.

Row q has the query's number (from 1, in column `.q`) and its constants; beside it, for each window, the
size that the query gave it. The network's windows are as large as the largest; a result that is too old
for a query's own windows ends earlier for it, or never is.

The network may join with the relation in several places (the alternatives of a UNION): each of them remembers
how many rows it has let in, so each sees every query once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from kelda.engine.deltas import Ids
from kelda.engine.intervals import CountIntervals, Intervals, TimeIntervals
from kelda.engine.keyset import KeySet
from kelda.plan.shape import QUERY, constant_column


def _grown(array: Ids, more: Ids) -> Ids:
    return np.concatenate([array, more])


@dataclass
class Parameters:
    """What the queries of one shape differ in."""

    constants: int
    windows: dict[str, Intervals]  # those whose size differs, by name
    keys: list[KeySet] = field(init=False)
    sizes: dict[str, Ids] = field(init=False)
    alive: Ids = field(default_factory=lambda: np.zeros(0, np.int64))
    registered: Ids = field(default_factory=lambda: np.zeros(0, np.int64))  # where the clock stood then
    names: list[str] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)  # of those that are registered now
    readers: list[Callable[[Ids], None]] = field(default_factory=list)  # are told the constants that come
    _parts: list[Ids] = field(init=False)  # the relation, in the pieces in which it came

    def __post_init__(self) -> None:
        self.keys = [KeySet() for _ in range(self.constants)]
        self.sizes = {name: np.zeros(0, np.int64) for name in self.windows}
        self._parts = [np.zeros((1 + self.constants, 0), np.int64)]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the relation."""
        return (QUERY, *(constant_column(i) for i in range(self.constants)))

    def add(self, names: list[str], constants: Ids, sizes: dict[str, Ids], now: int) -> None:
        """More queries: `constants` is (constants, queries), `sizes` one array per window. They see the
        stream after `now`."""
        for told in self.readers:  # may fail: nothing has changed then
            told(constants)
        count = len(names)
        numbers = np.arange(len(self.names) + 1, len(self.names) + count + 1)
        self.names += names
        self.numbers.update(zip(names, numbers.tolist(), strict=True))
        self.alive = _grown(self.alive, np.ones(count, np.int64))
        self.registered = _grown(self.registered, np.full(count, now))
        for i, key in enumerate(self.keys):
            key.add(constants[i])
        for name, intervals in self.windows.items():
            self.sizes[name] = _grown(self.sizes[name], sizes[name])
            largest = int(sizes[name].max(initial=1))
            if isinstance(intervals, CountIntervals):
                intervals.count = max(intervals.count, largest)
            elif isinstance(intervals, TimeIntervals):
                intervals.range = max(intervals.range or 1, largest)
        self._parts.append(np.concatenate([numbers[None, :], constants]))

    def drop(self, name: str) -> int:
        """A query gets nothing any more; gives its number."""
        number = self.numbers.pop(name)
        self.alive[number - 1] = 0
        return number

    def rows(self, known: int) -> Ids:
        """The rows of all queries but the first `known`."""
        if len(self._parts) > 1:
            self._parts = [np.concatenate(self._parts, axis=1)]
        return self._parts[0][:, known:]
