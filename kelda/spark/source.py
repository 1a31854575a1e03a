"""The source: the job's streams as one Structured Streaming source, read and routed where tasks run.

An offset holds that of each stream's reader (`kelda.io.sources`) and the version of the catalog, so a
batch is a range of pieces and of registrations: bounded, and the same whenever it is read again. Only the
driver opens the streams; pieces travel to the tasks inside their partitions, so executors need not see
the driver's disk (tasks on its own machine read plain files themselves). A task parses its pieces and
yields one parcel for each shard: Spark moves a few binary rows instead of a row per triple. On one machine a
single task reads all, and what it yields are tickets for parcels that the hosts have already. Of plain files
the next batch is known before Spark asks for it: it is read, and offered to the hosts, while this one runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import zstandard
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from kelda.errors import KeldaError
from kelda.io.job import StreamSource
from kelda.io.sources import Offset, Piece, Reader, open_reader
from kelda.io.sources.fed import FedReader
from kelda.rdf import wire
from kelda.rdf.framing import RECORDS
from kelda.shards.catalog import CatalogFolder
from kelda.shards.ingest import ingest
from kelda.shards.planner import FED
from kelda.shards.routing import Routing
from kelda.shards.routing_file import Change, needed, routing_in
from kelda.spark.daemon import keep_memory
from kelda.spark.host import Host, Run, at_host, current_batch, new_ticket
from kelda.spark.keys import shard_keys
from kelda.spark.remote import RemoteReader
from kelda.spark.width import width_in

DOOR = "readers.sock"  # in the checkpoint folder
CATALOG = "catalog"  # among the streams of an offset, whose names are IRIs
SCHEMA = "shard int, parcel binary"


@dataclass(frozen=True, slots=True)
class Reading:
    """How the job's streams are read. Plain data."""

    run: Run
    batch_events: int
    tasks: int  # that read at the same time, at the start: see `kelda.spark.width`
    routing: str  # the file in which the routing is kept
    near: bool = False  # tasks run on the driver's machine, and see its files
    pushed: frozenset[int] = frozenset()  # streams whose readers are in the driver's own process
    frames: frozenset[int] = frozenset()  # streams that are DataFrames
    together: bool = False  # one task reads all, in threads, and hands the parcels to the hosts itself
    ahead: bool = False  # the next batch is read while this one runs

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
        self._most = reading.batch_events
        self._ahead: Ahead | None = None
        self._hosts: list[Host] = []

    @property
    def readers(self) -> list[Reader]:
        if self._opened is None:
            keep_memory()
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
        frames = self.reading.frames - self.reading.pushed  # of the others only their silence is told here
        return [(i, source) for i, source in streams if i not in frames]

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
        self._most = limit.max_rows if isinstance(limit, ReadMaxRows) else self.reading.batch_events
        begin = {key: at for key, at in start.items() if key != CATALOG}
        ahead = self._ahead
        if ahead is not None and (ahead.begin, ahead.most) == (begin, self._most):
            end = ahead.end.result()
            if self.reading.ahead and end != begin:
                return end | {CATALOG: {"version": ahead.version}}
        else:
            end = begin
        if end == begin:
            end = self._latest(begin, self._most)
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
        pieces, version = self._pieces(start, end), end[CATALOG]["version"]
        # Now that the offsets of the batch are on disk: what is registered from now on knows that it is read
        # without it, and what was registered before is in the routing.
        routing = needed(Path(self.reading.routing))
        ahead, ticket, ready = self._ahead, new_ticket(), False
        if ahead is not None and ahead.is_between(start, end):
            ticket, ready = ahead.ticket, ahead.offered.result()
        if all(getattr(reader, "complete", False) for reader in self.readers):
            self._ahead = self._look_ahead(end, ticket)
        if self.reading.together:
            return [StreamPieces(pieces, version, routing, self.reading.near, ticket, ready)]
        # A new version of the catalog is told to the shards even if there is nothing else to tell.
        tasks = width_in(Path(self.reading.run.folder), self.reading.tasks)
        runs = spread(pieces, tasks) or [[]]
        return [StreamPieces(some, version, routing, self.reading.near) for some in runs]

    def _pieces(self, start: dict[str, Offset], end: dict[str, Offset]) -> list[Piece]:
        pieces: list[Piece] = []
        for key, reader in zip(self._keys(), self.readers, strict=True):
            pieces += reader.pieces(start[key], end[key])
        return pieces

    def _look_ahead(self, start: dict[str, Offset], after: bytes) -> Ahead:
        """Cut the batch that begins at `start`, and maybe read it, while that of the ticket `after` runs.

        If it is read, its version of the catalog is fixed: what is registered from now on holds after it."""
        begin = {key: at for key, at in start.items() if key != CATALOG}
        version, ticket, most = self._catalog.refresh().version, new_ticket(), self._most

        def offer() -> bool:
            until = end.result()
            if not self.reading.ahead or until == begin:
                return False
            try:
                made = self._parcels(self._pieces(begin, until), version, None)
                for host, parcels in zip(self._met(), made, strict=True):
                    host.offer_next(ticket, parcels, after=after)
            except (OSError, KeldaError):
                # No host, or no such text: the task reads it then, and says what is wrong.
                self._hosts = []
                return False
            return True

        end = _threads().submit(self._latest, begin, most)
        return Ahead(begin, most, version, ticket, end, _threads().submit(offer))

    def _met(self) -> list[Host]:
        """The hosts, if there are any: who reads ahead starts none."""
        if not self._hosts:
            run = self.reading.run
            self._hosts = [Host(run, shard, start=False) for shard in range(run.setup.shards)]
        return self._hosts

    def _parcels(self, pieces: list[Piece], version: int, need: Change | None) -> list[list[bytes]]:
        """For each shard, one parcel of each thread."""
        setup, routing = self.reading.run.setup, routing_of(self.reading.routing, need)

        def parcels(some: list[Piece]) -> list[bytes]:
            return ingest(some, setup.streams, routing, setup.shards, version)

        runs = spread(pieces, self.reading.threads) or [[]]
        # Most of it is in kernels, which run side by side.
        made = [parcels(runs[0])] if len(runs) == 1 else _threads().map(parcels, runs)
        return [list(mine) for mine in zip(*made, strict=True)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        assert isinstance(partition, StreamPieces)
        run, ticket = self.reading.run, partition.ticket
        keys = shard_keys(run.setup.shards)
        if ticket is None:
            for key, parcels in zip(keys, self._parcels(*partition.to_read), strict=True):
                for parcel in parcels:
                    yield key, parcel
            return
        if not (partition.ready and self._all_have(ticket)):
            batch = current_batch()
            for shard, parcels in enumerate(self._parcels(*partition.to_read)):
                at_host(run, shard, partial(Host.offer, ticket=ticket, parcels=parcels, batch=batch))
        for key in keys:
            yield key, ticket

    def _all_have(self, ticket: bytes) -> bool:
        run = self.reading.run
        return all(at_host(run, i, partial(Host.has, ticket=ticket)) for i in range(run.setup.shards))

    def commit(self, end: dict[str, Offset]) -> None:
        for key, reader in zip(self._keys(), self.readers, strict=True):
            reader.commit(end[key])

    def stop(self) -> None:
        for reader in self._opened or ():
            reader.close()


@dataclass(frozen=True, slots=True)
class Ahead:
    """The next batch, on its way to the hosts before Spark asks for it."""

    begin: dict[str, Offset]
    most: int
    version: int
    ticket: bytes
    end: Future[dict[str, Offset]]
    offered: Future[bool]

    def is_between(self, start: dict[str, Offset], end: dict[str, Offset]) -> bool:
        """Whether it is the batch that Spark asks for."""
        version = {CATALOG: {"version": self.version}}
        return start == self.begin | {CATALOG: start[CATALOG]} and end == self.end.result() | version


class StreamPieces(InputPartition):
    """The pieces that one task reads, the version of the catalog that holds for them, and the routing that it
    needs. With a `ticket` the parcels go to the hosts, which have them already if it is `ready`."""

    def __init__(
        self,
        pieces: list[Piece],
        version: int,
        routing: Change,
        near: bool = False,
        ticket: bytes | None = None,
        ready: bool = False,
    ) -> None:
        data = wire.encode(pieces)
        # Compressed for the way to another machine.
        super().__init__(data if near else zstandard.compress(data, 1))
        self.version, self.routing = version, routing
        self.near, self.ticket, self.ready = near, ticket, ready

    def pieces(self) -> list[Piece]:
        data = self.value if self.near else zstandard.decompress(self.value)
        pieces: list[Piece] = wire.decode(data, "a piece of a stream")
        return pieces

    @property
    def to_read(self) -> tuple[list[Piece], int, Change]:
        return self.pieces(), self.version, self.routing


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


def routing_of(path: str, need: Change | None = None) -> Routing:
    """The routing in a file: that of the last change at least, since changes come before their batches."""
    return routing_in(Path(path), need)


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
