"""Any streaming DataFrame as a stream: its `value` column holds records of text, one or more a row.

The order within a batch is that of Spark's partitions and of the rows in them; sources that can be read
again (Kafka, files) give the same order again. Rows of plain N-Triples (`format="ntriples"`) have the time
of their `timestamp` column; in all other formats the records carry their time themselves, and an event
without one is rejected: when a row arrived is not known when it is read again. With `idle_ms` a DataFrame
that gives no rows for so long does not hold back the clock (`io/sources/silence.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from kelda.errors import UsageError
from kelda.io.job import StreamSource
from kelda.io.sources import Piece
from kelda.rdf.framing import checked_length
from kelda.rdf.framings.base import HEAD, Chunk
from kelda.shards.ingest import ingest
from kelda.spark.keys import shard_keys
from kelda.spark.run import Run
from kelda.spark.source import SCHEMA
from kelda.spark.ways import routing_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ARROW_SCHEMA = pa.schema([("shard", pa.int32()), ("parcel", pa.binary())])
PLAIN = "ntriples"
LINES = ("tsnt", "nquads", "ndjsonld")  # formats whose records are lines
APART = 1 << 32  # more rows than a partition has in a batch


def check_frame(frame: DataFrame, source: StreamSource) -> None:
    """Refuse a DataFrame that cannot be a stream, and say why."""
    if not frame.isStreaming:
        raise UsageError(
            f"the DataFrame of <{source.iri}> is not a streaming one: make it with spark.readStream"
        )
    if "value" not in frame.columns:
        raise UsageError(
            f"the DataFrame of <{source.iri}> has no column 'value' (it has {', '.join(frame.columns)}): "
            "select the records as `value`"
        )
    check_pace(source)
    if source.format is None:
        raise UsageError(f"say the format of <{source.iri}>, for example format='tsnt'")
    if source.format == "csv":
        raise UsageError(f"rows of <{source.iri}> have no CSV header: let Spark read it and select JSON")
    if source.format == PLAIN and "timestamp" not in frame.columns:
        raise UsageError(
            f"N-Triples have no time: <{source.iri}> needs a column 'timestamp', or format='tsnt'"
        )


def check_pace(source: StreamSource) -> None:
    """Refuse a pace that a DataFrame cannot be given, and a silence that is none."""
    if source.rate is not None:
        raise UsageError(
            f"<{source.iri}> is a DataFrame, and Spark decides how much of it a batch gets: leave out rate=, "
            "and give its reader an option such as maxOffsetsPerTrigger (Kafka) or maxFilesPerTrigger (files)"
        )
    if source.idle_ms is not None and source.idle_ms < 1:
        raise UsageError(f"idle of <{source.iri}> must be at least 1, not {source.idle_ms}")


def parcels_of(frame: DataFrame, number: int, source: StreamSource, run: Run, routing: str) -> DataFrame:
    """The parcels of a stream that is a DataFrame; `number` is its place among the streams."""
    columns = ["CAST(value AS BINARY) AS value"]
    if source.format == PLAIN:
        columns.append("unix_millis(CAST(timestamp AS TIMESTAMP)) AS time")
    return frame.selectExpr(*columns).mapInArrow(_reader(number, source, run, routing), SCHEMA)


def _reader(
    number: int, source: StreamSource, run: Run, routing: str
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        first = context.partitionId() * APART
        pieces: list[Piece] = []
        for batch in batches:
            pieces += pieces_of(batch, number, first + len(pieces), source)
        if not pieces:
            return
        parcels = ingest(pieces, {number: source}, routing_of(routing), run.setup.shards, 0)
        yield pa.RecordBatch.from_arrays(
            [pa.array(shard_keys(run.setup.shards), pa.int32()), pa.array(parcels, pa.binary())],
            schema=ARROW_SCHEMA,
        )

    return read


def pieces_of(batch: pa.RecordBatch, stream: int, number: int, source: StreamSource) -> list[Piece]:
    """The rows of a batch as pieces: all in one where records are lines, else one each."""
    values = batch.column(0).to_pylist()
    format, name = source.format or "", f"<{source.iri}>"
    if format == PLAIN:
        times = batch.column(1).to_pylist()
        values = [
            b"%d\t%s" % (time, line)
            for time, value in zip(times, values, strict=True)
            for line in (value or b"").splitlines()
            if line.strip()
        ]
        format = "tsnt"
    longest = checked_length(format, source.max_record)
    if any(value and len(value) > longest for value in values):
        return [
            Piece(stream, number + i, _chunk(i, value, longest), 1, len(value), name=name, format=format)
            for i, value in enumerate(values)
            if value
        ]
    if format in LINES:
        data = b"".join(v if v.endswith(b"\n") else v + b"\n" for v in values if v)
        return [
            Piece(stream, number, Chunk(1, 0, b"", data), len(values), len(data), name=name, format=format)
        ]
    return [
        Piece(stream, number + i, Chunk(1, i, b"", value), 1, len(value), name=name, format=format)
        for i, value in enumerate(values)
        if value
    ]


def _chunk(ordinal: int, value: bytes, longest: int) -> Chunk:
    """A row by itself; of one that is too long, the beginning."""
    if len(value) <= longest:
        return Chunk(1, ordinal, b"", value)
    head = value[: min(HEAD, longest)]
    return Chunk(1, ordinal, b"", head, left_out=len(value) - len(head))
