"""Room for queries that nest deeply.

Whoever looks at an algebra tree does so by recursion, and so does Oxigraph with the text that is made of it.
A query as people write them nests a dozen levels. For one that nests a thousand, the functions marked
`roomy` run in a thread of their own whose stack is large enough for the deepest query there may be, with
the interpreter's own limit raised meanwhile; what is deeper is refused when it is parsed.

The room is enough: a level takes up to `FRAMES` calls, and `STACK / (DEEPEST * FRAMES)` is 8 kB for each.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from kelda.errors import QueryError

SHALLOW = 50  # levels that need no room of their own
DEEPEST = 5_000  # levels of the deepest query
FRAMES = 12
STACK = 512 << 20

P = ParamSpec("P")
T = TypeVar("T")

_lock = threading.Lock()
_inside = threading.local()
_running = 0  # calls with room, at the moment
_usual = 0  # the interpreter's limit while there are none


def with_room(depth: int, call: Callable[[], T]) -> T:
    """`call()`, with room for trees of this depth."""
    if depth <= SHALLOW or getattr(_inside, "room", False):
        return call()
    found: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        _inside.room = True
        try:
            found.append(call())
        except BaseException as problem:  # noqa: BLE001 - it is raised again below, by whoever waits
            failed.append(problem)

    _more_frames()
    try:
        thread = _thread(run)
        thread.join()
    finally:
        _usual_frames()
    if failed:
        raise failed[0]
    return found[0]


def roomy(place: int = 0) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Marks a function whose argument number `place` is a query (or has one's `depth`)."""

    def mark(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def roomily(*args: P.args, **kwargs: P.kwargs) -> T:
            query: Any = args[place]
            if query.depth <= SHALLOW:
                return function(*args, **kwargs)
            return with_room(query.depth, lambda: function(*args, **kwargs))

        return roomily

    return mark


def _thread(run: Callable[[], None]) -> threading.Thread:
    with _lock:
        usual = threading.stack_size(STACK)
        try:
            thread = threading.Thread(target=run, name="kelda-deep")
            thread.start()
        except RuntimeError:
            raise QueryError(
                f"the query is nested deeply, and there is no memory for a stack of {STACK >> 20} MB; "
                "take some brackets away"
            ) from None
        finally:
            threading.stack_size(usual)
    return thread


def _more_frames() -> None:
    global _running, _usual
    with _lock:
        if not _running:
            _usual = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_usual, 1000 + DEEPEST * FRAMES))
        _running += 1


def _usual_frames() -> None:
    global _running
    with _lock:
        _running -= 1
        if not _running:
            sys.setrecursionlimit(_usual)
