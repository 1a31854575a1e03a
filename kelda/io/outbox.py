"""Answers for callbacks, from many threads, called one after the other.

Who has made answers puts them here while the engine is its own, lets the engine go, and then delivers. One
thread delivers at a time, what others have put meanwhile included, and no lock is held while a callback runs:
so answers come in the order in which they were made, a callback may call anything (what it makes is delivered
after what was there before), and may wait for other threads without stopping them.
"""

from __future__ import annotations

import threading
from collections import deque

from kelda.engine.block import Block
from kelda.io.inbox import Inbox, Readers


class Outbox:
    """What callbacks are still to be told."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Inbox, Readers, Block]] = deque()
        self._answers = 0
        self._lock = threading.Lock()
        self._delivering = False

    def __len__(self) -> int:
        return self._answers

    def put(self, query: Inbox, block: Block) -> None:
        """Tell the callbacks that the query has now of some answers, at the next `deliver`."""
        with self._lock:
            self._waiting.append((query, query._readers, block))
            self._answers += len(block)

    def deliver(self) -> None:
        """Call the callbacks with all that waits; returns at once if that is being done already.

        What a callback raises is its query's trouble (see `Inbox`)."""
        if not self._waiting:
            return
        mine = False
        try:
            with self._lock:
                if self._delivering:
                    return
                self._delivering = mine = True
            while (next_one := self._next()) is not None:
                query, readers, block = next_one
                query._tell(readers, block)
                with self._lock:
                    self._answers -= len(block)
        except BaseException:  # stopped in the middle, by Ctrl-C: the rest is for who delivers next
            if mine:
                self._delivering = False
            raise

    def _next(self) -> tuple[Inbox, Readers, Block] | None:
        with self._lock:  # nobody may put something and find it delivering when it has just stopped
            if self._waiting:
                return self._waiting.popleft()
            self._delivering = False
            return None
