"""When a query that shares its network reports first after a pause.

While it is paused, what changes in its solutions is held back and netted. It is told at the first instant
after the pause at which the query would report anyway: when an element comes into one of its windows or
leaves it (or the window closes), whether or not its patterns match that element. So the instants at which
elements came are kept for each window, as far back as the largest one reaches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from kelda.engine.clock import FOREVER, NEVER
from kelda.engine.deltas import Ids
from kelda.engine.intervals import Intervals
from kelda.engine.stream_rows import NO_ROWS, StreamRows

EARLY = -(2**62)  # before all elements, and far from the end of 64 bits


@dataclass
class Moments:
    """The instants at which elements of a stream came, each once, ascending."""

    _parts: deque[Ids] = field(default_factory=deque)

    def take(self, time: Ids) -> None:
        """More instants, ascending, all later than those before."""
        new = np.ones(len(time), np.bool_)
        new[1:] = time[1:] != time[:-1]
        if len(time):
            self._parts.append(time[new])

    def forget(self, before: int) -> None:
        """Instants before this one may go."""
        while self._parts and int(self._parts[0][-1]) < before:
            self._parts.popleft()

    def all(self) -> Ids:
        """All instants that are still known."""
        if not self._parts:
            return np.zeros(0, np.int64)
        if len(self._parts) > 1:
            self._parts = deque([np.concatenate(self._parts)])
        return self._parts[0]

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self._parts)


class FirstReports:
    """Follows the windows of a network, `windows` by name, for queries with windows of different sizes.

    `on_close`: the queries report when windows close."""

    def __init__(self, windows: Mapping[str, tuple[str, Intervals]], *, on_close: bool) -> None:
        self.windows, self.on_close = windows, on_close
        self._moments = {stream: Moments() for stream, _ in windows.values()}
        self._until = NEVER

    @property
    def nbytes(self) -> int:
        return sum(moments.nbytes for moments in self._moments.values())

    def take(self, rows: Mapping[str, StreamRows], until: int) -> None:
        """The elements of a step that ends with `until`."""
        for stream, moments in self._moments.items():
            reach = max(intervals.reach for s, intervals in self.windows.values() if s == stream)
            moments.forget(self._until - reach)
            moments.take(rows.get(stream, NO_ROWS).time)
        self._until = until

    def after(self, since: Ids, registered: Ids, sizes: Mapping[str, Ids]) -> Ids:
        """For each query, given by when it was resumed and registered and by the sizes of its windows: when
        it reports first after `since`; FOREVER if not in this step."""
        since = np.maximum(since, EARLY)
        first = np.full(len(since), FOREVER)
        for name, (stream, intervals) in self.windows.items():
            came = self._moments[stream].all()
            found = intervals.first_change(came, since, registered, sizes.get(name), self.on_close)
            first = np.minimum(first, found)
        return np.where(first <= self._until, first, FOREVER)
