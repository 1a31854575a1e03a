"""The keyed step: shards as Spark's state, the work done by their hosts.

The state store holds the truth of a shard: its segments, its memory, and its stamp. The host
(see `kelda.spark.host`) has the working form; this step hands a batch over and keeps what comes back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from kelda.rdf import wire
from kelda.spark.client import AtHost, Host, at_host, current_batch
from kelda.spark.host_wire import NEW, Reply, Stamp
from kelda.spark.keys import shard_keys
from kelda.spark.run import Run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SCHEMA = "told binary"
# What a shard keeps: segments by number, each with the version of the catalog; and, as number -1, its memory
# with its stamp.
NUMBER = StructType([StructField("number", LongType())])
KEPT = StructType(
    [StructField("a", LongType()), StructField("b", LongType()), StructField("data", BinaryType())]
)
MEMORY = (-1,)


def shards(parcels: DataFrame, run: Run, near: bool) -> DataFrame:
    """What each shard says to its parcels, one row a shard and batch; or, if the driver is `near` the hosts,
    where it is to be had."""
    return parcels.groupBy("shard").transformWithState(
        ShardState(run, near), outputStructType=SCHEMA, outputMode="Append", timeMode="None"
    )


class ShardState(StatefulProcessor):
    """Hands batches to hosts, and keeps what must survive them."""

    def __init__(self, run: Run, near: bool) -> None:
        self.run, self.near = run, near

    def init(self, handle: StatefulProcessorHandle) -> None:
        # One map for all: each batch makes each variable anew, at five milliseconds and more. Types are
        # given as objects, since the JVM would be asked to read them otherwise.
        self.kept = handle.getMapState("kept", NUMBER, KEPT)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        shard = shard_keys(self.run.setup.shards).index(key[0])
        parcels = [bytes(row.parcel) for row in rows]
        batch = current_batch()
        stored = self.kept.getValue(MEMORY)
        before = NEW if stored is None else (int(stored[0]), int(stored[1]))
        memory = None if stored is None else bytes(stored[2])
        reply, told = self._reply(shard, batch, before, parcels, memory)
        for number, data in reply.put.items():
            self.kept.updateValue((number,), (reply.version, 0, data))
        for number in reply.removed:
            self.kept.removeKey((number,))
        self.kept.updateValue(MEMORY, (*reply.stamp, reply.memory))
        yield Row(told=told)

    def _reply(
        self, shard: int, batch: int, before: Stamp, parcels: list[bytes], memory: bytes | None
    ) -> tuple[Reply, bytes]:
        def ask(host: Host) -> tuple[Reply, bytes]:
            reply = host.take(batch, before, parcels)
            if reply is None:
                host.stand_up(before, *self._kept(memory))
                reply = host.take(batch, before, parcels)
            assert reply is not None
            at = AtHost(shard, host.path, reply.stamp)
            return reply, wire.encode(at) if self.near else host.told(reply.stamp)

        return at_host(self.run, shard, ask)

    def _kept(self, memory: bytes | None) -> tuple[bytes | None, dict[int, tuple[int, bytes]]]:
        if memory is None:
            return None, {}
        segments = {
            int(key[0]): (int(value[0]), bytes(value[2]))
            for key, value in self.kept.iterator()
            if int(key[0]) != MEMORY[0]
        }
        return memory, segments

    def close(self) -> None:
        """Nothing to let go: hosts live on."""
