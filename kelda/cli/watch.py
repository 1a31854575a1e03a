"""How far a run has come, on stderr: one line that rewrites itself on a terminal, and a summary at the end.

Records that could not be read are kept in a file, if that is asked.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, TextIO

from kelda.api import Engine
from kelda.rdf.event import Reject
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
        self.stderr, self.show, self.rejects_file = stderr, show, rejects
        self.clock = clock
        self.reasons: Counter[str] = Counter()
        self.first_reject: Reject | None = None
        self.started = clock()
        self.terminal = stderr.isatty()
        self._next_look = self.started + START_SHOWING
        self._drawn = False
        self._engine: Engine | None = None

    def begin(self, engine: Engine) -> None:
        """This is the engine."""
        self._engine = engine

    def look(self) -> None:
        """See what is new, and show it if it is time to."""
        if self._engine is None:
            return
        now, figures = self.clock(), self._engine.figures
        if figures.rejected > self.reasons.total():
            for reject in self._engine.rejects[self.reasons.total() :]:
                self._rejected(reject)
        if self.show and figures.batches and now >= self._next_look:
            self._next_look = now + (REDRAW if self.terminal else REPEAT)
            line = line_of(figures)
            self.stderr.write(f"\r\x1b[K{line}" if self.terminal else line + "\n")
            self.stderr.flush()
            self._drawn = self.terminal

    def _rejected(self, reject: Reject) -> None:
        self.reasons[reject.reason] += 1
        self.first_reject = self.first_reject or reject
        if self.rejects_file is not None:
            record = {
                "source": reject.source,
                "line": reject.line,
                "reason": reject.reason,
                "record": reject.record,
            }
            self.rejects_file.write(json.dumps(record, ensure_ascii=False) + "\n")
            self.rejects_file.flush()

    def clear(self) -> None:
        """Take the line away, so that something else can be written there."""
        if self._drawn:
            self.stderr.write("\r\x1b[K")
            self.stderr.flush()
            self._drawn = False

    def summary(self, answers: int | None = None) -> str:
        """The run in one line; `answers` if the engine alone does not know how many there were."""
        seconds = f"{self.clock() - self.started:.1f} s"
        if self._engine is None:
            return f"{count(answers or 0, 'answer')}, {seconds}"
        figures, late = self._engine.figures, self._engine.late
        parts = [
            count(figures.answers if answers is None else answers, "answer"),
            count(figures.events, "event"),
            count(figures.rejected, "reject"),
        ]
        if self.first_reject is not None:
            first = self.first_reject
            where = f"{first.source}, line {first.line}: {first.reason}"
            others = [
                f"{reason} ({n})" for reason, n in self.reasons.most_common(3) if reason != first.reason
            ]
            parts[-1] += f" (first: {'; '.join([where, *others])})"
        parts.append(f"{sum(late.values()):,} late")
        if any(late.values()):
            most_first = sorted(late.items(), key=lambda stream: -stream[1])
            streams = ", ".join(f"{n:,} on <{stream}>" for stream, n in most_first if n)
            parts[-1] += f" ({streams}; a larger lateness lets them in)"
        return ", ".join([*parts, seconds])


def line_of(figures: Any) -> str:
    """What is read, how fast, and how long a batch takes."""
    parts = [
        count(figures.events, "event"),
        f"{figures.rate:,.0f}/s",
        count(figures.answers, "answer"),
        f"batch {1000 * figures.batch_seconds:,.0f} ms",
        f"state {figures.state_bytes / 2**20:,.1f} MB",
    ]
    if figures.lag_seconds is not None:
        parts.append(f"lag {figures.lag_seconds:,.1f} s")
    return "  ".join(parts)
