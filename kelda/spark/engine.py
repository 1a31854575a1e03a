"""The engine on Spark as a Python object: the same words as the engine in this process, and more of them.

    engine = kelda.SparkEngine(master="local[2]", checkpoint="state", shards=2)
    engine.stream("http://ex/posts", "folder:incoming?watch=true", format="tsnt")
    clicks = engine.stream("http://ex/clicks")                 # pushed by this program
    engine.stream("http://ex/likes", dataframe=engine.spark.readStream..., format="tsnt")
    engine.register("SELECT ...", name="trends", sink="trends.ndjson")
    engine.start()

Any thread may call anything. Nothing here is held while Spark, a callback or a full stream is waited for.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from kelda.api import unused_name
from kelda.errors import QueryStopped, UsageError
from kelda.io.inbox import Inbox
from kelda.io.instants import Instants
from kelda.io.job import QuerySpec, StreamSource
from kelda.io.payload import Payload, quads_of
from kelda.io.sources import PushReader
from kelda.lang import parse
from kelda.lang.params import term_of
from kelda.rdf.event import Event
from kelda.rdf.times import Time, duration_ms, to_ms
from kelda.spark.pipeline import Batch, Figures, Pipeline
from kelda.words import count

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SparkEngine:
    """Streams, stored graphs and queries of one pipeline. Streams and graphs are declared before the first
    query; queries come and go while it runs. With `checkpoint` everything survives a restart."""

    def __init__(
        self,
        *,
        master: str = "local[*]",
        checkpoint: str | Path | None = None,
        shards: int = 1,
        balance: str = "rotation",
        batch_events: int = 100_000,
        t0: Time = 0,
    ) -> None:
        self.master, self._shards, self._balance, self._t0 = master, shards, balance, to_ms(t0)
        self._batch_events = batch_events
        self._keep = checkpoint is not None
        self.folder = Path(checkpoint or tempfile.mkdtemp(prefix="kelda-checkpoint-")).absolute()
        self._sources: dict[str, StreamSource] = {}
        self._frames: dict[str, DataFrame] = {}
        self._graphs: list[tuple[str | None, str]] = []
        self._made: Pipeline | None = None
        self._queries: dict[str, SparkQuery] = {}
        self._streams: dict[str, SparkStream] = {}
        self._running = False
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        state = "running" if self._running else "not running"
        return (
            f"<kelda.SparkEngine at {self.master}: {count(len(self._streams), 'stream')}, "
            f"{count(len(self._queries), 'query')}, {state}>"
        )

    def __enter__(self) -> SparkEngine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def spark(self) -> SparkSession:
        """The session, to make DataFrames with."""
        from kelda.spark.session import session

        return session(self.master)

    # ------------------------------------------------------------------ what is read

    def load(self, source: str | Path, graph: str | None = None) -> None:
        """Load an RDF file into a stored graph (None: the default graph)."""
        with self._lock:
            self._not_yet("graphs")
            self._graphs.append((graph, str(source)))

    def stream(
        self,
        iri: str,
        source: str | None = None,
        *,
        dataframe: DataFrame | None = None,
        format: str | None = None,
        time_predicate: str | None = None,
        mapping: str | None = None,
        lateness: int = 0,
        idle_ms: int | None = None,
        rate: int | None = None,
        max_record: int | None = None,
    ) -> SparkStream:
        """Declare a stream: from an address (a file, `tail:`, `folder:`, `tcp:`, `replay:`), from a
        streaming DataFrame with a column `value`, or (neither) pushed by this program."""
        late = duration_ms(lateness, "lateness")
        with self._lock:
            if iri in self._streams:
                return self._streams[iri]
            self._not_yet("streams")
            if source is not None and dataframe is not None:
                raise UsageError(f"<{iri}> comes from an address or from a DataFrame, not from both")
            path = source or ("dataframe:" if dataframe is not None else "push:")
            told = format or ("messages" if path == "push:" else None)
            declared = StreamSource(iri, path, told, time_predicate, mapping, late, idle_ms, rate, max_record)
            if dataframe is not None:
                from kelda.spark.frames import check_pace

                check_pace(declared)
                self._frames[iri] = dataframe
            self._sources[iri] = declared
            self._streams[iri] = SparkStream(self, iri)
            return self._streams[iri]

    def _not_yet(self, what: str) -> None:
        if self._made is not None:
            raise UsageError(f"{what} are declared before the first query is registered")

    # ------------------------------------------------------------------ queries

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline, from the first query on."""
        with self._lock:
            if self._made is None:
                made = Pipeline(
                    tuple(self._sources.values()),
                    self.folder,
                    graphs=self._graphs,
                    t0=self._t0,
                    shards=self._shards,
                    balance=self._balance,
                    batch_events=self._batch_events,
                    take=self._deliver,
                )
                for iri, frame in self._frames.items():
                    made.read_frame(iri, frame)
                for name in made.queries:  # of an earlier run
                    self._queries[name] = SparkQuery(self, name)
                self._made = made
            return self._made

    def register(
        self,
        text: str,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        *,
        dialect: str | None = None,
        base: str | None = None,
        output: str | None = None,
        sink: str | None = None,
    ) -> SparkQuery:
        """Register a query, from the next batch on. Its answers go to `sink` (see docs/sinks.md), or wait
        in the query that is returned."""
        name = name or parse(text, dialect=dialect, params=params, base=base).name
        written = {key: str(term_of(value)) for key, value in (params or {}).items()}
        with self._lock:
            pipeline = self.pipeline  # brings the queries of an earlier run, whose names are taken
            named = name or unused_name(self._queries)
            pipeline.register(QuerySpec(named, text, dialect, written, output, base), sink=sink)
            self._queries[named] = SparkQuery(self, named)
            return self._queries[named]

    @property
    def queries(self) -> list[SparkQuery]:
        """The registered queries, those of earlier runs included."""
        with self._lock:
            _ = self.pipeline
            return list(self._queries.values())

    # ------------------------------------------------------------------ running

    def start(self) -> None:
        """Begin to read, if that is not done already. Returns at once; answers come as batches are done."""
        with self._lock:
            pipeline, already, self._running = self.pipeline, self._running, True
        if already:
            return
        try:
            pipeline.start(self.master, to_the_end=False)
        except BaseException:
            self._running = False
            raise

    def wait(self, timeout: float | None = None) -> bool:
        """Until all streams have ended, or time is up (False)."""
        return self.pipeline.wait(timeout)

    def stop(self) -> None:
        """Stop; what was checkpointed stays if a folder was given."""
        with self._lock:
            was_running, self._running = self._running, False
        if was_running:
            self.pipeline.stop()
        elif self._made is not None:
            self._made.close()
        if not self._keep:
            shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def figures(self) -> Figures:
        """How the pipeline runs."""
        return self.pipeline.figures

    def _deliver(self, batch: Batch) -> None:
        # In Spark's thread, and without the lock: whoever has it may be waiting for this batch.
        for answer in batch.answers:
            query = self._queries.get(answer.query)
            if query is not None:
                query._take(answer)

    def _pushed(self, iri: str) -> PushReader:
        with self._lock:
            number, pipeline = list(self._sources).index(iri), self.pipeline
            if number not in pipeline.pushed:
                pipeline.open_pushed()
            if number not in pipeline.pushed:
                raise UsageError(
                    f"<{iri}> is read from {self._sources[iri].path}: nothing can be pushed on it"
                )
            return pipeline.pushed[number]


class SparkStream:
    """A stream of the pipeline; elements can be pushed on it if it has no other source."""

    def __init__(self, engine: SparkEngine, iri: str) -> None:
        self._engine, self.iri = engine, iri
        self._instants = Instants(iri)

    def __repr__(self) -> str:
        return f"<kelda.SparkStream {self.iri}>"

    def push(self, data: Payload | Event | Iterable[Event], time: Time | None = None) -> int:
        """Push an event, or several; on disk when this returns. Waits while too much waits to be read.

        `time` is event time: whole milliseconds since 1970, or a datetime."""
        if isinstance(data, Event):
            events = [data]
        elif isinstance(data, list | tuple) and data and isinstance(data[0], Event):
            events = list(data)
        elif time is None:
            raise UsageError(f"an event on <{self.iri}> has no time: push(data, time=...)")
        else:
            events = [Event(None, quads_of(data))]
        at = None if time is None else self._instants.of(time)
        return self._engine._pushed(self.iri).push([self._with_time(event, at) for event in events])

    def _with_time(self, event: Event, at: int | None) -> Event:
        """The event at the time that was said with the push, or else at its own, which is checked."""
        if at is not None:
            return Event(at, event.quads)
        return event if event.time is None else Event(self._instants.of(event.time), event.quads)

    def push_text(self, text: str | bytes) -> int:
        """Push records as text in the stream's format."""
        return self._engine._pushed(self.iri).push(text)

    def heartbeat(self, time: Time) -> None:
        """Promise that nothing at or before `time` will come any more."""
        self._engine._pushed(self.iri).heartbeat(self._instants.of(time))

    def end(self) -> None:
        """Nothing will be pushed any more."""
        self._engine._pushed(self.iri).end()


class SparkQuery(Inbox):
    """A registered query. Callbacks are called in Spark's thread, before the batch is committed. Of a query
    whose callback raises, no more answers are handed on."""

    def __init__(self, engine: SparkEngine, name: str) -> None:
        super().__init__()
        self._engine, self.name = engine, name

    def __repr__(self) -> str:
        return f"<kelda.SparkQuery {self.name!r}: {count(self.unread, 'answer')} unread>"

    @property
    def error(self) -> QueryStopped | None:
        """Why the query was stopped, if it has failed; what it had answered before can still be read."""
        if self._error is None:
            why = self._engine.pipeline.stopped.get(self.name)
            self._error = None if why is None else why.raised(self.name)
        return self._error

    def explain(self) -> str:
        """How and where the query runs."""
        return self._engine.pipeline.explain(self.name)

    def pause(self) -> None:
        """Report nothing until `resume()`; the windows stay up to date."""
        self._engine.pipeline.pause(self.name)

    def resume(self) -> None:
        """Report again."""
        self._engine.pipeline.pause(self.name, False)

    def move(self, shard: int) -> None:
        """Let another shard run it, if it runs whole on one."""
        self._engine.pipeline.move(self.name, shard)

    def stop(self) -> None:
        """Drop the query, from the next batch on."""
        with self._engine._lock:
            self._engine.pipeline.drop(self.name)
            self._engine._queries.pop(self.name, None)
