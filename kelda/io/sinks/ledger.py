"""The ledger of a sink that cannot take anything back: how many answers of which batch it has handed on.

It is noted *behind* each hand-over, so a process that is killed may repeat the one it was in, and loses
none. A note is a few bytes written in place, in one call: it survives the process at the price of a
microsecond, and with `sync`, once a batch, the machine.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from kelda.durable import make_folder, open_locked, sync, write_all
from kelda.engine.answer import Answer
from kelda.errors import CheckpointError, UsageError
from kelda.io.sinks.content import Held, has
from kelda.kept import reading, writing

_NOTE = re.compile(r" *(-?[0-9]+) +([0-9]+) +(\S+)\n(.*)\n", re.DOTALL)
_UNKNOWN = "-"  # what is in the batch


class Ledger:
    """(batch, answers handed on, what is in the batch), in a file or only in memory; `run` names the run
    whose batches they are."""

    def __init__(self, path: Path | None, run: str = "") -> None:
        self._told, self._file = 0, -1
        self.held = Held(where="the sink" if path is None else str(path))
        if path is None:
            return
        make_folder(path.parent)
        self._file = open_locked(path, os.O_RDWR | os.O_CREAT)
        try:
            self._begin(path, run)
        except BaseException:
            self.close()
            raise

    def _begin(self, path: Path, run: str) -> None:
        with reading(path):
            text = os.pread(self._file, 1 << 16, 0).decode("utf-8", "replace")
        if not text:
            with writing(path):
                write_all(self._file, self._note() + f"{run}\n".encode(), 0)
                os.fsync(self._file)
                sync(path.parent)
            return
        kept = _NOTE.fullmatch(text)
        if kept is None:
            raise CheckpointError(
                f"{path} is broken, or not a ledger of Kelda: delete it, and the last batch may be told again"
            )
        if kept[4] != run:
            raise UsageError(f"{path} is the ledger of another run; use another file, or delete it")
        content = None if kept[3] == _UNKNOWN else kept[3]
        self.held = self.held._replace(batch=int(kept[1]), content=content)
        self._told = int(kept[2])

    def untold(self, batch: int, answers: Sequence[Answer], content: str | None = None) -> Sequence[Answer]:
        """The answers of a batch that are still to be handed on."""
        if not has(self.held, batch, content):
            self.held, self._told = self.held._replace(batch=batch, content=content), 0
        return answers[self._told :] if batch == self.held.batch else ()

    def note(self, count: int = 1) -> None:
        """`count` more answers of this batch have been handed on."""
        self._told += count
        if self._file >= 0:
            with writing(self.held.where):
                write_all(self._file, self._note(), 0)

    def sync(self) -> None:
        """The batch is done: make its notes last."""
        if self._file >= 0:
            with writing(self.held.where):
                os.fsync(self._file)

    def _note(self) -> bytes:
        return f"{self.held.batch:20} {self._told:20} {self.held.content or _UNKNOWN:>40}\n".encode()

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
