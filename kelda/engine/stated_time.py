"""Windows that go by the time which an event itself states with a predicate (`RANGE r @p`).

Such elements enter and leave in any order, so they are no leaf of the join by intervals: their deltas
wait here until their time has come, and are joined as deltas.
"""

from __future__ import annotations

import numpy as np

from kelda.engine.deltas import Deltas
from kelda.engine.nodes import Node, Step, WindowLeaf
from kelda.engine.stream_rows import NO_ROWS


class StatedWindow(Node):
    """A triple pattern over such a window: each row comes and goes by itself, as in a bag."""

    def __init__(self, leaf: WindowLeaf) -> None:
        super().__init__()
        self.leaf, self.columns = leaf, tuple(leaf.columns)
        self._later = Deltas.empty(self.columns)

    def advance(self, step: Step) -> Deltas:
        units, values = self.leaf.match(step.rows.get(self.leaf.stream, NO_ROWS))
        enter, leave = self.leaf.intervals.of(units)
        stays = enter < leave
        size = int(stays.sum())
        time = np.concatenate([enter[stays], leave[stays]])
        order = np.argsort(time, kind="stable")
        weight = np.repeat(np.array([1, -1], np.int64), size)[order]
        values = np.tile(values[:, stays], 2)[:, order]
        every = Deltas.concat([self._later, Deltas(self.columns, time[order], weight, values)], self.columns)
        now = every.time <= step.until
        self._later = every.select(~now)
        return every.select(now)

    @property
    def nbytes(self) -> int:
        return self._later.values.nbytes + self._later.time.nbytes + self._later.weight.nbytes

    def say(self) -> str:
        return "window by stated times"
