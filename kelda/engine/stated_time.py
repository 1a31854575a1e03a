"""Windows that go by the time which an event itself states with a predicate (`RANGE r @p`).

Such elements enter and leave in any order, so they are no leaf of the join by intervals: their deltas
wait here until their time has come, and are joined as deltas.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from pyoxigraph import Literal

from kelda.engine.deltas import Deltas, Ids
from kelda.engine.intervals import StreamRows, TimeIntervals
from kelda.engine.nodes import NO_ROWS, Node, Step, WindowLeaf
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.times import literal_to_ms


@dataclass
class StatedIntervals:
    """The intervals of `window` at the stated times. Units are the positions of the rows in their step."""

    window: TimeIntervals
    predicate: int
    dictionary: Dictionary
    enter: Ids = field(default_factory=lambda: np.zeros(0, np.int64))
    leave: Ids = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def slide(self) -> int | None:
        return self.window.slide

    def observe(self, rows: StreamRows, until: int) -> None:
        """Read the times that the events of a step state."""
        enter, self.leave = self.window.of(self._stated(rows))
        self.enter = np.maximum(enter, rows.time)

    def units(self, rows: StreamRows) -> Ids:
        """What `of` goes by, within the step."""
        return np.arange(len(rows))

    def of(self, units: Ids) -> tuple[Ids, Ids]:
        """(enter, leave) of rows of this step."""
        return self.enter[units], self.leave[units]

    def _stated(self, rows: StreamRows) -> Ids:
        """For each row, the first time that its event states; else the event's time in the stream."""
        where = np.flatnonzero(rows.p == self.predicate)
        ids, which = np.unique(rows.o[where], return_inverse=True)
        times = [
            literal_to_ms(t) if isinstance(t, Literal) else None for t in self.dictionary.terms(ids)
        ]
        known = np.array([t is not None for t in times], np.bool_)[which]
        stated = np.array([t or 0 for t in times], np.int64)[which][known]
        events, first = np.unique(rows.event[where][known], return_index=True)
        out = rows.time.copy()
        if len(events):
            at = np.minimum(np.searchsorted(events, rows.event), len(events) - 1)
            mine = events[at] == rows.event
            out[mine] = stated[first[at[mine]]]
        return out


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
