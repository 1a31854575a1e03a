"""Power failures: what nobody had made last when the driver was killed is gone, or empty, or there.

The driver notes what it syncs (`noting`); when it has been killed, files of Spark's log that it had not
synced meet their fate (`lose`). What Kelda writes itself it syncs in the same step.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

from kelda.durable import sync
from kelda.spark import log

SYNCED = "KELDA_CRASH_SYNCED"  # environment variable: the file that says what was synced, in this order


def noting(notes: Path) -> Callable[[Path], None]:
    """`sync`, with a note behind it."""
    file = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def synced(path: Path) -> None:
        about = os.stat(path)
        sync(path)
        os.write(file, f"{about.st_ino} {about.st_mtime_ns} {path}\n".encode())

    return synced


def note_syncs() -> None:
    """In the driver, if it is asked to."""
    if notes := os.environ.get(SYNCED):
        log.sync = noting(Path(notes))  # type: ignore[attr-defined]


def lose(checkpoint: Path, notes: Path, draw: random.Random) -> list[str]:
    """Let the power fail: what was lost."""
    safe = _safe(notes)
    fates = []
    for path in sorted((checkpoint / "spark").rglob("*")):
        about = path.stat() if path.is_file() else None
        if about is None or (str(path), about.st_ino, about.st_mtime_ns) in safe:
            continue
        fate = draw.choice(("there", "gone", "gone", "empty"))
        if fate == "gone":
            path.unlink()
        elif fate == "empty":
            path.write_bytes(b"")
        if fate != "there":
            fates.append(f"{path.relative_to(checkpoint / 'spark')} {fate}")
    return fates


def _safe(notes: Path) -> set[tuple[str, int, int]]:
    """The files that were synced, and their folders after them."""
    waiting: dict[str, set[tuple[str, int, int]]] = {}
    safe: set[tuple[str, int, int]] = set()
    for line in notes.read_text().splitlines() if notes.exists() else ():
        inode, changed, path = line.split(" ", 2)
        safe |= waiting.pop(path, set())  # if it is a folder
        waiting.setdefault(os.path.dirname(path), set()).add((path, int(inode), int(changed)))
    return safe
