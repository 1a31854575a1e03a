"""Answers that nobody wants: for measuring everything but the writing."""

from __future__ import annotations

from collections.abc import Sequence

from kelda.engine.answer import Answer
from kelda.io.sinks.content import Held, has


class NullSink:
    """Counts answers, and keeps nothing."""

    def __init__(self) -> None:
        self.count = 0
        self.held = Held()

    def write(self, batch: int, answers: Sequence[Answer], *, content: str | None = None) -> None:
        if not has(self.held, batch, content):
            self.held, self.count = Held(batch, content), self.count + len(answers)

    def close(self) -> None:
        """There is nothing to let go of."""
