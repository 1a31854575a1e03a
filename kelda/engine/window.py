"""Which elements are in a window at an instant.

A window is fed elements in time order and moved from instant to instant; `content` is then what
docs/semantics.md defines for that instant:

    NOW                 (t-1, t]
    RANGE r             (t-r, t]
    RANGE r SLIDE s     (b-r, b]      b = the last boundary t0 + k*s that is <= t
    past windows        the same, `until` ms earlier
    ALL                 everything
    count n STEP m      the last n of the first m*k elements, k as great as possible
    SESSION gap         the running session; where windows report on close, the last closed one

For windows by time that makes an element's stay one interval [enter, leave), known on arrival.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field

from pyoxigraph import Literal, Quad

from kelda.engine.clock import FOREVER
from kelda.lang import algebra as A
from kelda.rdf import wire
from kelda.rdf.times import literal_to_ms


@wire.shared
@dataclass(frozen=True, slots=True)
class Element:
    """A stream element in a window: its number in the order (time, arrival), and its quads."""

    number: int
    time: int
    quads: tuple[Quad, ...]


@dataclass
class WindowState:
    """Base: content by element number, and what happened at the last move."""

    content: dict[int, Element] = field(default_factory=dict)
    changed: bool = False  # the last move changed the content
    closed: bool = False  # the last move was to an instant at which the window closes

    def add(self, element: Element) -> None:
        raise NotImplementedError

    def move(self, t: int) -> tuple[list[Element], list[Element]]:
        """Go to instant t: (elements that came in, elements that left)."""
        raise NotImplementedError

    def next_change(self, t: int) -> int:
        """The first instant after t at which the content changes by the passing of time alone."""
        return FOREVER

    def next_close(self, t: int) -> int:
        """The first instant after t at which the window closes, even if nothing changes."""
        return self.next_change(t)


@wire.plain
@dataclass
class TimeState(WindowState):
    """Windows by time: a heap of instants at which an element enters or leaves."""

    range: int | None = None  # None: ALL
    slide: int | None = None
    until: int = 0
    t0: int = 0
    time_predicate: str | None = None
    agenda: list[tuple[int, int, bool, Element]] = field(default_factory=list)

    def stay(self, element: Element) -> tuple[int, int]:
        """[enter, leave): when the element is in the window."""
        time = element.time
        if self.time_predicate is not None:
            time = time_in_event(element, self.time_predicate)
        enter = time + self.until
        leave = FOREVER if self.range is None else enter + self.range
        if self.slide is not None:
            enter = self.boundary(enter)
            leave = FOREVER if leave == FOREVER else self.boundary(leave)
        return max(enter, element.time), leave

    def boundary(self, t: int) -> int:
        """The first boundary at or after t."""
        assert self.slide is not None
        return t + (self.t0 - t) % self.slide

    def add(self, element: Element) -> None:
        enter, leave = self.stay(element)
        if enter < leave:
            heapq.heappush(self.agenda, (enter, element.number, True, element))
            if leave < FOREVER:
                heapq.heappush(self.agenda, (leave, element.number, False, element))

    def move(self, t: int) -> tuple[list[Element], list[Element]]:
        came, left = [], []
        while self.agenda and self.agenda[0][0] <= t:
            _, number, enters, element = heapq.heappop(self.agenda)
            if enters:
                self.content[number] = element
                came.append(element)
            else:
                del self.content[number]
                left.append(element)
        self.changed = bool(came or left)
        self.closed = self.changed if self.slide is None else self.boundary(t) == t
        return came, left

    def next_change(self, t: int) -> int:
        return self.agenda[0][0] if self.agenda else FOREVER

    def next_close(self, t: int) -> int:
        return self.next_change(t) if self.slide is None else self.boundary(t + 1)


@wire.plain
@dataclass
class CountState(WindowState):
    """The last `count` units, moving on by `step`. A unit is a triple or a whole event."""

    count: int = 1
    step: int = 1
    by_triple: bool = True
    waiting: deque[Element] = field(default_factory=deque)
    inside: deque[Element] = field(default_factory=deque)
    unit_number: int = 0

    def add(self, element: Element) -> None:
        parts = [(q,) for q in element.quads] if self.by_triple else [element.quads]
        for quads in parts:
            self.waiting.append(Element(self.unit_number, element.time, quads))
            self.unit_number += 1

    def move(self, t: int) -> tuple[list[Element], list[Element]]:
        fresh = len(self.waiting) - len(self.waiting) % self.step
        came = {u.number: u for u in (self.waiting.popleft() for _ in range(fresh))}
        self.inside.extend(came.values())
        left = []
        while len(self.inside) > self.count:
            unit = self.inside.popleft()
            if came.pop(unit.number, None) is None:
                left.append(unit)
        for unit in left:
            del self.content[unit.number]
        self.content.update(came)
        self.changed = self.closed = fresh > 0
        return list(came.values()), left


@wire.plain
@dataclass
class SessionState(WindowState):
    """A session lasts until no element has come for `gap`.

    `on_close` False: the content is the running session. True: the session closed last."""

    gap: int = 1
    on_close: bool = False
    running: list[Element] = field(default_factory=list)
    waiting: list[Element] = field(default_factory=list)

    def add(self, element: Element) -> None:
        self.waiting.append(element)

    def move(self, t: int) -> tuple[list[Element], list[Element]]:
        came: list[Element] = []
        left: list[Element] = []
        self.closed = bool(self.running) and self.running[-1].time + self.gap <= t
        if self.closed:
            if self.on_close:
                left, came = list(self.content.values()), self.running
            else:
                left = self.running
            self.running = []
        if not self.on_close:
            came = self.waiting
        self.running.extend(self.waiting)
        self.waiting = []
        for element in left:
            del self.content[element.number]
        self.content.update((e.number, e) for e in came)
        self.changed = bool(came or left)
        return came, left

    def next_change(self, t: int) -> int:
        return self.running[-1].time + self.gap if self.running else FOREVER


def make_window(window: A.Window, *, t0: int, on_close: bool) -> WindowState:
    """The state of a window; `on_close`: the query reports when windows close."""
    match window:
        case A.NowWindow():
            return TimeState(range=1)
        case A.AllWindow():
            return TimeState(range=None)
        case A.TimeWindow(range=int(r), slide=int() | None as slide, until=until, time_predicate=predicate):
            name = None if predicate is None else predicate.value
            return TimeState(range=r, slide=slide, until=until, t0=t0, time_predicate=name)
        case A.CountWindow(count=int(n), step=int(m), unit=unit):
            return CountState(count=n, step=m, by_triple=unit is A.CountUnit.TRIPLES)
        case A.SessionWindow(gap=int(gap)):
            return SessionState(gap=gap, on_close=on_close)
    raise TypeError(f"not an executable window: {window!r}")


def time_in_event(element: Element, predicate: str) -> int:
    """The event's own time by `predicate`; without such a triple, the element's time."""
    for quad in element.quads:
        if quad.predicate.value == predicate and isinstance(quad.object, Literal):
            time = literal_to_ms(quad.object)
            if time is not None:
                return time
    return element.time
