"""Death at a step on the disk: the process kills itself before it, behind it, or when it is half done."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Callable
from typing import Any

STEPS = ("replace", "fsync", "pwrite", "unlink", "ftruncate", "truncate", "mkdir")


def die_at(last: int, draw: random.Random) -> None:
    """Let the `last` step from now on be the last one of this process."""
    when = draw.choice(("before", "behind", "half"))
    steps = _Counted(last)

    def dying(step: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
        if steps.is_last():
            try:
                if when == "half" and step is pwrite:
                    file, data, offset = arguments
                    pwrite(file, data[: len(data) // 2], offset)
                elif when != "before":
                    step(*arguments, **more)
            finally:
                os.kill(os.getpid(), signal.SIGKILL)
        return step(*arguments, **more)

    pwrite = os.pwrite
    for name in STEPS:
        step = getattr(os, name)
        setattr(os, name, lambda *a, step=step, **more: dying(step, *a, **more))


class _Counted:
    def __init__(self, last: int) -> None:
        self._left, self._lock = last, threading.Lock()

    def is_last(self) -> bool:
        with self._lock:
            self._left -= 1
            return self._left == 0
