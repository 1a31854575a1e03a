"""How far a run has come, on stderr: one line that rewrites itself on a terminal.

Also the run's book-keeping: events, late elements, rejects (kept in a file if asked), and the
one-line summary at the end.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from typing import TextIO

from kelda.rdf.event import Reject
from kelda.words import count

REDRAW = 0.2  # seconds between two looks of the line on a terminal
REPEAT = 5.0  # and between two lines where there is none
START_SHOWING = 1.0  # a run shorter than this shows no progress at all


class RunProgress:
    """Counts what a runner tells; shows it if `show`. A `kelda.io.progress.Progress`.

    `total_bytes` is the size of all stream files on disk. `while_working` is called now and then, so
    that others (a table that gathers rows) can do their part while no answers come.
    """

    def __init__(
        self,
        total_bytes: int,
        stderr: TextIO,
        *,
        show: bool,
        rejects: TextIO | None = None,
        while_working: Callable[[], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.total_bytes, self.stderr, self.show, self.rejects_file = total_bytes, stderr, show, rejects
        self.while_working, self.clock = while_working, clock
        self.events = self.bytes = self.rejects = 0
        self.late_by_stream: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.first_reject: Reject | None = None
        self.first_by_source: dict[str, Reject] = {}
        self.events_by_stream: Counter[str] = Counter()
        self.started = clock()
        self.first_read: float | None = None  # loading graphs and starting Spark are not reading
        self.terminal = stderr.isatty()
        self._next_look = self.started + START_SHOWING
        self._drawn = False
        self._pipeline: list[str] = []

    # ---------------------------------------------------------------- told by the runner

    def read(self, stream: str, events: int, bytes: int) -> None:
        now = self.clock()
        if self.first_read is None:
            self.first_read = now
            self._next_look = max(self._next_look, now + REDRAW)
        self.events += events
        self.events_by_stream[stream] += events
        self.bytes += bytes
        if now >= self._next_look:
            self._look(now, now - self.first_read)

    def batch(self, seconds: float, lag: float | None, state_bytes: int) -> None:
        """See `kelda.io.progress.ShowsBatches`."""
        parts = [f"batch {1000 * seconds:,.0f} ms", f"state {state_bytes / 2**20:,.1f} MB"]
        self._pipeline = parts if lag is None else [*parts, f"lag {lag:,.1f} s"]

    def rejected(self, reject: Reject) -> None:
        self.rejects += 1
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

    def late(self, stream: str, count: int) -> None:
        self.late_by_stream[stream] += count

    def done(self) -> None:
        self.clear()

    def first_of_only_rejects(self, stream: str, places: tuple[str, ...]) -> Reject | None:
        """The first reject of a stream, whose records lie in one of the places, if it has only rejects."""
        if self.events_by_stream[stream]:
            return None
        for source, reject in self.first_by_source.items():
            if any(source == place or source.startswith(place.rstrip("/") + "/") for place in places):
                return reject
        return None

    # ---------------------------------------------------------------- shown to a person

    def clear(self) -> None:
        """Take the line away, so that something else can be written there."""
        if self._drawn:
            self.stderr.write("\r\x1b[K")
            self.stderr.flush()
            self._drawn = False

    def _look(self, now: float, seconds: float) -> None:
        if self.while_working is not None:
            self.while_working()
        self._next_look = now + (REDRAW if self.terminal or not self.show else REPEAT)
        if self.show:
            line = self.line(seconds)
            self.stderr.write(f"\r\x1b[K{line}" if self.terminal else line + "\n")
            self.stderr.flush()
            self._drawn = self.terminal

    def line(self, seconds: float) -> str:
        """The line after so many seconds of reading: part done, rate, time left."""
        parts = [count(self.events, "event"), f"{self.events / max(seconds, 1e-9):,.0f}/s"]
        if self.total_bytes:
            part = min(self.bytes / self.total_bytes, 1.0)
            parts.insert(0, f"{part:4.0%}")
            if part > 0:
                parts.append(f"{clock_time(seconds * (1 - part) / part)} left")
        parts += self._pipeline
        return "  ".join(parts)

    def summary(self, answers: int) -> str:
        """The run in one line."""
        seconds = self.clock() - self.started
        parts = [count(answers, "answer"), count(self.events, "event"), count(self.rejects, "reject")]
        if self.first_reject is not None:
            first = self.first_reject
            where = f"{first.source}, line {first.line}: {first.reason}"
            others = [
                f"{reason} ({n})" for reason, n in self.reasons.most_common(3) if reason != first.reason
            ]
            parts[-1] += f" (first: {'; '.join([where, *others])})"
        late = self.late_by_stream.total()
        parts.append(f"{late:,} late")
        if late:
            streams = ", ".join(f"{n:,} on <{stream}>" for stream, n in self.late_by_stream.most_common())
            parts[-1] += f" ({streams}; a larger --lateness lets them in)"
        return f"{', '.join(parts)}, {seconds:.1f} s"


def clock_time(seconds: float) -> str:
    """
    >>> clock_time(59.2), clock_time(125), clock_time(7325)
    ('1:00', '2:05', '2:02:05')
    """
    whole = int(-(-seconds // 1))
    hours, rest = divmod(whole, 3600)
    minutes, seconds_left = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{seconds_left:02}" if hours else f"{minutes}:{seconds_left:02}"
