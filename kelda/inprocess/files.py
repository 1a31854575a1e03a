"""Files read to their end: what every runner in this process does with a job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Protocol

from kelda.engine.answer import Answer
from kelda.engine.incremental import IncrementalEvaluator
from kelda.engine.reference import ReferenceEvaluator
from kelda.engine.stopped import raise_stopped
from kelda.errors import InputError
from kelda.io.job import Job, StreamSource, parse_spec
from kelda.io.progress import Progress, refusal
from kelda.io.sources.arrival import arrived, now_ms
from kelda.io.sources.cutter import Cutter, Place
from kelda.io.sources.text import PackedText
from kelda.lang.algebra import Output
from kelda.rdf import ntriples
from kelda.rdf.event import Event, Reject
from kelda.rdf.framing import guess_format, read_events
from kelda.rdf.framings.base import Reading
from kelda.rdf.graphs import load_graph

Evaluator = ReferenceEvaluator | IncrementalEvaluator

BLOCK_LINES = 16_384  # lines of text that are read and encoded at a time, in a megabyte or less


def equip(evaluator: Evaluator, job: Job) -> None:
    """Load the job's graphs, declare its streams, register its queries."""
    for graph, path in job.graphs:
        load_graph(evaluator.store, path, graph)
    for stream in job.streams:
        evaluator.add_stream(stream.iri, lateness=stream.lateness, from_start=True)
    for spec in job.queries:
        output = None if spec.output is None else Output(spec.output)
        evaluator.register(spec.name, parse_spec(spec), output=output)


class Feed(Protocol):
    """A file that is fed to an evaluator bit by bit."""

    def feed(self) -> list[Answer] | None:
        """Feed some more; None when there is no more."""
        ...


def drive(evaluator: Evaluator, feeds: Mapping[str, Feed], progress: Progress) -> Iterator[Answer]:
    """Feed all files to their ends; every answer in time order."""
    left = dict(feeds)
    clocks = evaluator.clock.streams
    while left:
        # The stream that is furthest behind holds the clock: read that one next.
        stream = min(left, key=lambda iri: clocks[iri].closed)
        late = evaluator.late[stream]
        answers = left[stream].feed()
        if answers is None:
            del left[stream]
            answers = evaluator.end(stream)
        if evaluator.late[stream] > late:
            progress.late(stream, evaluator.late[stream] - late)
        yield from answers
        if evaluator.stopped and len(evaluator.stopped) == len(evaluator.queries):
            break  # nobody is left to answer
    progress.done()
    raise_stopped(evaluator.stopped)


class EventFeed:
    """Any format, as events."""

    def __init__(self, evaluator: Evaluator, job: Job, source: StreamSource, progress: Progress) -> None:
        self._evaluator, self._job, self._source, self._progress = evaluator, job, source, progress
        self._bytes = 0
        self._events = read_events(
            source.path,
            format=source.format,
            time_predicate=source.time,
            mapping=source.mapping,
            on_reject=self._reject,
            on_bytes=self._read,
            name=source.path,
            max_record=source.max_record,
        )

    def feed(self) -> list[Answer] | None:
        events: list[Event] = list(islice(self._events, self._job.batch_events))
        said = arrived(events, now_ms)
        self._progress.read(self._source.iri, len(said), self._bytes)
        self._bytes = 0
        return self._evaluator.push(self._source.iri, said) if events else None

    def _read(self, count: int) -> None:
        self._bytes += count

    def _reject(self, reject: Reject) -> None:
        self._progress.rejected(reject)
        if self._job.strict:
            raise InputError(refusal(reject))


class ColumnFeed:
    """Timestamped N-Triples straight into columns of ids."""

    def __init__(
        self, evaluator: IncrementalEvaluator, job: Job, source: StreamSource, progress: Progress
    ) -> None:
        self._evaluator, self._job, self._source, self._progress = evaluator, job, source, progress
        self._cutter = Cutter("tsnt", max_records=BLOCK_LINES, max_record=source.max_record)
        self._how = Reading(source.path, self._reject, longest=self._cutter.longest)
        self._text = PackedText(Path(source.path))  # plain or not: also what cannot be read twice, as a pipe
        self._place: Place | None = Place()
        self._stored = 0

    def feed(self) -> list[Answer] | None:
        if self._place is None:
            return None
        step = self._cutter.next(self._text, self._place, complete=True)
        assert step is not None  # a text that is complete has a last piece
        self._place = None if step.last else step.place
        before, self._stored = (
            self._stored,
            self._text.taken if step.last else self._text.stored(step.place.at),
        )
        chunk = step.chunk
        if chunk is None or chunk.left_out:
            if chunk is not None:
                self._how.too_long(chunk)
            self._progress.read(self._source.iri, 0, self._stored - before)
            return []
        columns = ntriples.read(
            chunk.data,
            self._evaluator.dictionary,
            timed=True,
            source=self._source.path,
            first_line=chunk.first_line,
        )
        for reject in columns.rejects:
            self._reject(reject)
        self._progress.read(self._source.iri, len(columns), self._stored - before)
        assert columns.t is not None
        return self._evaluator.push_columns(self._source.iri, columns.s, columns.p, columns.o, columns.t)

    def _reject(self, reject: Reject) -> None:
        self._progress.rejected(reject)
        if self._job.strict:
            raise InputError(refusal(reject))


def is_timed_text(source: StreamSource) -> bool:
    """Whether the file can be read as columns."""
    return (source.format or guess_format(source.path)) == "tsnt"
