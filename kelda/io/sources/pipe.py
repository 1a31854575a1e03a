"""A pipe, also standard input: what another process writes, for as long as it does.

It cannot be read twice, so what comes is spooled first; it may come slowly, and is handed on as it does. When
much waits to be read, no more is taken from the pipe, and who writes has to wait.
"""

from __future__ import annotations

import io
import os
import select
import threading
import time
from pathlib import Path
from typing import BinaryIO, cast

from kelda.errors import InputError
from kelda.io.job import StreamSource
from kelda.io.sources.listening import GATHER, PORTION, SILENCE, ListeningReader
from kelda.io.sources.reader import Now, wall
from kelda.rdf.compression import open_bytes
from kelda.rdf.framing import RECORDS


class PipeReader(ListeningReader):
    """Reads a pipe, compressed or not, to its end."""

    def __init__(
        self,
        path: Path,
        source: StreamSource,
        number: int,
        *,
        format: str,
        spool: Path,
        piece_records: int = RECORDS,
        now: Now = wall,
    ) -> None:
        super().__init__(source, number, format=format, spool=spool, piece_records=piece_records, now=now)
        self._path = path

    def _listen(self) -> None:
        with _Waiting(self._path, self._stopped) as pipe:
            document = self._document()
            text = cast(io.BufferedReader, open_bytes(cast(BinaryIO, pipe)))
            while not self._stopped.is_set():
                if self._too_much_waits():
                    continue
                data = text.read1(PORTION)
                if self._stopped.is_set():
                    return
                if not data:
                    document.add(b"", complete=True)
                    self._spool.append(None, ends=True)
                    return
                document.add(data)


class _Waiting(io.RawIOBase):
    """A pipe that is waited for no longer than somebody wants it; then it has ended."""

    def __init__(self, path: Path, stopped: threading.Event) -> None:
        self.name, self._stopped = str(path), stopped
        try:
            self._pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}") from error

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """What has come, with what follows at once."""
        size, until = 0, 0.0
        with memoryview(buffer) as room:
            while size < len(room) and not self._stopped.is_set():
                wait = SILENCE if not size else max(0.0, until - time.monotonic())
                if not select.select([self._pipe], [], [], wait)[0]:
                    if size:
                        break
                    continue
                data = os.read(self._pipe, len(room) - size)
                if not data:
                    break
                room[size : size + len(data)] = data
                size, until = size + len(data), until or time.monotonic() + GATHER
        return size

    def close(self) -> None:
        if not self.closed:
            os.close(self._pipe)
        super().close()
