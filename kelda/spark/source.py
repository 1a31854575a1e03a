"""The source: the job's streams as one Structured Streaming source, read and routed where tasks run.

An offset holds that of each stream's reader (`kelda.runner.sources`) and the version of the catalog, so a
batch is a range of pieces and of registrations: bounded, and the same whenever it is read again. Only the
driver opens the streams; pieces travel to the tasks inside their partitions, so executors need not see
the driver's disk (tasks on its own machine read plain files themselves). A task parses its pieces and
yields one parcel for each shard: Spark moves a few binary rows instead of a row per triple. On one machine a
single task reads all, and what it yields are tickets for parcels that the hosts have already.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import zstandard
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from kelda.rdf.framing import RECORDS
from kelda.runner.job import StreamSource
from kelda.runner.sources import Offset, Piece, Reader, open_reader
from kelda.runner.sources.fed import FedReader
from kelda.shards.catalog import CatalogFolder
from kelda.shards.ingest import ingest
from kelda.shards.planner import FED
from kelda.shards.routing import Routing
from kelda.spark.host import Host, Run, at_host, current_batch
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
    together: bool = False  # one task reads all, in threads, and hands the parcels to the hosts itself

    @property
    def threads(self) -> int:
        """Of each task."""
        return self.tasks if self.together else 1

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
        self._ahead: tuple[dict[str, Offset], int, Future[dict[str, Offset]]] | None = None

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
        spots = self.reading.near
        return open_reader(
            source.path, source, number, spool=folder / "spool", piece_records=records, spots=spots
        )

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
        begin = {key: at for key, at in start.items() if key != CATALOG}
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[:2] == (begin, most):
            end = ahead[2].result()
        else:
            end = self._latest(begin, most)
        if end != begin and all(getattr(reader, "complete", False) for reader in self.readers):
            # Files are cut for the next batch while this one runs.
            self._ahead = (end, most, _threads().submit(self._latest, end, most))
        version = max(start[CATALOG]["version"], self._catalog.refresh().version)
        return end | {CATALOG: {"version": version}}

    def _latest(self, begin: dict[str, Offset], most: int) -> dict[str, Offset]:
        end = dict(begin)
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
        return end

    def partitions(self, start: dict[str, Offset], end: dict[str, Offset]) -> list[InputPartition]:
        pieces: list[Piece] = []
        for key, reader in zip(self._keys(), self.readers, strict=True):
            pieces += reader.pieces(start[key], end[key])
        # A new version of the catalog is told to the shards even if there is nothing else to tell.
        runs = [pieces] if self.reading.together else spread(pieces, self.reading.tasks) or [[]]
        return [StreamPieces(some, end[CATALOG]["version"], self.reading.near) for some in runs]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        assert isinstance(partition, StreamPieces)
        run, routing = self.reading.run, routing_of(self.reading.routing)

        def parcels(pieces: list[Piece]) -> list[bytes]:
            loaded = (piece.loaded() for piece in pieces)
            return ingest(loaded, run.setup.streams, routing, run.setup.shards, partition.version)

        runs = spread(partition.pieces(), self.reading.threads) or [[]]
        # Most of it is in kernels, which run side by side.
        made = [parcels(runs[0])] if len(runs) == 1 else list(_threads().map(parcels, runs))
        for shard, key in enumerate(shard_keys(run.setup.shards)):
            mine = [some[shard] for some in made]
            if self.reading.together:
                mine = [at_host(run, shard, partial(Host.offer, batch=current_batch(), parcels=mine))]
            for parcel in mine:
                yield key, parcel

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
        return pieces


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


@cache
def _threads() -> ThreadPoolExecutor:
    """Of this worker; they stay, as each has a dictionary of its own."""
    return ThreadPoolExecutor(thread_name_prefix="kelda-read")


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
