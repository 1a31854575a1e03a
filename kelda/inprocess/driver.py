"""The driver in this process: sources, ingest, one shard and sinks, called one after another.

    push ──────────────────────────► shard ──► answers     (no checkpoint: the caller's thread does it all)
    sources ──► ingest ──► parts ──► shard ──► answers     (a thread of ours, from start() on)

Without a checkpoint, what is pushed goes straight into the shard, and when `push` returns its answers are
there. Streams by address, those that are slowed down or watched for silence, and with a checkpoint all, are
read in batches by a thread from `start` on. What makes a batch last is the log (`kelda.inprocess.log`).
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from kelda.engine.block import Block
from kelda.engine.clock import FOREVER
from kelda.engine.columnar import Columnar
from kelda.engine.oneshot import Result
from kelda.engine.stopped import Stopped
from kelda.errors import UsageError
from kelda.inprocess.live import Live
from kelda.inprocess.log import BatchLog, Begun, Log, NoLog, offsets_of
from kelda.io.elements import Events
from kelda.io.job import StreamSource
from kelda.io.private import make_private
from kelda.io.sources import PushReader, Reader, open_reader, push_reader
from kelda.io.sources.arriving import Arriving, arrivals
from kelda.io.sources.fed import FedReader
from kelda.io.sources.together import Offsets, Together, key_of
from kelda.lang import algebra as A
from kelda.rdf.framing import RECORDS
from kelda.rdf.skim import Skimmer
from kelda.shards.catalog import AddStream, DropStream, GraphOp, Op
from kelda.shards.checkpoint import Checkpoint
from kelda.shards.declared import FED, is_pushed
from kelda.shards.deployment import Batch, Deployment
from kelda.shards.ingest import parts_of
from kelda.shards.levels import Levels
from kelda.shards.setup import Setup
from kelda.shards.shard import Shard
from kelda.shards.snapshots import DEFAULT_KEEP, Keep
from kelda.shards.storing import Storing
from kelda.store.moments import seen_by

SETTLED = 60.0  # seconds that an update is waited for
PAUSE = 0.01  # seconds between two looks at streams that have nothing


class InProcessDriver:
    """Runs a deployment in this process. Calls take their turn, one after the other."""

    def __init__(
        self,
        setup: Setup,
        folder: Path | None,
        *,
        batch_events: int = 50_000,
        deliver: Callable[[Sequence[Block]], None] = lambda blocks: None,
        told: Callable[[Batch], None] = lambda batch: None,
        keep: Keep = DEFAULT_KEEP,
        after: Callable[[], None] = lambda: None,
    ) -> None:
        """`deliver` gets answers, in turn, `told` batches; `after` is called when the turn is over."""
        self.setup, self.batch_events = setup, batch_events
        self._deliver, self._told, self._after = deliver, told, after
        checkpoint = None if folder is None else Checkpoint(folder, setup, "inprocess")
        self.folder = checkpoint.folder if checkpoint is not None else _unused_folder()
        self._log: Log = NoLog() if checkpoint is None else BatchLog(self.folder)
        self._lasts = checkpoint is not None
        self.levels = Levels(0, setup, keeps=self._lasts)
        self._storing = Storing(self.folder) if self._lasts else None
        self._batch, self._at = -1, Offsets()
        self._read = -1  # the last batch that was read from sources
        self._updated = False  # stored graphs were changed since the last batch, which is to be told with one
        self._taking = False  # a batch; it stays so if that has failed
        self._starting = True
        self._piece_records = min(RECORDS, max(1, batch_events))
        self._streams = Together(self._open, self._piece_records)
        self.pushed: dict[int, PushReader] = {}  # streams that are pushed into a spool
        self._direct: Counter[str] = Counter()  # events that went straight into the shard, by stream
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._wake = threading.Event()
        self._failure: Exception | None = None
        self._closed = False
        self._arriving = Arriving()
        self._skimmer = Skimmer(self.levels.shards[0].evaluator.dictionary)
        try:
            self.deployment = Deployment(
                setup,
                checkpoint,
                self.folder,
                trial=Live(setup, lambda: self.levels, self._must_wait),
                take=self._take,
                last_read=lambda: self._read,
                hold=self._hold,
                entered=self._entered,
                keep=keep,
                moment=self._moment,
            )
            self.lock = self.deployment.lock
            self._done = threading.Condition(self.lock)
            if checkpoint is not None:
                self._take_up()
        except BaseException:
            if checkpoint is not None:
                checkpoint.close()
            raise
        self._starting = False

    # -------------------------------------------------------------------- over a restart

    def _take_up(self) -> None:
        """Go on where an earlier run was: as it was behind the last batch committed, then with the batch that
        was being taken, then with what was entered since."""
        state, catalog = self._log.state(), self.deployment.catalog
        begun = self._log.begun(state)
        catalog.refresh().check(state.version if begun is None else begun.version)  # type: ignore[attr-defined]
        assert self._storing is not None
        store = self._storing.take_up(state.batch)
        self._storing.check(state.stored)
        self.levels = Levels.stand_up(
            0, self.setup, catalog, state.batch, state.memory, state.segments, store
        )
        now, moment = self._now(), self._moment()
        # Before the queries are planned again: that needs the streams and graphs.
        self.levels.hold(catalog, catalog.version if begun is None else begun.version)
        self._batch = self._read = state.batch
        self._at = state.at
        self.deployment.take_up()
        snapshots = self.deployment.snapshots
        self._storing.remember(snapshots)
        if state.batch >= 0:
            snapshots.take(state.batch, now, self._offsets(state.at), moment)
        self._skimmer = Skimmer(self.levels.shards[0].evaluator.dictionary)
        if begun is not None:
            self._carry_out(begun)
            self.levels.hold(catalog, catalog.version)
        elif state.batch >= 0:
            self.deployment.registrations.settle(state.batch, [self.levels.clocks()])
        entered = catalog.between(state.version if begun is None else begun.version, catalog.version)
        self._updated = any(isinstance(op, GraphOp) for op in entered)
        self._have_streams()

    def _must_wait(self, query: A.Query) -> bool:
        """Whether a new query cannot begin at once."""
        registrations, planner = self.deployment.registrations, self.deployment.planner
        return self._starting or registrations.must_wait(planner.streams_of(query))

    def _hold(self, ops: Sequence[Op]) -> None:
        """Entries are carried out at once, between two batches."""
        self.levels.apply(ops, self.deployment.catalog)
        if any(isinstance(op, AddStream | DropStream) for op in ops):
            self._have_streams()
        if any(isinstance(op, GraphOp) for op in ops):
            if self._lasts:
                self._updated = True
                self._wake.set()
            else:
                self._hand_out([block for shard in self.levels.shards for block in shard.said()], 0)

    def _moment(self) -> int:
        """Up to which all that is stored may be seen."""
        return seen_by(self._now(), self.levels.store.latest)

    def _now(self) -> int:
        """Up to which all levels have answered."""
        return min(shard.evaluator.now for shard in self.levels.shards)

    def _snapshot(self, offsets: Mapping[str, int]) -> None:
        self.deployment.snapshots.take(self._batch, self._now(), offsets, self._moment())

    def _entered(self) -> None:
        """Without a log to agree with, sinks are opened at once: what is pushed next may be for them."""
        if not self._lasts:
            for _ in self.deployment.stand(self.deployment.catalog.version):
                pass

    # -------------------------------------------------------------------- streams

    def add_stream(self, source: StreamSource, frame: object = None) -> None:
        """Declare a stream."""
        if frame is not None:
            self.read_frame(source.iri, frame)
        with self.lock:
            self.deployment.add_stream(source)
            self._have_streams()

    def read_frame(self, iri: str, frame: object) -> None:
        """Refused."""
        raise UsageError(
            f"<{iri}>: a DataFrame is read by Spark, and this engine runs in this process; "
            "connect with a master, e.g. kelda.connect('local[*]')"
        )

    def drop_stream(self, iri: str) -> None:
        """Forget a stream that no query reads."""
        with self.lock:
            number = self.deployment.planner.declared.number(iri)
            self.deployment.drop_stream(iri)
            self.pushed.pop(number, None)
            self._direct.pop(iri, None)
            self._have_streams()

    def _is_direct(self, source: StreamSource) -> bool:
        """Whether what is pushed goes straight into the shard."""
        return is_pushed(source) and not self._lasts and source.idle_ms is None and source.rate is None

    def _have_streams(self) -> None:
        streams = self.deployment.streams
        self._streams.have({n: source for n, source in streams.items() if not self._is_direct(source)})

    def _open(self, number: int, source: StreamSource) -> Reader:
        if not self._lasts:
            make_private(self.folder)
        if source.path.startswith(FED):
            folder = self.deployment.fed(number)
            return FedReader(folder, source, number, piece_records=self._piece_records)
        spool = self.folder / "spool" / str(number)
        reader = open_reader(
            source.path, source, number, spool=spool, piece_records=self._piece_records, spots=True
        )
        if is_pushed(source):
            self.pushed[number] = push_reader(reader)
        return reader

    # -------------------------------------------------------------------- pushing

    def push(self, iri: str, events: Events) -> None:
        """Take events, in order. Those without a time get that of their arrival, and are complete at once."""
        number = self.deployment.planner.declared.number(iri)
        if number in self.pushed:
            self._spool(self.pushed[number], events)
            return
        self._refuse_unless_pushed(number)
        with self.lock:
            self._refuse_closed(iri)
            events, last = arrivals(events, self.levels.shards[0].evaluator.clock.horizon)
            blocks = [b for shard in self._that_hear(iri) for b in shard.push(iri, events, last)]
            self._direct[iri] += len(events)
            self._hand_out(blocks, len(events))

    def takes_text(self, iri: str) -> bool:
        """Whether what is pushed as text is read later, from a spool."""
        return self.deployment.planner.declared.number(iri) in self.pushed

    def push_text(self, iri: str, text: str | bytes) -> int:
        """Take records as text in the stream's format; returns how many. Only of a stream with a spool."""
        self._raise_failure()
        taken = self.pushed[self.deployment.planner.declared.number(iri)].push(text)
        self._wake.set()
        return taken

    def taken(self, iri: str) -> int:
        """How many events were pushed on a stream, also by earlier runs."""
        number = self.deployment.planner.declared.number(iri)
        if number in self.pushed:
            return self.pushed[number].records
        self._refuse_unless_pushed(number)
        return self._direct[iri]

    def _spool(self, reader: PushReader, events: Events) -> None:
        self._raise_failure()
        self._arriving.push(reader, events, self.deployment.registrations.horizon)
        self._wake.set()

    def heartbeat(self, iri: str, at: int) -> None:
        """Nothing at or before this time will be pushed any more."""
        number = self.deployment.planner.declared.number(iri)
        if number in self.pushed:
            self.pushed[number].heartbeat(at)
            self._wake.set()
            return
        self._refuse_unless_pushed(number)
        with self.lock:
            self._hand_out([b for shard in self._that_hear(iri) for b in shard.heartbeat(iri, at)], 0)

    def end(self, iri: str) -> None:
        """Nothing will be pushed any more."""
        number = self.deployment.planner.declared.number(iri)
        if number in self.pushed:
            self.pushed[number].end()
            self._wake.set()
            return
        self._refuse_unless_pushed(number)
        with self.lock:
            self._hand_out([b for shard in self._that_hear(iri) for b in shard.end(iri)], 0)
            self._done.notify_all()

    def _that_hear(self, iri: str) -> list[Shard]:
        """The levels whose queries can read a stream."""
        return [shard for shard in self.levels.shards if iri in shard.evaluator.clock.streams]

    def _refuse_unless_pushed(self, number: int) -> None:
        source = self.deployment.streams[number]
        if not is_pushed(source):
            raise UsageError(f"<{source.iri}> is read from {source.path}: nothing can be pushed on it")

    def _refuse_closed(self, iri: str) -> None:
        if self._closed:
            raise UsageError(f"the engine is closed: <{iri}> takes no more events")

    def _hand_out(self, blocks: list[Block], events: int) -> None:
        """What a push has brought, to sinks and readers."""
        deployment, figures = self.deployment, self.deployment.figures
        figures.events += events
        deployment.stopped = self.stopped
        feeds = deployment.outlets.feeds
        self._batch += 1
        self._snapshot(self._direct)
        if not blocks and not feeds:
            return
        figures.batch, figures.batches = self._batch, figures.batches + 1
        figures.answers += sum(map(len, blocks))
        sinks = deployment.outlets.sinks
        for name, mine in _by_query(blocks, sinks).items():
            sinks[name].write(self._batch, Columnar(mine))
        if feeds:
            self._feed(blocks)
        self._deliver([block for block in blocks if block.name not in sinks] if sinks else blocks)

    def _feed(self, blocks: list[Block]) -> None:
        """What a push has brought, to the streams that queries feed; those are read in batches."""
        deployment = self.deployment
        for name in deployment.outlets.feeds:
            evaluator = self.levels.shards[deployment.planner.levels[name]].evaluator
            ended = all(clock.ended for clock in evaluator.clock.streams.values())
            answers = Columnar([block for block in blocks if block.name == name])
            deployment.outlets.feed(name, self._batch, answers, FOREVER if ended else evaluator.now)
        self._wake.set()

    # -------------------------------------------------------------------- running

    def start(self) -> None:
        """Read the streams, in a thread, until `stop`."""
        with self.lock:
            if self._closed:
                raise UsageError("the engine is closed: connect again")
            if self._thread is None:
                self._stopping.clear()
                self._thread = threading.Thread(target=self._run, name="kelda-batches", daemon=True)
                self._thread.start()

    @property
    def running(self) -> bool:
        return self._thread is not None

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._wake.clear()
                if not self._next_batch():
                    self._wake.wait(PAUSE)
        except Exception as problem:  # noqa: BLE001 - raised where somebody waits, or pushes
            self._failure = problem
        with self._done:
            self._done.notify_all()

    def _next_batch(self) -> bool:
        """Take a batch of what there is; whether there was anything."""
        with self._done:
            end = offsets_of(self._streams.latest(self._at, self.batch_events))
            begin = offsets_of(self._streams.begun(self._at))
            if end == begin and not self._updated:
                return False
            self._take_batch(begin, end)
            self._done.notify_all()
        self._after()
        return True

    def _take_batch(self, begin: Offsets, end: Offsets) -> None:
        begun = Begun(self._batch + 1, begin, end, self.deployment.catalog.version)
        self._taking = True
        self._log.begin(begun)
        self._updated = False
        self._carry_out(begun)
        self._taking = False

    def _make_updates_last(self) -> None:
        """What was loaded and updated since the last batch ends in the files of the store, not only in the
        catalog: whoever comes next need not carry it out again."""
        with self.lock:
            if self._updated and self._failure is None and not (self._closed or self._taking):
                begin = offsets_of(self._streams.begun(self._at))
                self._take_batch(begin, begin)

    def _carry_out(self, begun: Begun) -> None:
        """Take a batch, hand out its answers, and commit it."""
        deployment = self.deployment
        self.levels.hold(deployment.catalog, begun.version)
        for sink in deployment.stand(begun.version):
            self._log.agree(sink.held, begun)
        self._have_streams()
        pieces = self._streams.pieces(begun.begin, begun.end)
        dictionary = self._skimmer.dictionary
        (parts,) = parts_of(pieces, deployment.streams, deployment.planner.routing, 1, self._skimmer)
        outcome = self.levels.take_parts(begun.batch, parts)
        merged = deployment.merged([outcome], dictionary.view())
        news = [outcome.news]
        if self._storing is not None:
            about = {
                "instant": outcome.news.now,
                "moment": self._moment(),
                "offsets": self._offsets(begun.end),
                "version": begun.version,
            }
            self._storing.write(begun.batch, outcome.changes, self.levels.store.dictionary, about)
        deployment.hand_out(begun.batch, merged, news, begun.content if self._lasts else None)
        self._log.commit(begun, outcome, -1 if self._storing is None else self._storing.last)
        self._batch = begun.batch
        if begun.end != begun.begin:
            self._read = begun.batch
        self._at = begun.end
        self._snapshot(self._offsets(begun.end))
        if self._storing is not None:
            self._storing.committed(begun.batch, deployment.snapshots)
        self._streams.commit(begun.end)
        deployment.done(begun.batch, news, len(merged))

    def _take(self, batch: Batch) -> None:
        self._deliver(batch.blocks)
        self._told(batch)

    def _offsets(self, at: Offsets) -> dict[str, int]:
        """How far each stream was read, in its own measure."""
        streams = self.deployment.streams
        read = {source.iri: at.get(key_of(n, source), {}) for n, source in streams.items()}
        return {iri: int(at.get("pieces", 0)) for iri, at in read.items()} | dict(self._direct)

    def wait(self, timeout: float | None = None) -> bool:
        """Until all streams have ended; raises what went wrong. False if time ran out before."""
        return self._until(self._all_ended, timeout)

    def _all_ended(self) -> bool:
        clocks = self.levels.shards[-1].evaluator.clock.streams
        return bool(clocks) and all(clock.ended for clock in clocks.values())

    def flush(self, timeout: float | None = None) -> bool:
        """Until all that was pushed before has been answered, also by queries that read the answers of
        others."""
        streams = self.deployment.streams
        wanted = {key_of(n, streams[n]): reader.pieces_so_far for n, reader in self.pushed.items()}

        def answered() -> bool:
            return all(
                pieces == 0 or self._at.get(key, {"pieces": 0})["pieces"] >= pieces
                for key, pieces in wanted.items()
            ) and not (self._updated or self._streams.is_fed(self._at))

        return self._until(answered, timeout)

    def _until(self, true: Callable[[], bool], timeout: float | None) -> bool:
        until = None if timeout is None else time.monotonic() + timeout
        with self._done:
            while not true():
                self._raise_failure()
                if self._thread is None:
                    raise UsageError("the engine does not run: start() it first")
                left = None if until is None else until - time.monotonic()
                if left is not None and left <= 0:
                    return False
                self._done.wait(1.0 if left is None else min(left, 1.0))
        self._raise_failure()
        return True

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def settle(self) -> None:
        """Entries hold at once; one-shot queries see them when all levels have come so far."""
        if self._thread is not None and self._thread is not threading.current_thread():
            latest = self.levels.store.latest
            self._until(lambda: self._moment() >= latest, SETTLED)

    def ask_on_spark(self, query: A.Query, at: int | datetime | None) -> Result:
        """Refused."""
        raise UsageError(
            "this engine runs in this process; a query on='spark' needs kelda.connect('local[*]') or another "
            "master"
        )

    def stop(self) -> None:
        """Stop after the batch that is being taken, and let go of everything."""
        thread, self._thread = self._thread, None
        self._stopping.set()
        self._wake.set()
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        try:
            # Who was never started does not open sinks for it: they may not be there.
            if thread is not None or not any(query.sink for query in self.deployment.registered.values()):
                self._make_updates_last()
        finally:
            self.close()

    def close(self) -> None:
        """Let go of the checkpoint and all files."""
        with self.lock:
            self._closed = True
            self._streams.close()
            self._log.close()
            if self._storing is not None:
                self._storing.close()
                if self._failure is None and not (self._updated or self._taking):
                    self._storing.keep_image(self.levels.store)
            self.deployment.close()
            if not self._lasts:
                shutil.rmtree(self.folder, ignore_errors=True)

    # -------------------------------------------------------------------- what it says

    @property
    def stopped(self) -> dict[str, Stopped]:
        """The queries that have failed, and why."""
        return {name: why for shard in self.levels.shards for name, why in shard.evaluator.stopped.items()}

    @property
    def late(self) -> dict[str, int]:
        """Per stream, how many elements came later than allowed."""
        return dict(self.levels.shards[0].evaluator.late)

    @property
    def memory(self) -> dict[str, int]:
        """Bytes held, by query, stream and dictionary."""
        with self.lock:
            counts = [Counter(shard.evaluator.nbytes) for shard in self.levels.shards]
            return dict(sum(counts, Counter()))


def _by_query(blocks: Sequence[Block], names: Collection[str]) -> dict[str, list[Block]]:
    """The blocks of some queries."""
    found: dict[str, list[Block]] = {}
    for block in blocks if names else ():
        if block.name in names:
            found.setdefault(block.name, []).append(block)
    return found


def _unused_folder() -> Path:
    """A name for a folder, which is made if need be."""
    return Path(tempfile.gettempdir(), f"kelda-{uuid.uuid4().hex}")
