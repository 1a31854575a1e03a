"""A job on Spark as an iterator of answers: every answer once, in time order, to the end of the streams."""

from __future__ import annotations

import hashlib
import json
import queue
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from kelda.engine.answer import Answer
from kelda.engine.stopped import raise_stopped
from kelda.errors import InputError, UsageError
from kelda.io.durable import replace_file
from kelda.io.job import Job
from kelda.io.kept import reading, writing
from kelda.io.progress import NoProgress, Progress, ShowsBatches, refusal
from kelda.io.sinks.content import Held, has
from kelda.shards.shard import News
from kelda.spark.pipeline import Batch, Pipeline


def run(
    job: Job,
    *,
    master: str = "local[*]",
    checkpoint: str | None = None,
    progress: Progress | None = None,
    shards: int = 1,
    balance: str = "rotation",
) -> Iterator[Answer]:
    """Every answer of the job, computed by Spark at `master` on that many shards.

    With `checkpoint` (a folder, made if need be) an interrupted run can be taken up again: call
    with the same job and folder. Without, nothing is left behind. Mistakes in the job are raised
    here, before Spark starts; a process that dies without warning may repeat the answers of its
    last batch, one that stops iterating does not.
    """
    if checkpoint is not None and "://" in checkpoint:
        raise UsageError(f"a checkpoint is a folder of this machine or a mounted one, not {checkpoint}")
    folder = Path(checkpoint or tempfile.mkdtemp(prefix="kelda-checkpoint-")).absolute()
    handover = Handover()
    try:
        pipeline = pipeline_of(
            job,
            folder,
            shards=shards,
            balance=balance,
            take=handover.take,
            remembers=checkpoint is not None,
        )
        try:
            ledger = Ledger(folder, job, lasting=checkpoint is not None)
            if not pipeline.queries:
                pipeline.register_all(job.queries)
        except BaseException:
            pipeline.close()
            raise
    except BaseException:
        if checkpoint is None:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    return _run(
        pipeline, job, master, ledger, handover, progress or NoProgress(), keep=checkpoint is not None
    )


def pipeline_of(
    job: Job,
    folder: Path,
    *,
    shards: int,
    balance: str,
    take: Callable[[Batch], None] = lambda batch: None,
    remembers: bool = False,
) -> Pipeline:
    """The pipeline that a job asks for, with its checkpoint in the folder; without its queries yet."""
    return Pipeline(
        job.streams,
        folder,
        graphs=job.graphs,
        t0=job.t0,
        shards=shards,
        balance=balance,
        batch_events=job.batch_events,
        take=take,
        remembers=remembers,
    )


def _run(
    pipeline: Pipeline,
    job: Job,
    master: str,
    ledger: Ledger,
    handover: Handover,
    progress: Progress,
    *,
    keep: bool,
) -> Iterator[Answer]:
    try:
        try:
            for batch in handover.batches(pipeline, master):
                tell(progress, batch.news)
                if isinstance(progress, ShowsBatches):
                    f = pipeline.figures
                    progress.batch(f.batch_seconds, f.lag_seconds, f.state_bytes)
                if job.strict and batch.rejects:
                    raise InputError(refusal(batch.rejects[0]))
                yield from ledger.hand_out(batch)
                if pipeline.stopped and pipeline.stopped.keys() >= set(pipeline.queries):
                    break  # nobody is left to answer
        finally:
            handover.close()
            pipeline.stop()
        progress.done()
        raise_stopped(pipeline.stopped)
    finally:
        if not keep:
            shutil.rmtree(pipeline.folder, ignore_errors=True)


class _Abandoned(Exception):
    """Nobody takes answers any more: the batch must not be committed."""


class Handover:
    """Between Spark's thread, which brings batches, and the iterating one, which takes them.

    Spark's thread waits until its batch was taken. When that fails or stops, the batch fails, so
    Spark does not commit it and a restart has it again. Spark is started by a third thread: Ctrl-C reaches
    the iterating one, which must not be in the midst of a call to the JVM then.
    """

    def __init__(self) -> None:
        self._brought: queue.SimpleQueue[Batch | Exception | None] = queue.SimpleQueue()
        self._taken = threading.Semaphore(0)
        self._closed = False

    def take(self, batch: Batch) -> None:
        """Called by the pipeline with each batch."""
        self._brought.put(batch)
        self._taken.acquire()
        if self._closed:
            raise _Abandoned(f"batch {batch.id} was not taken")

    def batches(self, pipeline: Pipeline, master: str) -> Iterator[Batch]:
        """Start a pipeline; its batches, until it ends; raises what it failed with."""
        threading.Thread(
            target=self._run, args=(pipeline, master), name="kelda-spark-query", daemon=True
        ).start()
        while (brought := self._brought.get()) is not None:
            if isinstance(brought, Exception):
                raise brought
            yield brought
            self._taken.release()

    def _run(self, pipeline: Pipeline, master: str) -> None:
        try:
            pipeline.start(master)
            if self._closed:  # meanwhile
                pipeline.stop()
            pipeline.wait()
        except Exception as problem:  # noqa: BLE001 - handed to the iterating thread, which raises it
            self._brought.put(problem)
        else:
            self._brought.put(None)

    def close(self) -> None:
        """No more batches are taken."""
        self._closed = True
        self._taken.release()


class Ledger:
    """What was taken, kept in the checkpoint folder: whose job it is, the last batch, what was in it, and how
    much of it was taken."""

    def __init__(self, folder: Path, job: Job, *, lasting: bool = True) -> None:
        self._lasting = lasting
        self._file = folder / "taken.json"
        self._job = hashlib.sha256(repr(job).encode()).hexdigest()
        self._held, self._answers = Held(where=str(self._file)), 0
        if self._file.exists():
            with reading(self._file):
                kept = json.loads(self._file.read_text("utf-8"))
                whose = kept["job"]
                self._held = self._held._replace(batch=int(kept["batch"]), content=kept["content"])
                self._answers = int(kept["answers"])
            if whose != self._job:
                raise UsageError(
                    f"the checkpoint {folder} belongs to another job (other queries, streams or settings); "
                    "use another folder, or delete this one to start from the beginning"
                )
        else:
            self._keep()

    def hand_out(self, batch: Batch) -> Iterator[Answer]:
        """The answers of a batch that were not taken before; notes them as taken."""
        if not has(self._held, batch.id, batch.content):
            self._held, self._answers = self._held._replace(batch=batch.id, content=batch.content), 0
        elif batch.id < self._held.batch:
            return
        try:
            for answer in batch.answers[self._answers :]:
                self._answers += 1
                yield answer
        finally:
            self._keep()

    def _keep(self) -> None:
        if not self._lasting:  # the folder goes with the run
            return
        held = {"batch": self._held.batch, "content": self._held.content}
        kept = {"job": self._job, **held, "answers": self._answers}
        with writing(self._file):
            replace_file(self._file, json.dumps(kept).encode())


def tell(progress: Progress, all_news: list[News]) -> None:
    """What a batch was, to whoever watches. Every shard knows of all elements: the first one tells."""
    for news in all_news[:1]:
        for stream, (events, size) in news.read.items():
            progress.read(stream, events, size)
        for reject in news.rejects:
            progress.rejected(reject)
        for stream, count in news.late.items():
            progress.late(stream, count)
