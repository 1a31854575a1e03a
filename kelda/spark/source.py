"""The source: all streams as one Structured Streaming source, read and routed where tasks run.

An offset holds that of each stream's reader (`kelda.io.sources`) and the version of the catalog, so a
batch is a range of pieces and of registrations: bounded, and the same whenever it is read again. A stream
that is declared while the query runs is one more entry of the offset, from a batch on. Only the driver opens
the streams; pieces travel to the tasks inside their partitions, so executors need not see the driver's disk
(tasks on its own machine read plain files themselves). Which way parcels then take to the shards is in
`kelda.spark.ways`. Of plain files the next batch is known before Spark asks for it: it is read, and
offered to the hosts, while this one runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from kelda.errors import KeldaError
from kelda.io.job import StreamSource
from kelda.io.sources import Offset, Reader, open_reader
from kelda.io.sources.fed import FedReader
from kelda.io.sources.together import Together
from kelda.shards.catalog import CatalogFolder
from kelda.shards.declared import FED, Declared, is_pushed
from kelda.shards.routing_file import needed
from kelda.spark.client import Host, new_ticket
from kelda.spark.daemon import keep_memory
from kelda.spark.remote import RemoteReader
from kelda.spark.ways import Reading, StreamPieces, ToRead, parcels_of, threads

DOOR = "readers.sock"  # in the checkpoint folder
CATALOG = "catalog"  # among the streams of an offset, whose names begin with numbers
SCHEMA = "shard int, parcel binary"
FRAME = "dataframe:"


class Streams(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads all streams side by side, at most `batch_events` events a batch."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self._catalog = CatalogFolder(reading.run.catalog)
        self._declared, self._version = Declared(), 0
        self._streams = Together(self._open, reading.piece_records)
        self._most = reading.batch_events
        self._ahead: Ahead | None = None
        self._hosts: list[Host] = []

    def _open(self, number: int, source: StreamSource) -> Reader:
        run, records = self.reading.run, self.reading.piece_records
        folder = Path(run.folder)
        if is_pushed(source) or source.path == FRAME:  # of a DataFrame only its silence is told here
            return RemoteReader(folder / DOOR, number)
        if source.path.startswith(FED):
            return FedReader(run.fed(number), source, number, piece_records=records)
        return open_reader(
            source.path,
            source,
            number,
            spool=folder / "spool" / str(number),
            piece_records=records,
            spots=self.reading.near,
        )

    def _have(self, version: int) -> None:
        """Read the streams of a version of the catalog."""
        if version > self._version:
            if not self._version:
                keep_memory()
            self._declared.take(self._catalog.between(self._version, version))
            self._version = version
            self._streams.have(
                {
                    number: source
                    for number, source in self._declared.streams.items()
                    if source.path != FRAME or source.idle_ms is not None
                }
            )

    def initialOffset(self) -> dict[str, Offset]:
        return {CATALOG: {"version": 0}}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(max(1, self.reading.batch_events))

    def prepareForTriggerAvailableNow(self) -> None:
        """Nothing to note: who runs it so has only streams that end."""

    def latestOffset(self, start: dict[str, Offset], limit: ReadLimit) -> dict[str, Offset]:
        """Where a batch from `start` on ends."""
        self._most = limit.max_rows if isinstance(limit, ReadMaxRows) else self.reading.batch_events
        begin = _streams(start)
        ahead = self._ahead
        if ahead is not None and (ahead.begin, ahead.most) == (begin, self._most):
            end = ahead.end.result()
            if self.reading.ahead and end != begin:
                return end | {CATALOG: {"version": ahead.version}}
        else:
            end = begin
        version = max(start[CATALOG]["version"], self._catalog.refresh().version)
        if end == begin or version > self._version:
            self._have(version)
            end = self._streams.latest(begin, self._most)
        # Once more: what was pushed after a query was registered is to be read with it.
        version = max(version, self._catalog.refresh().version)
        return end | {CATALOG: {"version": version}}

    def partitions(self, start: dict[str, Offset], end: dict[str, Offset]) -> list[InputPartition]:
        version = end[CATALOG]["version"]
        self._have(version)
        pieces = self._streams.pieces(_streams(start), _streams(end))
        sources = dict(self._declared.streams)
        # Now that the offsets of the batch are on disk: what is registered from now on knows that it is read
        # without it, and what was registered before is in the routing.
        routing = needed(Path(self.reading.routing))
        ahead, ticket, ready = self._ahead, new_ticket(), False
        if ahead is not None and ahead.is_between(start, end):
            ticket, ready = ahead.ticket, ahead.offered.result()
        self._ahead = None
        if all(getattr(reader, "complete", False) for reader in self._streams.readers.values()):
            self._ahead = self._look_ahead(_streams(end), ticket)
        batch = ToRead(pieces, sources, version, routing, ticket, ready)
        return list(self.reading.way.cut(batch))

    def _look_ahead(self, begin: dict[str, Offset], after: bytes) -> Ahead:
        """Cut the batch that begins at `begin`, and maybe read it, while that of the ticket `after` runs.

        If it is read, its version of the catalog is fixed: what is registered from now on holds after it."""
        version, ticket, most = self._catalog.refresh().version, new_ticket(), self._most
        self._have(version)
        sources = dict(self._declared.streams)

        def offer() -> bool:
            until = end.result()
            if not self.reading.ahead or until == begin:
                return False
            try:
                pieces = self._streams.pieces(begin, until)
                task = StreamPieces(ToRead(pieces, sources, version), pieces, near=True)
                made = parcels_of(self.reading, task)
                for host, parcels in zip(self._met(), made, strict=True):
                    host.offer_next(ticket, parcels, after=after)
            except (OSError, KeldaError):
                # No host, or no such text: the task reads it then, and says what is wrong.
                self._hosts = []
                return False
            return True

        end = threads().submit(self._streams.latest, begin, most)
        return Ahead(begin, most, version, ticket, end, threads().submit(offer))

    def _met(self) -> list[Host]:
        """The hosts, if there are any: who reads ahead starts none."""
        if not self._hosts:
            run = self.reading.run
            self._hosts = [Host(run, shard, start=False) for shard in range(run.setup.shards)]
        return self._hosts

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        assert isinstance(partition, StreamPieces)
        yield from self.reading.way.read(partition)

    def commit(self, end: dict[str, Offset]) -> None:
        self._streams.commit(_streams(end))

    def stop(self) -> None:
        self._streams.close()


def _streams(offset: dict[str, Offset]) -> dict[str, Offset]:
    """An offset without the catalog's."""
    return {key: at for key, at in offset.items() if key != CATALOG}


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


def source_for(reading: Reading) -> type[DataSource]:
    """The data source of a deployment, to register with a session under the name `kelda`."""

    class KeldaStreams(DataSource):
        @classmethod
        def name(cls) -> str:
            return "kelda"

        def schema(self) -> str:
            return SCHEMA

        def streamReader(self, schema: Any) -> Streams:
            return Streams(reading)

    return KeldaStreams
