"""The same bytes by every runner: what each makes of one file, as something that can be compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from unittest.mock import patch

import kelda
from kelda.engine.answer import Answer
from kelda.engine.reference import ReferenceEvaluator
from kelda.errors import UsageError
from kelda.inprocess import driver
from kelda.io.job import QuerySpec, StreamSource, parse_spec
from kelda.io.sources import open_reader, push_reader
from kelda.io.sources.arrival import arrived
from kelda.io.sources.reader import Reader
from kelda.rdf.event import Reject
from kelda.rdf.framing import read_events
from kelda.shards.setup import Setup
from tests.engine.test_batching import bag
from tests.shards.local import LocalShards

STREAM = "http://ex/s"
EVERYTHING = QuerySpec("everything", f"SELECT * {{ STREAM <{STREAM}> [NOW] {{ ?s ?p ?o }} }}")
SOME = QuerySpec("some", f"SELECT ?s ?o {{ STREAM <{STREAM}> [RANGE 3ms] {{ ?s <http://ex/p> ?o }} }}")
NOW = 1_000_000  # when all that says no time arrives, in seconds


@dataclass(frozen=True)
class Outcome:
    """What came of a run: all of it must be the same for every runner."""

    answers: Counter[str]
    rejects: Counter[tuple[int, str, str]]  # line, reason, what is shown
    events: int
    late: int
    refused: str = ""  # why there was none of it

    @property
    def taken(self) -> int:
        return self.events - self.late


def differences(found: Outcome, expected: Outcome) -> list[str]:
    """What is not as expected, readable."""
    shown = []
    for name in ("refused", "events", "late"):
        mine, other = getattr(found, name), getattr(expected, name)
        if mine != other:
            shown.append(f"{name}: {mine!r} instead of {other!r}")
    for name in ("rejects", "answers"):
        mine, other = getattr(found, name), getattr(expected, name)
        shown += [f"{name}, too many: {what}" for what in (mine - other).elements()]
        shown += [f"{name}, missing: {what}" for what in (other - mine).elements()]
    return shown


@dataclass
class Told:
    """A progress that adds up what it hears."""

    rejects: list[Reject] = field(default_factory=list)
    events: int = 0
    lates: int = 0
    bytes: int = 0

    def read(self, stream: str, events: int, bytes: int) -> None:
        self.events += events
        self.bytes += bytes

    def rejected(self, reject: Reject) -> None:
        self.rejects.append(reject)

    def late(self, stream: str, count: int) -> None:
        self.lates += count

    def done(self) -> None:
        """Nothing is to be noted."""

    def outcome(self, answers: Iterable[Answer]) -> Outcome:
        found = bag(list(answers))
        shown = Counter((r.line, r.reason, r.record) for r in self.rejects)
        return Outcome(found, shown, self.events, self.lates)


def source_of(path: Path, format: str, mapping: Path | None, max_record: int | None) -> StreamSource:
    return StreamSource(
        STREAM, str(path), format, mapping=mapping and str(mapping), lateness=1, max_record=max_record
    )


def by_reference(source: StreamSource, queries: Sequence[QuerySpec], batch: int) -> Outcome:
    """By definition: the events of the file, as they are read one by one."""
    told, answers = Told(), list[Answer]()
    evaluator = ReferenceEvaluator()
    evaluator.add_stream(STREAM, lateness=source.lateness, from_start=True)
    for spec in queries:
        evaluator.register(spec.name, parse_spec(spec))
    try:
        events = read_events(
            source.path,
            format=source.format,
            mapping=source.mapping,
            on_reject=told.rejected,
            name=source.path,
            max_record=source.max_record,
        )
        while some := list(islice(events, batch)):
            said = arrived(some, lambda: NOW * 1000)
            told.read(STREAM, len(said), 0)
            answers += evaluator.push(STREAM, said)
    except UsageError as error:
        return Outcome(Counter(), Counter(), 0, 0, str(error))
    answers += evaluator.end(STREAM)
    told.lates = evaluator.late[STREAM]
    return told.outcome(answers)


def by_inprocess(source: StreamSource, queries: Sequence[QuerySpec], batch: int) -> Outcome:
    """By the engine in this process."""
    told = Told()
    with (
        patch.object(driver, "open_reader", partial(open_reader, now=lambda: NOW)),
        kelda.connect(batch_events=batch) as engine,
    ):
        try:
            engine.stream(
                STREAM,
                source.path,
                format=source.format,
                mapping=source.mapping,
                lateness=source.lateness,
                max_record=source.max_record,
            )
            registered = [engine.register(spec.text, spec.name) for spec in queries]
            engine.start()
            assert engine.wait(600)
        except UsageError as error:
            return Outcome(Counter(), Counter(), 0, 0, str(error))
        told.events, told.lates, told.rejects = engine.figures.events, engine.late[STREAM], engine.rejects
        assert engine.figures.rejected == len(told.rejects)
        assert engine.figures.bytes == Path(source.path).stat().st_size
        return told.outcome([answer for query in registered for answer in query.results()])


@dataclass(frozen=True)
class Way:
    """How the bytes get to the shards."""

    shards: int = 1
    piece_records: int = 4096
    batch: int | None = None
    spots: bool = False
    restart: bool = False  # a new reader for each batch
    portions: tuple[int, ...] = ()  # pushed in portions of these sizes, instead of from the file


def by_shards(
    source: StreamSource, queries: Sequence[QuerySpec], way: Way, spool: Path, data: bytes
) -> Outcome:
    """By the sources, ingest and shards of the Spark pipeline, without Spark."""
    told, answers = Told(), list[Answer]()
    shards = LocalShards(Setup(shards=way.shards), [source])
    shards.apply([shards.planner.plan(spec) for spec in queries])

    def opened() -> Reader:
        url = "push:?waiting=1000000" if way.portions else source.path
        records, spots = way.piece_records, way.spots
        return open_reader(url, source, 0, spool=spool, piece_records=records, now=lambda: NOW, spots=spots)

    reader = opened()
    try:
        if way.portions:
            _push(reader, data, way.portions)
        at = reader.start()
        while (end := reader.latest(at, way.batch)) != at:
            if way.restart and not way.portions:
                reader.close()
                reader = opened()
            more, news = shards.read(reader.pieces(at, end))
            answers += more
            for events, size in news.read.values():
                told.read(STREAM, events, size)
            told.rejects += news.rejects
            told.lates += sum(news.late.values())
            at = end
        assert reader.finished(at)
    except UsageError as error:
        return Outcome(Counter(), Counter(), 0, 0, str(error))
    finally:
        reader.close()
    return told.outcome(answers)


def _push(reader: Reader, data: bytes, portions: tuple[int, ...]) -> None:
    """As a connection would bring it: in portions, one document."""
    inner = push_reader(reader)
    document = inner._document()
    at = 0
    while at < len(data):
        for size in portions:
            document.add(data[at : at + size])
            at += size
    document.add(b"", complete=True)
    inner.end()
