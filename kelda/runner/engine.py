"""The engine as a Python object: load, push, register, read answers."""

from __future__ import annotations

import time as wall
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from itertools import islice
from pathlib import Path
from types import TracebackType

from pyoxigraph import Quad, RdfFormat, Triple
from pyoxigraph import parse as parse_rdf

from kelda.engine.answer import Answer
from kelda.engine.incremental import IncrementalEvaluator
from kelda.engine.oneshot import Result, evaluate
from kelda.engine.report import Report
from kelda.errors import InputError, UsageError
from kelda.lang import algebra as A
from kelda.lang import parse
from kelda.plan.explain import explain
from kelda.rdf.event import Event, Reject
from kelda.rdf.framing import read_events
from kelda.rdf.graphs import load_graph
from kelda.rdf.times import EPOCH
from kelda.runner.inbox import Inbox

BATCH = 10_000  # events that are taken at once from a file

Payload = str | bytes | Triple | Quad | Iterable[Triple | Quad]


class Engine:
    """Streams, stored graphs and registered queries in this process.

    >>> import kelda
    >>> with kelda.connect() as engine:
    ...     sightings = engine.stream("http://ex/sightings")
    ...     query = engine.register(
    ...         "PREFIX : <http://ex/> SELECT ?who { STREAM :sightings [RANGE 5s] { ?who :in :lab } }",
    ...         name="in-the-lab",
    ...     )
    ...     sightings.push("<http://ex/ann> <http://ex/in> <http://ex/lab> .", time=1000)
    ...     sightings.push("<http://ex/bob> <http://ex/in> <http://ex/lab> .", time=2000)
    >>> [(a.time, a.bindings["who"].value) for a in query.results()]
    [(1000, 'http://ex/ann'), (2000, 'http://ex/bob')]
    """

    def __init__(self, *, t0: int = 0, memory_limit: int | None = None, max_unread: int = 1_000_000) -> None:
        self._evaluator = IncrementalEvaluator(t0=t0, memory_limit=memory_limit, stored_may_change=True)
        self._max_unread = max_unread
        self._streams: dict[str, Stream] = {}
        self._queries: dict[str, Query] = {}
        self._closed = False

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ------------------------------------------------------------------ stored data

    def load(self, source: str | Path, graph: str | None = None, *, format: str | None = None) -> None:
        """Load an RDF file into a stored graph (None: the default graph).

        Queries that run already see it from their next report on."""
        load_graph(self._evaluator.store, source, graph, format=format)
        self._evaluator.stored_changed()

    def query(self, text: str, *, params: Mapping[str, object] | None = None) -> Result:
        """Ask a one-shot query over the stored graphs.

        >>> import kelda
        >>> kelda.connect().query("ASK { ?s ?p ?o }")
        False
        """
        query = parse(text, params=params)
        if query.windows:
            raise UsageError("a query with windows is continuous: register() it instead")
        return evaluate(query, self._evaluator.store)

    # ------------------------------------------------------------------ streams

    def stream(self, iri: str, *, lateness: int = 0) -> Stream:
        """The stream named `iri`, declared on first use. `lateness`: ms an element may come late."""
        if iri not in self._streams:
            self._evaluator.add_stream(iri, lateness=lateness)
            self._streams[iri] = Stream(self, iri)
        return self._streams[iri]

    @property
    def late(self) -> dict[str, int]:
        """Per stream, how many elements came later than allowed and were set aside."""
        return dict(self._evaluator.late)

    @property
    def memory(self) -> dict[str, int]:
        """Bytes held, by query, stream and dictionary."""
        return self._evaluator.nbytes

    def advance(self, time: int | datetime) -> None:
        """A heart-beat on every stream: nothing at or before `time` will come any more."""
        for stream in self._streams.values():
            stream.heartbeat(time)

    # ------------------------------------------------------------------ queries

    def register(
        self,
        text: str,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        *,
        dialect: str | None = None,
        output: str | None = None,
        report: Report | None = None,
    ) -> Query:
        """Register a continuous query; it sees what is pushed from now on.

        Streams that the text names are declared if they are not yet. `output` (rstream, istream,
        dstream, changes) and `report` override what the dialect says.
        """
        algebra = parse(text, dialect=dialect, params=params)
        name = name or algebra.name or f"query{len(self._queries) + 1}"
        for window in algebra.windows:
            if isinstance(window.stream, A.NamedNode):
                self.stream(window.stream.value)
        wanted = None if output is None else A.Output(output.lower())
        self._evaluator.register(name, algebra, output=wanted, report=report)
        self._queries[name] = Query(self, name, algebra)
        return self._queries[name]

    @property
    def queries(self) -> list[Query]:
        """The registered queries."""
        return list(self._queries.values())

    def close(self) -> None:
        """End all streams (the last instant is then complete) and deliver what is left."""
        if not self._closed:
            for iri in self._streams:
                self._deliver(self._evaluator.end(iri))
            self._closed = True

    def _check_readers(self) -> None:
        """Nobody reads: rather no more input than answers without end."""
        for query in self._queries.values():
            if query.unread > self._max_unread:
                raise UsageError(
                    f"{query.unread:,} answers of {query.name!r} wait to be read: call results(), "
                    "subscribe(), or stop() the query; the event was not taken, push it again afterwards"
                )

    def _deliver(self, answers: list[Answer]) -> None:
        for answer in answers:
            self._queries[answer.query]._take(answer)


class Stream:
    """A stream that elements are pushed on."""

    def __init__(self, engine: Engine, iri: str) -> None:
        self._engine = engine
        self.iri = iri

    def push(self, data: Payload | Event, time: int | datetime | None = None) -> None:
        """Push one event: Turtle/TriG text, triples or quads, or an `Event`.

        `time` is event time (ms since 1970, or a datetime). Without it the event gets the
        arrival time, and its instant is complete at once.
        """
        if self._engine._closed:
            raise UsageError(f"the engine is closed: <{self.iri}> takes no more events")
        self._engine._check_readers()
        event = data if isinstance(data, Event) else Event(None, quads_of(data))
        if time is not None:
            event = Event(to_ms(time), event.quads)
        evaluator = self._engine._evaluator
        if event.time is None:
            now = max(wall.time_ns() // 1_000_000, evaluator.clock.horizon + 1)
            answers = evaluator.push(self.iri, [Event(now, event.quads)])
            answers += evaluator.heartbeat(self.iri, now)
        else:
            answers = evaluator.push(self.iri, [event])
        self._engine._deliver(answers)

    def heartbeat(self, time: int | datetime) -> None:
        """Promise that nothing at or before `time` will come any more."""
        self._engine._deliver(self._engine._evaluator.heartbeat(self.iri, to_ms(time)))

    def read(
        self,
        source: str | Path,
        *,
        format: str | None = None,
        time_predicate: str | None = None,
        mapping: str | Mapping[str, object] | None = None,
        on_reject: Callable[[Reject], None] | None = None,
    ) -> int:
        """Push every event of a file; returns how many.

        A bad record is an error unless `on_reject` takes it.
        """
        events = read_events(
            source,
            format=format,
            time_predicate=time_predicate,
            mapping=mapping,
            on_reject=on_reject or _refuse,
            name=str(source),
        )
        count = 0
        while batch := list(islice(events, BATCH)):
            self._engine._check_readers()
            self._engine._deliver(self._engine._evaluator.push(self.iri, batch))
            count += len(batch)
        return count


class Query(Inbox):
    """A registered continuous query."""

    def __init__(self, engine: Engine, name: str, algebra: A.Query) -> None:
        super().__init__()
        self._engine = engine
        self.name = name
        self.algebra = algebra

    def explain(self) -> str:
        """How the query is run: its windows and operators, and what evaluates them."""
        return explain(self.algebra) + "\n\nruns " + self._engine._evaluator.say(self.name)

    def pause(self) -> None:
        """Report nothing until `resume()`; the windows stay up to date."""
        self._engine._evaluator.pause(self.name)

    def resume(self) -> None:
        """Report again; differences are taken to the last report before the pause."""
        self._engine._evaluator.pause(self.name, False)

    def stop(self) -> None:
        """Drop the query. Answers that have come can still be read."""
        if self._engine._queries.pop(self.name, None) is not None:
            self._engine._evaluator.drop(self.name)

    def __enter__(self) -> Query:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def connect(*, t0: int = 0, memory_limit: int | None = None, max_unread: int = 1_000_000) -> Engine:
    """An engine in this process.

    `t0` (ms) is what sliding windows are aligned to. With `memory_limit` (bytes), a push that makes the
    engine hold more raises `MemoryLimitError`. With more than `max_unread` answers of a query unread,
    `push` refuses further events.
    """
    return Engine(t0=t0, memory_limit=memory_limit, max_unread=max_unread)


def to_ms(time: int | datetime) -> int:
    """Milliseconds since 1970; a datetime without a zone is UTC."""
    if isinstance(time, datetime):
        aware = time if time.tzinfo else time.replace(tzinfo=EPOCH.tzinfo)
        return round((aware - EPOCH).total_seconds() * 1000)
    return time


def quads_of(data: Payload) -> tuple[Quad, ...]:
    """The quads of what is pushed as one event."""
    if isinstance(data, str | bytes):
        try:
            return tuple(parse_rdf(data, RdfFormat.TRIG))
        except SyntaxError as error:
            raise InputError(f"the pushed text is not Turtle or TriG: {error}") from None
    if isinstance(data, Triple | Quad):
        data = [data]
    return tuple(q if isinstance(q, Quad) else Quad(q.subject, q.predicate, q.object) for q in data)


def _refuse(reject: Reject) -> None:
    raise InputError(f"{reject.source}, line {reject.line}: {reject.reason}\n  {reject.record}")
