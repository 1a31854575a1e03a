"""`push:`: a stream that the application itself speaks on.

    reader = open_reader("push:", StreamSource("http://ex/s", "push:", "tsnt"), 0, spool=folder)
    reader.push("1000\\t<http://ex/ann> <http://ex/in> <http://ex/lab> .")

What was pushed is in a file when `push` returns, which survives the process (the machine's losing power only
from when it is read), and stays there until it is committed. At most
`max_waiting` records wait; then `push` waits too, or raises `BusyError`, as its caller wants.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from kelda.errors import KeldaError, UsageError
from kelda.io.elements import ELEMENTS, Events, Pushed, pack
from kelda.io.job import StreamSource
from kelda.io.sources.cutter import Place, Step
from kelda.io.sources.reader import Now, wall
from kelda.io.sources.spooled import SpooledReader
from kelda.rdf.event import Event
from kelda.rdf.framing import RECORDS
from kelda.rdf.framings.base import Chunk

WAITING = 100_000


class BusyError(KeldaError):
    """More is pushed than is read. Nothing of the push was taken; push it again later."""


class PushReader(SpooledReader):
    """Takes what is pushed, from any thread."""

    def __init__(
        self,
        source: StreamSource,
        number: int,
        *,
        format: str,
        spool: Path,
        piece_records: int = RECORDS,
        max_waiting: int = WAITING,
        now: Now = wall,
    ) -> None:
        super().__init__(source, number, format=format, spool=spool, piece_records=piece_records, now=now)
        self.max_waiting = max_waiting
        self._arrival = 0  # the last time that was given to an event without one

    @property
    def waiting(self) -> int:
        """How many records were pushed and not committed yet."""
        return self._spool.waiting

    @property
    def pieces_so_far(self) -> int:
        """How many pieces were pushed, heart-beats and the end included; as offsets count them."""
        return self._spool.entries

    @property
    def records(self) -> int:
        """How many records were pushed so far, also by earlier runs with this spool."""
        return self._spool.place.records

    def push(
        self,
        data: str | bytes | Event | Iterable[Event] | Pushed,
        *,
        wait: bool = True,
        timeout: float | None = None,
    ) -> int:
        """Push whole records, as text in the stream's format or as events; returns how many.

        Text is a document of its own: it brings its prefixes. Columns have a time for each event. Where too
        much waits, `wait` says whether to wait (at most `timeout` seconds) or to raise BusyError at once.
        """
        if isinstance(data, str | bytes):
            if self.format == ELEMENTS:
                raise UsageError(
                    f"<{self.source.iri}> has no format in which text could be read: push events, or declare "
                    "the stream with a format, e.g. tsnt"
                )
            text = data.encode() if isinstance(data, str) else data
            with self._spool.changed:  # one push after the other: its records stay together
                self._room(wait, timeout)
                return self._document().add(text, complete=True)
        events: Events = (
            data if isinstance(data, Pushed) else [data] if isinstance(data, Event) else list(data)
        )
        with self._spool.changed:
            self._room(wait, timeout)
            place = self._spool.place
            if not isinstance(events, Pushed):
                events = [self._timed(event) for event in events]
            packed = pack(events)
            chunk = Chunk(0, place.records, b"", packed)
            after = Place(0, place.line, place.records + len(events))
            self._spool.append(Step(chunk, len(events), after, False), format=ELEMENTS)
            return len(events)

    def _timed(self, event: Event) -> Event:
        """An event with a time: that of its arrival if it says none. Clocks are set back, at times."""
        if event.time is not None:
            return event
        self._arrival = max(int(wall() * 1000), self._arrival)
        return Event(self._arrival, event.quads)

    def heartbeat(self, time: int) -> None:
        """Promise that nothing at or before `time` (ms) will be pushed any more."""
        with self._spool.changed:
            self._refuse_after_end()
            self._spool.append(None, heartbeat=time)

    def end(self) -> None:
        """Nothing will be pushed any more."""
        with self._spool.changed:
            if not self._spool.ended:
                self._spool.append(None, ends=True)

    def _room(self, wait: bool, timeout: float | None) -> None:
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            self._refuse_after_end()
            if self._spool.waiting < self.max_waiting:
                return
            left = None if until is None else until - time.monotonic()
            if not wait or (left is not None and left <= 0):
                raise BusyError(
                    f"{self._spool.waiting:,} records of <{self.source.iri}> wait to be read, and at most "
                    f"{self.max_waiting:,} may; nothing was taken, push it again later"
                )
            self._spool.changed.wait(left)

    def _refuse_after_end(self) -> None:
        if self._spool.ended:
            raise UsageError(f"<{self.source.iri}> has ended: it takes no more records")
