"""Answers on their way to whoever reads them: kept until they are read, or handed to callbacks.

What a callback raises is its query's own trouble: the query is stopped, its `error` says why, and nobody else
notices.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator

from kelda.engine.answer import Answer
from kelda.engine.stopped import Stopped
from kelda.errors import QueryStopped

Callback = Callable[[Answer], None]


class Inbox:
    """The reading side of a registered query. Any thread may read and subscribe."""

    name: str

    def __init__(self) -> None:
        self._error: QueryStopped | None = None
        self._answers: deque[Answer] = deque()
        self._callbacks: tuple[Callback, ...] = ()  # replaced, never changed: who calls them has a whole one
        self._subscribing = threading.Lock()

    def results(self) -> Iterator[Answer]:
        """The answers that have come and were not read yet, oldest first; each once, whoever reads.

        If there are none, and there will be none because the query has failed, its `error` is raised."""
        some = False
        while True:
            try:
                answer = self._answers.popleft()
            except IndexError:  # asked, and not looked at before: another reader may be faster
                break
            some = True
            yield answer
        if not some and (error := self.error) is not None:
            raise error

    @property
    def error(self) -> QueryStopped | None:
        """Why the query was stopped, if it has failed; what it had answered before can still be read."""
        return self._error

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
            self._call(callbacks, answer)
        elif self._error is None:
            self._answers.append(answer)

    def _call(self, callbacks: tuple[Callback, ...], answer: Answer) -> None:
        """Tell callbacks of an answer, unless one has failed before."""
        for callback in callbacks:
            if self._error is not None:
                return
            try:
                callback(answer)
            except Exception as error:  # noqa: BLE001 - a callback may raise anything
                self._fail(Stopped.by(error, answer.time, "its callback raised "))

    def _fail(self, why: Stopped) -> None:
        """The query is not to go on."""
        why.warn([self.name])
        self._error = why.raised(self.name)
