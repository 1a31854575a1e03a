"""Times for events that are pushed without one: that of their arrival, after all that was seen before."""

from __future__ import annotations

import threading
import time

import numpy as np

from kelda.engine.clock import NEVER
from kelda.io.elements import Events, Pushed
from kelda.io.sources.push import PushReader
from kelda.rdf.columnar.found import NO_TIME
from kelda.rdf.event import Event


def arrivals(events: Events, seen: int) -> tuple[Events, int | None]:
    """The events, all with a time, and the last time that was given to one (None: none was).

    >>> events, last = arrivals([Event(5, ()), Event(None, ())], seen=2**60)
    >>> [event.time - 2**60 for event in events], last - 2**60
    ([-1152921504606846971, 1], 1)
    """
    last = None
    if _all_timed(events):
        return events, None
    if isinstance(events, Pushed):
        return _columns(events, seen)
    found = []
    for event in events:
        if event.time is None:
            last = max(time.time_ns() // 1_000_000, seen + 1)
            event = Event(last, event.quads)
        seen = max(seen, event.time or 0)
        found.append(event)
    return found, last


def _all_timed(events: Events) -> bool:
    if isinstance(events, Pushed):
        return not (events.columns.time == NO_TIME).any()
    return all(event.time is not None for event in events)


def _columns(events: Pushed, seen: int) -> tuple[Pushed, int]:
    """As `arrivals`: the clock is looked at once."""
    now = time.time_ns() // 1_000_000
    said = events.times
    none = said == NO_TIME
    # Each is a step behind what was seen before: the latest time that was said, and the steps since then.
    steps = np.cumsum(none)
    reached = np.maximum.accumulate(np.where(none, NEVER, said - steps))
    times = np.where(none, np.maximum(np.maximum(reached, seen), now - 1) + steps, said)
    return events.at(times), int(times[none][-1])


class Arriving:
    """Pushes events into spools. Times of arrival ascend over all streams, and are complete at once."""

    def __init__(self) -> None:
        self._lock, self._last = threading.Lock(), NEVER

    def push(self, reader: PushReader, events: Events, seen: int | None) -> None:
        """Push events on a stream; `seen` is the latest time that any stream has told, if one has."""
        if _all_timed(events):
            reader.push(events)  # which may wait: other streams are not held up
            return
        with self._lock:
            events, last = arrivals(events, max(self._last, NEVER if seen is None else seen))
            reader.push(events)
            if last is not None:
                self._last = last
                reader.heartbeat(last)
