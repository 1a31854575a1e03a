"""A job run by the incremental engine in this process."""

from __future__ import annotations

from collections.abc import Iterator

from kelda.engine.answer import Answer
from kelda.engine.incremental import IncrementalEvaluator
from kelda.inprocess.files import ColumnFeed, EventFeed, Feed, drive, equip, is_timed_text
from kelda.io.job import Job
from kelda.io.progress import NoProgress, Progress


def prepare(job: Job) -> IncrementalEvaluator:
    """An evaluator with the job's graphs loaded, its streams known and its queries registered."""
    evaluator = IncrementalEvaluator(t0=job.t0)
    equip(evaluator, job)
    return evaluator


def run(job: Job, *, progress: Progress | None = None) -> Iterator[Answer]:
    """Every answer of the job, in time order."""
    progress = progress or NoProgress()
    evaluator = prepare(job)
    feeds: dict[str, Feed] = {}
    for source in job.streams:
        if is_timed_text(source):
            feeds[source.iri] = ColumnFeed(evaluator, job, source, progress)
        else:
            feeds[source.iri] = EventFeed(evaluator, job, source, progress)
    yield from drive(evaluator, feeds, progress)
