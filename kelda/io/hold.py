"""One process at a time on a checkpoint: a lock that ends with its process, however that ends.

The lock is on the file `.lock` in the folder, not in its being there: what is written in it only says who
has it. It holds among all processes of a machine, and among machines where the file system passes locks on
(NFS 4 does).
"""

from __future__ import annotations

import errno
import fcntl
import gc
import json
import os
import socket
import weakref
from datetime import datetime, timezone
from pathlib import Path

from kelda.errors import EnvironmentProblem, UsageError
from kelda.kept import writing

LOCK = ".lock"


class InUse(UsageError):
    """Another process has the checkpoint."""


class Hold:
    """A folder that is ours until `release`, or until nobody has this object any more."""

    def __init__(self, folder: Path) -> None:
        self.folder, path = folder, folder / LOCK
        with writing(path):
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._lock(path)
            with writing(path):
                os.ftruncate(self._file, 0)
                os.pwrite(self._file, json.dumps(_me()).encode() + b"\n", 0)
        except BaseException:
            self.release()
            raise
        _held.add(self)

    def _lock(self, path: Path) -> None:
        try:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if _who(self._file)[:2] != (socket.gethostname(), os.getpid()):
                    raise
                gc.collect()  # it may be held by an object of ours that nobody can reach any more
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as problem:
            if problem.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise EnvironmentProblem(
                    f"cannot lock {path}: {problem.strerror}; use a folder on a file system with locks"
                ) from problem
            host, pid, since = _who(self._file)
            raise InUse(
                f"the checkpoint {self.folder} is in use: held by pid {pid} on {host} since {since}; "
                "end that run first, or use another folder"
            ) from problem

    def release(self) -> None:
        """Let others have it."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __del__(self) -> None:
        if getattr(self, "_file", -1) >= 0:
            self.release()


def _me() -> dict[str, object]:
    since = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return {"host": socket.gethostname(), "pid": os.getpid(), "since": since}


def _who(file: int) -> tuple[object, object, object]:
    """Who says in a lock file that he has it; he may not have come to say so yet."""
    try:
        said = json.loads(os.pread(file, 4096, 0))
        return said["host"], said["pid"], said["since"]
    except (ValueError, KeyError, TypeError):
        return "a host", "unknown", "just now"


_held: weakref.WeakSet[Hold] = weakref.WeakSet()


def _let_go_in_child() -> None:
    """A forked child has the open file too, and would hold the lock beyond its parent's end."""
    for hold in list(_held):
        hold.release()


os.register_at_fork(after_in_child=_let_go_in_child)
