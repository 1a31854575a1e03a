"""`query:NAME`: a stream whose elements are the answers of a query of the same pipeline.

They are read from the folder of the query's `StreamSink`. An offset is a batch of that query and the time
up to which it had reported with it, so what lies between two offsets never changes.
"""

from __future__ import annotations

from pathlib import Path

from kelda.engine.clock import FOREVER
from kelda.errors import CheckpointError
from kelda.io.formats import Messages
from kelda.io.job import StreamSource
from kelda.io.sinks.folder import batch_files
from kelda.io.sinks.journal import JOURNAL, Journal
from kelda.io.sources.reader import Offset, Piece
from kelda.kept import RESTORE, reading
from kelda.rdf.messages import chunks

APART = 1_000_000  # more pieces than a batch has


class FedReader:
    """Reads what a query says. The stream ends when the query has reported for ever."""

    format = "messages"

    def __init__(self, folder: Path, source: StreamSource, number: int, *, piece_records: int) -> None:
        self.folder, self.source, self.number, self._piece_records = folder, source, number, piece_records

    def start(self) -> Offset:
        return {"pieces": 0, "records": 0, "bytes": 0, "batch": -1, "time": None, "ended": False}

    def latest(self, at: Offset, max_records: int | None = None) -> Offset:
        page = Journal(self.folder / JOURNAL).page() if (self.folder / JOURNAL).exists() else None
        if page is None or (page.batch, page.time) == (at["batch"], at["time"]):
            return at
        return {
            "pieces": at["pieces"] + 1,
            "records": at["records"] + 1,
            "bytes": page.bytes,
            "batch": page.batch,
            "time": page.time,
            "ended": page.time == FOREVER,
        }

    def pieces(self, begin: Offset, end: Offset) -> list[Piece]:
        if begin["pieces"] == end["pieces"]:
            return []
        found: list[Piece] = []
        size = 0
        for batch, path in batch_files(self.folder, Messages.suffix):
            if not begin["batch"] < batch <= end["batch"]:
                continue
            with reading(path):
                data = path.read_bytes()
            size += len(data)
            for i, chunk in enumerate(chunks(data, self._piece_records)):
                found.append(
                    Piece(
                        self.number,
                        (batch + 1) * APART + i,
                        chunk,
                        1,
                        len(chunk.data),
                        name=str(path),
                        format="messages",
                    )
                )
        if size != end["bytes"] - begin["bytes"]:
            raise CheckpointError(
                f"{self.folder} lacks some of what was said in batches {begin['batch'] + 1} to "
                f"{end['batch']}; {RESTORE}"
            )
        beat = None if end["ended"] else end["time"]
        last = (end["batch"] + 2) * APART - 1
        found.append(Piece(self.number, last, None, 0, 0, ends=end["ended"], heartbeat=beat))
        return found

    def commit(self, end: Offset) -> None:
        """Files that were read are not needed again, but for the newest, by which the sink goes on."""
        for batch, path in batch_files(self.folder, Messages.suffix)[:-1] if self.folder.exists() else ():
            if batch <= end["batch"]:
                path.unlink(missing_ok=True)

    def finished(self, at: Offset) -> bool:
        return bool(at["ended"])

    def part(self, at: Offset) -> float:
        return 1.0

    def close(self) -> None:
        """Nothing is held open."""
