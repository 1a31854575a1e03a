"""Times for events that are pushed without one: that of their arrival, after all that was seen before."""

from __future__ import annotations

import time
from collections.abc import Sequence

from kelda.rdf.event import Event


def arrivals(events: Sequence[Event], seen: int) -> tuple[Sequence[Event], int | None]:
    """The events, all with a time, and the last time that was given to one (None: none was).

    >>> events, last = arrivals([Event(5, ()), Event(None, ())], seen=2**60)
    >>> [event.time - 2**60 for event in events], last - 2**60
    ([-1152921504606846971, 1], 1)
    """
    last = None
    if all(event.time is not None for event in events):
        return events, None
    found = []
    for event in events:
        if event.time is None:
            last = max(time.time_ns() // 1_000_000, seen + 1)
            event = Event(last, event.quads)
        seen = max(seen, event.time or 0)
        found.append(event)
    return found, last
