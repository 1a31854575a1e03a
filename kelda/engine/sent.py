"""What queries send, as columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kelda.engine.content_kernels import one_by_one
from kelda.engine.deltas import Ids
from kelda.rdf import wire


@wire.plain
@dataclass(frozen=True, slots=True)
class Sent:
    """Solutions that a query sends: `values[:, i]` at `time[i]`, new (sign 1) or gone (sign -1).

    A query that sends all it has at each report says the same thing many times: a solution stays in ten
    windows of a second that slide by 100 ms. It is here once, if `reports` and `last` are given: it is sent
    at each of these instants from `time[i]` to `last[i]`, both among them.
    """

    columns: tuple[str, ...]
    time: Ids
    sign: Ids
    values: Ids
    last: Ids | None = None
    reports: Ids | None = None

    @classmethod
    def nothing(cls, columns: tuple[str, ...]) -> Sent:
        none = np.zeros(0, np.int64)
        return cls(columns, none, none, np.zeros((len(columns), 0), np.int64))

    def __len__(self) -> int:
        """How many are sent, each as often as it is."""
        if self.last is None:
            return len(self.time)
        first, last = self._places()
        return int((last - first).sum()) + len(first)

    def _places(self) -> tuple[Ids, Ids]:
        assert self.reports is not None and self.last is not None
        return self.reports.searchsorted(self.time), self.reports.searchsorted(self.last)

    def select(self, which: Ids | NDArray[np.bool_] | slice) -> Sent:
        """Some of the rows."""
        last = None if self.last is None else self.last[which]
        values = self.values[:, which]
        return Sent(self.columns, self.time[which], self.sign[which], values, last, self.reports)

    def with_values(self, columns: tuple[str, ...], values: Ids) -> Sent:
        """The same rows with other columns."""
        return Sent(columns, self.time, self.sign, values, self.last, self.reports)

    def one_by_one(self) -> Sent:
        """Every solution by itself, each time that it is sent; in time order."""
        if self.last is None:
            return self
        which, time = self.said
        return Sent(self.columns, time, self.sign[which], self.values.take(which, axis=1))

    @property
    def said(self) -> tuple[Ids, Ids]:
        """(which row, when) of all that is sent, one by one; in time order."""
        if self.last is None:
            return np.arange(len(self.time)), self.time
        assert self.reports is not None
        which, where = one_by_one(*self._places(), len(self.reports))
        return which, self.reports[where]

    @property
    def times(self) -> Ids:
        """The time of each that is sent."""
        return self.said[1]
