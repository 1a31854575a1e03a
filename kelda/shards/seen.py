"""Waiting for a file that another machine has written.

A network file system tells a machine of new names late: NFS for up to a minute goes on with what it has
looked up before. Whoever knows that there is a file, or a newer one, waits for it, and fails if it does not
come: to go on without it would be wrong.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from kelda.errors import KeldaError

PATIENCE = 90.0  # seconds: longer than NFS keeps names, unless it is told otherwise

T = TypeVar("T")


def when_seen(look: Callable[[], T | None], path: Path, what: str) -> T:
    """What `look` finds at last (None: not yet) in the file at `path`."""
    found = look()
    pause, until = 0.005, time.monotonic() + PATIENCE
    while found is None:
        if time.monotonic() > until:
            raise KeldaError(
                f"{what} did not come to be seen on this machine within {PATIENCE:.0f} s: {path}. The "
                "checkpoint folder must lie on a file system that all machines share, under the same path"
            )
        time.sleep(pause)
        pause = min(2 * pause, 1.0)
        with suppress(OSError):
            os.listdir(path.parent)  # NFS asks the server when a folder is opened
        found = look()
    return found
