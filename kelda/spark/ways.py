"""The two ways of parcels through Spark to the shards.

`HandOver`, on one machine: a single task reads all, in threads, hands the parcels to the hosts itself, and
what Spark moves are tickets for them. `Exchange`, on a cluster, or where reading is done by Python objects,
which threads cannot do side by side: as many tasks read as there are cores, and Spark moves the parcels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import zstandard
from pyspark.sql.datasource import InputPartition

from kelda.io.job import StreamSource
from kelda.io.sources import Piece
from kelda.rdf import wire
from kelda.rdf.framing import RECORDS
from kelda.shards.ingest import ingest
from kelda.shards.routing import Routing
from kelda.shards.routing_file import Change, routing_in
from kelda.spark.client import Host, at_host, current_batch
from kelda.spark.keys import shard_keys
from kelda.spark.run import Run
from kelda.spark.width import width_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FEWEST_RECORDS = 4_000  # a task costs tens of milliseconds: as much as reading this many records


@dataclass(frozen=True, slots=True)
class Reading:
    """How the streams of a deployment are read. Plain data."""

    run: Run
    batch_events: int
    tasks: int  # that read at the same time, at the start: see `kelda.spark.width`
    routing: str  # the file in which the routing is kept
    near: bool = False  # tasks run on the driver's machine, and see its files
    hands_over: bool = False
    ahead: bool = False  # the next batch is read while this one runs

    @property
    def way(self) -> Way:
        return HandOver(self) if self.hands_over else Exchange(self)

    @property
    def piece_records(self) -> int:
        """Few large pieces for large batches: each costs a millisecond on its way."""
        return max(1, min(self.batch_events, max(RECORDS, self.batch_events // 16)))


class Way(Protocol):
    """How a batch is cut into tasks, and what these give to Spark."""

    @property
    def partitions(self) -> int:
        """Of the state."""
        ...

    def cut(self, batch: ToRead) -> list[StreamPieces]:
        """The tasks of a batch."""
        ...

    def read(self, task: StreamPieces) -> Iterator[tuple[int, bytes]]:
        """What a task gives: for each shard, by its key, a parcel or what stands for it."""
        ...

    def gathered(self, parcels: DataFrame) -> DataFrame:
        """The parcels as they go to the keyed step."""
        ...


@dataclass(frozen=True, slots=True)
class ToRead:
    """A batch that is to be read: its pieces, their streams, the version of the catalog that holds for them,
    and the routing that is needed (None: the last). The hosts have its parcels under the `ticket`, if it is
    `ready`."""

    pieces: list[Piece]
    sources: Mapping[int, StreamSource]
    version: int
    routing: Change | None = None
    ticket: bytes = b""
    ready: bool = False


class StreamPieces(InputPartition):
    """What one task reads of a batch."""

    def __init__(self, batch: ToRead, pieces: list[Piece], *, near: bool) -> None:
        mine = {piece.stream for piece in pieces}
        data = wire.encode((pieces, {n: source for n, source in batch.sources.items() if n in mine}))
        # Compressed for the way to another machine.
        super().__init__(data if near else zstandard.compress(data, 1))
        self.version, self.routing = batch.version, batch.routing
        self.near, self.ticket, self.ready = near, batch.ticket, batch.ready

    def unpacked(self) -> tuple[list[Piece], dict[int, StreamSource]]:
        data = self.value if self.near else zstandard.decompress(self.value)
        pieces, sources = wire.decode(data, "a piece of a stream")
        return pieces, sources


class HandOver:
    """One task reads, and hands over to the hosts."""

    partitions = 1  # and so there is nothing to exchange

    def __init__(self, reading: Reading) -> None:
        self._reading, self._run = reading, reading.run

    def cut(self, batch: ToRead) -> list[StreamPieces]:
        return [StreamPieces(batch, batch.pieces, near=True)]

    def read(self, task: StreamPieces) -> Iterator[tuple[int, bytes]]:
        run, ticket = self._run, task.ticket
        if not (task.ready and self._all_have(ticket)):
            batch = current_batch()
            for shard, parcels in enumerate(parcels_of(self._reading, task)):
                at_host(run, shard, partial(Host.offer, ticket=ticket, parcels=parcels, batch=batch))
        for key in shard_keys(run.setup.shards):
            yield key, ticket

    def _all_have(self, ticket: bytes) -> bool:
        shards = range(self._run.setup.shards)
        return all(at_host(self._run, i, partial(Host.has, ticket=ticket)) for i in shards)

    def gathered(self, parcels: DataFrame) -> DataFrame:
        return parcels.coalesce(1)


class Exchange:
    """Tasks read, and Spark exchanges parcels."""

    def __init__(self, reading: Reading) -> None:
        self._reading, self._run = reading, reading.run

    @property
    def partitions(self) -> int:
        """A task for each shard. More would be empty tasks, each with its commit to the state store."""
        return self._run.setup.shards

    def cut(self, batch: ToRead) -> list[StreamPieces]:
        # A new version of the catalog is told to the shards even if there is nothing else to tell.
        runs = spread(batch.pieces, width_in(Path(self._run.folder), self._reading.tasks)) or [[]]
        return [StreamPieces(batch, some, near=self._reading.near) for some in runs]

    def read(self, task: StreamPieces) -> Iterator[tuple[int, bytes]]:
        made = parcels_of(self._reading, task)
        for key, parcels in zip(shard_keys(self._run.setup.shards), made, strict=True):
            for parcel in parcels:
                yield key, parcel

    def gathered(self, parcels: DataFrame) -> DataFrame:
        return parcels


def parcels_of(reading: Reading, task: StreamPieces) -> list[list[bytes]]:
    """For each shard, one parcel of each thread."""
    shards, routing = reading.run.setup.shards, routing_of(reading.routing, task.routing)
    pieces, sources = task.unpacked()

    def parcels(some: list[Piece]) -> list[bytes]:
        return ingest(some, sources, routing, shards, task.version)

    runs = spread(pieces, reading.tasks if reading.hands_over else 1) or [[]]
    # Most of it is in kernels, which run side by side.
    made = [parcels(runs[0])] if len(runs) == 1 else threads().map(parcels, runs)
    return [list(mine) for mine in zip(*made, strict=True)]


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
def threads() -> ThreadPoolExecutor:
    """Of this worker; they stay, as each has a dictionary of its own."""
    return ThreadPoolExecutor(thread_name_prefix="kelda-read")


def routing_of(path: str, need: Change | None = None) -> Routing:
    """The routing in a file: that of the last change at least, since changes come before their batches."""
    return routing_in(Path(path), need)
