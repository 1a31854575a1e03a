"""Answers on their way to whoever reads them: kept until they are read, or handed to callbacks."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator

from kelda.engine.answer import Answer

Callback = Callable[[Answer], None]


class Inbox:
    """The reading side of a registered query. Any thread may read and subscribe."""

    def __init__(self) -> None:
        self._answers: deque[Answer] = deque()
        self._callbacks: tuple[Callback, ...] = ()  # replaced, never changed: who calls them has a whole one
        self._subscribing = threading.Lock()

    def results(self) -> Iterator[Answer]:
        """The answers that have come and were not read yet, oldest first; each once, whoever reads."""
        while True:
            try:
                answer = self._answers.popleft()
            except IndexError:  # asked, and not looked at before: another reader may be faster
                return
            yield answer

    def subscribe(self, callback: Callback) -> None:
        """Call `callback` with each further answer, instead of keeping it for `results()`."""
        with self._subscribing:
            self._callbacks = (*self._callbacks, callback)

    @property
    def unread(self) -> int:
        """How many answers wait for `results()`."""
        return len(self._answers)

    def _take(self, answer: Answer) -> None:
        callbacks = self._callbacks
        if callbacks:
            for callback in callbacks:
                callback(answer)
        else:
            self._answers.append(answer)
