"""Rows on their way through a window: they wait until it is known when they enter."""

from __future__ import annotations

import numpy as np

from kelda.engine.clock import FOREVER
from kelda.engine.deltas import Ids
from kelda.engine.intervals import Intervals


class Waiting:
    """Rows of one leaf (or none: elements as such) on their way through a window."""

    def __init__(self, intervals: Intervals, width: int) -> None:
        self.intervals = intervals
        self._units = np.zeros(0, np.int64)
        self._values = np.zeros((width, 0), np.int64)

    def __len__(self) -> int:
        return len(self._units)

    def all(self) -> tuple[Ids, Ids]:
        """(units, values) of the rows that wait."""
        return self._units, self._values

    def take_back(self, units: Ids, values: Ids) -> None:
        """More rows, among those that wait already."""
        units = np.concatenate([self._units, units])
        order = np.argsort(units, kind="stable")
        self._units = units[order]
        self._values = np.concatenate([self._values, values], axis=1)[:, order]

    def step(self, units: Ids, values: Ids) -> tuple[Ids, Ids, Ids, Ids]:
        """(values, enter, leave, units) of the rows that can be placed in time now."""
        if len(self._units):
            units = np.concatenate([self._units, units])
            values = np.concatenate([self._values, values], axis=1)
        enter, leave, all_stay = self.intervals.placed(units)
        if all_stay:  # and so nothing ever waits
            return values, enter, leave, units
        known = enter < FOREVER
        if not known.all():
            self._units, self._values = units[~known], values[:, ~known]
            units, values, enter, leave = units[known], values[:, known], enter[known], leave[known]
        elif len(self._units):
            self._units, self._values = np.zeros(0, np.int64), np.zeros((len(values), 0), np.int64)
        seen = enter < leave
        if not seen.all():
            return values[:, seen], enter[seen], leave[seen], units[seen]
        return values, enter, leave, units
