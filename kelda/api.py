"""The engine as a Python object: load, push, register, read answers.

Any thread may call anything. Calls take their turn, one after the other, and answers are those of the calls
in that order; so is the order in which each query's answers are read, or told to callbacks.
"""

from __future__ import annotations

import threading
import time as wall
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from types import TracebackType

from kelda.compiling import say_so_on_a_terminal
from kelda.engine.answer import Answer
from kelda.engine.incremental import IncrementalEvaluator
from kelda.engine.oneshot import Result, evaluate
from kelda.engine.report import Report
from kelda.engine.stopped import Stopped
from kelda.errors import InputError, QueryStopped, UsageError
from kelda.io.inbox import Callback, Inbox
from kelda.io.instants import Instants
from kelda.io.outbox import Outbox
from kelda.io.payload import Payload, quads_of
from kelda.lang import algebra as A
from kelda.lang import parse
from kelda.plan.explain import explain
from kelda.rdf.event import Event, Reject
from kelda.rdf.graphs import load_graph
from kelda.rdf.times import Time, duration_ms, to_ms
from kelda.words import count

BATCH = 10_000  # events that are taken at once from a file


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

    def __init__(self, *, t0: Time = 0, memory_limit: int | None = None, max_unread: int = 1_000_000) -> None:
        self._evaluator = IncrementalEvaluator(t0=to_ms(t0), memory_limit=memory_limit)
        self._max_unread = max_unread
        self._turn = threading.RLock()  # held by a call, but not while callbacks are called
        self._outbox = Outbox()
        self._overdue: set[Query] = set()  # had too many answers unread when their last one came
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
        with self._turn:
            load_graph(self._evaluator.store, source, graph, format=format)
            self._evaluator.stored_changed()

    def query(
        self, text: str, *, params: Mapping[str, object] | None = None, base: str | None = None
    ) -> Result:
        """Ask a one-shot query over the stored graphs. `base` is what relative IRIs stand against.

        >>> import kelda
        >>> kelda.connect().query("ASK { ?s ?p ?o }")
        False
        """
        query = parse(text, params=params, base=base)
        if query.windows:
            raise UsageError("a query with windows is continuous: register() it instead")
        with self._turn:
            return evaluate(query, self._evaluator.store)

    # ------------------------------------------------------------------ streams

    def stream(self, iri: str, *, lateness: int = 0) -> Stream:
        """The stream named `iri`, declared on first use. `lateness`: ms an element may come late."""
        late = duration_ms(lateness, "lateness")
        with self._turn:
            if iri not in self._streams:
                self._evaluator.add_stream(iri, lateness=late)
                self._streams[iri] = Stream(self, iri)
            return self._streams[iri]

    @property
    def late(self) -> dict[str, int]:
        """Per stream, how many elements came later than allowed and were set aside."""
        with self._turn:
            return dict(self._evaluator.late)

    @property
    def memory(self) -> dict[str, int]:
        """Bytes held, by query, stream and dictionary."""
        with self._turn:
            return self._evaluator.nbytes

    def advance(self, time: Time) -> None:
        """A heart-beat on every stream: nothing at or before `time` will come any more."""
        ms = to_ms(time)
        with self._turn:
            for iri in self._streams:
                self._deliver(self._evaluator.heartbeat(iri, ms))
        self._outbox.deliver()

    # ------------------------------------------------------------------ queries

    def register(
        self,
        text: str,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        *,
        dialect: str | None = None,
        base: str | None = None,
        output: str | None = None,
        report: Report | None = None,
    ) -> Query:
        """Register a continuous query; it sees what is pushed from now on.

        Streams that the text names are declared if they are not yet. `output` (rstream, istream,
        dstream, changes) and `report` override what the dialect says; `base` is what relative IRIs
        stand against.
        """
        algebra = parse(text, dialect=dialect, params=params, base=base)
        wanted = None if output is None else A.Output(output.lower())
        with self._turn:
            name = name or algebra.name or unused_name(self._queries)
            for window in algebra.windows:
                if isinstance(window.stream, A.NamedNode):
                    self.stream(window.stream.value)
            self._evaluator.register(name, algebra, output=wanted, report=report)
            self._queries[name] = Query(self, name, algebra)
            return self._queries[name]

    @property
    def queries(self) -> list[Query]:
        """The registered queries."""
        with self._turn:
            return list(self._queries.values())

    def close(self) -> None:
        """End all streams (the last instant is then complete) and deliver what is left."""
        with self._turn:
            if not self._closed:
                self._closed = True
                for iri in self._streams:
                    self._deliver(self._evaluator.end(iri))
        self._outbox.deliver()

    def __repr__(self) -> str:
        parts = [count(len(self._streams), "stream"), count(len(self._queries), "query")]
        return f"<kelda.Engine: {', '.join([*parts, 'closed'] if self._closed else parts)}>"

    def _check_readers(self) -> None:
        """Nobody reads: rather no more input than answers without end."""
        for query in list(self._overdue):
            if query.unread <= self._max_unread or self._queries.get(query.name) is not query:
                self._overdue.discard(query)
                continue
            raise UsageError(
                f"{query.unread:,} answers of {query.name!r} wait to be read: call results(), "
                "subscribe(), or stop() the query; the event was not taken, push it again afterwards"
            )
        if len(self._outbox) > self._max_unread:
            raise UsageError(
                f"{len(self._outbox):,} answers wait for callbacks, which are slower than what is pushed; "
                "the event was not taken, push it again later"
            )

    def _check_open(self, stream: str) -> None:
        if self._closed:
            raise UsageError(f"the engine is closed: <{stream}> takes no more events")

    def _deliver(self, answers: list[Answer]) -> None:
        """To where they are read, in turn; callbacks hear of them when the turn is over."""
        for answer in answers:
            query = self._queries[answer.query]
            if query._callbacks:
                self._outbox.put(query, answer)
                continue
            query._answers.append(answer)
            if len(query._answers) > self._max_unread:
                self._overdue.add(query)


class Stream:
    """A stream that elements are pushed on, by any thread."""

    def __init__(self, engine: Engine, iri: str) -> None:
        self._engine = engine
        self.iri = iri
        self._instants = Instants(iri)

    def __repr__(self) -> str:
        return f"<kelda.Stream {self.iri}>"

    def push(self, data: Payload | Event, time: Time | None = None) -> None:
        """Push one event: Turtle/TriG text, triples or quads, or an `Event`.

        `time` is event time (whole milliseconds since 1970, or a datetime). Without it the event gets the
        arrival time, later than all that was pushed before, and its instant is complete at once.
        """
        event = data if isinstance(data, Event) else Event(None, quads_of(data))
        said = event.time if time is None else time
        at = None if said is None else self._instants.of(said)
        engine, evaluator = self._engine, self._engine._evaluator
        with engine._turn:
            engine._check_open(self.iri)
            engine._check_readers()
            if at is None:
                now = max(wall.time_ns() // 1_000_000, evaluator.clock.horizon + 1)
                answers = evaluator.push(self.iri, [Event(now, event.quads)])
                answers += evaluator.heartbeat(self.iri, now)
            else:
                answers = evaluator.push(self.iri, [Event(at, event.quads)])
            engine._deliver(answers)
        engine._outbox.deliver()

    def heartbeat(self, time: Time) -> None:
        """Promise that nothing at or before `time` will come any more."""
        at, engine = self._instants.of(time), self._engine
        with engine._turn:
            engine._deliver(engine._evaluator.heartbeat(self.iri, at))
        engine._outbox.deliver()

    def read(
        self,
        source: str | Path,
        *,
        format: str | None = None,
        time_predicate: str | None = None,
        mapping: str | Mapping[str, object] | None = None,
        on_reject: Callable[[Reject], None] | None = None,
        max_record: int | None = None,
    ) -> int:
        """Push every event of a file; returns how many.

        A bad record is an error unless `on_reject` takes it, and so is one with more than `max_record` bytes
        (default: 16 million). Events that say no time get that of their arrival.
        """
        from kelda.io.sources.arrival import arrived, now_ms
        from kelda.rdf.framing import (
            read_events,  # readers of all formats, which a program that pushes needs not
        )

        events = read_events(
            source,
            format=format,
            time_predicate=time_predicate,
            mapping=mapping,
            on_reject=on_reject or _refuse,
            name=str(source),
            max_record=max_record,
        )
        taken = 0
        engine = self._engine
        while batch := list(islice(events, BATCH)):
            said = arrived(batch, now_ms)
            with engine._turn:
                engine._check_open(self.iri)
                engine._check_readers()
                engine._deliver(engine._evaluator.push(self.iri, said))
            engine._outbox.deliver()
            taken += len(said)
        return taken


class Query(Inbox):
    """A registered continuous query."""

    def __init__(self, engine: Engine, name: str, algebra: A.Query) -> None:
        super().__init__()
        self._engine = engine
        self.name = name
        self.algebra = algebra

    def __repr__(self) -> str:
        return f"<kelda.Query {self.name!r}: {count(self.unread, 'answer')} unread>"

    def subscribe(self, callback: Callback) -> None:
        """Call `callback` with each further answer, instead of keeping it for `results()`.

        It is called by a thread that pushes (or advances, or closes), in the order of the answers, one at a
        time, while no call is in turn: it may call the engine, and wait for other threads."""
        with self._engine._turn:  # not in the middle of a step
            super().subscribe(callback)

    @property
    def error(self) -> QueryStopped | None:
        """Why the query was stopped, if it has failed; what it had answered before can still be read."""
        with self._engine._turn:
            if self._error is None and self._engine._queries.get(self.name) is self:
                why = self._engine._evaluator.stopped.get(self.name)
                self._error = None if why is None else why.raised(self.name)
            return self._error

    def _fail(self, why: Stopped) -> None:
        super()._fail(why)
        with self._engine._turn:
            if self._engine._queries.get(self.name) is self:
                self._engine._evaluator.stop(self.name, why)

    def explain(self) -> str:
        """How the query is run: its windows and operators, and what evaluates them."""
        with self._engine._turn:
            return explain(self.algebra) + "\n\nruns " + self._engine._evaluator.say(self.name)

    def pause(self) -> None:
        """Report nothing until `resume()`; the windows stay up to date."""
        with self._engine._turn:
            self._engine._evaluator.pause(self.name)

    def resume(self) -> None:
        """Report again; differences are taken to the last report before the pause."""
        with self._engine._turn:
            self._engine._evaluator.pause(self.name, False)

    def stop(self) -> None:
        """Drop the query. Answers that have come can still be read."""
        with self._engine._turn:
            _ = self.error  # which it keeps
            if self._engine._queries.get(self.name) is self:
                del self._engine._queries[self.name]
                self._engine._evaluator.drop(self.name)

    def __enter__(self) -> Query:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def connect(*, t0: Time = 0, memory_limit: int | None = None, max_unread: int = 1_000_000) -> Engine:
    """An engine in this process. Any thread may use it.

    `t0` (ms, or a datetime) is what sliding windows are aligned to. With `memory_limit` (bytes), a push that
    makes the engine hold more raises `MemoryLimitError`; a query that would take more in one step is stopped
    (`Query.error`), and the others go on. With more than `max_unread` answers of a query
    unread, `push` refuses further events.
    """
    say_so_on_a_terminal()
    return Engine(t0=t0, memory_limit=memory_limit, max_unread=max_unread)


def unused_name(taken: Mapping[str, object]) -> str:
    """The name of a query that has none.

    >>> unused_name({"query2": None})
    'query3'
    """
    number = len(taken) + 1
    while f"query{number}" in taken:
        number += 1
    return f"query{number}"


def _refuse(reject: Reject) -> None:
    raise InputError(f"{reject.source}, line {reject.line}: {reject.reason}\n  {reject.record}")
