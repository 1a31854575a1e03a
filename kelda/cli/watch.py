"""How far a run has come, on stderr: one line that rewrites itself on a terminal, and a summary at the end.

Records that could not be read are kept in a file, if that is asked: those that the engine remembers.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TextIO

from kelda.api import Engine
from kelda.io.job import StreamSource
from kelda.rdf.event import Reject
from kelda.shards.figures import Figures
from kelda.words import count

REDRAW = 0.2  # seconds between two looks of the line on a terminal
REPEAT = 5.0  # and between two lines where there is none
START_SHOWING = 1.0  # a run shorter than this shows no progress at all


class Watch:
    """What an engine has done so far: `look` is to be called now and then, and once at the end."""

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
        self.rejects: list[Reject] = []
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

    def look(self) -> None:
        """See what is new, and show how far it is, if it is time to."""
        if self._engine is None:
            return
        now, figures = self.clock(), self._engine.figures
        if figures.rejected > len(self.rejects):
            self._keep(self._engine.rejects[len(self.rejects) :])
        if self.first_read is None and figures.batches:
            self.first_read = now
            self._next_look = max(self._next_look, now + REDRAW)
        if self.show and self.first_read is not None and now >= self._next_look:
            self._next_look = now + (REDRAW if self.terminal else REPEAT)
            line = self.line(figures, now - self.first_read)
            self.stderr.write(f"\r\x1b[K{line}" if self.terminal else line + "\n")
            self.stderr.flush()
            self._drawn = self.terminal

    def _keep(self, rejects: list[Reject]) -> None:
        self.rejects += rejects
        if self.rejects_file is not None:
            for reject in rejects:
                record = {
                    "source": reject.source,
                    "line": reject.line,
                    "reason": reject.reason,
                    "record": reject.record,
                }
                self.rejects_file.write(json.dumps(record, ensure_ascii=False) + "\n")

    def clear(self) -> None:
        """Take the line away, so that something else can be written there."""
        if self._drawn:
            self._drawn = False
            self.stderr.write("\r\x1b[K")
            self.stderr.flush()

    def line(self, figures: Figures, seconds: float) -> str:
        """The line after so many seconds of reading: part done, rate, time left, how the engine is."""
        parts = [count(figures.events, "event"), f"{figures.events / max(seconds, 1e-9):,.0f}/s"]
        if self.total_bytes:
            part = min(figures.bytes / self.total_bytes, 1.0)
            parts.insert(0, f"{part:4.0%}")
            if part > 0:
                parts.append(f"{clock_time(seconds * (1 - part) / part)} left")
        parts.append(f"batch {1000 * figures.batch_seconds:,.0f} ms")
        parts.append(f"state {figures.state_bytes / 2**20:,.1f} MB")
        if figures.lag_seconds is not None:
            parts.append(f"lag {figures.lag_seconds:,.1f} s")
        return "  ".join(parts)

    def summary(self, answers: int | None = None) -> str:
        """The run in one line; `answers` if there were others than the engine's."""
        seconds = f"{self.clock() - self.started:.1f} s"
        if self._engine is None:
            return f"{count(answers or 0, 'answer')}, {seconds}"
        figures = self._engine.figures
        parts = [
            count(figures.answers if answers is None else answers, "answer"),
            count(figures.events, "event"),
            count(figures.rejected, "reject") + self._first_rejects(),
            said_of_late(self._engine.late),
            seconds,
        ]
        return ", ".join(parts)

    def _first_rejects(self) -> str:
        if not self.rejects:
            return ""
        first, reasons = self.rejects[0], Counter(reject.reason for reject in self.rejects)
        where = f"{first.source}, line {first.line}: {first.reason}"
        others = [f"{reason} ({n})" for reason, n in reasons.most_common(3) if reason != first.reason]
        return f" (first: {'; '.join([where, *others])})"


def said_of_late(late: Mapping[str, int]) -> str:
    """
    >>> said_of_late({"http://s": 0}), said_of_late({"http://s": 2})
    ('0 late', '2 late (2 on <http://s>; a larger lateness lets them in)')
    """
    said = f"{sum(late.values()):,} late"
    if not any(late.values()):
        return said
    most_first = sorted(late.items(), key=lambda stream: -stream[1])
    streams = ", ".join(f"{n:,} on <{stream}>" for stream, n in most_first if n)
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
