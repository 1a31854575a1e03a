"""Readers that live in the driver's own process, for Spark's source process to ask.

What an application pushes is in the application's process; the source of a streaming query is run by
Spark in another one. A `Door` answers there for the readers here, over a socket in the checkpoint folder.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kelda.errors import UsageError
from kelda.io.sources import Offset, Piece, Reader
from kelda.spark.sockets import accept, answer, ask, connect, listen

ASKED = ("start", "latest", "pieces", "commit", "finished", "part")


class Door:
    """Serves readers by their numbers until it is closed."""

    def __init__(self, path: Path, readers: Mapping[int, Reader]) -> None:
        self.path, self.readers = path, readers
        path.unlink(missing_ok=True)
        self._socket = listen(path)
        threading.Thread(target=self._serve, name="kelda-readers", daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                guest = accept(self._socket)
            except OSError:  # closed
                return
            threading.Thread(target=answer, args=(guest, self._answer), daemon=True).start()

    def _answer(self, number: int, what: str, arguments: tuple[Any, ...]) -> Any:
        if what not in ASKED:
            raise UsageError(f"a reader cannot be asked for {what!r}")
        return getattr(self.readers[number], what)(*arguments)

    def close(self) -> None:
        self._socket.close()
        self.path.unlink(missing_ok=True)


class RemoteReader:
    """A reader behind a door."""

    format = ""

    def __init__(self, path: Path, number: int) -> None:
        self.number = number
        self._socket = connect(path)

    def _ask(self, what: str, *arguments: Any) -> Any:
        return ask(self._socket, self.number, what, arguments)

    def start(self) -> Offset:
        offset: Offset = self._ask("start")
        return offset

    def latest(self, at: Offset, max_records: int | None = None) -> Offset:
        offset: Offset = self._ask("latest", at, max_records)
        return offset

    def pieces(self, begin: Offset, end: Offset) -> list[Piece]:
        pieces: list[Piece] = self._ask("pieces", begin, end)
        return pieces

    def commit(self, end: Offset) -> None:
        self._ask("commit", end)

    def finished(self, at: Offset) -> bool:
        return bool(self._ask("finished", at))

    def part(self, at: Offset) -> float:
        return float(self._ask("part", at))

    def close(self) -> None:
        self._socket.close()
