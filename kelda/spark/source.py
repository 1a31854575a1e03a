"""The source: stream files as a Structured Streaming source, cut at record boundaries.

A *piece* is a chunk of whole records of one stream, with its number in that stream. An offset says
per stream how many pieces were taken and whether the end was, so a batch is a range of pieces:
bounded, and the same whenever it is read again. Only the driver opens the files; pieces travel to
the tasks inside their partitions, so executors need not see the driver's disk.

Pieces are the same in every run over the same file and job, because the file is always cut from
its beginning in blocks of one size. After a restart the source finds its place by cutting again,
which costs a scan of the bytes but no parsing.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zstandard
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from kelda.errors import InputError
from kelda.rdf.compression import open_bytes
from kelda.rdf.framing import BLOCK, RECORDS, Chunk, Chunker, guess_format
from kelda.runner.job import Job, StreamSource

SCHEMA = (
    "stream int, piece long, first_line long, ordinal long, context binary, data binary, "
    "bytes long, ends boolean"
)

Offset = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Piece:
    """Whole records of one stream. The last piece of a stream `ends` it, and may have no records."""

    stream: int  # its place in the job
    number: int  # from 0, per stream
    chunk: Chunk | None
    records: int
    bytes: int  # of the file as it lies on disk
    ends: bool

    def row(self) -> tuple[Any, ...]:
        """The piece as a row of SCHEMA."""
        chunk = self.chunk or Chunk(0, 0, b"", b"")
        return (
            self.stream,
            self.number,
            chunk.first_line,
            chunk.ordinal,
            chunk.context,
            chunk.data,
            self.bytes,
            self.ends,
        )


def cut(stream: int, source: StreamSource, *, max_records: int) -> Iterator[Piece]:
    """The pieces of a stream file, each with at most `max_records` records; the last one ends it."""
    chunker = Chunker(
        source.format or guess_format(source.path), mapping=source.mapping, max_records=max_records
    )
    size = Path(source.path).stat().st_size
    stored = unpacked = handed = told = number_of = 0

    def count(more: int) -> None:
        nonlocal stored
        stored += more

    def chunks() -> Iterator[Chunk]:
        nonlocal unpacked
        with open_bytes(source.path, on_bytes=count) as reader:
            # read, not read1: blocks must not depend on what happens to be in a buffer.
            while block := reader.read(BLOCK):
                unpacked += len(block)
                yield from chunker.feed(block)
        yield from chunker.finish()

    def piece(chunk: Chunk | None, records: int, ends: bool) -> Piece:
        """The next piece. Its share of the file is that of its text in what was unpacked so far."""
        nonlocal handed, told, number_of
        handed += len(chunk.data) if chunk else 0
        until = size if ends else max(told, min(size, handed * stored // max(1, unpacked)))
        made = Piece(stream, number_of, chunk, records, until - told, ends)
        told, number_of = until, number_of + 1
        return made

    waiting: Chunk | None = None
    for chunk in chunks():
        if waiting is not None:
            yield piece(waiting, chunk.ordinal - waiting.ordinal, ends=False)
        waiting = chunk
    # How many records the last chunk has is not known from the next one; its lines bound it.
    lines = waiting.data.count(b"\n") + 1 if waiting else 0
    yield piece(waiting, min(max_records, lines), ends=True)


class Cursor:
    """Walks through the pieces of one stream, back to the start if it has to."""

    def __init__(self, number: int, source: StreamSource, max_records: int) -> None:
        self.number, self.source, self.max_records = number, source, max_records
        self.key = source.iri
        try:
            self.size = max(1, Path(source.path).stat().st_size)
        except OSError as problem:
            raise InputError(f"cannot read {source.path}: {problem.strerror or problem}") from problem
        self._pieces: Iterator[Piece] = iter(())
        self._next = -1  # number of the piece that comes next; -1: not opened yet
        self._taken: dict[int, Piece] = {}  # handed out and not committed yet
        self._read = 0

    def piece(self, number: int) -> Piece:
        """Piece `number`."""
        if number in self._taken:
            return self._taken[number]
        if not 0 <= self._next <= number:
            self._pieces = cut(self.number, self.source, max_records=self.max_records)
            self._next = self._read = 0
            self._taken.clear()
        for piece in self._pieces:
            self._next = piece.number + 1
            self._read += piece.bytes
            if piece.number == number:
                self._taken[number] = piece
                return piece
        raise InputError(
            f"{self.source.path} has changed since the checkpoint was written: it is shorter now. "
            "Restore the file, or start again with another checkpoint folder"
        )

    @property
    def part_read(self) -> float:
        """How much of the file has been handed out, from 0 to 1."""
        return self._read / self.size

    def forget(self, before: int) -> None:
        """Pieces with smaller numbers are not asked for again."""
        self._taken = {number: piece for number, piece in self._taken.items() if number >= before}


class StreamFiles(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the job's stream files side by side, to their ends, at most `batch_events` events a batch."""

    def __init__(self, job: Job, tasks: int) -> None:
        self.job, self.tasks = job, tasks
        max_records = min(RECORDS, max(1, job.batch_events))
        self.cursors = [Cursor(i, source, max_records) for i, source in enumerate(job.streams)]

    def initialOffset(self) -> Offset:
        return {cursor.key: {"pieces": 0, "ended": False} for cursor in self.cursors}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(max(1, self.job.batch_events))

    def prepareForTriggerAvailableNow(self) -> None:
        """Nothing to note: what is available is the whole of each file, and that ends."""

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """Where a batch from `start` on ends.

        The file that lags furthest behind goes next, by the part of it that was read: files that
        cover the same time keep about the same pace, so little has to wait for the clock.
        """
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        end = {key: dict(at) for key, at in start.items()}
        records = 0
        while open_ones := [cursor for cursor in self.cursors if not end[cursor.key]["ended"]]:
            cursor = min(open_ones, key=lambda c: c.part_read if end[c.key]["pieces"] else -1.0)
            at = end[cursor.key]
            piece = cursor.piece(at["pieces"])
            if records and most is not None and records + piece.records > most:
                break
            records += piece.records
            at["pieces"], at["ended"] = piece.number + 1, piece.ends
        return end

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        pieces = [
            cursor.piece(number)
            for cursor in self.cursors
            for number in range(start[cursor.key]["pieces"], end[cursor.key]["pieces"])
        ]
        return [StreamPieces(some) for some in spread(pieces, self.tasks)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        assert isinstance(partition, StreamPieces)
        for piece in partition.pieces():
            yield piece.row()

    def commit(self, end: Offset) -> None:
        for cursor in self.cursors:
            cursor.forget(end[cursor.key]["pieces"])


class StreamPieces(InputPartition):
    """The pieces that one task reads."""

    def __init__(self, pieces: list[Piece]) -> None:
        # Compressed: a partition passes through the driver's JVM on its way to a task.
        super().__init__(zstandard.compress(pickle.dumps(pieces), 1))

    def pieces(self) -> list[Piece]:
        pieces: list[Piece] = pickle.loads(zstandard.decompress(self.value))
        return pieces


FEWEST_RECORDS = 2_000  # a task costs tens of milliseconds: as much as reading this many records


def spread(pieces: list[Piece], tasks: int) -> list[list[Piece]]:
    """The pieces in at most `tasks` runs of about the same number of records, none of them small.

    >>> [len(run) for run in spread([Piece(0, i, None, 1000, 0, False) for i in range(9)], 3)]
    [3, 3, 3]
    >>> [len(run) for run in spread([Piece(0, i, None, 10, 0, False) for i in range(9)], 3)]
    [9]
    """
    total = sum(piece.records for piece in pieces)
    wanted = max(FEWEST_RECORDS, -(-total // max(1, tasks)))
    runs: list[list[Piece]] = []
    records = wanted
    for piece in pieces:
        if records >= wanted:
            runs.append([])
            records = 0
        runs[-1].append(piece)
        records += piece.records
    return runs


def source_for(job: Job, *, tasks: int) -> type[DataSource]:
    """The data source of this job, to register with a session under the name `kelda`."""

    class KeldaStreams(DataSource):
        @classmethod
        def name(cls) -> str:
            return "kelda"

        def schema(self) -> str:
            return SCHEMA

        def streamReader(self, schema: Any) -> StreamFiles:
            return StreamFiles(job, tasks)

    return KeldaStreams
