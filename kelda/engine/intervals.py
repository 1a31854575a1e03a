"""When the elements of a stream stand in a window, for whole batches: [enter, leave) per element.

The same definitions as `kelda.engine.window`, as arithmetic on columns. FOREVER as an end means: not
known yet (count and session windows) or never (ALL).

Each kind of window answers for itself what others want to know of it; `Intervals` lists the questions. A
*unit* is what a kind goes by: a time, a number of an element, a place in the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from pyoxigraph import Literal

from kelda.engine import intervals_kernels as kernels
from kelda.engine.clock import FOREVER, NEVER
from kelda.engine.deltas import Ids
from kelda.engine.stream_rows import Last, StreamRows
from kelda.lang import algebra as A
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.times import literal_to_ms

_NONE = np.zeros(0, np.int64)


class Intervals:
    """What every kind of window can tell. Of a step, `observe` is called first."""

    ends_later = True  # an element may come in before it is known when it leaves
    places_later = False  # elements can be placed steps after they came: `now_of` and `least` can be asked
    by_stated_time = False  # it goes by a time that events state themselves

    @property
    def slide(self) -> int | None:
        """How far apart the instants are at which it moves; None: that depends on what comes."""
        return None

    @property
    def changes_on_close(self) -> bool:
        """Whether it changes only where it closes: not if an element may come in belatedly."""
        return True

    @property
    def remembers_its_opening(self) -> bool:
        """Whether what it holds depends on which element it saw first."""
        return False

    def observe(self, rows: StreamRows, until: int) -> None:
        """Take note of the elements of a step, whose instants end with `until`."""
        raise NotImplementedError

    def units(self, rows: StreamRows) -> Ids:
        """What `of` goes by."""
        raise NotImplementedError

    def of(self, units: Ids) -> tuple[Ids, Ids]:
        """(enter, leave) as far as they are known; asked again, more may be."""
        raise NotImplementedError

    def placed(self, units: Ids) -> tuple[Ids, Ids, bool]:
        """`of`, and whether it is certain that all are known and each is inside at some instant."""
        return *self.of(units), False

    def now_of(self, units: Ids) -> tuple[Ids, Ids]:
        """(enter, leave) of units that are not long ago, as far as they have come."""
        return self.of(units)

    def distinct(self, rows: StreamRows) -> tuple[Ids, Ids] | None:
        """(enter, leave) of the elements of a step, ascending, of those that come and go together one; None
        if they are not all known at once."""
        return None

    # -------------------------------------------------------------------- how far back it goes

    def least(self, until: int) -> int:
        """Units below this one are in the window at no instant after `until`, the end of this step."""
        raise NotImplementedError

    def needs(self, last: Last, since: int) -> bool:
        """Whether one of some rows, of which this is the last, may be inside at an instant after `since`."""
        raise NotImplementedError

    @property
    def reach(self) -> int:
        """How long after an element came the window may still change by it, where that is known at once."""
        return 0

    @property
    def stays_until(self) -> int:
        """The latest end of an element of this step, where neither time nor number tells it."""
        return NEVER

    # -------------------------------------------------------------------- windows of many sizes in one

    def grow(self, size: int) -> None:
        """Be at least so large."""
        raise NotImplementedError

    def leave_by(self, units: Ids, sizes: Ids) -> Ids:
        """When units leave windows of these sizes, none of them larger than this one."""
        raise NotImplementedError

    def first_change(self, came: Ids, since: Ids, registered: Ids, sizes: Ids | None, on_close: bool) -> Ids:
        """For each query, the first instant after `since` at which its window changes (`on_close`: closes);
        elements `came` at these instants. It sees those after it was `registered`; `sizes` if they differ."""
        return first_after(came, since)  # each that comes moves it on

    # -------------------------------------------------------------------- what survives

    def snapshot(self) -> int | None:
        """What must be kept beside the rows that are needed; None: nothing."""
        return None

    def restore(self, kept: Sequence[int], row: int, event: int) -> None:
        """Begin where windows have left `kept` that are this one now, with the row and the event of these
        numbers as the first to be seen again."""


@dataclass
class TimeIntervals(Intervals):
    """RANGE, NOW, ALL, with SLIDE and past windows: known on arrival."""

    range: int | None
    slide: int | None = None
    until: int = 0
    t0: int = 0

    ends_later = False
    places_later = True

    def observe(self, rows: StreamRows, until: int) -> None:
        """Nothing to learn: time alone decides."""

    def units(self, rows: StreamRows) -> Ids:
        return rows.time

    def of(self, units: Ids) -> tuple[Ids, Ids]:
        enter, leave, _ = kernels.stays(units, *self.numbers)
        return enter, leave

    def placed(self, units: Ids) -> tuple[Ids, Ids, bool]:
        found: tuple[Ids, Ids, bool] = kernels.stays(units, *self.numbers)
        return found

    def distinct(self, rows: StreamRows) -> tuple[Ids, Ids]:
        if not len(rows):
            return _NONE, _NONE
        enter, leave = kernels.distinct_stays(rows.time, *self.numbers)
        return enter, _NONE if self.range is None else leave

    def least(self, until: int) -> int:
        if self.range is None or until == NEVER:
            return NEVER
        return until - self.reach

    def needs(self, last: Last, since: int) -> bool:
        return int(self.of(np.array([last.time], np.int64))[1][0]) > since

    @property
    def reach(self) -> int:
        return (self.range or 0) + self.until + (self.slide or 0)

    def grow(self, size: int) -> None:
        self.range = max(self.range or 1, size)

    def leave_by(self, units: Ids, sizes: Ids) -> Ids:
        return units + sizes

    def first_change(self, came: Ids, since: Ids, registered: Ids, sizes: Ids | None, on_close: bool) -> Ids:
        if sizes is not None:
            leaves = first_after(came, np.maximum(since - sizes, registered))
            leaves = np.where(leaves < FOREVER, leaves + sizes, FOREVER)
            return np.minimum(first_after(came, since), leaves)
        if on_close and self.slide is not None:
            return since + 1 + (self.t0 - since - 1) % self.slide
        enter, leave = self.of(came)
        stays = enter < leave
        enters = first_after(enter[stays], since, came[stays], registered)
        return np.minimum(enters, first_after(leave[stays], since, came[stays], registered))

    @property
    def numbers(self) -> tuple[int, int, int, int]:
        """The window, as kernels take it."""
        endless = kernels.ENDLESS if self.range is None else self.range
        return endless, self.slide or 0, self.until, self.t0


@dataclass
class CountIntervals(Intervals):
    """The last `count` of the first k*step units. Unit u enters with unit number (u // step + 1) * step
    - 1 and leaves with number ceil((u + count + 1) / step) * step - 1, when those come."""

    count: int
    step: int
    by_triple: bool
    first: int | None = None  # number of the first unit this window has seen
    seen: int = 0  # units seen, this step's included
    times: Ids = field(default_factory=lambda: _NONE)  # of this step's units
    history: Ids = field(default_factory=lambda: _NONE)  # of the last units, these included

    places_later = True

    @property
    def remembers_its_opening(self) -> bool:
        return self.step > 1

    def observe(self, rows: StreamRows, until: int) -> None:
        if not len(rows):
            self.times = _NONE
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
        enter, leave = self._numbers(units)
        return self._time_of(enter), self._time_of(leave)

    def now_of(self, units: Ids) -> tuple[Ids, Ids]:
        """One that entered before what is remembered enters there."""
        enter, leave = self._numbers(units)
        return self._arrival(enter), self._arrival(leave)

    def least(self, until: int) -> int:
        return self.seen - self.count - self.step

    def needs(self, last: Last, since: int) -> bool:
        after = int(np.searchsorted(self.history, since, "right"))
        if not after and len(self.history):
            return True  # its memory does not reach back to `since`
        gone = self.seen - len(self.history) + after - self.count - self.step
        return (last.row if self.by_triple else last.event) - (self.first or 0) >= gone

    def grow(self, size: int) -> None:
        self.count = max(self.count, size)

    def leave_by(self, units: Ids, sizes: Ids) -> Ids:
        return self._arrival(units + sizes)

    def snapshot(self) -> int | None:
        return self.first

    def restore(self, kept: Sequence[int], row: int, event: int) -> None:
        self.first = min(kept)
        self.seen = (row if self.by_triple else event) - self.first

    def _arrival(self, units: Ids) -> Ids:
        """When units came that are not long ago; FOREVER if they have not come yet."""
        at = units - (self.seen - len(self.history))
        out = np.full(units.shape, FOREVER)
        known = at < len(self.history)
        out[known] = self.history[np.maximum(at[known], 0)]
        return out

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
class SessionIntervals(Intervals):
    """Sessions: they end `gap` after an element that no other follows within `gap`.

    An element stands in the window from its own time to the end of its session; `on_close`, from the end
    of its session to the end of the next. Ends are known when time has come to them."""

    gap: int
    on_close: bool
    last: int | None = None  # the last element of the running session
    closed: Ids = field(default_factory=lambda: _NONE)
    """The last elements of the sessions that this step closes, and of the two before them."""

    def observe(self, rows: StreamRows, until: int) -> None:
        times = rows.time if self.last is None else np.concatenate([[self.last], rows.time])
        self.closed = self.closed[-2:]
        if not len(times):
            return
        ends = times[:-1][np.diff(times) >= self.gap]
        self.last = int(times[-1])
        if self.last + self.gap <= until:
            ends = np.append(ends, self.last)
            self.last = None
        self.closed = np.concatenate([self.closed, ends])

    def units(self, rows: StreamRows) -> Ids:
        return rows.time

    def of(self, units: Ids) -> tuple[Ids, Ids]:
        session = np.searchsorted(self.closed, units)
        ends = np.concatenate([self.closed + self.gap, [FOREVER, FOREVER]])
        if self.on_close:
            return ends[session], ends[session + 1]
        return units, ends[session]

    def needs(self, last: Last, since: int) -> bool:
        """Whatever `since`: of the session that was closed last, and of the one that runs."""
        return len(self.closed) < 2 or last.time > self.closed[-2]


@dataclass
class StatedIntervals(Intervals):
    """The intervals of `window` at the stated times. Units are the positions of the rows in their step."""

    window: TimeIntervals
    predicate: int
    dictionary: Dictionary
    enter: Ids = field(default_factory=lambda: _NONE)
    leave: Ids = field(default_factory=lambda: _NONE)

    ends_later = False
    by_stated_time = True

    @property
    def slide(self) -> int | None:
        return self.window.slide

    @property
    def changes_on_close(self) -> bool:
        return self.slide is None

    def observe(self, rows: StreamRows, until: int) -> None:
        """Read the times that the events of a step state."""
        enter, self.leave = self.window.of(self._stated(rows))
        self.enter = np.maximum(enter, rows.time)

    def units(self, rows: StreamRows) -> Ids:
        return np.arange(len(rows))

    def of(self, units: Ids) -> tuple[Ids, Ids]:
        """(enter, leave) of rows of this step."""
        return self.enter[units], self.leave[units]

    @property
    def stays_until(self) -> int:
        return int(self.leave.max(initial=NEVER))

    def needs(self, last: Last, since: int) -> bool:
        return last.stays_until > since

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


def first_after(instants: Ids, since: Ids, came: Ids | None = None, registered: Ids | None = None) -> Ids:
    """The first of some instants (ascending) after `since`, FOREVER if there is none; only those of elements
    that came after the query was registered."""
    at = np.searchsorted(instants, since, "right")
    if came is not None and registered is not None:
        at = np.maximum(at, np.searchsorted(came, registered, "right"))
    return np.append(instants, FOREVER)[at]


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
