"""Answers for callbacks, from many threads, called one after the other.

Who has made answers puts them here while the engine is its own, lets the engine go, and then delivers. One
thread delivers at a time, what others have put meanwhile included, and no lock is held while a callback runs:
so answers come in the order in which they were made, a callback may call anything (what it makes is delivered
after what was there before), and may wait for other threads without stopping them.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from kelda.engine.answer import Answer

Callback = Callable[[Answer], None]


class Outbox:
    """What callbacks are still to be told."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[tuple[Callback, ...], Answer]] = deque()
        self._lock = threading.Lock()
        self._delivering = False

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, callbacks: tuple[Callback, ...], answer: Answer) -> None:
        """Tell the callbacks of the answer at the next `deliver`."""
        self._waiting.append((callbacks, answer))

    def deliver(self) -> None:
        """Call the callbacks with all that waits; returns at once if that is being done already.

        What a callback raises is raised when everything else has been delivered."""
        if not self._waiting:
            return
        failed: Exception | None = None
        mine = False
        try:
            with self._lock:
                if self._delivering:
                    return
                self._delivering = mine = True
            while (next_one := self._next()) is not None:
                callbacks, answer = next_one
                for callback in callbacks:
                    try:
                        callback(answer)
                    except Exception as error:  # noqa: BLE001 - a callback may raise anything
                        failed = failed or error
        except BaseException:  # stopped in the middle, by Ctrl-C: the rest is for who delivers next
            if mine:
                self._delivering = False
            raise
        if failed is not None:
            raise failed

    def _next(self) -> tuple[tuple[Callback, ...], Answer] | None:
        with self._lock:  # nobody may put something and find it delivering when it has just stopped
            if self._waiting:
                return self._waiting.popleft()
            self._delivering = False
            return None
