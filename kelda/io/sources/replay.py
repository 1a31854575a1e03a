"""`replay:path?speed=60`, `replay:path?rate=50000`: a file as if it happened now.

With `speed`, a record is due as long after the first one as its event time says, so many times faster
(1: as it happened). With `rate`, so many triples a second are due. A piece is handed out when its last
record is due; pieces are short (a tenth of a second), and end at the same places in every run.

The pace is part of the offset: after a restart the replay goes on where it stopped, as if no time had
passed. With `catchup=true` it goes by the time since its first start, and what came due meanwhile comes
at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from kelda.errors import InputError, UsageError
from kelda.io.job import StreamSource
from kelda.io.sources.cutter import PIECE_BYTES, Cutter, Place
from kelda.io.sources.file import FileReader, Taken, place_of
from kelda.io.sources.reader import Now, Offset, wall
from kelda.io.sources.replay_kernels import NO_TIME, line_times
from kelda.rdf.event import Reject
from kelda.rdf.framing import RECORDS, prepare_mapping, read_chunk
from kelda.rdf.framings.base import Chunk

TICK = 100.0  # ms by the wall clock that one piece covers at most
LOOK_FOR_TIME = 1000  # records in which a time must be found


class _Pace(NamedTuple):
    """The records of the next piece: how many, when the last one is due (ms), and what is known then."""

    records: int
    due: float
    newest: int | None
    triples: int


class ReplayReader(FileReader):
    """Reads one file at a pace."""

    def __init__(
        self,
        path: Path,
        source: StreamSource,
        number: int,
        *,
        format: str,
        speed: float | None = None,
        rate: float | None = None,
        catchup: bool = False,
        piece_records: int = RECORDS,
        now: Now = wall,
    ) -> None:
        super().__init__(path, source, number, format=format, piece_records=piece_records)
        if speed is not None and rate is not None:
            raise UsageError(f"{source.path}: give speed or rate, not both")
        for pace in (speed, rate):
            if pace is not None and not 0 < pace < float("inf"):
                raise UsageError(f"{source.path}: speed and rate must be greater than 0")
        self._speed = 1.0 if speed is None else speed
        self._rate, self._catchup, self._now = rate, catchup, now
        self._source = source
        self._mapping = prepare_mapping(format, source.mapping)
        # To look ahead record by record, while the others cut pieces: going back and forth in one text
        # would mean to unpack it again and again.
        longest = source.max_record
        self._ahead = Cutter(format, self._mapping, max_records=1, exact=True, max_record=longest)
        self._cutter = Cutter(
            format, self._mapping, max_records=piece_records, exact=True, max_record=longest
        )
        self._ahead_text = self._open()
        self._first: int | None = None
        self._origin: float | None = None  # when the first record was due, by the wall clock

    def start(self) -> Offset:
        return {**super().start(), "due": 0.0, "newest": None, "triples": 0, "started": None}

    def latest(self, at: Offset, max_records: int | None = None) -> Offset:
        if self._origin is None:
            remembered = at["started"] if self._catchup else None
            self._origin = self._now() - at["due"] / 1000 if remembered is None else remembered
        passed = (self._now() - self._origin) * 1000
        records = 0
        while (taken := self.take(at)) is not None and taken.end["due"] <= passed:
            if records and max_records is not None and records + taken.piece.records > max_records:
                break
            records += taken.piece.records
            at = {**taken.end, "started": self._origin if self._catchup else None}
        return at

    def close(self) -> None:
        self._ahead_text.close()
        super().close()

    def _next(self, at: Offset, until: Offset | None) -> Taken | None:
        pace = self._pace(at)
        most = pace.records if until is None else min(pace.records, until["records"] - at["records"])
        step = self._cutter.next(self._text, place_of(at), complete=True, max_records=max(1, most))
        if step is None:
            return None
        taken = self._taken(at, step)
        return replace_end(taken, due=pace.due, newest=pace.newest, triples=pace.triples)

    # ------------------------------------------------------------------ when is what due?

    def _due(self, newest: int | None, triples: int) -> float:
        """When a record is due, ms after the first: by the newest time, or by the triples before it."""
        if self._rate is not None:
            return triples * 1000 / self._rate
        first = self._first_time()
        return 0.0 if newest is None else max(0.0, (newest - first) / self._speed)

    def _pace(self, at: Offset) -> _Pace:
        return self._pace_of_lines(at) if self.format == "tsnt" else self._pace_of_records(at)

    def _pace_of_lines(self, at: Offset) -> _Pace:
        times = self._line_times(at["bytes"], self._cutter.max_records)
        if not len(times):
            return _Pace(0, at["due"], at["newest"], at["triples"])
        newest = np.maximum.accumulate(times if at["newest"] is None else np.maximum(times, at["newest"]))
        if self._rate is not None:
            due = (at["triples"] + np.arange(len(times))) * (1000 / self._rate)
        else:
            since = np.where(newest == NO_TIME, 0, newest - self._first_time())
            due = np.maximum(0.0, since / self._speed)
        ticks = np.floor(due / TICK)
        count = int(np.searchsorted(ticks, ticks[0], side="right"))
        last = int(newest[count - 1])
        known = None if last == NO_TIME else last
        return _Pace(count, float(due[count - 1]), known, at["triples"] + count)

    def _line_times(self, at: int, most: int) -> np.ndarray:
        """The times of the lines of a piece."""
        data = self._ahead_text.read(at, PIECE_BYTES)
        whole = data.rfind(b"\n") + 1
        if whole and not self._ahead_text.at_end(at + len(data)):
            data = data[:whole]
        ends, times = np.empty(most, np.int64), np.empty(most, np.int64)
        count = line_times(np.frombuffer(data, np.uint8), ends, times)
        return times[:count]

    def _pace_of_records(self, at: Offset) -> _Pace:
        place = place_of(at)
        so_far = _Pace(0, at["due"], at["newest"], at["triples"])
        tick = None
        while so_far.records < self._cutter.max_records:
            step = self._ahead.next(self._ahead_text, place, complete=True)
            if step is None or step.chunk is None:
                break
            goes_on = len(step.chunk.data) == step.place.at - place.at
            if so_far.records and (not goes_on or step.place.at > at["bytes"] + PIECE_BYTES):
                break
            newest, triples = self._measured(step.chunk, so_far.newest)
            due = self._due(newest, so_far.triples)
            if tick is not None and due // TICK != tick:
                break
            tick = due // TICK
            so_far = _Pace(so_far.records + 1, due, newest, so_far.triples + triples)
            place = step.place
        return so_far

    def _measured(self, chunk: Chunk, newest: int | None) -> tuple[int | None, int]:
        """The newest time with this chunk, and how many triples it has."""
        triples = 0
        for event in read_chunk(
            chunk,
            self.format,
            time_predicate=self._source.time,
            mapping=self._mapping,
            on_reject=_passed_over,
            name=self._source.path,
            max_record=self._source.max_record,
        ):
            triples += len(event.quads)
            if event.time is not None:
                newest = event.time if newest is None else max(newest, event.time)
        return newest, triples

    def _first_time(self) -> int:
        """The event time with which the file begins."""
        if self._first is None:
            self._first = self._find_first_time()
        return self._first

    def _find_first_time(self) -> int:
        if self.format == "tsnt":
            times = self._line_times(0, LOOK_FOR_TIME)
            times = times[times != NO_TIME]
            if len(times):
                return int(times[0])
        else:
            place = Place()
            for _ in range(LOOK_FOR_TIME):
                step = self._ahead.next(self._ahead_text, place, complete=True)
                if step is None or step.chunk is None:
                    break
                time, _ = self._measured(step.chunk, None)
                if time is not None:
                    return time
                place = step.place
        raise InputError(
            f"{self.path}: no event times were found, so it has no speed; name the predicate of the time, "
            "or replay it with ?rate="
        )


def replace_end(taken: Taken, **more: object) -> Taken:
    return taken._replace(end={**taken.end, **more})


def _passed_over(reject: Reject) -> None:
    """Who reads the piece for its answers counts its rejects; here only times are looked at."""
