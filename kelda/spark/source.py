"""The source: the job's streams as one Structured Streaming source, read and routed where tasks run.

An offset holds that of each stream's reader (`kelda.runner.sources`) and the version of the catalog, so a
batch is a range of pieces and of registrations: bounded, and the same whenever it is read again. Only the
driver opens the streams; pieces travel to the tasks inside their partitions, so executors need not see
the driver's disk (tasks on its own machine read plain files themselves). A task parses its pieces and
yields one parcel for each shard: Spark moves a few binary rows instead of a row per triple.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import zstandard
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from kelda.rdf.framing import RECORDS
from kelda.rdf.framings.base import Chunk
from kelda.runner.job import StreamSource
from kelda.runner.sources import Offset, Piece, Reader, open_reader
from kelda.runner.sources.fed import FedReader
from kelda.shards.catalog import CatalogFolder
from kelda.shards.ingest import ingest
from kelda.shards.planner import FED
from kelda.shards.routing import Routing
from kelda.spark.host import Run
from kelda.spark.keys import shard_keys
from kelda.spark.remote import RemoteReader

DOOR = "readers.sock"  # in the checkpoint folder
CATALOG = "catalog"  # among the streams of an offset, whose names are IRIs
SCHEMA = "shard int, parcel binary"


@dataclass(frozen=True, slots=True)
class Reading:
    """How the job's streams are read. Plain data."""

    run: Run
    batch_events: int
    tasks: int  # that read at the same time
    routing: str  # the file in which the routing is kept
    near: bool = False  # tasks run on the driver's machine, and see its files
    pushed: frozenset[int] = frozenset()  # streams whose readers are in the driver's own process
    frames: frozenset[int] = frozenset()  # streams that are DataFrames

    @property
    def piece_records(self) -> int:
        """Few large pieces for large batches: each costs a millisecond on its way."""
        return max(1, min(self.batch_events, max(RECORDS, self.batch_events // 16)))


class Streams(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the job's streams side by side, at most `batch_events` events a batch."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self._catalog = CatalogFolder(reading.run.catalog)
        self._opened: list[Reader] | None = None  # not before somebody asks: tasks have one of these too

    @property
    def readers(self) -> list[Reader]:
        if self._opened is None:
            folder = Path(self.reading.run.folder)
            self._opened = [self._open(i, source, folder) for i, source in self._mine()]
        return self._opened

    def _open(self, number: int, source: StreamSource, folder: Path) -> Reader:
        records = self.reading.piece_records
        if number in self.reading.pushed:
            return RemoteReader(folder / DOOR, number)
        if source.path.startswith(FED):
            return FedReader(self.reading.run.fed(number), source, number, piece_records=records)
        return open_reader(source.path, source, number, spool=folder / "spool", piece_records=records)

    def _mine(self) -> list[tuple[int, StreamSource]]:
        """The streams that are read here, with their places among all streams."""
        streams = enumerate(self.reading.run.setup.streams)
        return [(i, source) for i, source in streams if i not in self.reading.frames]

    def _keys(self) -> list[str]:
        return [source.iri for _, source in self._mine()]

    def initialOffset(self) -> dict[str, Offset]:
        begin = {key: reader.start() for key, reader in zip(self._keys(), self.readers, strict=True)}
        return begin | {CATALOG: {"version": 0}}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(max(1, self.reading.batch_events))

    def prepareForTriggerAvailableNow(self) -> None:
        """Nothing to note: a job that is run so has only streams that end."""

    def latestOffset(self, start: dict[str, Offset], limit: ReadLimit) -> dict[str, Offset]:
        """Where a batch from `start` on ends.

        The stream that lags furthest behind goes next, by the part of it that was read: files that
        cover the same time keep about the same pace, so little has to wait for the clock.
        """
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else self.reading.batch_events
        end = dict(start)
        at_catalog = end.pop(CATALOG)["version"]
        left = dict(zip(self._keys(), self.readers, strict=True))
        step = max(1, min(self.reading.piece_records, most // max(1, 4 * len(left))))
        first = {key: at["records"] for key, at in end.items()}
        while left:
            taken = sum(at["records"] - first[key] for key, at in end.items())
            if taken >= most:
                break
            key = min(left, key=lambda k: left[k].part(end[k]) if end[k]["pieces"] else -1.0)
            further = left[key].latest(end[key], min(step, most - taken))
            if further == end[key]:
                del left[key]
            end[key] = further
        return end | {CATALOG: {"version": max(at_catalog, self._catalog.refresh().version)}}

    def partitions(self, start: dict[str, Offset], end: dict[str, Offset]) -> list[InputPartition]:
        pieces: list[Piece] = []
        for key, reader in zip(self._keys(), self.readers, strict=True):
            some = reader.pieces(start[key], end[key])
            plain = getattr(reader, "plain", None) if self.reading.near else None
            pieces += some if plain is None else in_file(some, plain, start[key]["bytes"], end[key]["bytes"])
        # A new version of the catalog is told to the shards even if there is nothing else to tell.
        runs = spread(pieces, self.reading.tasks) or [[]]
        return [StreamPieces(some, end[CATALOG]["version"], self.reading.near) for some in runs]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        assert isinstance(partition, StreamPieces)
        setup = self.reading.run.setup
        routing = routing_of(self.reading.routing)
        parcels = ingest(partition.pieces(), setup.streams, routing, setup.shards, partition.version)
        yield from zip(shard_keys(setup.shards), parcels, strict=True)

    def commit(self, end: dict[str, Offset]) -> None:
        for key, reader in zip(self._keys(), self.readers, strict=True):
            reader.commit(end[key])

    def stop(self) -> None:
        for reader in self._opened or ():
            reader.close()


class StreamPieces(InputPartition):
    """The pieces that one task reads, and the version of the catalog that holds for them."""

    def __init__(self, pieces: list[Piece], version: int, near: bool = False) -> None:
        data = pickle.dumps(pieces, pickle.HIGHEST_PROTOCOL)
        # Compressed for the way to another machine.
        super().__init__(data if near else zstandard.compress(data, 1))
        self.version, self.near = version, near

    def pieces(self) -> list[Piece]:
        pieces: list[Piece] = pickle.loads(self.value if self.near else zstandard.decompress(self.value))
        return [_read(piece) for piece in pieces]


@dataclass(frozen=True, slots=True)
class InFile:
    """A chunk that the task reads itself, from a file on its own machine."""

    path: str
    at: int
    size: int
    first_line: int
    ordinal: int
    context: bytes


def in_file(pieces: list[Piece], path: Path, begin: int, end: int) -> list[Piece]:
    """The pieces of a plain file between two positions, without their text."""
    if sum(len(piece.chunk.data) for piece in pieces if piece.chunk) != end - begin:
        return pieces  # something between them is in none
    found, at = [], begin
    for piece in pieces:
        if piece.chunk is not None:
            c = piece.chunk
            where = InFile(str(path), at, len(c.data), c.first_line, c.ordinal, c.context)
            at += len(c.data)
            piece = replace(piece, chunk=where)  # type: ignore[arg-type]
        found.append(piece)
    return found


def _read(piece: Piece) -> Piece:
    where: object = piece.chunk
    if not isinstance(where, InFile):
        return piece
    with open(where.path, "rb") as file:
        file.seek(where.at)
        data = file.read(where.size)
    return replace(piece, chunk=Chunk(where.first_line, where.ordinal, where.context, data))


FEWEST_RECORDS = 4_000  # a task costs tens of milliseconds: as much as reading this many records


def spread(pieces: list[Piece], tasks: int) -> list[list[Piece]]:
    """The pieces in at most `tasks` runs of about the same number of records, none of them small.

    >>> [len(run) for run in spread([Piece(0, i, None, 2000, 0) for i in range(9)], 3)]
    [3, 3, 3]
    >>> [len(run) for run in spread([Piece(0, i, None, 10, 0) for i in range(9)], 3)]
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


_routings: dict[str, tuple[tuple[int, int], Routing]] = {}


def routing_of(path: str) -> Routing:
    """The routing in a file: that of the last change at least, since changes come before their batches."""
    about = Path(path).stat()
    changed = (about.st_mtime_ns, about.st_ino)  # each change is another file under the same name
    if path not in _routings or _routings[path][0] != changed:
        _routings.clear()
        _routings[path] = (changed, pickle.loads(Path(path).read_bytes()))
    return _routings[path][1]


def source_for(reading: Reading) -> type[DataSource]:
    """The data source of this job, to register with a session under the name `kelda`."""

    class KeldaStreams(DataSource):
        @classmethod
        def name(cls) -> str:
            return "kelda"

        def schema(self) -> str:
            return SCHEMA

        def streamReader(self, schema: Any) -> Streams:
            return Streams(reading)

    return KeldaStreams
