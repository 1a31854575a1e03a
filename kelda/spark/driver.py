"""The driver on Spark: streams, shards and sinks as one Structured Streaming query, however many queries.

    streams ──► source ──────────► shards ─────────────► sink ──► sinks of queries, whoever is told
                reads, routes:     hosts take parcels,   merges, hands out,
                parcels            state keeps segments  commits

What makes a batch last is Spark's log (`kelda.spark.log`): its offsets before the batch, its state and its
commit behind it.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kelda.durable import replace_file
from kelda.engine.oneshot import Result
from kelda.engine.stopped import Stopped
from kelda.errors import KeldaError, UsageError
from kelda.io.elements import Events
from kelda.io.job import StreamSource
from kelda.io.sources import PushReader, Reader, open_reader, push_reader
from kelda.io.sources.address import read_address
from kelda.io.sources.arriving import Arriving
from kelda.io.sources.silence import Silence
from kelda.io.sources.together import key_of
from kelda.kept import reading, writing
from kelda.lang import algebra as A
from kelda.rdf import wire
from kelda.rdf.framing import guess_format
from kelda.shards.checkpoint import Checkpoint
from kelda.shards.declared import Declared, is_pushed
from kelda.shards.deployment import Batch, Deployment
from kelda.shards.routing_file import RoutingFile
from kelda.shards.setup import Setup
from kelda.shards.shard import News, Outcome
from kelda.shards.snapshots import DEFAULT_KEEP, Keep
from kelda.shards.storing import FOLDER, Storing
from kelda.spark.client import TRIES, AtHost
from kelda.spark.errors import explain
from kelda.spark.host_wire import ToldGone, outcome_of
from kelda.spark.log import SparkLog
from kelda.spark.remote import Door
from kelda.spark.run import Run
from kelda.spark.session import session
from kelda.spark.width import Width
from kelda.store.moments import NEVER, seen_by

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FRAME = "dataframe:"
CLOCKS = "clocks"  # in the checkpoint folder: how far a run came that has ended
SETTLED = 60.0  # seconds that an update is waited for
POLL = 0.1  # seconds between two looks at what Spark does


class SparkDriver:
    """Runs a deployment on Spark. Queries, streams and graphs come and go while it runs."""

    def __init__(
        self,
        setup: Setup,
        folder: Path,
        *,
        master: str = "local[*]",
        balance: str = "rotation",
        batch_events: int = 10_000,
        take: Callable[[Batch], None] = lambda batch: None,
        keep: Keep = DEFAULT_KEEP,
    ) -> None:
        self.master, self.folder, self.batch_events = master, folder.absolute(), batch_events
        checkpoint = Checkpoint(folder, setup, "spark")
        try:
            for flag in self.folder.glob("running-*"):  # of a run that was killed: who lives has the folder
                flag.unlink(missing_ok=True)
            self.run = Run(uuid.uuid4().hex, setup, str(self.folder))
            self.log = SparkLog(self.folder / "spark")
            self._routing = RoutingFile(self.folder / "routing", self.run.id)
            self._width = Width(self.folder)
            self._query: Any = None
            self._ended = threading.Event()
            self._near = self._ahead = self._closed = False
            self._frames: dict[int, DataFrame] = {}
            self.pushed: dict[int, PushReader] = {}
            self._here: dict[int, Reader] = {}  # readers in this process: pushed streams, silences of frames
            self._silences: dict[int, Silence] = {}
            self._door: Door | None = None
            self._threads = ThreadPoolExecutor(1, thread_name_prefix="kelda-sync")
            self._done = threading.Condition()
            self._keeping = threading.Lock()  # while stored graphs are changed, or an image of them is made
            self._arriving = Arriving()
            self._events: dict[str, int] = {}  # of each stream, that this run has read
            self._pieces: dict[str, int] = {}  # of each stream: how many have been answered
            self.log.mend()
            committed = self.run.last_commit()
            self._storing = Storing(self.folder)
            store = self._storing.take_up(committed)
            self.deployment = Deployment(
                setup,
                checkpoint,
                self.folder,
                balance=balance,
                take=take,
                last_read=self._last_read,
                route=self._write_routing,
                keep=keep,
                store=store,
            )
            self._storing.remember(self.deployment.snapshots)
            self._take_up()
        except BaseException:
            checkpoint.close()
            raise

    def _take_up(self) -> None:
        """Go on where an earlier run was."""
        begun = self.log.begun()
        told = self.log.find(begun[-1], "catalog") if begun else None
        catalog, version = self.deployment.catalog, int(told["version"]) if told else 0
        catalog.refresh().check(version)  # type: ignore[attr-defined]
        self.deployment.take_up()
        self._recall_clocks(max(begun, default=-1))
        # The batch that was being taken is read again, with the streams that there were then.
        then = Declared().take(catalog.between(0, version)).streams
        for number, source in {**then, **self.deployment.streams}.items():
            self._open_here(number, source)
        if (last := self.run.last_commit()) >= 0:
            self._note_read(last)
            at = [self.log.find(last, key_of(n, source)) for n, source in self.deployment.streams.items()]
            all_told = last == begun[-1] and version == catalog.version
            if all_told and at and all(offset and offset["ended"] for offset in at):
                self._ended.set()  # there will be no batch to tell it

    def _recall_clocks(self, last: int) -> None:
        """How far an earlier run came, if it could say so when it ended."""
        file = self.folder / CLOCKS
        if not file.exists():
            return
        with reading(file, "delete it: queries that are registered next may then begin a batch later"):
            batch, now, horizon, told = json.loads(file.read_text("utf-8"))
            news = News(now=int(now), horizon=int(horizon), told=dict(told))
        if batch == last:
            self.deployment.registrations.settle(batch, [news])

    def _keep_clocks(self) -> None:
        batch, news = self.deployment.registrations.clocks
        if batch >= 0:
            kept = [batch, news.now, news.horizon, news.told]
            replace_file(self.folder / CLOCKS, json.dumps(kept).encode())

    def _write_routing(self) -> None:
        with writing(self._routing.path):
            self._routing.write(self.deployment.planner.routing)

    def _last_read(self) -> int:
        """The last batch of which anything may have been read. The offsets of a batch are on disk before any
        of it is read; if that is done ahead, those of the batch before."""
        begun = max(self.log.begun(), default=-1)
        return begun + 1 if self._ahead and begun >= 0 and not self._ended.is_set() else begun

    # -------------------------------------------------------------------- streams

    def add_stream(self, source: StreamSource, frame: DataFrame | None = None) -> None:
        """Declare a stream; one that is a DataFrame before Spark is started."""
        if frame is not None:
            from kelda.spark.frames import check_frame

            check_frame(frame, source)
            self._check_before_start(source.iri)
            if self.log.begun():
                raise UsageError(
                    f"<{source.iri}> is a DataFrame, which is a part of Spark's own query, and this "
                    "checkpoint was begun without it: use another folder, or read the source by an address"
                )
        with self.deployment.lock:
            self.deployment.add_stream(source, before=self._open_here)
            self._ended.clear()
        if frame is not None:
            self._frames[self.deployment.planner.declared.number(source.iri)] = frame

    def read_frame(self, iri: str, frame: DataFrame) -> None:
        """The DataFrame of a stream that an earlier run has declared."""
        from kelda.spark.frames import check_frame

        number = self.deployment.planner.declared.number(iri)
        check_frame(frame, self.deployment.streams[number])
        self._check_before_start(iri)
        self._frames[number] = frame

    def _check_before_start(self, iri: str) -> None:
        if self._query is not None:
            raise UsageError(
                f"<{iri}> is a DataFrame, which is a part of Spark's own query: declare it before start(), "
                "or read the same source by an address, which can be declared at any time"
            )

    def drop_stream(self, iri: str) -> None:
        """Forget a stream that no query reads."""
        number = self.deployment.planner.declared.number(iri)
        if self.deployment.streams[number].path == FRAME and (self._query is not None or self.log.begun()):
            raise UsageError(
                f"<{iri}> is a DataFrame, which is a part of Spark's own query: it stays as long as the "
                "checkpoint does"
            )
        self.deployment.drop_stream(iri)
        self._frames.pop(number, None)

    def _open_here(self, number: int, source: StreamSource) -> None:
        """What the application pushes is read in this process, and here it is known which frame is silent."""
        if is_pushed(source):
            spool = self.folder / "spool" / str(number)
            reader = open_reader(source.path, source, number, spool=spool)
            self._here[number], self.pushed[number] = reader, push_reader(reader)
        elif source.path == FRAME and source.idle_ms is not None:
            self._here[number] = self._silences[number] = Silence(number, source.idle_ms)

    def reader(self, iri: str) -> PushReader:
        """The reader of a stream that is pushed."""
        number = self.deployment.planner.declared.number(iri)
        if number not in self.pushed:
            raise UsageError(
                f"<{iri}> is read from {self.deployment.streams[number].path}: nothing can be pushed on it"
            )
        return self.pushed[number]

    # -------------------------------------------------------------------- pushing

    def push(self, iri: str, events: Events) -> None:
        """Take events, in order: on disk when this returns. Waits while too much waits to be read. Those
        without a time get that of their arrival, and are complete at once."""
        self._arriving.push(self.reader(iri), events, self.deployment.registrations.horizon)

    def takes_text(self, iri: str) -> bool:
        """What is pushed as text is read by tasks."""
        return True

    def push_text(self, iri: str, text: str | bytes) -> int:
        """Take records as text in the stream's format; returns how many."""
        return self.reader(iri).push(text)

    def taken(self, iri: str) -> int:
        """How many events were pushed on a stream, also by earlier runs."""
        return self.reader(iri).records

    def heartbeat(self, iri: str, at: int) -> None:
        """Nothing at or before this time will be pushed any more."""
        self.reader(iri).heartbeat(at)

    def end(self, iri: str) -> None:
        """Nothing will be pushed any more."""
        self.reader(iri).end()

    @property
    def late(self) -> dict[str, int]:
        """Per stream, how many elements came later than allowed."""
        return dict(self.deployment.late)

    @property
    def memory(self) -> dict[str, int]:
        """Bytes held by all shards, counted every few batches."""
        return dict(self.deployment.memory)

    @property
    def stopped(self) -> dict[str, Stopped]:
        """The queries that have failed, and why."""
        return self.deployment.stopped

    # -------------------------------------------------------------------- running

    def start(self) -> None:
        """Start the streaming query, which runs until `stop`."""
        spark = session(self.master)
        # These import PySpark, which takes a second: not before all is known to be good.
        from kelda.spark.frames import parcels_of
        from kelda.spark.shard import shards
        from kelda.spark.source import DOOR, source_for
        from kelda.spark.ways import Reading

        streams = self.deployment.streams
        lacking = [s.iri for n, s in streams.items() if s.path == FRAME and n not in self._frames]
        if lacking:
            raise UsageError(
                f"<{lacking[0]}> was a DataFrame: declare it again, with dataframe=..., before start()"
            )
        tasks = spark.sparkContext.defaultParallelism
        self._width.tell(tasks)
        if self._door is None:
            self._door = Door(self.folder / DOOR, self._here)
        master = spark.sparkContext.master
        self._near = master.startswith("local[") or master == "local"
        hands_over = self._near and not self._frames and self._may_hand_over()
        self._ahead = hands_over and bool(streams) and all(map(_is_plain_file, streams.values()))
        routing = str(self._routing.path)
        reading = Reading(self.run, self.batch_events, tasks, routing, self._near, hands_over, self._ahead)
        spark.conf.set("spark.sql.shuffle.partitions", str(reading.way.partitions))
        with writing(self.run.flag):
            self.run.flag.touch()
        try:
            spark.dataSource.register(source_for(reading))
            parcels = spark.readStream.format("kelda").load()
            for number, frame in sorted(self._frames.items()):  # Spark knows sources by their places
                parcels = parcels.union(parcels_of(frame, number, streams[number], self.run, routing))
            writer = (
                shards(reading.way.gathered(parcels), self.run, self._near)
                .writeStream.foreachBatch(self._batch)
                .outputMode("append")
                .option("checkpointLocation", (self.folder / "spark").as_uri())
                .trigger(processingTime="0 seconds")
            )
            self._hear(self._silences)  # Spark's own start is no silence
            self._query = writer.start()
        except Exception as problem:  # Spark raises many kinds; all become one of ours
            self.run.flag.unlink(missing_ok=True)
            raise self._explained(problem) from problem

    def _may_hand_over(self) -> bool:
        """Whether one task may read all: it does so in threads, which only the fast lane does side by side.
        A checkpoint keeps the number of partitions that it was begun with."""
        if begun := self.log.begun():
            return self.log.conf(begun[-1]).get("spark.sql.shuffle.partitions") == "1"
        return all(map(_is_fast, self.deployment.streams.values()))

    @property
    def running(self) -> bool:
        return self._query is not None

    def settle(self) -> None:
        """Until what was entered last holds, if batches are taken."""
        version = self.deployment.catalog.version
        if self._query is not None:
            self._until(lambda: self.deployment.stood >= version or self._ended.is_set(), SETTLED)

    def ask_on_spark(self, query: A.Query, at: int | datetime | None) -> Result:
        """Ask a one-shot query as a job of Spark, over the files of the store."""
        from kelda.spark.sql.store import SparkStore

        moment = None if at is None else self.deployment.view(at).at
        spark = session(self.master)
        return SparkStore(spark, self.folder / FOLDER, at_moment=moment).query(query)

    def wait(self, timeout: float | None = None) -> bool:
        """Until all streams have ended; raises what went wrong. False if time ran out before."""
        return self._until(self._ended.is_set, timeout)

    def flush(self, timeout: float | None = None) -> bool:
        """Until all that was pushed before has been answered."""
        wanted = {
            key_of(number, self.deployment.streams[number]): reader.pieces_so_far
            for number, reader in self.pushed.items()
            if number in self.deployment.streams
        }

        def answered() -> bool:
            return all(self._pieces.get(key, 0) >= pieces for key, pieces in wanted.items())

        return self._until(answered, timeout)

    def _until(self, true: Callable[[], bool], timeout: float | None) -> bool:
        if self._query is None:
            raise UsageError("the engine does not run: start() it first")
        until = None if timeout is None else time.monotonic() + timeout
        while not true():
            self._check()
            if until is not None and time.monotonic() > until:
                return False
            with self._done:
                self._done.wait(POLL)
        return True

    def _check(self) -> None:
        """Raise what the streaming query has failed with."""
        try:
            over = self._query.awaitTermination(0.001)
        except Exception as problem:
            raise self._explained(problem) from problem
        if over and not self._ended.is_set():
            raise KeldaError("the streaming query has been stopped by somebody else; start() it again")

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
            self._query = None
            self.close()

    def close(self) -> None:
        """Let go of the checkpoint and all files. Of a driver that runs, `stop` does so."""
        self.run.flag.unlink(missing_ok=True)
        if self._door is not None:
            self._door.close()
            self._door = None
        for reader in self._here.values():
            reader.close()
        self._threads.shutdown()
        closed, self._closed = self._closed, True
        try:
            if not closed:
                self._keep_clocks()
        finally:
            self._storing.close()
            with self._keeping:
                if not closed and self._storing.last <= self.run.last_commit():
                    self._storing.keep_image(self.deployment.store)
            self.deployment.close()

    # -------------------------------------------------------------------- batches

    def _batch(self, results: DataFrame, batch: int) -> None:
        """The sink of the streaming query."""
        deployment = self.deployment
        if not self._near:  # there executors may have joined or gone
            self._width.tell(results.sparkSession.sparkContext.defaultParallelism)
        # While the tasks run. What Spark writes once, at its start, is made to last in any case.
        early = deployment.outlets.last or deployment.figures.batches < 2
        syncing = self._threads.submit(self._sync) if early else None
        outcomes = self._outcomes(results)
        content = self.log.content(batch)
        news = [outcome.news for outcome in outcomes]
        with deployment.lock:
            for sink in deployment.stand(max((outcome.version for outcome in outcomes), default=0)):
                self.log.agree(sink.held, batch)
            merged = deployment.merged(outcomes)
        if deployment.outlets.last and (len(merged) or deployment.outlets.feeds):
            if syncing is not None:
                syncing.result()
            self._sync()  # what the tasks have kept, too
        if outcomes:
            with self._keeping:
                self._store(batch, outcomes[0])
        deployment.hand_out(batch, merged, news, content)
        read = news[0].read if news else {}
        streams = deployment.streams
        self._hear(n for n in self._silences if n in streams and any(read.get(streams[n].iri, ())))
        deployment.done(batch, news, len(merged))
        self._note(batch, outcomes)

    def _store(self, batch: int, outcome: Outcome) -> None:
        """Make what a batch has changed in the stored graphs last, and show it to one-shot queries."""
        if self._closed:  # what Spark may still be about then is not committed
            raise UsageError("the engine is closed")
        store, changes = self.deployment.store, outcome.changes
        for stream, (events, _) in outcome.news.read.items():
            self._events[stream] = self._events.get(stream, 0) + events
        # For the hosts, which share it. All before this batch is committed.
        self._storing.keep_image(store, part=2, indexed=True)
        now = min(outcome.news.reported, default=outcome.news.now)
        last = int(changes.moment.max()) if len(changes) else NEVER
        moment = seen_by(now, max(store.latest, last))
        if len(changes):
            assert outcome.entries is not None
            store.dictionary.add_entries(outcome.entries)
            about = {"instant": now, "moment": moment, "offsets": self._events, "version": outcome.version}
            self._storing.write(batch, changes, store.dictionary, about)
            store.apply(changes)
        self.deployment.snapshots.take(batch, now, self._events, moment)
        self._storing.committed(batch - 1, self.deployment.snapshots)

    def _note(self, batch: int, outcomes: Sequence[Outcome]) -> None:
        """A batch is done: who waits for it may look."""
        self._note_read(batch)
        with self.deployment.lock:
            version = self.deployment.catalog.version  # if there is a newer one, a batch comes that knows it
            if outcomes and all(o.news.ended and o.version == version for o in outcomes):
                self._ended.set()
        with self._done:
            self._done.notify_all()

    def _note_read(self, batch: int) -> None:
        """How much of the streams that are pushed is answered with a batch."""
        for number in self.pushed:
            if number in self.deployment.streams:
                key = key_of(number, self.deployment.streams[number])
                if (at := self.log.find(batch, key)) is not None:
                    self._pieces[key] = at["pieces"]

    def _hear(self, streams: Iterable[int]) -> None:
        """These DataFrames are not silent."""
        for number in streams:
            self._silences[number].heard()

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

    def _sync(self) -> None:
        """Have Spark's log on the disk: what a sink has, the log must know after a power failure."""
        self.log.sync(state=self._near)


def _is_fast(stream: StreamSource) -> bool:
    """Whether a stream is read without the help of Python objects."""
    format = stream.format
    if format is None and read_address(stream.path).scheme in ("file", "tail", "replay"):
        format = guess_format(read_address(stream.path).place)
    return format == "tsnt" and stream.time is None


def _is_plain_file(stream: StreamSource) -> bool:
    """Whether what comes next on a stream is known at any time."""
    return read_address(stream.path).scheme == "file" and stream.rate is None
