"""Answers that nobody wants: for measuring everything but the writing."""

from __future__ import annotations

from collections.abc import Sequence

from kelda.engine.answer import Answer


class NullSink:
    """Counts answers, and keeps nothing."""

    def __init__(self) -> None:
        self.count = 0
        self._batch = -1

    def write(self, batch: int, answers: Sequence[Answer]) -> None:
        if batch > self._batch:
            self._batch, self.count = batch, self.count + len(answers)

    def close(self) -> None:
        """There is nothing to let go of."""
