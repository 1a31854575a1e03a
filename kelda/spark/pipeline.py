"""The pipeline: a job as one Structured Streaming query, its answers as an iterator.

    stream files ──► source ──► ingest ──► shard ──► sink ──► whoever iterates
                     pieces     parcels    answers

A batch is committed when its answers have been taken, and not before; `Ledger` remembers what was
taken. Started again with the same checkpoint, a job goes on behind the last answer taken.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import queue
import shutil
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kelda.engine.answer import Answer
from kelda.errors import InputError, KeldaError, UsageError
from kelda.rdf.event import Reject
from kelda.runner.files import refusal
from kelda.runner.job import Job
from kelda.runner.progress import NoProgress, Progress
from kelda.runner.reference_runner import prepare as prepare_reference
from kelda.spark.errors import explain
from kelda.spark.session import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kelda.spark.shard import News, Prepare


def run(
    job: Job,
    *,
    master: str = "local[*]",
    checkpoint: str | None = None,
    progress: Progress | None = None,
    prepare: Prepare = prepare_reference,
) -> Iterator[Answer]:
    """Every answer of the job, in time order, computed by Spark at `master`.

    With `checkpoint` (a folder, made if need be) an interrupted run can be taken up again: call
    with the same job and folder. Without, nothing is left behind. Mistakes in the job are raised
    here, before Spark starts; a process that dies without warning may repeat the answers of its
    last batch, one that stops iterating does not.
    """
    # Read the queries here: a mistake in one needs no JVM. The graphs are for the shards to load.
    prepare(replace(job, graphs=()))
    for path in (*(stream.path for stream in job.streams), *(path for _, path in job.graphs)):
        if not Path(path).is_file():
            raise InputError(f"cannot read {path}: there is no such file")
    if checkpoint is not None and "://" in checkpoint:
        raise UsageError(f"a checkpoint is a folder of this machine or a mounted one, not {checkpoint}")
    return _run(job, master, checkpoint, progress or NoProgress(), prepare)


def _run(
    job: Job, master: str, checkpoint: str | None, progress: Progress, prepare: Prepare
) -> Iterator[Answer]:
    folder = Path(checkpoint or tempfile.mkdtemp(prefix="kelda-checkpoint-")).absolute()
    try:
        ledger = Ledger(folder, job)
        handover = Handover()
        query = _start(job, master, folder, prepare, handover)
        try:
            for batch in handover.batches(query):
                _tell(progress, batch.news)
                if job.strict and batch.rejects:
                    raise InputError(refusal(batch.rejects[0]))
                yield from ledger.hand_out(batch)
        finally:
            handover.close()
            _stop(query)
        progress.done()
    finally:
        if checkpoint is None:
            shutil.rmtree(folder, ignore_errors=True)


def _start(job: Job, master: str, folder: Path, prepare: Prepare, handover: Handover) -> Any:
    """Start the streaming query."""
    spark = session(master)
    # These import PySpark, which takes a second: not before the job is known to be good.
    from kelda.spark.ingest import ingest
    from kelda.spark.shard import shards
    from kelda.spark.source import source_for

    try:
        spark.dataSource.register(source_for(job, tasks=spark.sparkContext.defaultParallelism))
        pieces = spark.readStream.format("kelda").load()
        results = shards(ingest(pieces, job), job, prepare)
        return (
            results.writeStream.foreachBatch(handover.take)
            .outputMode("append")
            .option("checkpointLocation", folder.as_uri())
            .trigger(availableNow=True)
            .start()
        )
    except Exception as problem:  # Spark raises many kinds; all become one of ours
        raise explain(problem) from problem


def _stop(query: Any) -> None:
    try:
        query.stop()
    except Exception as problem:
        raise explain(problem) from problem


# ----------------------------------------------------------------------------------- the sink


@dataclass(frozen=True, slots=True)
class Batch:
    """What one micro-batch brought."""

    id: int
    answers: list[Answer]
    news: list[News]

    @property
    def rejects(self) -> list[Reject]:
        return [reject for news in self.news for reject in news.rejects]


class _Abandoned(Exception):
    """Nobody takes answers any more: the batch must not be committed."""


class Handover:
    """Between Spark's thread, which brings batches, and the iterating one, which takes them.

    Spark's thread waits until its batch was taken. When that fails or stops, the batch fails, so
    Spark does not commit it and a restart has it again.
    """

    def __init__(self) -> None:
        self._brought: queue.SimpleQueue[Batch | KeldaError | None] = queue.SimpleQueue()
        self._taken = threading.Semaphore(0)
        self._closed = False

    def take(self, results: DataFrame, batch: int) -> None:
        """The sink: called by Spark with the results of each batch."""
        from kelda.spark.packing import unpack_answers
        from kelda.spark.shard import ANSWERS

        answers: list[Answer] = []
        news: list[News] = []
        for row in results.collect():
            if row.kind == ANSWERS:
                answers += unpack_answers(row.body)
            else:
                news.append(pickle.loads(row.body))
        self._brought.put(Batch(batch, answers, news))
        self._taken.acquire()
        if self._closed:
            raise _Abandoned(f"batch {batch} was not taken")

    def batches(self, query: Any) -> Iterator[Batch]:
        """The batches of a running query, until it ends; raises what it failed with."""
        threading.Thread(target=self._wait, args=(query,), name="kelda-spark-query", daemon=True).start()
        while (brought := self._brought.get()) is not None:
            if isinstance(brought, KeldaError):
                raise brought
            yield brought
            self._taken.release()

    def _wait(self, query: Any) -> None:
        try:
            query.awaitTermination()
        except Exception as problem:  # noqa: BLE001 - handed to the iterating thread, which raises it
            self._brought.put(explain(problem))
        else:
            self._brought.put(None)

    def close(self) -> None:
        """No more batches are taken."""
        self._closed = True
        self._taken.release()


class Ledger:
    """What was taken, kept in the checkpoint folder: whose job it is, the last batch, how much of it."""

    def __init__(self, folder: Path, job: Job) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / "kelda.json"
        self._job = hashlib.sha256(repr(job).encode()).hexdigest()
        self._batch, self._answers = -1, 0
        if self._file.exists():
            kept = json.loads(self._file.read_text())
            if kept["job"] != self._job:
                raise UsageError(
                    f"the checkpoint {folder} belongs to another job (other queries, streams or settings); "
                    "use another folder, or delete this one to start from the beginning"
                )
            self._batch, self._answers = kept["batch"], kept["answers"]
        elif any(folder.iterdir()):
            raise UsageError(f"{folder} is not empty and not a checkpoint of Kelda; use another folder")
        else:
            self._keep()

    def hand_out(self, batch: Batch) -> Iterator[Answer]:
        """The answers of a batch that were not taken before; notes them as taken."""
        if batch.id < self._batch:
            return
        if batch.id > self._batch:
            self._batch, self._answers = batch.id, 0
        try:
            for answer in batch.answers[self._answers :]:
                self._answers += 1
                yield answer
        finally:
            self._keep()

    def _keep(self) -> None:
        kept = {"job": self._job, "batch": self._batch, "answers": self._answers}
        beside = self._file.with_suffix(".new")
        beside.write_text(json.dumps(kept))
        os.replace(beside, self._file)


def _tell(progress: Progress, all_news: list[News]) -> None:
    for news in all_news:
        for stream, (events, size) in news.read.items():
            progress.read(stream, events, size)
        for reject in news.rejects:
            progress.rejected(reject)
        for stream, count in news.late.items():
            progress.late(stream, count)
