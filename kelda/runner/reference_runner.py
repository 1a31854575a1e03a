"""A job run by the reference evaluator in this process, files read to their end."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from kelda.engine.answer import Answer
from kelda.engine.reference import ReferenceEvaluator
from kelda.errors import InputError
from kelda.lang import parse
from kelda.lang.algebra import Output, Query
from kelda.lang.params import term_from_text
from kelda.rdf.event import Event, Reject
from kelda.rdf.framing import read_events
from kelda.rdf.graphs import load_graph
from kelda.runner.job import Job, QuerySpec, StreamSource
from kelda.runner.progress import NoProgress, Progress


def parse_spec(spec: QuerySpec) -> Query:
    """The query of a specification, with its parameters bound."""
    params = {name: term_from_text(text) for name, text in spec.params.items()}
    return parse(spec.text, dialect=spec.dialect, params=params or None)


def prepare(job: Job) -> ReferenceEvaluator:
    """An evaluator with the job's graphs loaded, its streams known and its queries registered."""
    evaluator = ReferenceEvaluator(t0=job.t0)
    for graph, path in job.graphs:
        load_graph(evaluator.store, path, graph)
    for stream in job.streams:
        evaluator.add_stream(stream.iri, lateness=stream.lateness, from_start=True)
    for spec in job.queries:
        output = None if spec.output is None else Output(spec.output)
        evaluator.register(spec.name, parse_spec(spec), output=output)
    return evaluator


def run(job: Job, *, progress: Progress | None = None) -> Iterator[Answer]:
    """Every answer of the job, in time order."""
    progress = progress or NoProgress()
    evaluator = prepare(job)
    readers = {source.iri: _reader(job, source, progress) for source in job.streams}
    clocks = evaluator.clock.streams
    while readers:
        # The stream that is furthest behind holds the clock: read that one next.
        stream = min(readers, key=lambda iri: clocks[iri].closed)
        events = list(islice(readers[stream], job.batch_events))
        if events:
            late = evaluator.late[stream]
            yield from evaluator.push(stream, events)
            if evaluator.late[stream] > late:
                progress.late(stream, evaluator.late[stream] - late)
        else:
            del readers[stream]
            yield from evaluator.end(stream)
    progress.done()


def _reader(job: Job, source: StreamSource, progress: Progress) -> Iterator[Event]:
    def rejected(reject: Reject) -> None:
        progress.rejected(reject)
        if job.strict:
            raise InputError(
                f"{reject.source}, line {reject.line}: {reject.reason}\n  {reject.record}\n"
                "without --strict the record is counted as rejected and reading goes on"
            )

    seen = 0

    def advanced(count: int) -> None:
        nonlocal seen
        seen += count

    for event in read_events(
        source.path,
        format=source.format,
        time_predicate=source.time,
        mapping=source.mapping,
        on_reject=rejected,
        on_bytes=advanced,
        name=source.path,
    ):
        progress.read(source.iri, 1, seen)
        seen = 0
        yield event
