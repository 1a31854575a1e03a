"""A reader that listens in a thread of its own, and spools what it hears."""

from __future__ import annotations

import threading
from abc import abstractmethod
from pathlib import Path

from kelda.io.job import StreamSource
from kelda.io.sources.reader import Now, Offset, Piece, wall
from kelda.io.sources.spooled import SpooledReader
from kelda.rdf.framing import RECORDS

WAITING = 1_000_000  # records that may wait to be read before nobody listens any more
GATHER = 0.01  # seconds in which what trickles in becomes one piece
SILENCE = 0.2  # seconds after which a thread that waits looks whether it is still wanted
PORTION = 1 << 18  # bytes that are heard at a time, at most


class ListeningReader(SpooledReader):
    """The thread starts when the reader is first asked. What it fails with is raised by who asks next."""

    def __init__(
        self,
        source: StreamSource,
        number: int,
        *,
        format: str,
        spool: Path,
        piece_records: int = RECORDS,
        max_waiting: int = WAITING,
        now: Now = wall,
    ) -> None:
        super().__init__(source, number, format=format, spool=spool, piece_records=piece_records, now=now)
        self._max_waiting = max_waiting
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()
        self._problem: BaseException | None = None

    @abstractmethod
    def _listen(self) -> None:
        """Spool what comes until nothing can come any more, or `_stopped` is set."""

    def latest(self, at: Offset, max_records: int | None = None) -> Offset:
        self._go()
        return super().latest(at, max_records)

    def pieces(self, begin: Offset, end: Offset) -> list[Piece]:
        self._go()
        return super().pieces(begin, end)

    def close(self) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
        super().close()

    def _go(self) -> None:
        if self._problem is not None:
            raise self._problem
        if self._thread is None and not self._spool.ended and not self._stopped.is_set():
            self._thread = threading.Thread(target=self._run, name=f"kelda {self.source.path}", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        try:
            self._listen()
        except BaseException as problem:  # noqa: BLE001  (raised again by who asks next)
            self._problem = problem

    def _too_much_waits(self) -> bool:
        """Whether nobody should listen just now; if so, some time has passed."""
        if self._spool.waiting <= self._max_waiting:
            return False
        with self._spool.changed:
            self._spool.changed.wait(SILENCE)
        return True
