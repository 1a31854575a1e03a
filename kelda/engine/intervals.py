"""When the elements of a stream stand in a window, for whole batches: [enter, leave) per element.

The same definitions as `kelda.engine.window`, as arithmetic on columns. FOREVER as an end means: not
known yet (count and session windows) or never (ALL).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from pyoxigraph import Literal

from kelda.engine import intervals_kernels as kernels
from kelda.engine.clock import FOREVER, NEVER
from kelda.engine.deltas import Ids
from kelda.lang import algebra as A
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.times import literal_to_ms


@dataclass(frozen=True, slots=True)
class StreamRows:
    """The triples of one stream in one step, in the order (time, arrival).

    `event` numbers the events of the stream, `row` its triples, both from its beginning."""

    s: Ids
    p: Ids
    o: Ids
    time: Ids
    event: Ids
    row: Ids

    def __len__(self) -> int:
        return len(self.time)


@dataclass
class TimeIntervals:
    """RANGE, NOW, ALL, with SLIDE and past windows: known on arrival."""

    range: int | None
    slide: int | None = None
    until: int = 0
    t0: int = 0

    def observe(self, rows: StreamRows, until: int) -> None:
        """Nothing to learn: time alone decides."""

    def units(self, rows: StreamRows) -> Ids:
        """What `of` goes by."""
        return rows.time

    def of(self, units: Ids) -> tuple[Ids, Ids]:
        """(enter, leave) of elements of these times."""
        enter, leave, _ = kernels.stays(units, *self.numbers)
        return enter, leave

    def least(self, until: int) -> int:
        """Units below this one are in the window at no instant after `until`."""
        if self.range is None or until == NEVER:
            return NEVER
        return until - self.range - self.until - (self.slide or 0)

    @property
    def numbers(self) -> tuple[int, int, int, int]:
        """The window, as kernels take it."""
        endless = kernels.ENDLESS if self.range is None else self.range
        return endless, self.slide or 0, self.until, self.t0


@dataclass
class CountIntervals:
    """The last `count` of the first k*step units. Unit u enters with unit number (u // step + 1) * step
    - 1 and leaves with number ceil((u + count + 1) / step) * step - 1, when those come."""

    count: int
    step: int
    by_triple: bool
    first: int | None = None  # number of the first unit this window has seen
    seen: int = 0  # units seen, this step's included
    times: Ids = field(default_factory=lambda: np.zeros(0, np.int64))  # of this step's units
    history: Ids = field(default_factory=lambda: np.zeros(0, np.int64))  # of the last units, these included

    def observe(self, rows: StreamRows, until: int) -> None:
        """Take note of the units of a step, whose instants end with `until`."""
        if not len(rows):
            self.times = np.zeros(0, np.int64)
            return
        numbers = rows.row if self.by_triple else rows.event
        if self.first is None:
            self.first = int(numbers[0])
        heads = np.ones(len(rows), np.bool_)
        heads[1:] = numbers[1:] != numbers[:-1]
        self.times = rows.time[heads]
        self.seen += len(self.times)
        # Far enough back for every unit that was inside at the beginning of this step.
        self.history = np.concatenate([self.history[-2 * self.count :], self.times])

    def units(self, rows: StreamRows) -> Ids:
        """Unit numbers, from the first that the window has seen."""
        return (rows.row if self.by_triple else rows.event) - (self.first or 0)

    def of(self, units: Ids) -> tuple[Ids, Ids]:
        """(enter, leave) as far as they are known; asked again, more may be."""
        enter, leave = self._numbers(units)
        return self._time_of(enter), self._time_of(leave)

    def arrival(self, units: Ids) -> Ids:
        """When units came that are not long ago; FOREVER if they have not come yet."""
        at = units - (self.seen - len(self.history))
        out = np.full(units.shape, FOREVER)
        known = at < len(self.history)
        out[known] = self.history[np.maximum(at[known], 0)]
        return out

    def least(self, until: int) -> int:
        """Units below this one are in the window at no instant after this step."""
        return self.seen - self.count - self.step

    def now_of(self, units: Ids) -> tuple[Ids, Ids]:
        """(enter, leave) of units that are not long ago, as far as they have come; one that entered before
        what is remembered enters there."""
        return tuple(self.arrival(number) for number in self._numbers(units))  # type: ignore[return-value]

    def _numbers(self, units: Ids) -> tuple[Ids, Ids]:
        """The units with which these enter and leave."""
        enter = (units // self.step + 1) * self.step - 1
        return enter, -(-(units + self.count + 1) // self.step) * self.step - 1

    def _time_of(self, units: Ids) -> Ids:
        at = units - (self.seen - len(self.times))
        out = np.full(len(units), FOREVER)
        known = (at >= 0) & (at < len(self.times))
        out[known] = self.times[at[known]]
        return out


@dataclass
class SessionIntervals:
    """Sessions: they end `gap` after an element that no other follows within `gap`.

    An element stands in the window from its own time to the end of its session; `on_close`, from the end
    of its session to the end of the next. Ends are known when time has come to them."""

    gap: int
    on_close: bool
    last: int | None = None  # the last element of the running session
    closed: Ids = field(default_factory=lambda: np.zeros(0, np.int64))
    """The last elements of the sessions that this step closes, and of the one before them."""

    def observe(self, rows: StreamRows, until: int) -> None:
        """Take note of the elements of a step, whose instants end with `until`."""
        times = rows.time if self.last is None else np.concatenate([[self.last], rows.time])
        self.closed = self.closed[-1:]
        if not len(times):
            return
        ends = times[:-1][np.diff(times) >= self.gap]
        self.last = int(times[-1])
        if self.last + self.gap <= until:
            ends = np.append(ends, self.last)
            self.last = None
        self.closed = np.concatenate([self.closed, ends])

    def units(self, rows: StreamRows) -> Ids:
        """What `of` goes by."""
        return rows.time

    def of(self, units: Ids) -> tuple[Ids, Ids]:
        """(enter, leave) as far as they are known; asked again, more may be."""
        session = np.searchsorted(self.closed, units)
        ends = np.concatenate([self.closed + self.gap, [FOREVER, FOREVER]])
        if self.on_close:
            return ends[session], ends[session + 1]
        return units, ends[session]


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
        times = [literal_to_ms(t) if isinstance(t, Literal) else None for t in self.dictionary.terms(ids)]
        known = np.array([t is not None for t in times], np.bool_)[which]
        stated = np.array([t or 0 for t in times], np.int64)[which][known]
        events, first = np.unique(rows.event[where][known], return_index=True)
        out = rows.time.copy()
        if len(events):
            at = np.minimum(np.searchsorted(events, rows.event), len(events) - 1)
            mine = events[at] == rows.event
            out[mine] = stated[first[at[mine]]]
        return out


Intervals = TimeIntervals | CountIntervals | SessionIntervals | StatedIntervals


def intervals_of(window: A.Window, t0: int, dictionary: Dictionary, *, on_close: bool) -> Intervals:
    """The intervals of a window.

    `on_close`: the query reports when windows close."""
    match window:
        case A.NowWindow():
            return TimeIntervals(1)
        case A.AllWindow():
            return TimeIntervals(None)
        case A.TimeWindow(range=int(r), slide=int() | None as slide, until=until, time_predicate=predicate):
            intervals = TimeIntervals(r, slide, until, t0)
            if predicate is None:
                return intervals
            return StatedIntervals(intervals, dictionary.encode(predicate), dictionary)
        case A.CountWindow(count=int(n), step=int(m), unit=unit):
            return CountIntervals(n, m, unit is A.CountUnit.TRIPLES)
        case A.SessionWindow(gap=int(gap)):
            return SessionIntervals(gap, on_close)
    raise TypeError(f"not an executable window: {window!r}")


class Waiting:
    """Rows of one leaf (or none: elements as such) on their way through a window.

    `step` gives the rows whose interval has become known, and the ends of those given before with an
    open end."""

    def __init__(self, intervals: Intervals, width: int) -> None:
        self.intervals = intervals
        self._units = np.zeros(0, np.int64)
        self._values = np.zeros((width, 0), np.int64)
        self.open_units = np.zeros(0, np.int64)

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
        if isinstance(self.intervals, TimeIntervals):  # nothing ever waits
            enter, leave, all_seen = kernels.stays(units, *self.intervals.numbers)
            if all_seen:
                return values, enter, leave, units
        else:
            enter, leave = self.intervals.of(units)
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
