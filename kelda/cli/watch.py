"""How far a run has come, on stderr: one line that rewrites itself on a terminal, and a summary at the end.

Records that could not be read are kept in a file, if that is asked.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TextIO

from kelda.api import Engine
from kelda.io.job import StreamSource
from kelda.rdf.event import Reject
from kelda.shards.deployment import Batch
from kelda.words import count

REDRAW = 0.2  # seconds between two looks of the line on a terminal
REPEAT = 5.0  # and between two lines where there is none
START_SHOWING = 1.0  # a run shorter than this shows no progress at all


class Watch:
    """Counts what an engine reads, batch by batch, in its thread; shows it in that of who looks."""

    def __init__(
        self,
        stderr: TextIO,
        *,
        show: bool,
        rejects: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.stderr, self.show, self.rejects_file, self.clock = stderr, show, rejects, clock
        self.total_bytes = 0
        self.bytes = self.answers = 0
        self.events: Counter[str] = Counter()  # by stream
        self.late: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.first_reject: Reject | None = None
        self.first_by_source: dict[str, Reject] = {}
        self.started = clock()
        self.first_read: float | None = None  # loading graphs and starting Spark are not reading
        self.terminal = stderr.isatty()
        self._next_look = self.started + START_SHOWING
        self._drawn = False
        self._engine: Engine | None = None

    def begin(self, engine: Engine, streams: Iterable[StreamSource] = ()) -> None:
        """Watch this engine. The `streams` that are files are known to end."""
        self._engine = engine
        files = [Path(stream.path) for stream in streams]
        self.total_bytes = sum(path.stat().st_size for path in files if path.is_file())
        engine.watch(self.take)

    # ------------------------------------------------------------------------ told by the engine

    def take(self, batch: Batch) -> None:
        """A batch was answered. Every shard knows of all elements: the first one tells."""
        if self.first_read is None:
            self.first_read = self.clock()
            self._next_look = max(self._next_look, self.first_read + REDRAW)
        for news in batch.news[:1]:
            for stream, (events, size) in news.read.items():
                self.events[stream] += events
                self.bytes += size
            self.late.update(news.late)
        self.answers += len(batch.merged)
        for reject in batch.rejects:
            self._rejected(reject)

    def _rejected(self, reject: Reject) -> None:
        self.reasons[reject.reason] += 1
        self.first_reject = self.first_reject or reject
        self.first_by_source.setdefault(reject.source, reject)
        if self.rejects_file is not None:
            record = {
                "source": reject.source,
                "line": reject.line,
                "reason": reject.reason,
                "record": reject.record,
            }
            self.rejects_file.write(json.dumps(record, ensure_ascii=False) + "\n")

    def first_of_only_rejects(self, stream: str, places: tuple[str, ...]) -> Reject | None:
        """The first reject of a stream, whose records lie in one of the places, if it has only rejects."""
        if self.events[stream]:
            return None
        for source, reject in self.first_by_source.items():
            if any(source == place or source.startswith(place.rstrip("/") + "/") for place in places):
                return reject
        return None

    # ------------------------------------------------------------------------ shown to a person

    def look(self) -> None:
        """Show how far it is, if it is time to."""
        now = self.clock()
        if not self.show or self.first_read is None or now < self._next_look:
            return
        self._next_look = now + (REDRAW if self.terminal else REPEAT)
        line = self.line(now - self.first_read)
        self.stderr.write(f"\r\x1b[K{line}" if self.terminal else line + "\n")
        self.stderr.flush()
        self._drawn = self.terminal

    def clear(self) -> None:
        """Take the line away, so that something else can be written there."""
        if self._drawn:
            self._drawn = False
            self.stderr.write("\r\x1b[K")
            self.stderr.flush()

    def line(self, seconds: float) -> str:
        """The line after so many seconds of reading: part done, rate, time left, how the engine is."""
        events = self.events.total()
        parts = [count(events, "event"), f"{events / max(seconds, 1e-9):,.0f}/s"]
        if self.total_bytes:
            part = min(self.bytes / self.total_bytes, 1.0)
            parts.insert(0, f"{part:4.0%}")
            if part > 0:
                parts.append(f"{clock_time(seconds * (1 - part) / part)} left")
        if self._engine is not None:
            figures = self._engine.figures
            parts.append(f"batch {1000 * figures.batch_seconds:,.0f} ms")
            parts.append(f"state {figures.state_bytes / 2**20:,.1f} MB")
            if figures.lag_seconds is not None:
                parts.append(f"lag {figures.lag_seconds:,.1f} s")
        return "  ".join(parts)

    def summary(self, answers: int | None = None) -> str:
        """The run in one line; `answers` if there were others than the engine's."""
        parts = [count(self.answers if answers is None else answers, "answer")]
        if self._engine is not None:
            parts += [count(self.events.total(), "event"), self._said_of_rejects(), self._said_of_late()]
        return f"{', '.join(parts)}, {self.clock() - self.started:.1f} s"

    def _said_of_rejects(self) -> str:
        said, first = count(self.reasons.total(), "reject"), self.first_reject
        if first is None:
            return said
        where = f"{first.source}, line {first.line}: {first.reason}"
        others = [f"{reason} ({n})" for reason, n in self.reasons.most_common(3) if reason != first.reason]
        return f"{said} (first: {'; '.join([where, *others])})"

    def _said_of_late(self) -> str:
        said = f"{self.late.total():,} late"
        if not self.late.total():
            return said
        streams = ", ".join(f"{n:,} on <{stream}>" for stream, n in self.late.most_common() if n)
        return f"{said} ({streams}; a larger lateness lets them in)"


def clock_time(seconds: float) -> str:
    """
    >>> clock_time(59.2), clock_time(125), clock_time(7325)
    ('1:00', '2:05', '2:02:05')
    """
    whole = int(-(-seconds // 1))
    hours, rest = divmod(whole, 3600)
    minutes, seconds_left = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{seconds_left:02}" if hours else f"{minutes}:{seconds_left:02}"
