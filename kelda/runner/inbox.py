"""Answers on their way to whoever reads them: kept until they are read, or handed to callbacks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from kelda.engine.answer import Answer


class Inbox:
    """The reading side of a registered query."""

    def __init__(self) -> None:
        self._answers: deque[Answer] = deque()
        self._callbacks: list[Callable[[Answer], None]] = []

    def results(self) -> Iterator[Answer]:
        """The answers that have come and were not read yet, oldest first."""
        while self._answers:
            yield self._answers.popleft()

    def subscribe(self, callback: Callable[[Answer], None]) -> None:
        """Call `callback` with each further answer, instead of keeping it for `results()`."""
        self._callbacks.append(callback)

    @property
    def unread(self) -> int:
        """How many answers wait for `results()`."""
        return len(self._answers)

    def _take(self, answer: Answer) -> None:
        if self._callbacks:
            for callback in self._callbacks:
                callback(answer)
        else:
            self._answers.append(answer)
