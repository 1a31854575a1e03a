"""Shards: the keyed state of the pipeline. One key for now, which holds the whole evaluator.

The truth is in Spark's state store: the evaluator's snapshot after each batch, in pieces, under a
stamp. The evaluator that a Python worker keeps in memory is only a cache. It is used when it bears
the stamp that the state store has, and is put back to the snapshot when it does not: another
worker had the batch before, or an attempt failed half-way. So answers do not depend on which
process runs which batch, or how often.
"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import zstandard
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from kelda.engine.answer import Answer
from kelda.rdf.event import Event, Reject
from kelda.runner.job import Job
from kelda.spark.ingest import Part
from kelda.spark.packing import pack_answers, unpack_events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SCHEMA = "kind string, body binary"
ANSWERS, NEWS = "answers", "news"

PIECE = 4 << 20  # bytes of a snapshot in one state row: far below what a row or a message may hold
ANSWERS_A_ROW = 5_000


class Evaluator(Protocol):
    """What a shard asks of an engine; `kelda.engine.reference.ReferenceEvaluator` is one."""

    late: dict[str, int]

    def push(self, stream: str, events: Iterable[Event]) -> list[Answer]: ...
    def end(self, stream: str) -> list[Answer]: ...
    def snapshot(self) -> bytes: ...
    def restore(self, data: bytes) -> None: ...


Prepare = Callable[[Job], Evaluator]


@dataclass(frozen=True, slots=True)
class News:
    """What a batch has to tell beside its answers: increments, per stream."""

    read: dict[str, tuple[int, int]]  # events, bytes on disk
    late: dict[str, int]
    rejects: tuple[Reject, ...]  # in the order of the files


def shards(parcels: DataFrame, job: Job, prepare: Prepare) -> DataFrame:
    """The streaming DataFrame of answers and news from that of parcels."""
    return parcels.groupBy("shard").transformWithState(
        Shard(job, prepare), outputStructType=SCHEMA, outputMode="Append", timeMode="None"
    )


@dataclass(slots=True)
class _Cached:
    """The evaluator of this process, its state before anything came, and the stamp of its state now."""

    run: str
    evaluator: Evaluator
    fresh: bytes
    stamp: str


_cached: _Cached | None = None  # one is enough: graphs may be large, and a process serves one run at a time


class Shard(StatefulProcessor):
    """Feeds a batch to the evaluator and keeps what must survive."""

    def __init__(self, job: Job, prepare: Prepare) -> None:
        self.job, self.prepare = job, prepare
        self.run = uuid.uuid4().hex

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.stamp = handle.getValueState("stamp", "stamp string, pieces int")
        self.pieces = handle.getMapState("snapshot", "piece int", "data binary")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        parts: list[Part] = [part for row in rows for part in pickle.loads(row.parcel)]
        parts.sort(key=lambda part: (part.stream, part.number))
        stored = self.stamp.get()
        cached = self._evaluator(stored)
        # Until all has gone well, what is in memory belongs to no batch.
        cached.stamp = ""
        answers, news = feed(cached.evaluator, self.job, parts)
        cached.stamp = self._store(cached.evaluator.snapshot(), stored)
        for start in range(0, len(answers), ANSWERS_A_ROW):
            yield Row(kind=ANSWERS, body=pack_answers(answers[start : start + ANSWERS_A_ROW]))
        yield Row(kind=NEWS, body=pickle.dumps(news))

    def close(self) -> None:
        """Nothing to let go: the evaluator stays for the next batch."""

    def _evaluator(self, stored: tuple[str, int] | None) -> _Cached:
        """The evaluator as it was after the batch before this one."""
        global _cached
        if _cached is None or _cached.run != self.run:
            _cached = None  # let go of the old one before the new one is made
            evaluator = self.prepare(self.job)
            _cached = _Cached(self.run, evaluator, evaluator.snapshot(), "new")
        wanted = stored[0] if stored else "new"
        if _cached.stamp != wanted:
            _cached.evaluator.restore(self._load(stored[1]) if stored else _cached.fresh)
            _cached.stamp = wanted
        return _cached

    def _load(self, pieces: int) -> bytes:
        data = b"".join([bytes(self.pieces.getValue((i,))[0]) for i in range(pieces)])
        return zstandard.decompress(data)

    def _store(self, snapshot: bytes, stored: tuple[str, int] | None) -> str:
        data = zstandard.compress(snapshot, 1)
        count = -(-len(data) // PIECE)
        for i in range(count):
            self.pieces.updateValue((i,), (data[i * PIECE : (i + 1) * PIECE],))
        for i in range(count, stored[1] if stored else 0):
            self.pieces.removeKey((i,))
        stamp = uuid.uuid4().hex
        self.stamp.update((stamp, count))
        return stamp


def feed(evaluator: Evaluator, job: Job, parts: list[Part]) -> tuple[list[Answer], News]:
    """Give the evaluator the parts of a batch, in the order of the files."""
    answers: list[Answer] = []
    read: dict[str, tuple[int, int]] = {}
    late_before = dict(evaluator.late)
    for part in parts:
        stream = job.streams[part.stream].iri
        answers += evaluator.push(stream, unpack_events(part.events))
        if part.ends:
            answers += evaluator.end(stream)
        events, size = read.get(stream, (0, 0))
        read[stream] = (events + part.count, size + part.bytes)
    late = {stream: count - late_before.get(stream, 0) for stream, count in evaluator.late.items()}
    return answers, News(
        read=read,
        late={stream: count for stream, count in late.items() if count},
        rejects=tuple(reject for part in parts for reject in part.rejects),
    )
