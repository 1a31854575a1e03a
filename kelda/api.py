"""The engine as a Python object: declare streams, load graphs, register queries, read answers.

    engine = kelda.connect()                                            # in this process
    engine = kelda.connect(checkpoint="state")                          # in this process, survives kill -9
    engine = kelda.connect("local[2]", checkpoint="state", shards=2)    # on Spark

It is the same object with the same methods and the same answers; what differs is the *driver* behind it: who
calls the parts of the engine, and what makes a batch last. Any thread may call anything. Calls take their
turn, one after the other; nothing is held while callbacks are called.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from kelda.ask.prepared import PreparedAsk
from kelda.compiling import say_so_on_a_terminal
from kelda.engine.block import Block
from kelda.engine.oneshot import Result
from kelda.engine.report import Report
from kelda.engine.stopped import Stopped
from kelda.errors import KeldaError, QueryStopped, UsageError
from kelda.io.elements import Events, Ids
from kelda.io.inbox import Callback, Inbox
from kelda.io.instants import Instants
from kelda.io.job import QuerySpec, StreamSource
from kelda.io.outbox import Outbox
from kelda.io.payload import Payload, events_of
from kelda.io.pushed import pushed_of
from kelda.lang import algebra as A
from kelda.lang import parse, prepare
from kelda.lang.params import Prepared, term_of
from kelda.plan.explain import explain
from kelda.rdf.columnar.found import NO_TIME
from kelda.rdf.event import Event, Reject
from kelda.rdf.framing import prepare_mapping
from kelda.rdf.times import FIRST_MS, LAST_MS, Time, duration_ms, to_ms
from kelda.shards.deployment import Batch, Deployment
from kelda.shards.figures import Figures
from kelda.shards.setup import Setup
from kelda.shards.snapshots import DEFAULT_KEEP, Keep, Snapshot
from kelda.words import count

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCH_EVENTS = 50_000
MOST_ASKED = 64  # one-shot queries that stay planned


class Driver(Protocol):
    """Who runs a deployment, and what makes a batch last."""

    deployment: Deployment

    @property
    def running(self) -> bool: ...

    @property
    def late(self) -> dict[str, int]: ...

    @property
    def memory(self) -> dict[str, int]: ...

    @property
    def stopped(self) -> dict[str, Stopped]: ...

    def add_stream(self, source: StreamSource, frame: Any = None) -> None: ...

    def read_frame(self, iri: str, frame: Any) -> None: ...

    def drop_stream(self, iri: str) -> None: ...

    def push(self, iri: str, events: Events) -> None: ...

    def push_text(self, iri: str, text: str | bytes) -> int: ...

    def takes_text(self, iri: str) -> bool: ...

    def taken(self, iri: str) -> int: ...

    def heartbeat(self, iri: str, at: int) -> None: ...

    def end(self, iri: str) -> None: ...

    def start(self) -> None: ...

    def wait(self, timeout: float | None = None) -> bool: ...

    def flush(self, timeout: float | None = None) -> bool: ...

    def settle(self) -> None:
        """Until what was entered last holds."""
        ...

    def ask_on_spark(self, query: A.Query, at: int | datetime | None) -> Result: ...

    def stop(self) -> None: ...


class Engine:
    """Streams, stored graphs and registered queries.

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

    In this process and without a checkpoint, what is pushed is answered when `push` returns. Everything else
    runs between `start()` and `stop()`: streams by address, all that has a checkpoint, and Spark.
    """

    def __init__(self, where: str, *, max_unread: int) -> None:
        """Made by `kelda.connect`."""
        self._where, self._max_unread = where, max_unread
        self._driver: Driver = None  # type: ignore[assignment]  # put in place by `connect`
        self._lasts = False
        self._folder: Path | None = None  # that goes with the engine
        self._outbox = Outbox()
        self._overdue: set[Query] = set()  # had too many answers unread when their last one came
        self._streams: dict[str, Stream] = {}
        self._queries: dict[str, Query] = {}
        self._lock = threading.RLock()
        self._closed = False
        self._failed = False  # and whoever uses it knows
        self._asked: dict[tuple[str, str | None], PreparedAsk] = {}  # one-shot queries that may come again
        self._watchers: tuple[Callable[[Batch], None], ...] = ()

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._failed = self._failed or error is not None  # then nobody waits for the rest
        self.stop()

    async def __aenter__(self) -> Engine:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._failed = self._failed or error is not None
        await asyncio.to_thread(self.stop)

    def __repr__(self) -> str:
        parts = [count(len(self._streams), "stream"), count(len(self._queries), "query")]
        if self._closed:
            parts.append("stopped")
        elif self._driver.running:
            parts.append("running")
        return f"<kelda.Engine {self._where}: {', '.join(parts)}>"

    def _repr_html_(self) -> str:
        from html import escape

        rows = [f"<tr><td>stream</td><td>{escape(s.iri)}</td></tr>" for s in self.streams]
        rows += [
            f"<tr><td>query</td><td>{escape(q.name)} ({count(q.unread, 'answer')} unread)</td></tr>"
            for q in self.queries
        ]
        return f"<table><caption>{escape(repr(self))}</caption><tbody>{''.join(rows)}</tbody></table>"

    # ------------------------------------------------------------------ stored data

    def load(self, source: str | Path, graph: str | None = None, *, format: str | None = None) -> None:
        """Load an RDF file into a stored graph (None: the default graph).

        Queries that run already see it from their next report on."""
        self._deployment.load(source, graph, format)

    @property
    def graphs(self) -> list[tuple[str | None, str]]:
        """The stored graphs that were loaded (None: the default graph), each with the path of its file."""
        return list(self._deployment.graphs)

    def drop_graph(self, graph: str | None = None) -> None:
        """Empty a stored graph (None: the default graph)."""
        self._deployment.drop_graph(graph)

    def update(self, text: str, *, base: str | None = None) -> None:
        """Change the stored graphs by a SPARQL 1.1 update, as a whole or not at all. One-shot queries see it
        when this returns, continuous ones from the next instant on.

        >>> import kelda
        >>> engine = kelda.connect()
        >>> engine.update("INSERT DATA { <http://ex/ann> <http://ex/in> <http://ex/lab> }")
        >>> engine.query("ASK { ?who <http://ex/in> <http://ex/lab> }")
        True
        """
        self._deployment.update(text, base)
        self._driver.settle()
        self._outbox.deliver()

    def query(
        self,
        text: str,
        *,
        params: Mapping[str, object] | None = None,
        base: str | None = None,
        at: int | datetime | None = None,
        on: str | None = None,
    ) -> Result:
        """Ask a one-shot query over the stored graphs, as they are now, or `at` the number of a snapshot or a
        time that is kept (`connect(keep=…)`). `base` is what relative IRIs stand against. With `on="spark"`
        it is run as a job of Spark over the files of the store.

        >>> import kelda
        >>> kelda.connect().query("ASK { ?s ?p ?o }")
        False
        """
        if on is not None:
            if on != "spark":
                raise UsageError(f"on={on!r}: a one-shot query is asked here (without on=) or on='spark'")
            return self._driver.ask_on_spark(self._one_shot(text, params, base), at)
        if params is not None:
            return self._deployment.ask(self._prepared(text, params, base), at)
        key = (text, base)
        with self._lock:
            prepared = self._asked.pop(key, None)
        if prepared is None:
            prepared = self._prepared(text, params, base)
        answer = self._deployment.ask(prepared, at)
        with self._lock:
            self._asked[key] = prepared  # the last ones that were asked are the last to go
            while len(self._asked) > MOST_ASKED:
                del self._asked[next(iter(self._asked))]
        return answer

    def prepare_query(
        self, text: str, *, params: Mapping[str, object] | None = None, base: str | None = None
    ) -> OneShot:
        """A one-shot query, read and planned once, to be asked many times."""
        return OneShot(self._deployment, self._prepared(text, params, base))

    def _prepared(self, text: str, params: Mapping[str, object] | None, base: str | None) -> PreparedAsk:
        return self._deployment.prepare_ask(self._one_shot(text, params, base))

    def _one_shot(self, text: str, params: Mapping[str, object] | None, base: str | None) -> A.Query:
        query = parse(text, params=params, base=base)
        if query.windows:
            raise UsageError("a query with windows is continuous: register() it instead")
        return query

    def snapshots(self) -> list[Snapshot]:
        """The snapshots that can be asked (`query(at=…)`), oldest first: one behind each batch, with its
        number, the instant up to which all streams were complete, and how far each stream was read."""
        return self._deployment.snapshots.all()

    # ------------------------------------------------------------------ streams

    def stream(
        self,
        iri: str,
        source: str | None = None,
        *,
        dataframe: DataFrame | None = None,
        format: str | None = None,
        time_predicate: str | None = None,
        mapping: str | Mapping[str, object] | None = None,
        lateness: int = 0,
        idle: int | None = None,
        rate: int | None = None,
        max_record: int | None = None,
        absorb: str | None = None,
        predicates: Sequence[str] | None = None,
    ) -> Stream:
        """The stream named `iri`, declared if it is not yet: from an address (a file, `tail:`, `folder:`,
        `tcp:`, `replay:`, `query:NAME`), on Spark from a streaming DataFrame, or (neither) pushed by this
        program.

        `lateness`: ms an element may come behind the newest one. `idle`: ms of silence after which the stream
        does not hold back the others. `rate`: records a second that are taken at most. `absorb`: the graph
        that its elements become facts of, each from its instant on ("default": the default graph), or, with
        `predicates`, those that have one of these."""
        if source is not None and dataframe is not None:
            raise UsageError(f"<{iri}> comes from an address or from a DataFrame, not from both")
        late = duration_ms(lateness, "lateness")
        silence = None if idle is None else duration_ms(idle, "idle")
        path = source or ("dataframe:" if dataframe is not None else "push:")
        kept = mapping if isinstance(mapping, str) else None
        declared = StreamSource(
            iri,
            path,
            format,
            time_predicate,
            kept,
            late,
            silence,
            rate,
            max_record,
            absorb,
            None if predicates is None else tuple(predicates),
        )
        if mapping is not None and kept is None and source is not None:
            raise UsageError(f"<{iri}>: the mapping of a stream by address is a file; write it to one")
        with self._lock:
            known = self._streams.get(iri)
            if known is None:
                self._driver.add_stream(declared, dataframe)
                self._streams[iri] = Stream(self, iri, mapping)
            else:
                _refuse_other(known.source, declared)
                if dataframe is not None:  # of an earlier run
                    self._driver.read_frame(iri, dataframe)
                if mapping is not None:
                    known._mapping = mapping
            return self._streams[iri]

    @property
    def streams(self) -> list[Stream]:
        """The streams that are declared."""
        with self._lock:
            return list(self._streams.values())

    @property
    def late(self) -> dict[str, int]:
        """Per stream, how many elements came later than allowed and were set aside."""
        found = dict.fromkeys(self._streams, 0)
        return found | self._driver.late

    @property
    def rejects(self) -> list[Reject]:
        """Records that could not be read, with the reasons: the first thousand. `figures` counts all."""
        return list(self._deployment.rejects)

    def advance(self, time: Time) -> None:
        """A heart-beat on every stream that is pushed: nothing at or before `time` will come any more."""
        ms = to_ms(time)
        for stream in self.streams:
            if stream.is_pushed:
                self._driver.heartbeat(stream.iri, ms)
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
        sink: str | None = None,
    ) -> Query:
        """Register a continuous query; it sees what comes from now on.

        Its answers go to `sink` (see docs/sinks.md), or wait in the query that is returned. Streams that the
        text names are declared if they are not yet. `output` (rstream, istream, dstream, changes) and
        `report` override what the dialect says; `base` is what relative IRIs stand against.
        """
        algebra = parse(text, dialect=dialect, params=params, base=base)
        told = None if output is None else A.Output(output.lower()).value
        written = {key: str(term_of(value)) for key, value in (params or {}).items()}
        with self._lock:
            name = name or algebra.name or unused_name(self._queries)
            with _Declaring(self, algebra):
                spec = QuerySpec(name, text, dialect, written, told, base, report)
                self._deployment.register(spec, sink=sink)
            self._queries[name] = Query(self, name)
            return self._queries[name]

    def prepare(self, text: str, *, dialect: str | None = None, base: str | None = None) -> Prepared:
        """A query text with parameters (`$name`), read once, for `register_many`."""
        return prepare(text, dialect=dialect, base=base)

    def register_many(
        self,
        prepared: Prepared | str,
        values: Mapping[str, Sequence[object]],
        names: Sequence[str] | None = None,
        *,
        output: str | None = None,
        report: Report | None = None,
    ) -> list[Query]:
        """Register one query per name: the text with the i-th value of each parameter. They run as one
        network, if their shape allows it; a hundred thousand cost little more than one."""
        if isinstance(prepared, str):
            prepared = prepare(prepared)
        if not values:
            raise UsageError("register_many needs the values of the parameters: {'name': [...], ...}")
        size = len(next(iter(values.values())))
        if not size or any(len(some) != size for some in values.values()):
            raise UsageError("each parameter needs as many values as the others, and there must be some")
        told = None if output is None else A.Output(output.lower()).value
        texts = {key: [_written(value) for value in some] for key, some in values.items()}
        with self._lock:
            if names is None:
                names, taken = [], dict[str, object](self._queries)
                for _ in range(size):
                    names.append(unused_name(taken))
                    taken[names[-1]] = None
            if len(names) != size:
                raise UsageError(f"{len(names)} names, and {size} values of each parameter")
            with _Declaring(self, prepared.query):
                spec = QuerySpec(
                    names[0],
                    prepared.text,
                    prepared.dialect,
                    {},
                    told,
                    prepared.base,
                    report,
                )
                self._deployment.register_many(spec, names, texts)
            made = {name: Query(self, name) for name in names}
            self._queries |= made
            return list(made.values())

    @property
    def queries(self) -> list[Query]:
        """The registered queries, with a checkpoint those of earlier runs included."""
        with self._lock:
            return list(self._queries.values())

    def explain(self, text: str, *, dialect: str | None = None, base: str | None = None) -> str:
        """How a query would be run, without registering it."""
        from kelda.engine.incremental import how_it_runs

        query = parse(text, dialect=dialect, base=base)
        return explain(query) + (f"\n\nruns {how_it_runs(query)}" if query.windows else "")

    # ------------------------------------------------------------------ running

    def start(self) -> None:
        """Begin to read, if that is not done already. Returns at once; answers come as batches are done."""
        with self._lock:
            if not self._driver.running:
                self._driver.start()

    def wait(self, timeout: float | None = None) -> bool:
        """Until all streams have ended, or time is up (False). Raises what went wrong."""
        with self._noting_failure():
            return self._driver.wait(timeout)

    def flush(self, timeout: float | None = None) -> bool:
        """Until all that was pushed before has been answered, as far as it is complete, or time is up
        (False). Raises what went wrong."""
        with self._noting_failure():
            return self._driver.flush(timeout)

    @contextmanager
    def _noting_failure(self) -> Iterator[None]:
        try:
            yield
        except KeldaError:
            self._failed = True
            raise

    def stop(self) -> None:
        """Stop. Without a checkpoint the streams that are pushed end first, so that their last instants are
        answered; with one they stay open, and go on when somebody connects again."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        try:
            if not self._lasts and not self._failed:
                self._end_pushed()
        finally:
            try:
                self._driver.stop()
            finally:
                self._outbox.deliver()
                for query in self.queries:
                    query._end()
                if self._folder is not None:
                    shutil.rmtree(self._folder, ignore_errors=True)

    def _end_pushed(self) -> None:
        for stream in self.streams:
            if stream.is_pushed:
                self._driver.end(stream.iri)
        if self._driver.running:
            self._driver.flush()

    def watch(self, watcher: Callable[[Batch], None]) -> None:
        """Call `watcher` with each batch that was read from streams and answered, before it is committed:
        what was read, late, rejected, and how many answers there were."""
        self._watchers = (*self._watchers, watcher)

    @property
    def figures(self) -> Figures:
        """How the engine runs: rates, times, counts."""
        return self._deployment.figures

    @property
    def memory(self) -> dict[str, int]:
        """Bytes held, by query, stream and dictionary; on Spark as of some batches ago."""
        return self._driver.memory

    @property
    def spark(self) -> SparkSession:
        """Spark's session, to make DataFrames with."""
        from kelda.spark.driver import SparkDriver
        from kelda.spark.session import session

        if not isinstance(self._driver, SparkDriver):
            raise UsageError("this engine runs in this process; connect with a master, e.g. 'local[*]'")
        return session(self._driver.master)

    # ------------------------------------------------------------------ inside

    @property
    def _deployment(self) -> Deployment:
        return self._driver.deployment

    def _take_up(self) -> None:
        """What an earlier run has declared and registered."""
        for source in self._deployment.streams.values():
            self._streams[source.iri] = Stream(self, source.iri, source.mapping)
        for name in self._deployment.registered:
            self._queries[name] = Query(self, name)

    def _deliver(self, blocks: Sequence[Block]) -> None:
        """To where they are read, in turn; callbacks hear of them when the turn is over."""
        for block in blocks:
            query = self._queries.get(block.name)
            if query is None:
                continue
            if query._is_told:
                self._outbox.put(query, block)
                continue
            query._keep(block)
            if query.unread > self._max_unread:
                self._overdue.add(query)

    def _taken(self, batch: Batch) -> None:
        """A batch on Spark."""
        self._deliver(batch.blocks)
        self._told(batch)
        self._outbox.deliver()

    def _told(self, batch: Batch) -> None:
        for watcher in self._watchers:
            watcher(batch)

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


class _Declaring:
    """Streams that a query names are declared; those that are new are not, if it is refused."""

    def __init__(self, engine: Engine, query: A.Query) -> None:
        self._engine, self._query = engine, query
        self._new: list[str] = []

    def __enter__(self) -> None:
        for window in self._query.windows:
            if isinstance(window.stream, A.NamedNode) and window.stream.value not in self._engine._streams:
                self._engine.stream(window.stream.value)
                self._new.append(window.stream.value)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for iri in self._new if error is not None else ():
            self._engine._streams[iri].drop()


class Stream:
    """A stream; elements can be pushed on it, by any thread, if it has no other source."""

    def __init__(self, engine: Engine, iri: str, mapping: str | Mapping[str, object] | None) -> None:
        self._engine, self.iri, self._instants = engine, iri, Instants(iri)
        self._mapping = mapping
        self._ready: Any = None  # the mapping, prepared
        self._pushes = 0

    def __repr__(self) -> str:
        return f"<kelda.Stream {self.iri}>"

    @property
    def source(self) -> StreamSource:
        """How it was declared."""
        declared = self._engine._deployment.planner.declared
        return declared.streams[declared.number(self.iri)]

    @property
    def is_pushed(self) -> bool:
        """Whether elements are pushed on it by the program."""
        return self.source.path == "push:"

    @property
    def pushed(self) -> int:
        """How many events were pushed on it so far; with a checkpoint, by earlier runs too: whoever pushes
        goes on with the next one."""
        return self._engine._driver.taken(self.iri)

    def push(
        self,
        data: Payload,
        time: Time | None = None,
        *,
        mapping: str | Mapping[str, object] | None = None,
        context: object = None,
    ) -> int:
        """Push an event, or several; returns how many.

        Text (Turtle or TriG, or in the stream's format), triples, quads, tuples of terms or Python values,
        `Event`s, dictionaries with a mapping or a JSON-LD context, rdflib graphs, Arrow tables and DataFrames
        with a mapping. `time` is event time (whole milliseconds since 1970, or a datetime). An event without
        any gets that of its arrival, later than all that was pushed before, and its instant is complete at
        once. With a checkpoint, what was pushed is on disk when this returns.
        """
        engine, source = self._engine, self.source
        engine._check_readers()
        at = None if time is None else self._instants.of(time)
        self._pushes += 1
        raw = isinstance(data, str | bytes) and source.format is not None and at is None
        if raw and engine._driver.takes_text(self.iri):
            taken = engine._driver.push_text(self.iri, data)  # type: ignore[arg-type]
        else:
            events = self._events(data, at, self._prepared(mapping), context)
            engine._driver.push(self.iri, events)
            taken = len(events)
        engine._outbox.deliver()
        return taken

    def _events(self, data: Payload, at: int | None, mapping: Any, context: object) -> Events:
        format, time, name = self.source.format, self.source.time, f"{self.iri}#{self._pushes}"
        pushed = pushed_of(data, at, format=format, mapping=mapping, time_predicate=time, name=name)
        if pushed is not None:
            if at is None:
                self._check(pushed.times)
            return pushed
        events = events_of(
            data, at, format=format, mapping=mapping, context=context, time_predicate=time, name=name
        )
        return events if at is not None else [self._checked(event) for event in events]

    def _check(self, times: Ids) -> None:
        """See that times are such, if they are said."""
        said = times[times != NO_TIME]
        for time in [*said[:1].tolist(), *said[(said < FIRST_MS) | (said > LAST_MS)][:1].tolist()]:
            self._instants.of(time)

    def _prepared(self, mapping: str | Mapping[str, object] | None) -> Any:
        if mapping is not None:
            return mapping
        if self._mapping is not None and self._ready is None:
            self._ready = prepare_mapping(self.source.format or "json", self._mapping)
        return self._ready

    def _checked(self, event: Event) -> Event:
        """An event with a time that is one, if it says any."""
        return event if event.time is None else Event(self._instants.of(event.time), event.quads)

    async def push_async(self, data: Payload, time: Time | None = None, **more: Any) -> int:
        """As `push`, without holding up the event loop."""
        return await asyncio.to_thread(self.push, data, time, **more)

    def heartbeat(self, time: Time) -> None:
        """Promise that nothing at or before `time` will come any more."""
        self._engine._driver.heartbeat(self.iri, self._instants.of(time))
        self._engine._outbox.deliver()

    def end(self) -> None:
        """Nothing will be pushed any more."""
        self._engine._driver.end(self.iri)
        self._engine._outbox.deliver()

    def drop(self) -> None:
        """Forget the stream, which no query may read any more."""
        with self._engine._lock:
            self._engine._driver.drop_stream(self.iri)
            self._engine._streams.pop(self.iri, None)


class Query(Inbox):
    """A registered continuous query."""

    def __init__(self, engine: Engine, name: str) -> None:
        super().__init__()
        self._engine, self.name = engine, name
        registered = engine._deployment.registered[name]
        self.spec, self.sink = registered.spec, registered.sink
        self.text = self.spec.text
        self.algebra = engine._deployment.planner.algebra(name)

    def __repr__(self) -> str:
        return f"<kelda.Query {self.name!r}: {count(self.unread, 'answer')} unread>"

    @property
    def error(self) -> QueryStopped | None:
        """Why the query was stopped, if it has failed; what it had answered before can still be read."""
        if self._error is None:
            why = self._engine._driver.stopped.get(self.name)
            if why is not None and self._engine._queries.get(self.name) is self:
                self._error = why.raised(self.name)
        return self._error

    @property
    def state(self) -> str:
        """`running`, `paused` or `stopped`."""
        registered = self._engine._deployment.registered.get(self.name)
        if registered is None or self.error is not None:
            return "stopped"
        return "paused" if registered.paused else "running"

    def subscribe(self, callback: Callback) -> None:
        """Call `callback` with each further answer, instead of keeping it for `results()`.

        It is called in the order of the answers, one at a time, by a thread that pushes (or advances, or
        stops), or by the one that takes batches, before the batch is committed. What it raises stops the
        query."""
        super().subscribe(callback)

    def explain(self) -> str:
        """How the query is run: its windows and operators, where, and what evaluates them."""
        return f"{explain(self.algebra)}\n\nruns {self._engine._deployment.explain(self.name)}"

    def pause(self) -> None:
        """Report nothing until `resume()`; the windows stay up to date."""
        self._engine._deployment.pause(self.name)

    def resume(self) -> None:
        """Report again; differences are taken to the last report before the pause."""
        self._engine._deployment.pause(self.name, False)

    def move(self, shard: int) -> None:
        """Let another shard run it, if it runs whole on one."""
        self._engine._deployment.move(self.name, shard)

    def stop(self) -> None:
        """Drop the query. Answers that have come can still be read."""
        with self._engine._lock:
            _ = self.error  # which it keeps
            if self._engine._queries.get(self.name) is self:
                self._engine._deployment.drop(self.name)
                del self._engine._queries[self.name]
                self._end()

    def __enter__(self) -> Query:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class OneShot:
    """A one-shot query that is ready to be asked. Any thread may ask it, one at a time."""

    def __init__(self, deployment: Deployment, prepared: PreparedAsk) -> None:
        self._deployment, self._prepared = deployment, prepared

    def ask(self, *, at: int | datetime | None = None) -> Result:
        """The answer now, or `at` a snapshot or a time."""
        return self._deployment.ask(self._prepared, at)

    def explain(self) -> str:
        """What is looked up in which order, and what Oxigraph is asked and why."""
        return self._prepared.explain()


def connect(
    master: str | None = None,
    *,
    checkpoint: str | Path | None = None,
    shards: int = 1,
    balance: str = "rotation",
    batch_events: int = BATCH_EVENTS,
    t0: Time = 0,
    memory_limit: int | None = None,
    max_unread: int = 1_000_000,
    fixed_graphs: bool = False,
    keep: Keep = DEFAULT_KEEP,
    reference: bool = False,
) -> Engine:
    """An engine: in this process, or with `master` ("local[*]", "spark://…") on Spark.

    With `checkpoint`, a folder, everything survives the process: streams, graphs, queries, windows, and how
    far each stream was read. `shards` is in how many pieces Spark runs the queries; answers do not depend on
    it, nor on `batch_events`, which are taken at a time. `t0` (ms, or a datetime) is what sliding windows are
    aligned to. With `memory_limit` (bytes), a push that makes the engine hold more raises `MemoryLimitError`;
    a query that would take more in one step is stopped (`Query.error`), and the others go on. With more than
    `max_unread` answers of a query unread, `push` refuses further events. `fixed_graphs` promises that graphs
    are loaded before the first query and stay as they are: streams are then narrowed to what can join with
    them where they are read. `keep`: how many snapshots of the stored graphs, or which time before the last,
    can be asked by one-shot queries. With `reference`, every query is run by definition: slow, and obviously
    right.
    """
    say_so_on_a_terminal()
    setup = Setup(to_ms(t0), shards, fixed_graphs, memory_limit, reference)
    folder = None if checkpoint is None else Path(checkpoint)
    if master is None:
        if shards != 1:
            raise UsageError(
                f"{shards} shards: in this process there is one; connect with a master, e.g. 'local[*]'"
            )
        return _in_process(setup, folder, batch_events, max_unread, keep)
    return _on_spark(setup, folder, master, balance, batch_events, max_unread, keep)


def _in_process(setup: Setup, folder: Path | None, batch_events: int, max_unread: int, keep: Keep) -> Engine:
    from kelda.inprocess.driver import InProcessDriver

    engine = Engine("in this process", max_unread=max_unread)
    engine._lasts = folder is not None
    engine._driver = InProcessDriver(
        setup,
        folder,
        batch_events=batch_events,
        deliver=engine._deliver,
        told=engine._told,
        after=engine._outbox.deliver,
        keep=keep,
    )
    engine._take_up()
    return engine


def _on_spark(
    setup: Setup,
    folder: Path | None,
    master: str,
    balance: str,
    batch_events: int,
    max_unread: int,
    keep: Keep,
) -> Engine:
    from kelda.spark.driver import SparkDriver

    engine = Engine(f"at {master}", max_unread=max_unread)
    engine._lasts = folder is not None
    if folder is None:
        folder = engine._folder = Path(tempfile.mkdtemp(prefix="kelda-checkpoint-"))
    try:
        engine._driver = SparkDriver(
            setup,
            folder,
            master=master,
            balance=balance,
            batch_events=batch_events,
            take=engine._taken,
            keep=keep,
        )
        engine._take_up()
    except BaseException:
        if engine._folder is not None:
            shutil.rmtree(engine._folder, ignore_errors=True)
        raise
    return engine


def unused_name(taken: Mapping[str, object]) -> str:
    """The name of a query that has none.

    >>> unused_name({"query2": None})
    'query3'
    """
    number = len(taken) + 1
    while f"query{number}" in taken:
        number += 1
    return f"query{number}"


def _written(value: object) -> str:
    """The value of a parameter as text: a number that may be the size of a window as such."""
    return str(value) if type(value) is int else str(term_of(value))


def _refuse_other(known: StreamSource, wanted: StreamSource) -> None:
    """A stream that is there can be asked for by its name alone, or as it was declared."""
    from kelda.shards.deployment import in_full

    plain = StreamSource(wanted.iri, "push:", lateness=wanted.lateness)
    if wanted not in (plain, known) and in_full(wanted) != known:
        raise UsageError(
            f"<{known.iri}> is declared already, in another way: drop() it first, or take another name"
        )
