"""`tcp://host:port`: a stream of lines (or any other framing) from a server, for as long as it speaks.

A connection that is lost or refused is tried again, after a tenth of a second at first and ten seconds at
last; with `?reconnect=false` the stream ends with its connection. Each connection is a document of its
own: prefixes and CSV headers are sent anew. A record that was cut off with its connection is handed on as
it came; if it cannot be read, it is counted as rejected like any other.

When much waits to be read, no more is taken from the socket, and the server has to wait.
"""

from __future__ import annotations

import logging
import socket
import time
from pathlib import Path

from kelda.errors import UsageError
from kelda.io.job import StreamSource
from kelda.io.sources.listening import GATHER, PORTION, SILENCE, WAITING, ListeningReader
from kelda.io.sources.reader import Now, wall
from kelda.rdf.framing import RECORDS

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0

_log = logging.getLogger(__name__)


class TcpReader(ListeningReader):
    """Reads from a server."""

    def __init__(
        self,
        place: str,
        source: StreamSource,
        number: int,
        *,
        format: str,
        spool: Path,
        reconnect: bool = True,
        piece_records: int = RECORDS,
        max_waiting: int = WAITING,
        now: Now = wall,
    ) -> None:
        super().__init__(
            source,
            number,
            format=format,
            spool=spool,
            piece_records=piece_records,
            max_waiting=max_waiting,
            now=now,
        )
        host, colon, port = place.rstrip("/").rpartition(":")
        if not colon or not host or not port.isdigit():
            raise UsageError(f"tcp://{place}: write tcp://host:port, for example tcp://127.0.0.1:9999")
        self._server = (host.strip("[]"), int(port))
        self._reconnect = reconnect

    def _listen(self) -> None:
        pause = FIRST_PAUSE
        while not self._stopped.is_set():
            reason = "it was closed by the server"
            try:
                with socket.create_connection(self._server, timeout=LONGEST_PAUSE) as connection:
                    pause = FIRST_PAUSE
                    self._hear(connection)
            except OSError as problem:
                reason = str(problem)
            if self._stopped.is_set():
                return
            if not self._reconnect:
                _log.info("%s has ended: %s", self.source.path, reason)
                self._spool.append(None, ends=True)
                return
            _log.warning("no connection to %s (%s); next try in %.1f s", self.source.path, reason, pause)
            self._stopped.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _hear(self, connection: socket.socket) -> None:
        connection.settimeout(SILENCE)
        document = self._document()
        try:
            while not self._stopped.is_set():
                if self._too_much_waits():
                    continue
                data, open_still = _gathered(connection)
                if data:
                    document.add(data)
                if not open_still:
                    return
        finally:
            document.add(b"", complete=True)


def _gathered(connection: socket.socket) -> tuple[bytes, bool]:
    """What has arrived, with what follows at once; and whether the connection is still open.

    A connection that breaks after it has said something is found broken the next time.
    """
    try:
        data = connection.recv(PORTION)
    except TimeoutError:
        return b"", True
    if not data:
        return b"", False
    parts, size, until = [data], len(data), time.monotonic() + GATHER
    connection.settimeout(GATHER)
    try:
        while size < PORTION and time.monotonic() < until:
            more = connection.recv(PORTION)
            if not more:
                return b"".join(parts), False
            parts.append(more)
            size += len(more)
    except OSError:
        return b"".join(parts), True
    finally:
        connection.settimeout(SILENCE)
    return b"".join(parts), True
