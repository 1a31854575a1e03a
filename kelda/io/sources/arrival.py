"""Arrival: the time of events that say none.

When an event arrived is fixed when it is first read: it is part of the offset, or of the spool, so a batch
that is read again gives its events the same times. What is read in one batch of a file arrives at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from kelda.io.job import StreamSource
from kelda.io.sources.reader import Around, Now, Offset, Piece, Reader, wall
from kelda.rdf.event import Event
from kelda.rdf.framing import prepare_mapping
from kelda.rdf.framings.mapping import TableMapping


def now_ms() -> int:
    """Milliseconds since 1970, by the wall clock."""
    return int(wall() * 1000)


def arrived(events: Iterable[Event], when: Callable[[], int]) -> list[Event]:
    """The events that say something, with the time of their arrival where they have none of their own."""
    time: int | None = None
    found = []
    for event in events:
        if not event.quads:
            continue
        if event.time is None:
            time = when() if time is None else time
            event = Event(time, event.quads)
        found.append(event)
    return found


def may_lack_time(format: str, source: StreamSource) -> bool:
    """Whether events of the stream can be without a time of their own."""
    if format == "tsnt" or source.time is not None:
        return False
    ready = prepare_mapping(format, source.mapping).mapping
    return not (isinstance(ready, TableMapping) and ready.time_column is not None)


class NotingArrival(Around):
    """Another reader, whose pieces tell when they arrived."""

    def __init__(self, reader: Reader, *, now: Now = wall) -> None:
        super().__init__(reader)
        self._now = now

    @property
    def complete(self) -> bool:
        return bool(getattr(self.reader, "complete", False))

    def start(self) -> Offset:
        return {**self.reader.start(), "arrived": None}

    def latest(self, at: Offset, max_records: int | None = None) -> Offset:
        end = self.reader.latest(at, max_records)
        if end["pieces"] == at["pieces"]:
            return end
        now = int(self._now() * 1000)
        return {**end, "arrived": now if at["arrived"] is None else max(now, at["arrived"])}

    def pieces(self, begin: Offset, end: Offset) -> list[Piece]:
        return [replace(piece, arrived=end["arrived"]) for piece in self.reader.pieces(begin, end)]
