"""Compiled kernels: where they are kept, and a word while they are made.

Kernels are compiled on first use and kept, by numba: beside the package, or in the user's cache folder where
that cannot be written, or in NUMBA_CACHE_DIR if it is set.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
from pathlib import Path
from typing import Any, TextIO

PATIENCE = 1.0  # seconds of compiling after which it is worth a word
MESSAGE = "kelda: compiling kernels for this machine (once, some seconds)…"
MESSAGE_NOT_KEPT = (
    "kelda: compiling kernels for this process; set NUMBA_CACHE_DIR to a folder that can be written, "
    "and they are kept…"
)
_OWN = "KELDA_KERNELS_NOT_KEPT"  # set where the folder is one of a process, which its children share


def kept_in() -> Path | None:
    """Where compiled kernels are kept; None if there is no such place."""
    if told := os.environ.get("NUMBA_CACHE_DIR"):
        return None if _OWN in os.environ else Path(told)
    package = Path(__file__).parent
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser(), "numba")
    return next((folder for folder in (package, caches) if _can_be_written(folder)), None)


def _can_be_written(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)  # as numba does: to ask is not to know
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


def find_a_place() -> None:
    """Where kernels cannot be kept, numba refuses to define them: let them lie in a folder of this process.

    A folder of its own, not one with a known name: what lies in there is run."""
    if "NUMBA_CACHE_DIR" in os.environ or kept_in() is not None:
        return
    import tempfile

    folder = tempfile.mkdtemp(prefix="kelda-kernels-")
    os.environ["NUMBA_CACHE_DIR"], os.environ[_OWN] = folder, "1"
    atexit.register(_remove, folder, os.getpid())


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # and not a process that was forked from it
        import shutil

        shutil.rmtree(folder, ignore_errors=True)


class Compiling:
    """Adds up the time that kernels of ours take to compile, and says so, once, when it becomes long."""

    def __init__(self, out: TextIO, message: str = MESSAGE) -> None:
        self._out, self._message = out, message
        self._depth = 0
        self._since = 0.0
        self._spent = 0.0
        self.said = False

    def begins(self) -> None:
        """A kernel is being compiled, or what it calls."""
        now = time.monotonic()
        if self._depth == 0:
            self._since = now
        self._depth += 1
        if not self.said and self._spent + now - self._since >= PATIENCE:
            self.said = True
            print(self._message, file=self._out, flush=True)

    def ends(self) -> None:
        """It is done."""
        self._depth -= 1
        if self._depth == 0:
            self._spent += time.monotonic() - self._since


_listening: list[Any] = []


def say_so_on_a_terminal() -> None:
    """From now on, if stderr is a terminal, tell who waits there for kernels to be compiled."""
    if _listening or not sys.stderr.isatty():
        return
    from numba.core import event

    compiling = Compiling(sys.stderr, MESSAGE_NOT_KEPT if _OWN in os.environ else MESSAGE)

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            compiling.begins()

        def on_end(self, event: Any) -> None:
            compiling.ends()

    _listening.append(Listener())
    event.register("numba:compile", _listening[0])
