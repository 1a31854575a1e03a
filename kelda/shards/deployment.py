"""A deployment: all that does not depend on which driver runs it.

    declare, load, register ──► planner ──► registrations ──► catalog ──► shards, by the driver
    shards' outcomes ──► merge ──► outlets (sinks, fed streams) ──► whoever is told of batches

A batch is committed when its answers have been taken, and not before. Started again with the same
checkpoint, a deployment goes on with the streams, graphs and queries of its catalog behind the last batch
committed; the batch that was being taken comes again, and sinks know batches by their numbers and by what
is in them. A checkpoint has one deployment at a time.
"""

from __future__ import annotations

import shutil
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path

from pyoxigraph import NamedNode

from kelda.ask.prepared import PreparedAsk
from kelda.ask.updating.loading import from_files
from kelda.durable import sync
from kelda.engine.answer import Answer
from kelda.engine.block import Block
from kelda.engine.clock import FOREVER
from kelda.engine.feed import check_feed
from kelda.engine.oneshot import Result
from kelda.engine.report import output_of
from kelda.engine.stopped import Stopped
from kelda.errors import InputError, UsageError
from kelda.io.job import QuerySpec, StreamSource, parse_spec
from kelda.io.sinks.sink import Sink
from kelda.io.sources import check_source
from kelda.io.sources.address import absolute
from kelda.kept import writing
from kelda.lang import algebra as A
from kelda.lang import parse_update
from kelda.lang.update import Load as LoadDocument
from kelda.plan.stored_reads import stored_reads
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.event import Reject
from kelda.rdf.graphs import graph_format
from kelda.rdf.times import to_ms
from kelda.shards.balance import balancer
from kelda.shards.catalog import (
    Catalog,
    CatalogFolder,
    Drop,
    DropGraph,
    DropStream,
    Load,
    Op,
    Pause,
    Register,
    RegisterMany,
    Update,
)
from kelda.shards.checkpoint import Checkpoint
from kelda.shards.feeding import GRAPH, feed_of
from kelda.shards.figures import Figures
from kelda.shards.merge import Merged, merge
from kelda.shards.outlets import Outlets
from kelda.shards.planner import Planner
from kelda.shards.registrations import Registrations
from kelda.shards.setup import Setup
from kelda.shards.shard import News, Outcome
from kelda.shards.snapshots import DEFAULT_KEEP, Keep, Snapshots
from kelda.shards.trial import Scratch, Trial
from kelda.store.store import Store
from kelda.store.view import View

MOST_REJECTS = 1000  # that are remembered; all are counted


@dataclass(frozen=True)
class Batch:
    """What one batch brought. `answers` are those of all queries without a sink of their own; they stay
    columns of ids until somebody looks."""

    id: int
    merged: Merged
    news: list[News]  # of each shard
    sunk: frozenset[str] = frozenset()  # queries with sinks
    content: str | None = None  # what was read for it, and with which queries, as a digest

    @cached_property
    def answers(self) -> list[Answer]:
        return self.merged.answers(without=self.sunk)

    @cached_property
    def blocks(self) -> list[Block]:
        """The same, as columns by query."""
        return self.merged.blocks(without=self.sunk)

    @property
    def rejects(self) -> list[Reject]:
        return [reject for news in self.news for reject in news.rejects]


@dataclass(frozen=True, slots=True)
class Registered:
    """A query as it was registered."""

    spec: QuerySpec
    sink: str | None = None
    paused: bool = False


class Deployment:
    """Streams, graphs and queries, and where answers go. Any thread may call anything; `lock` is not held
    while answers are handed out."""

    def __init__(
        self,
        setup: Setup,
        checkpoint: Checkpoint | None,
        folder: Path,
        *,
        balance: str = "rotation",
        trial: Trial | None = None,
        take: Callable[[Batch], None] = lambda batch: None,
        last_read: Callable[[], int],
        route: Callable[[], None] = lambda: None,
        hold: Callable[[Sequence[Op]], None] = lambda ops: None,
        entered: Callable[[], None] = lambda: None,
        keep: Keep = DEFAULT_KEEP,
        moment: Callable[[], int] | None = None,
        store: Store | None = None,
    ) -> None:
        """`folder` is that of the checkpoint, or one that goes with this process. `keep` tells which
        snapshots are kept, `moment` up to which all that is stored may be seen, `store` what is stored
        already, where queries are not tried on the evaluators that run."""
        self.snapshots = Snapshots(keep)
        self._moment = self._last_moment if moment is None else moment
        self.setup, self.checkpoint, self.folder, self._take = setup, checkpoint, folder, take
        self.id = checkpoint.id if checkpoint is not None else uuid.uuid4().hex
        self.balancer = balancer(balance, setup.shards)
        trial = trial or Scratch(setup, lambda: self.registrations.begun, store)
        self.planner = Planner(setup, self.balancer, trial)
        self.catalog: Catalog = Catalog() if checkpoint is None else CatalogFolder(folder / "catalog")
        self.registrations = Registrations(
            self.catalog,
            self.planner,
            last_read=last_read,
            route=route,
            hold=hold,
            entered=entered,
            file=None if checkpoint is None else folder / "waiting",
        )
        self.outlets = Outlets(self.id, None if checkpoint is None else folder / "sinks", self.fed)
        self.figures = Figures()
        self.stopped: dict[str, Stopped] = {}  # queries that have failed
        self.late: dict[str, int] = {}
        self.rejects: list[Reject] = []  # the first ones
        self.memory: dict[str, int] = {}
        self.registered: dict[str, Registered] = {}
        self.graphs: list[tuple[str | None, str]] = []  # that were loaded, each with its file
        self.lock = threading.RLock()
        self._stood = 0  # version of the catalog that the planner stands by
        self._last = time.monotonic()

    def fed(self, stream: int) -> Path:
        """Where the elements of a stream lie that a query feeds."""
        return self.folder / "fed" / str(stream)

    def take_up(self) -> None:
        """Go on where an earlier run was."""
        self.registrations.take_up()
        self._know(self.catalog.between(0, self.catalog.version))
        for waiting in self.registrations.waiting:
            self._know(waiting.ops)

    def _know(self, ops: Sequence[Op]) -> None:
        for op in ops:
            match op:
                case Register(name, spec):
                    self.registered[name] = Registered(spec, op.sink)
                case RegisterMany(names, spec, values):
                    for i, name in enumerate(names):
                        params = {key: texts[i] for key, texts in values.items()}
                        self.registered[name] = Registered(replace(spec, name=name, params=params))
                case Pause(name, paused):
                    self.registered[name] = replace(self.registered[name], paused=paused)
                case Drop(name):
                    self.registered.pop(name, None)
                case Load():
                    self.graphs.append((op.graph, op.name))
                case DropGraph(graph):
                    self.graphs = [loaded for loaded in self.graphs if loaded[0] != graph]

    def enter(self, *ops: Op) -> None:
        """Into the catalog, all together."""
        self.registrations.enter(ops)
        self._know(ops)

    # -------------------------------------------------------------------- streams and graphs

    @property
    def streams(self) -> Mapping[int, StreamSource]:
        """The streams that are declared, by their numbers."""
        return self.planner.declared.streams

    def add_stream(
        self,
        source: StreamSource,
        *,
        before: Callable[[int, StreamSource], None] = lambda number, source: None,
    ) -> None:
        """Declare a stream, from the next batch on; `before` it is in the catalog its number is told."""
        check_source(source)
        with self.lock:
            op = self.planner.declare(in_full(source), begun=self.registrations.begun)
            before(op.number, op.source)
            self.enter(op)

    def drop_stream(self, iri: str) -> None:
        """Forget a stream that no query reads."""
        with self.lock:
            self.enter(self.planner.undeclare(iri))

    def load(self, path: str | Path, graph: str | None, format: str | None) -> None:
        """Load a file into a stored graph, from the next batch on."""
        path = Path(path)
        if not path.is_file():
            raise InputError(f"cannot read {path}: there is no such file")
        graph_format(path, format)  # a mistake in it shows here
        with self.lock:
            self.planner.check_load()
            name, base = str(path.absolute()), path.absolute().as_uri()
            op = Load(graph, name, format, base, name)
            if self.checkpoint is not None:  # what is loaded may have to be loaded again, as it is now
                copy = self._copied(path)
                op = replace(op, path=str(copy), size=copy.stat().st_size)
            self.enter(op)

    def _copied(self, path: Path) -> Path:
        folder = self.folder / "graphs"
        copy = folder / f"{self.catalog.version:08d}-{path.name}"
        with writing(copy):
            folder.mkdir(exist_ok=True)
            shutil.copyfile(path, copy)
            sync(copy)
            sync(folder)
        return copy

    def drop_graph(self, graph: str | None) -> None:
        """Empty a stored graph, from the next batch on."""
        with self.lock:
            self.planner.check_load()
            self.enter(DropGraph(graph))

    def update(self, text: str, base: str | None) -> None:
        """Change the stored graphs by a SPARQL update, from the next batch on."""
        update = parse_update(text, base=base)
        with self.lock:
            self.planner.check_load()
            named = [op.source.value for op in update.operations if isinstance(op, LoadDocument)]
            documents = tuple((iri, str(self._fetched(iri))) for iri in named if self.checkpoint is not None)
            now, number = time.time_ns() // 1_000_000, self.registrations.number()
            self.enter(Update(text, base, now, number, documents))

    def _fetched(self, iri: str) -> Path:
        source = from_files(iri).source
        assert isinstance(source, str | Path)
        path = Path(source)
        return self._copied(path) if path.is_file() else path

    def prepare_ask(self, query: A.Query) -> PreparedAsk:
        """A one-shot query, ready to be asked."""
        return PreparedAsk(query, self.store.dictionary)

    def ask(self, prepared: PreparedAsk, at: int | datetime | None = None) -> Result:
        """Ask a one-shot query of the stored graphs as they are now, or were at a snapshot or a time."""
        return prepared.answer(self.view(at))

    def _last_moment(self) -> int:
        """That of the last snapshot; before there is one, all that is stored is seen."""
        kept = self.snapshots.all()
        return kept[-1].moment if kept else FOREVER - 1

    def view(self, at: int | datetime | None = None) -> View:
        """The stored graphs as they are now, or were at a snapshot or a time."""
        if at is None:
            return self.store.view(self._moment())
        if isinstance(at, datetime):
            return self.store.view(self.snapshots.moment_at(to_ms(at)))
        return self.store.view(self.snapshots.at(at).moment)

    @property
    def store(self) -> Store:
        """The stored graphs."""
        return self.planner.trial.store

    # -------------------------------------------------------------------- queries

    @contextmanager
    def _trying(self) -> Iterator[None]:
        with self.lock, self.planner.trying():
            yield

    def register(self, spec: QuerySpec, *, sink: str | None = None) -> None:
        """Add a query, from the next batch on. Its answers go to `sink`, or to whoever takes batches."""
        with self._trying():
            if sink is not None and sink.startswith(GRAPH):
                self._register_feeding(spec, sink)
                return
            op = self.planner.plan(spec)
            if sink is not None:
                self.outlets.check(sink, spec)
            self.enter(replace(op, sink=sink))

    def _register_feeding(self, spec: QuerySpec, sink: str) -> None:
        """Add a query that feeds a stored graph, with the stream by which it does."""
        graph, query = sink.removeprefix(GRAPH), parse_spec(spec)
        output = output_of(query) if spec.output is None else A.Output(spec.output)
        check_feed(spec.name, query, output)
        declared = self.planner.declared
        absorbed = [s.iri for s in declared.streams.values() if s.absorb == graph]
        if absorbed:
            raise UsageError(
                f"<{graph}> is fed already, by <{absorbed[0]}>: what a query makes has a graph of its own"
            )
        if NamedNode(graph) in stored_reads(query):
            raise UsageError(f"query {spec.name!r} reads <{graph}>, so it cannot feed it")
        spec = replace(spec, view=output is A.Output.CHANGES)
        source = in_full(feed_of(spec.name, graph))
        op = self.planner.plan(spec)
        self.enter(self.planner.declare(source), replace(op, sink=sink))

    def register_all(self, specs: Sequence[QuerySpec]) -> None:
        """Several at once, as one entry of the catalog."""
        with self._trying():
            self.enter(*[self.planner.plan(spec) for spec in specs])

    def register_many(
        self, spec: QuerySpec, names: Sequence[str], values: Mapping[str, Sequence[str]]
    ) -> None:
        """Queries that differ in the values of parameters: `values[p][i]` for the i-th name."""
        with self._trying():
            self.enter(self.planner.plan_many(spec, names, values))

    def drop(self, name: str) -> None:
        """Forget a query, from the next batch on."""
        with self.lock:
            self.known(name)
            feeds = [s.iri for _, s in self.planner.declared.fed_by(name) if s.absorb is not None]
            self.enter(Drop(name), *map(DropStream, feeds))
            self.stopped.pop(name, None)

    def pause(self, name: str, paused: bool = True) -> None:
        """A paused query keeps its windows up to date but says nothing."""
        with self.lock:
            self.enter(Pause(self.known(name), paused))

    def move(self, name: str, shard: int) -> None:
        """Move a whole query to another shard."""
        with self.lock:
            self.registrations.move(self.known(name), shard)

    @property
    def queries(self) -> list[str]:
        """Names of the registered queries."""
        return self.planner.queries

    def explain(self, name: str) -> str:
        """How and where a query runs."""
        with self.lock:
            how = self.planner.explain(self.known(name))
        return f"{how}\n\n{self.stopped[name].say()}" if name in self.stopped else how

    def known(self, name: str) -> str:
        """The name, if there is such a query."""
        if name not in self.registered:
            raise UsageError(
                f"no query named {name!r} is registered; there are: {', '.join(self.queries) or 'none'}"
            )
        return name

    # -------------------------------------------------------------------- batches

    def stand(self, version: int) -> Iterator[Sink]:
        """A version of the catalog holds for the batch that is being taken; the sinks that are new."""
        ops = self.catalog.between(self._stood, version)
        self.planner.stand(ops)
        self._stood = max(self._stood, version)
        yield from self.outlets.take(ops, self.planner.declared)

    def merged(self, outcomes: Sequence[Outcome], known: Dictionary | None = None) -> Merged:
        """What the shards said, put together; a dictionary in this process may have the terms already."""
        return merge(outcomes, self.planner.standing, known)

    def hand_out(self, batch: int, merged: Merged, news: list[News], content: str | None) -> None:
        """Give the answers of a batch to sinks, and to whoever is told of batches."""
        self._note_stopped(news)
        self.outlets.write(batch, merged, news, self.planner.levels, content)
        for n in news:
            self.rejects += n.rejects[: max(0, MOST_REJECTS - len(self.rejects))]
        for stream, count in news[0].late.items() if news else ():
            self.late[stream] = self.late.get(stream, 0) + count
        self.memory = _together(n.memory for n in news)
        self._take(Batch(batch, merged, news, frozenset(self.outlets.sinks), content))

    @property
    def stood(self) -> int:
        """The version of the catalog that holds for the batch that was taken last."""
        return self._stood

    def done(self, batch: int, news: list[News], answers: int) -> None:
        """A batch was taken, with its answers handed out."""
        with self.lock:
            self.registrations.settle(batch, news)
            now = time.monotonic()
            self.figures.taken(batch, news, answers, now - self._last)
            self._last = now
            for shard, n in enumerate(news):
                self.balancer.load.told(shard, n.seconds, n.held)

    def _note_stopped(self, news: list[News]) -> None:
        """Shards tell of all queries that have failed there, with each batch."""
        told = {name: Stopped(*why) for n in news for name, why in n.stopped.items()}
        for name in told.keys() - self.stopped.keys():
            told[name].warn([name])
        if news:
            self.stopped = told
            self.figures.stopped = {name: why.say() for name, why in told.items()}

    def close(self) -> None:
        """Let go of the checkpoint and all files."""
        self.outlets.close()
        if self.checkpoint is not None:
            self.checkpoint.close()


def _together(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for each in counts:
        found.update(each)
    return dict(found)


def in_full(stream: StreamSource) -> StreamSource:
    """With paths in full: the processes that read them stand elsewhere."""
    mapping = None if stream.mapping is None else str(Path(stream.mapping).absolute())
    return replace(stream, path=absolute(stream.path), mapping=mapping)
