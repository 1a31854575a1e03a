"""The pipeline: streams, shards and sinks as one Structured Streaming query, whatever the queries in it.

    streams ──► source ──────────► shards ─────────────► sink ──► sinks of queries, whoever iterates
                reads, routes:     hosts take parcels,   merges, hands out,
                parcels            state keeps segments  commits

A batch is committed when its answers have been taken, and not before. Started again with the same
checkpoint folder, a pipeline goes on with the queries of its catalog behind the last batch committed; the
batch that was being taken comes again, and sinks know batches by their numbers and by what is in them. A
checkpoint has one pipeline at a time.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kelda.engine.answer import Answer
from kelda.engine.clock import FOREVER
from kelda.engine.stopped import Stopped
from kelda.errors import InputError, KeldaError, UsageError
from kelda.io.durable import replace_file
from kelda.io.file_names import file_name
from kelda.io.formats import shape_of
from kelda.io.hold import Hold
from kelda.io.job import QuerySpec, StreamSource, parse_spec
from kelda.io.kept import reading, writing
from kelda.io.sinks import NullSink, StreamSink, open_sink
from kelda.io.sinks.sink import Sink
from kelda.io.sources import PushReader, Reader, check_source, open_reader, push_reader
from kelda.io.sources.address import absolute, read_address
from kelda.io.sources.silence import Silence
from kelda.lang.algebra import Output
from kelda.rdf import wire
from kelda.rdf.event import Reject
from kelda.rdf.framing import guess_format
from kelda.shards.balance import balancer
from kelda.shards.catalog import (
    CatalogFolder,
    Drop,
    Op,
    Pause,
    Register,
    RegisterMany,
    Switch,
    Warm,
    as_json,
    from_json,
)
from kelda.shards.merge import Merged, merge
from kelda.shards.planner import Planner, Setup
from kelda.shards.routing_file import RoutingFile
from kelda.shards.shard import News, Outcome
from kelda.spark.errors import explain
from kelda.spark.host import TRIES, AtHost, Run, ToldGone, outcome_of
from kelda.spark.log import SparkLog
from kelda.spark.private import tighten
from kelda.spark.remote import Door
from kelda.spark.session import session
from kelda.spark.width import Width

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Batch:
    """What one micro-batch brought. `answers` are those of all queries without a sink of their own; they
    stay columns of ids until somebody looks."""

    id: int
    merged: Merged
    news: list[News]  # of each shard
    sunk: frozenset[str] = frozenset()  # queries with sinks
    content: str | None = None  # what was read for it, and with which queries, as a digest

    @cached_property
    def answers(self) -> list[Answer]:
        return self.merged.answers(without=self.sunk)

    @property
    def rejects(self) -> list[Reject]:
        return [reject for news in self.news for reject in news.rejects]


@dataclass(slots=True)
class Figures:
    """How the pipeline runs: figures of the last batch, and sums."""

    batch: int = -1
    batches: int = 0
    events: int = 0
    answers: int = 0
    late: int = 0
    rejected: int = 0
    rate: float = 0.0  # events per second, smoothed
    batch_seconds: float = 0.0  # from one batch to the next
    shard_seconds: list[float] = field(default_factory=list)
    state_bytes: int = 0
    segments: int = 0
    rebuilt: int = 0  # times that a shard stood up from its segments
    stream_time: int | None = None  # ms, up to which all is answered
    lag_seconds: float | None = None  # wall clock behind stream time, where stream time is of today
    stopped: dict[str, str] = field(default_factory=dict)  # queries that have failed, and why

    def json(self) -> str:
        """For machines."""
        return json.dumps({name: getattr(self, name) for name in self.__slots__})


@dataclass
class _Waiting:
    """Registrations that hold when the clock has come to `until`, the latest time told by batches up to
    `last` (None: those are not done yet)."""

    ops: tuple[Op, ...]
    last: int = -1
    until: int | None = None

    @property
    def names(self) -> list[str]:
        found: list[str] = []
        for op in self.ops:
            found += (
                [op.name] if isinstance(op, Register) else op.names if isinstance(op, RegisterMany) else []
            )
        return found


@dataclass
class _Move:
    """A query that changes over to `shard` when the clock is `span` behind `since`, the latest time told by
    batches up to `last` (None: those are not done yet)."""

    shard: int
    span: int
    last: int = -1
    since: int | None = None


class Pipeline:
    """One deployment. Queries come and go while it runs; `take` gets each batch, in Spark's thread."""

    def __init__(
        self,
        streams: Sequence[StreamSource],
        folder: Path,
        *,
        graphs: Sequence[tuple[str | None, str]] = (),
        t0: int = 0,
        shards: int = 1,
        balance: str = "rotation",
        batch_events: int = 10_000,
        take: Callable[[Batch], None] = lambda batch: None,
        remembers: bool = False,
    ) -> None:
        """`remembers`: whoever takes batches keeps on disk which he has taken, as sinks do."""
        self.folder = folder.absolute()
        self._taker_remembers = remembers
        self.batch_events, self._take = batch_events, take
        for stream in streams:
            check_source(stream)
        setup = Setup(
            tuple(map(_absolute, streams)), tuple((g, str(Path(p).absolute())) for g, p in graphs), t0, shards
        )
        for _, path in setup.graphs:
            if not Path(path).is_file():
                raise InputError(f"cannot read {path}: there is no such file")
        self.balancer = balancer(balance, shards)
        self.planner = Planner(setup, self.balancer)
        self.run = Run(uuid.uuid4().hex, setup, str(self.folder))
        self.catalog = CatalogFolder(self.run.catalog)
        self._routing = RoutingFile(self.folder / "routing", self.run.id)
        self._width = Width(self.folder)
        self.figures = Figures()
        self.stopped: dict[str, Stopped] = {}  # queries that have failed
        self._sinks: dict[str, Sink] = {}
        self._feeds: dict[str, StreamSink] = {}
        self._stood = 0  # version of the catalog that the planner stands by
        self._lock = threading.RLock()
        self._query: Any = None
        self._last = 0.0
        self._moving: dict[str, _Move] = {}
        self._waiting: list[_Waiting] = []  # registrations that do not hold yet
        self._horizon: int | None = None  # the latest time that any stream has told
        self._now = 0  # the time up to which all is answered
        self._done = -1  # the last batch that was
        self._ended = threading.Event()
        self._near = False  # all runs on this machine
        self._ahead = False  # the next batch is read while one runs
        self._frames: dict[int, DataFrame] = {}
        self.pushed: dict[int, PushReader] = {}
        self._read_here: dict[int, Reader] = {}  # the same, slowed down and watched as their streams say
        self._silences: dict[int, Silence] = {}  # of streams that are DataFrames
        self._door: Door | None = None
        self.log = SparkLog(self.folder / "spark")
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="kelda-sync")
        self._hold, self.id = _open_folder(self.folder, setup)
        try:
            self._take_up()
        except BaseException:
            self.close()
            raise

    def _take_up(self) -> None:
        """Go on where an earlier run was."""
        self.log.mend()
        begun = self.log.begun()
        told = self.log.find(begun[-1], "catalog") if begun else None
        self.catalog.refresh().check(int(told["version"]) if told else 0)
        ops = self.catalog.between(0, self.catalog.version)
        self._route(ops)
        for op in ops:  # moves that a restart found half done
            if isinstance(op, Warm):
                self._moving[op.name] = _Move(op.shard, self.planner.span(op.name) or 0)
            elif isinstance(op, Switch | Drop):
                self._moving.pop(op.name, None)
        self._recall()

    # -------------------------------------------------------------------- queries

    def register(self, spec: QuerySpec, *, sink: str | None = None) -> None:
        """Add a query, from the next batch on. Its answers go to `sink`, or to whoever takes batches."""
        with self._lock, self.planner.trying():
            if spec.name in self.queries:
                raise UsageError(
                    f"a query named {spec.name!r} is registered already: drop it, or choose another"
                )
            op = self.planner.plan(spec)
            if sink is not None:
                _open(sink, spec, self.folder, self.id).close()  # a mistake in it shows here
            self._enter([replace(op, sink=sink)])

    def register_all(self, specs: Sequence[QuerySpec]) -> None:
        """Several at once, as one entry of the catalog."""
        with self._lock, self.planner.trying():
            self._enter([self.planner.plan(spec) for spec in specs])

    def register_many(self, spec: QuerySpec, names: Sequence[str], values: dict[str, Sequence[str]]) -> None:
        """Queries that differ in the values of parameters: `values[p][i]` for the i-th name."""
        with self._lock, self.planner.trying():
            self._enter([self.planner.plan_many(spec, names, values)])

    def drop(self, name: str) -> None:
        """Forget a query, from the next batch on."""
        with self._lock:
            self._enter([Drop(self._known(name))])

    def pause(self, name: str, paused: bool = True) -> None:
        """A paused query keeps its windows up to date but says nothing."""
        with self._lock:
            self._enter([Pause(self._known(name), paused)])

    def move(self, name: str, shard: int) -> None:
        """Move a whole query to another shard: that one runs it too, until its windows are as full."""
        with self._lock:
            self._known(name)
            span = self.planner.span(name)
            if name not in self.planner.placed or span is None:
                raise UsageError(f"{name!r} cannot move: only whole queries with time windows can")
            if shard != self.planner.placed[name] and name not in self._moving:
                self._enter([Warm(name, shard)])
                self._moving[name] = _Move(shard, span, self._last_read())

    @property
    def queries(self) -> list[str]:
        """Names of the registered queries."""
        return self.planner.queries

    def explain(self, name: str) -> str:
        """How and where a query runs."""
        with self._lock:
            how = self.planner.explain(self._known(name))
        return f"{how}\n\n{self.stopped[name].say()}" if name in self.stopped else how

    def _known(self, name: str) -> str:
        if name not in self.queries:
            raise UsageError(
                f"no query named {name!r} is registered; there are: {', '.join(self.queries) or 'none'}"
            )
        return name

    def _enter(self, ops: list[Op]) -> None:
        """Into the catalog; first the routing, so that no element of theirs is held back.

        A new query is to see all elements of the instants after the clock, also those that wait there.
        What was read before the routing knew of it was not sent to its shards: so its entry waits until
        all of that has been answered."""
        with self._lock:
            gone = {op.name for op in ops if isinstance(op, Drop)}
            unborn = [w for w in self._waiting if any(name in gone for name in w.names)]
            self._route(ops)
            if unborn:  # dropped before it held
                self._waiting = [w for w in self._waiting if w not in unborn]
            elif self._must_wait() and any(isinstance(op, Register | RegisterMany) for op in ops):
                last = self._last_read()
                until = self._horizon if last <= self._done else None
                self._waiting.append(_Waiting(tuple(ops), last, until))
            else:
                self.catalog.add(ops)
            self._remember()

    def _must_wait(self) -> bool:
        """Whether elements may have been read that are not answered yet."""
        return self._last_read() > self._done or (self._horizon is not None and self._now < self._horizon)

    def _last_read(self) -> int:
        """The last batch of which anything may have been read. The offsets of a batch are on disk before any
        of it is read; if that is done ahead, those of the batch before."""
        begun = max(self.log.begun(), default=-1)
        return begun + 1 if self._ahead and begun >= 0 and not self._ended.is_set() else begun

    def _remember(self) -> None:
        """Registrations survive a restart while they wait, too."""
        lines = [json.dumps([as_json(op) for op in waiting.ops]) for waiting in self._waiting]
        lines.insert(0, json.dumps(len(lines)))
        replace_file(self.folder / "waiting", "".join(f"{line}\n" for line in lines).encode())

    def _recall(self) -> None:
        file = self.folder / "waiting"
        if not self.catalog.version and not file.exists():
            self._remember()  # so that it is known to be lost if it is not there
        with reading(file):
            count, *lines = file.read_text("utf-8").splitlines() or ["none"]
            if json.loads(count) != len(lines):
                raise ValueError("it is cut off")
            kept = [[from_json(data) for data in json.loads(line)] for line in lines]
        for ops in kept:
            if not any(name in self.queries for name in _Waiting(tuple(ops)).names):  # else it holds already
                self._route(ops)
                self._waiting.append(_Waiting(tuple(ops)))

    def _route(self, ops: Sequence[Op]) -> None:
        self.planner.route(ops)
        with writing(self._routing.path):
            self._routing.write(self.planner.routing)

    # -------------------------------------------------------------------- running

    def read_frame(self, iri: str, frame: DataFrame) -> None:
        """Read a stream from a streaming DataFrame instead of its path."""
        from kelda.spark.frames import check_frame

        number = next(i for i, s in enumerate(self.run.setup.streams) if s.iri == iri)
        check_frame(frame, self.run.setup.streams[number])
        self._frames[number] = frame

    def start(self, master: str = "local[*]", *, to_the_end: bool | None = None) -> None:
        """Start the streaming query. `to_the_end`: take what is there and stop; else it runs until all
        streams have ended, or until `stop`. None: as the streams are."""
        spark = session(master)
        # These import PySpark, which takes a second: not before the job is known to be good.
        from kelda.spark.frames import parcels_of
        from kelda.spark.shard import shards
        from kelda.spark.source import Reading, source_for

        tasks = spark.sparkContext.defaultParallelism
        self._width.tell(tasks)
        routing = str(self._routing.path)
        self.open_pushed()
        frames = frozenset(self._frames)
        near = spark.sparkContext.master.startswith("local[") or spark.sparkContext.master == "local"
        self._near = near
        together = near and not frames and self._in_one_stage()
        self._ahead = together and all(map(_is_plain_file, self.run.setup.streams))
        pushed = frozenset(self.pushed) | frozenset(self._silences)
        reading = Reading(
            self.run, self.batch_events, tasks, routing, near, pushed, frames, together, self._ahead
        )
        if to_the_end is None:
            to_the_end = not frames and all(map(_ends_by_itself, self.run.setup.streams))
        # A task for each shard. More would be empty tasks, each with its commit to the state store.
        spark.conf.set("spark.sql.shuffle.partitions", "1" if together else str(self.run.setup.shards))
        with writing(self.run.flag):
            self.run.flag.touch()
        try:
            spark.dataSource.register(source_for(reading))
            parcels = spark.readStream.format("kelda").load()
            for number, frame in self._frames.items():
                parcels = parcels.union(parcels_of(frame, number, self.run, routing))
            if together:
                parcels = parcels.coalesce(1)  # and so there is nothing to exchange
            writer = (
                shards(parcels, self.run, near)
                .writeStream.foreachBatch(self._batch)
                .outputMode("append")
                .option("checkpointLocation", (self.folder / "spark").as_uri())
            )
            when: dict[str, Any] = {"availableNow": True} if to_the_end else {"processingTime": "0 seconds"}
            self._last = time.monotonic()
            self._hear(self._silences)  # Spark's own start is no silence
            self._query = writer.trigger(**when).start()
        except Exception as problem:  # Spark raises many kinds; all become one of ours
            self.run.flag.unlink(missing_ok=True)
            raise self._explained(problem) from problem

    def _in_one_stage(self) -> bool:
        """Whether one task may read and hand over to all shards: it reads in threads, which only the fast
        lane does side by side. A checkpoint keeps the number of partitions that it was begun with."""
        if begun := self.log.begun():
            return self.log.conf(begun[-1]).get("spark.sql.shuffle.partitions") == "1"
        return all(map(_is_fast, self.run.setup.streams))

    def open_pushed(self) -> None:
        """What the application pushes is read in this process, and here it is known who is silent."""
        with self._lock:  # one reader a stream, whoever pushes first
            for number, source in enumerate(self.run.setup.streams):
                if number in self._frames and number not in self._silences and source.idle_ms is not None:
                    self._silences[number] = Silence(number, source.idle_ms)
                if number in self.pushed or number in self._frames:
                    continue
                if read_address(source.path).scheme == "push":
                    reader = open_reader(source.path, source, number, spool=self.folder / "spool")
                    self._read_here[number], self.pushed[number] = reader, push_reader(reader)
            readers: dict[int, Reader] = {**self._read_here, **self._silences}
            if readers and self._door is None:
                from kelda.spark.source import DOOR

                self._door = Door(self.folder / DOOR, readers)

    def wait(self, timeout: float | None = None) -> bool:
        """Until the streams have ended; raises what went wrong. False if time ran out before."""
        until = None if timeout is None else time.monotonic() + timeout
        try:
            while not self._query.awaitTermination(0.1):
                if self._ended.is_set():
                    self._query.stop()
                    return True
                if until is not None and time.monotonic() > until:
                    return False
            return True
        except Exception as problem:
            raise self._explained(problem) from problem

    def _explained(self, problem: Exception) -> KeldaError:
        """What went wrong, and if that is a file of the checkpoint, which."""
        error = explain(problem)
        known = type(error) is not KeldaError
        return error if known else self.log.blamed(str(problem)) or error

    def stop(self) -> None:
        """Stop after the batch that is being taken, or without it."""
        try:
            if self._query is not None:
                self._query.stop()
        except Exception as problem:
            raise explain(problem) from problem
        finally:
            self.close()

    def close(self) -> None:
        """Let go of the checkpoint and all files. Of a pipeline that runs, `stop` does so."""
        self.run.flag.unlink(missing_ok=True)
        for sink in (*self._sinks.values(), *self._feeds.values()):
            sink.close()
        self._sinks.clear()
        self._feeds.clear()
        if self._door is not None:
            self._door.close()
            self._door = None
        for reader in self._read_here.values():
            reader.close()
        self._threads.shutdown()
        self._hold.release()

    def _batch(self, results: DataFrame, batch: int) -> None:
        """The sink of the streaming query."""
        if not self._near:  # there executors may have joined or gone
            self._width.tell(results.sparkSession.sparkContext.defaultParallelism)
        # While the tasks run. What Spark writes once, at its start, is made to last in any case.
        early = self._remembered() or self.figures.batches < 2
        syncing = self._threads.submit(self._sync) if early else None
        outcomes = self._outcomes(results)
        content = self.log.content(batch)
        with self._lock:
            version = max((outcome.version for outcome in outcomes), default=self._stood)
            ops = self.catalog.refresh().between(self._stood, version)
            self.planner.stand(ops)
            self._stood = max(self._stood, version)
            for sink in self._open_sinks(ops):
                self.log.agree(sink.held, batch)
            merged = merge(outcomes, self.planner.standing)
        news = [outcome.news for outcome in outcomes]
        self._note_stopped(news)
        if self._remembered() and (len(merged) or self._feeds):
            if syncing is not None:
                syncing.result()
            self._sync()  # what the tasks have kept, too
        for name, sink in self._sinks.items():
            if mine := merged.of(name):
                sink.write(batch, mine, content=content)
        if self._feeds and outcomes:
            self._feed(batch, merged, news, content)
        self._take(Batch(batch, merged, news, frozenset(self._sinks), content))
        read = news[0].read if news else {}
        self._hear(n for n in self._silences if any(read.get(self.run.setup.streams[n].iri, ())))
        with self._lock:
            self._settle(batch, news)
            self._done = batch
            self._count(batch, outcomes, len(merged))
        if outcomes and all(outcome.news.ended for outcome in outcomes):
            self._ended.set()

    def _hear(self, streams: Iterable[int]) -> None:
        """These DataFrames are not silent."""
        for number in streams:
            self._silences[number].heard()

    def _note_stopped(self, news: list[News]) -> None:
        """Shards tell of all queries that have failed there, with each batch."""
        told = {name: Stopped(*why) for n in news for name, why in n.stopped.items()}
        for name in told.keys() - self.stopped.keys():
            told[name].warn([name])
        if news:
            self.stopped = told
            self.figures.stopped = {name: why.say() for name, why in told.items()}

    def _outcomes(self, results: DataFrame) -> list[Outcome]:
        """What the shards say, in their order. If a host dies before it was heard, Spark runs the batch
        again, on the state before it."""
        for attempt in range(TRIES):
            # By Arrow: cheaper than collect(), which makes a Row of each.
            rows = results.toArrow().column("told").to_pylist()
            try:
                told = [self._fetched(row) for row in rows] if self._near else rows
            except ToldGone:
                if attempt == TRIES - 1:
                    raise
                continue
            return [outcome for _, outcome in sorted(map(outcome_of, told), key=lambda reply: reply[0])]
        raise AssertionError("not reached")

    def _fetched(self, row: bytes) -> bytes:
        at = wire.decode(row, "where answers are to be had")
        assert isinstance(at, AtHost)
        return at.fetch(self.run)

    def _remembered(self) -> bool:
        """Whether somebody knows of batches who would be ahead of a log that lost its end."""
        lasting = [sink for sink in self._sinks.values() if not isinstance(sink, NullSink)]
        return self._taker_remembers or bool(lasting or self._feeds)

    def _sync(self) -> None:
        """Have Spark's log on the disk: what a sink has, the log must know after a power failure."""
        self.log.sync(state=self._near)

    def _open_sinks(self, ops: Sequence[Op]) -> list[Sink]:
        """The sinks and feeds that operations ask for."""
        opened: list[Sink] = []
        for op in ops:
            if isinstance(op, Register) and op.sink is not None:
                self._sinks[op.name] = _open(op.sink, op.spec, self.folder, self.id)
                opened.append(self._sinks[op.name])
            elif isinstance(op, Drop) and op.name in self._sinks:
                self._sinks.pop(op.name).close()
            if isinstance(op, Register):
                for stream in self.run.setup.fed_by(op.name):
                    number = self.run.setup.streams.index(stream)
                    feed = StreamSink(self.run.fed(number), query=op.name, run=self.id)
                    self._feeds[op.name] = feed
                    opened.append(feed)
        return opened

    def _feed(self, batch: int, merged: Merged, news: list[News], content: str) -> None:
        """Answers that are elements of streams, with the time up to which their queries have reported."""
        for name, sink in self._feeds.items():
            level = self.planner.levels[name]
            reported = min(n.reported[level] for n in news if level < len(n.reported))
            if all(n.level_ended(level) for n in news):
                reported = FOREVER
            sink.write(batch, merged.of(name), reported, content=content)

    def _count(self, batch: int, outcomes: list[Outcome], answers: int) -> None:
        now, figures = time.monotonic(), self.figures
        news = [outcome.news for outcome in outcomes]
        events = sum(count for count, _ in news[0].read.values()) if news else 0
        figures.batch, figures.batches = batch, figures.batches + 1
        figures.events += events
        figures.answers += answers
        figures.batch_seconds, self._last = now - self._last, now
        rate = events / max(1e-6, figures.batch_seconds)
        figures.rate = rate if figures.batches < 3 else figures.rate + 0.3 * (rate - figures.rate)
        figures.late += sum(news[0].late.values()) if news else 0
        figures.rejected += sum(len(n.rejects) for n in news)
        figures.shard_seconds = [n.seconds for n in news]
        figures.state_bytes = sum(n.held for n in news)
        figures.segments = sum(n.segments for n in news)
        figures.rebuilt += sum(n.rebuilt for n in news)
        if news:
            figures.stream_time = min(n.now for n in news)
            lag = time.time() - figures.stream_time / 1000
            figures.lag_seconds = lag if abs(lag) < 86_400 else None
        for shard, n in enumerate(news):
            self.balancer.load.told(shard, n.seconds, n.held)

    def _settle(self, batch: int, news: list[News]) -> None:
        """What waited for the clock: registrations, and queries whose new shard has seen as much as their
        windows reach back."""
        if not news:
            return
        self._horizon = max(n.horizon for n in news)
        self._now = min(n.now for n in news)
        for waiting in list(self._waiting):
            if waiting.until is None and batch >= waiting.last:
                waiting.until = self._horizon  # what was read up to now may have been read without it
            if waiting.until is not None and self._now >= waiting.until:
                self.catalog.add(waiting.ops)
                self._waiting.remove(waiting)
                self._remember()
        for name, move in list(self._moving.items()):
            if move.since is None and batch >= move.last:
                move.since = self._horizon
            if move.since is not None and self._now > move.since + move.span:
                del self._moving[name]
                if name in self.queries:
                    self._enter([Switch(name, move.shard)])


def _open(sink: str, spec: QuerySpec, folder: Path, run: str) -> Sink:
    shape = shape_of(parse_spec(spec), None if spec.output is None else Output(spec.output))
    ledger = folder / "sinks" / file_name(spec.name)
    return open_sink(sink, query=spec.name, shape=shape, run=run, ledger=ledger)


def _is_fast(stream: StreamSource) -> bool:
    """Whether a stream is read without the help of Python objects."""
    format = stream.format
    if format is None and read_address(stream.path).scheme in ("file", "tail", "replay"):
        format = guess_format(read_address(stream.path).place)
    return format == "tsnt" and stream.time is None


def _ends_by_itself(stream: StreamSource) -> bool:
    """Whether all of a stream is there already, as fast as it can be read."""
    address = read_address(stream.path)
    watched = address.scheme == "folder" and address.options.get("watch", "false").lower() in (
        "true",
        "yes",
        "1",
    )
    return address.scheme in ("file", "folder") and not watched and stream.rate is None


def _is_plain_file(stream: StreamSource) -> bool:
    """Whether what comes next on a stream is known at any time."""
    return read_address(stream.path).scheme == "file" and stream.rate is None


def _absolute(stream: StreamSource) -> StreamSource:
    """Paths in full: the processes that read them stand elsewhere."""
    mapping = None if stream.mapping is None else str(Path(stream.mapping).absolute())
    return replace(stream, path=absolute(stream.path), mapping=mapping)


def _open_folder(folder: Path, setup: Setup) -> tuple[Hold, str]:
    """The checkpoint folder is new, or that of the same streams, graphs and shards; it is ours from now on.
    Returns its id, too."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    file = folder / "kelda.json"
    _refuse_others(file)
    hold = Hold(folder)
    try:
        _refuse_others(file)
        mine = hashlib.sha256(repr(setup).encode()).hexdigest()
        if not file.exists():
            replace_file(file, json.dumps({"setup": mine, "id": uuid.uuid4().hex}).encode())
        with reading(file):
            about = json.loads(file.read_text("utf-8"))
            made_with, id = str(about["setup"]), str(about["id"])
        if made_with != mine:
            raise UsageError(
                f"the checkpoint {folder} belongs to another job (other streams, graphs or shards); "
                "use another folder, or delete this one to start from the beginning"
            )
        tighten(folder)
        for flag in folder.glob("running-*"):  # of a run that was killed: those that live hold the folder
            flag.unlink(missing_ok=True)
    except BaseException:
        hold.release()
        raise
    return hold, id


def _refuse_others(file: Path) -> None:
    """Refuse a folder that is neither empty nor a checkpoint. What begins with a dot may be of one that was
    killed when it began."""
    with reading(file.parent):
        if not file.exists() and any(not path.name.startswith(".") for path in file.parent.iterdir()):
            raise UsageError(
                f"{file.parent} is not empty and not a checkpoint of Kelda (it has no {file.name}); "
                "use another folder"
            )
