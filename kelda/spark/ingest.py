"""Ingest: pieces of stream files in, events out, as one blob a task. Stateless, so it is wide.

A *parcel* is what one task sends to one shard: per piece its events, its rejects, its size, and
whether the stream ends with it. Spark moves a binary row per task instead of a row per triple.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from kelda.rdf.event import Reject
from kelda.rdf.framing import Chunk, guess_format, prepare_mapping, read_chunk
from kelda.runner.job import Job
from kelda.spark.packing import pack_events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SCHEMA = "shard int, parcel binary"
ARROW_SCHEMA = pa.schema([("shard", pa.int32()), ("parcel", pa.binary())])
ONE_SHARD = 0  # one key for now: the evaluator sees everything


@dataclass(frozen=True, slots=True)
class Part:
    """What became of one piece. Parts sort by stream and number into the order of the files."""

    stream: int
    number: int
    events: bytes  # packed
    count: int
    rejects: tuple[Reject, ...]
    bytes: int
    ends: bool


def ingest(pieces: DataFrame, job: Job) -> DataFrame:
    """The streaming DataFrame of parcels from that of pieces."""
    return pieces.mapInArrow(reader_of(job), SCHEMA)


def reader_of(job: Job) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that a task runs over its pieces."""

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            parts = [read_piece(job, **row) for row in batch.to_pylist()]
            if parts:
                yield pa.RecordBatch.from_arrays(
                    [pa.array([ONE_SHARD], pa.int32()), pa.array([pickle.dumps(parts)], pa.binary())],
                    schema=ARROW_SCHEMA,
                )

    return read


def read_piece(
    job: Job,
    *,
    stream: int,
    piece: int,
    first_line: int,
    ordinal: int,
    context: bytes,
    data: bytes,
    bytes: int,
    ends: bool,
) -> Part:
    """Parse one piece. A record that cannot be read becomes a reject; the others go on."""
    source = job.streams[stream]
    format = source.format or guess_format(source.path)
    rejects: list[Reject] = []
    events = list(
        read_chunk(
            Chunk(first_line, ordinal, context, data),
            format,
            time_predicate=source.time,
            mapping=prepare_mapping(format, source.mapping),
            on_reject=rejects.append,
            name=source.path,
        )
    )
    return Part(stream, piece, pack_events(events), len(events), tuple(rejects), bytes, ends)
