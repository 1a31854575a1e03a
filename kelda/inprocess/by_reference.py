"""A job run by the reference evaluator in this process: slow, and right by definition."""

from __future__ import annotations

from collections.abc import Iterator

from kelda.engine.answer import Answer
from kelda.engine.reference import ReferenceEvaluator
from kelda.inprocess.files import EventFeed, drive, equip
from kelda.io.job import Job
from kelda.io.progress import NoProgress, Progress


def prepare(job: Job) -> ReferenceEvaluator:
    """An evaluator with the job's graphs loaded, its streams known and its queries registered."""
    evaluator = ReferenceEvaluator(t0=job.t0)
    equip(evaluator, job)
    return evaluator


def run(job: Job, *, progress: Progress | None = None) -> Iterator[Answer]:
    """Every answer of the job, in time order."""
    progress = progress or NoProgress()
    evaluator = prepare(job)
    feeds = {source.iri: EventFeed(evaluator, job, source, progress) for source in job.streams}
    yield from drive(evaluator, feeds, progress)
