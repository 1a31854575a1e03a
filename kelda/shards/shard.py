"""A shard: an evaluator with its part of the queries and elements, batch by batch.

What it must not lose goes out with each batch as bytes (new segments, those no longer needed, the
memory); from these `Shard.stand_up` makes the same shard anew, in any process.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from kelda.engine.answer import Answer
from kelda.engine.batch import AnswerBatch, Batch, DefinedBatch
from kelda.engine.block import Block, blocks_of
from kelda.engine.deltas import Ids
from kelda.engine.incremental import IncrementalEvaluator
from kelda.engine.nodes import Step
from kelda.engine.ownership import Owner
from kelda.engine.report import output_of
from kelda.engine.segments import Keeper, Segment, Span, memory_of, pack_step, stand_up
from kelda.engine.sent import Sent
from kelda.io.elements import Events, Pushed
from kelda.io.job import QuerySpec, StreamSource, parse_spec
from kelda.lang import algebra as A
from kelda.lang import prepare
from kelda.plan.partition import Spread
from kelda.plan.shape import QUERY
from kelda.rdf import wire
from kelda.rdf.dictionary import Entries, together
from kelda.rdf.event import Reject
from kelda.shards.catalog import (
    AddStream,
    Catalog,
    Drop,
    DropGraph,
    DropStream,
    Load,
    Op,
    Pause,
    Register,
    RegisterMany,
    Switch,
    Update,
    Warm,
)
from kelda.shards.declared import FED, Declared, absorb_of
from kelda.shards.feeding import signed
from kelda.shards.graphs import carry_out
from kelda.shards.parcel import Part, unpack
from kelda.shards.planner import read_values
from kelda.shards.setup import Setup
from kelda.store.changes import Changes
from kelda.store.store import Store

COUNT_BYTES = 16  # batches between two counts of the bytes held


@wire.plain
@dataclass(frozen=True, slots=True)
class Told:
    """What one network says: `names` are its queries, or those of the column `.q` (numbers from 0)."""

    names: list[str]
    sent: Sent


@wire.plain
@dataclass(frozen=True, slots=True)
class News:
    """What a batch was, for whoever watches: per stream (events, bytes) read, late events, rejects."""

    read: dict[str, tuple[int, int]] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)
    rejects: tuple[Reject, ...] = ()
    now: int = 0  # stream time up to which all is answered
    horizon: int = 0  # the latest time that any stream has told
    seconds: float = 0.0
    held: int = 0  # bytes
    segments: int = 0
    rebuilt: bool = False
    ended: bool = False  # all streams have
    reported: tuple[int, ...] = ()  # stream time up to which each level has answered
    ends: tuple[bool, ...] = ()  # whether all streams of each level have ended
    stopped: dict[str, tuple[int, str]] = field(default_factory=dict)  # queries that have failed: when, why
    told: dict[str, int] = field(default_factory=dict)  # the latest time that each stream has told
    memory: dict[str, int] = field(default_factory=dict)  # bytes held, by query, stream and dictionary

    def level_ended(self, level: int) -> bool:
        """Whether nothing can come on a level any more."""
        return level < len(self.ends) and self.ends[level]


@wire.plain
@dataclass(frozen=True, slots=True)
class Outcome:
    """What a batch gave, and what to keep."""

    told: list[Told]
    answers: list[Answer]  # of queries by the reference evaluator
    entries: Entries | None
    news: News
    version: int  # of the catalog
    put: dict[int, bytes]  # new segments, by number
    removed: list[int]
    memory: bytes
    changes: Changes = field(default_factory=Changes.none)  # of stored graphs, told by the first shard


class Shard:
    """One shard; `batch` is the last batch it has taken, `version` that of the catalog it knows.

    It runs the queries of one `level` (see `kelda.shards.levels`): 0 where no query feeds another."""

    def __init__(
        self,
        number: int,
        setup: Setup,
        level: int = 0,
        *,
        keeps: bool = True,
        store: Store | None = None,
    ) -> None:
        """`keeps`: what it must not lose goes out with each batch. All levels have one `store`."""
        self.number, self.setup, self.level, self.keeps = number, setup, level, keeps
        self.near = False  # whoever hears it is in this process, and looks terms up in its dictionary
        self.declared = Declared()
        self.evaluator: IncrementalEvaluator = setup.evaluator(store)
        self.keeper = Keeper(self.evaluator)
        self.batch = -1
        self.version = 0
        self._spans: dict[int, tuple[int, Span]] = {}  # by segment number: its version, what it spans
        self._next = 0
        self._warming: set[str] = set()
        self._specs: dict[str, Register] = {}
        self._taken: list[tuple[Step, int]] = []
        self._rebuilt = False
        self._standing_up = False
        self._live: list[Batch] = []  # what live queries have said to updates since the last batch
        self._failures: list[str] = []  # of updates
        self._batches = 0
        self._held: dict[str, int] = {}
        if keeps:
            self.evaluator.on_step = self._note

    # -------------------------------------------------------------------- standing up

    @classmethod
    def stand_up(
        cls,
        number: int,
        setup: Setup,
        catalog: Catalog,
        batch: int,
        memory: bytes | None,
        segments: Mapping[int, tuple[int, bytes]],
        level: int = 0,
        store: Store | None = None,
    ) -> Shard:
        """The shard as it was after `batch`, from what it kept: segments by number, with the versions of
        the catalog that held for them, and the store as it was then."""
        shard = cls(number, setup, level, store=store)
        if memory is None:
            return shard
        shard._rebuilt = shard._standing_up = True
        version, kept = wire.decode(memory, "what a shard keeps")
        numbers = sorted(segments)
        by_version: dict[int, list[Segment]] = {}
        for i in numbers:
            by_version.setdefault(segments[i][0], []).append(Segment.unpack(segments[i][1]))
        first = min(by_version, default=version)
        by_version.setdefault(version, [])
        spans: list[Span] = []

        def register(until: int | None) -> None:
            if until is None:
                shard.apply(_lasting(catalog.between(0, first)))
                shard.version = first
            else:
                shard.apply(catalog.between(shard.version, until))
                shard.version = until
            shard.keeper.begin()

        def retaken(segment: Segment) -> None:
            spans.append(shard.keeper.span(Step(0, segment.until, segment.rows)))

        stand_up(shard.evaluator, kept, sorted(by_version.items()), register, retaken)
        shard._spans = {i: (segments[i][0], span) for i, span in zip(numbers, spans, strict=True)}
        shard._next = numbers[-1] + 1 if numbers else 0
        shard.batch = batch
        shard._standing_up = False
        return shard

    # -------------------------------------------------------------------- what holds

    def apply(self, ops: Iterable[Op]) -> None:
        """Entries of the catalog hold."""
        for op in ops:
            match op:
                case AddStream(_, source):
                    self.declared.take([op])
                    if self._hears(source):
                        self._add_stream(source)
                case DropStream(iri):
                    self.declared.take([op])
                    if iri in self.evaluator.clock.streams:
                        self.evaluator.drop_stream(iri)
                case Load() | DropGraph() | Update():
                    if self.level == 0 and not self._standing_up:  # else the store has it already
                        self._live += carry_out(op, self.evaluator, self.declared.kept)
                case Register(name, spec, spread, shard):
                    self._specs[name] = op
                    for _, stream in self.declared.fed_by(name) if self.level > op.level else ():
                        self._add_stream(stream)
                    if op.level == self.level and (spread is not None or shard == self.number):
                        self._register(name, spec, spread)
                case RegisterMany(names, spec, values, spread, shard):
                    mine = op.level == self.level and (spread is not None or shard == self.number)
                    if mine and names[0] not in self.evaluator.queries:
                        prepared = prepare(spec.text, dialect=spec.dialect, base=spec.base)
                        output = _output(spec, spread, prepared.query)
                        self.evaluator.register_many(
                            prepared,
                            names,
                            read_values(values),
                            output=output,
                            report=spec.report,
                            owner=self._owner(spread),
                        )
                case Drop(name):
                    self._warming.discard(name)
                    self._specs.pop(name, None)
                    if name in self.evaluator.queries:
                        self.evaluator.drop(name)
                    for _, stream in self.declared.fed_by(name):
                        if stream.iri in self.evaluator.clock.streams:
                            self.evaluator.input.end(stream.iri)
                case Pause(name, paused):
                    if name in self.evaluator.queries:
                        self.evaluator.pause(name, paused)
                case Warm(name, shard):
                    mine = self._specs[name].level == self.level and shard == self.number
                    if mine and name not in self.evaluator.queries:
                        self._register(name, self._specs[name].spec, None)
                        self._warming.add(name)
                case Switch(name, shard):
                    if shard == self.number:
                        self._warming.discard(name)
                    elif name in self.evaluator.queries:
                        self.evaluator.drop(name)

    def _hears(self, source: StreamSource) -> bool:
        """Whether the queries of this level can read a stream: one that a query feeds is for those above."""
        if not source.path.startswith(FED):
            return True
        feeder = self._specs.get(source.path.removeprefix(FED))
        return feeder is not None and feeder.level < self.level

    def _add_stream(self, source: StreamSource) -> None:
        # From its start: whether it has spoken yet when a batch is cut makes no difference.
        absorb = absorb_of(source) if self._stores(source) else None
        self.evaluator.add_stream(source.iri, lateness=source.lateness, from_start=True, absorb=absorb)

    def _stores(self, source: StreamSource) -> bool:
        """Whether this level is the one that stores what comes on a stream: the lowest that hears it."""
        if not source.path.startswith(FED):
            return self.level == 0
        return self.level == self._specs[source.path.removeprefix(FED)].level + 1

    def _register(self, name: str, spec: QuerySpec, spread: Spread | None) -> None:
        if name in self.evaluator.queries:  # whoever planned it has tried it here
            return
        query = parse_spec(spec)
        output = _output(spec, spread, query)
        self.evaluator.register(name, query, output=output, report=spec.report, owner=self._owner(spread))

    def _owner(self, spread: Spread | None) -> Owner | None:
        return None if spread is None else Owner(spread, self.number)

    # -------------------------------------------------------------------- batches

    def take(self, batch: int, catalog: Catalog, parcels: Iterable[bytes]) -> Outcome:
        """Take the parcels of a batch, which tell the version of the catalog that holds from it on."""
        parts: list[Part] = []
        for parcel in parcels:
            version, some, entries = unpack(parcel)
            self.hold(catalog, version)
            parts += some
            if entries is not None:
                self.evaluator.dictionary.add_entries(entries)
        return self.take_parts(batch, parts)

    def hold(self, catalog: Catalog, version: int) -> None:
        """A version of the catalog holds from the next batch on."""
        if version > self.version:
            self.apply(catalog.between(self.version, version))
            self.version = version

    def take_parts(self, batch: int, parts: list[Part]) -> Outcome:
        """Take the parts of a batch, whose terms the evaluator's dictionary knows."""
        begin = time.perf_counter()
        evaluator = self.evaluator
        late = dict(evaluator.late)
        self.keeper.begin()
        # Of a stream that was dropped meanwhile a part may still be on its way.
        parts = [part for part in parts if part.stream in self.declared.streams]
        parts.sort(key=lambda part: (part.stream, part.number))
        if any(part.idle for part in parts):
            parts = _without_past_silence(parts)
        for part in parts:
            self._feed(part)
        batches = [*self._live, *evaluator.advance()]
        self._live = []
        made = Changes.concat(evaluator.made)
        evaluator.made = []
        told = [_told(batch) for batch in batches if isinstance(batch, AnswerBatch)]
        answers = [a for batch in batches if isinstance(batch, DefinedBatch) for a in batch.answers()]
        if self._warming:
            told = [without(t, self._warming) for t in told]
            answers = [a for a in answers if a.query not in self._warming]
        put = {}
        for step, since in self._taken:
            span = self.keeper.span(step)
            if not self._spans and not self.keeper.needs(span):
                continue
            self._spans[self._next] = (self.version, span)
            put[self._next] = pack_step(*self.keeper.rest(step, since), evaluator.dictionary)
            self._next += 1
        self._taken.clear()
        removed = self._expired()
        read: dict[str, tuple[int, int]] = {}
        for part in parts:
            stream = self.declared.streams[part.stream].iri
            events, size = read.get(stream, (0, 0))
            read[stream] = (events + _events(part), size + part.bytes)
        once = {id(t.sent.values): t.sent for t in told}.values()  # equal queries say the same
        values = [s.values[[i for i, c in enumerate(s.columns) if c != QUERY]].ravel() for s in once]
        changes = made if self.number == 0 else Changes.none()
        entries = None if self.near else self._entries(values, changes)
        self.batch = batch
        rebuilt, self._rebuilt = self._rebuilt, False
        news = News(
            read,
            {s: n - late.get(s, 0) for s, n in evaluator.late.items() if n > late.get(s, 0)},
            tuple(reject for part in parts for reject in part.rejects),
            evaluator.now,
            evaluator.clock.horizon,
            time.perf_counter() - begin,
            sum(self._memory().values()),
            len(self._spans),
            rebuilt,
            bool(evaluator.clock.streams) and all(c.ended for c in evaluator.clock.streams.values()),
            stopped={name: (why.at, why.reason) for name, why in evaluator.stopped.items()},
            told=evaluator.clock.told,
            memory=self._held,
        )
        return Outcome(
            told,
            answers,
            entries,
            news,
            self.version,
            put,
            removed,
            wire.encode((self.version, memory_of(evaluator))) if self.keeps else b"",
            changes,
        )

    def _entries(self, told: list[Ids], changes: Changes) -> Entries | None:
        """The terms of what is told, and of what has changed in stored graphs."""
        parts = []
        if told:
            parts.append(self.evaluator.dictionary.entries_of(np.concatenate(told)))
        if len(changes):
            ids = np.concatenate(changes.columns[:4])
            parts.append(self.evaluator.store.dictionary.entries_of(ids))
        return together(parts)

    # -------------------------------------------------------------------- pushed in this process

    def push(self, stream: str, events: Events, complete: int | None) -> list[Block]:
        """Take events, and the promise that nothing up to `complete` will come any more; what is answered."""
        if isinstance(events, Pushed):
            s, p, o, _, time, event = events.columns
            self.evaluator.dictionary.add_entries(events.dictionary.entries())
            self.evaluator.input.take(stream, s, p, o, time, event)
        else:
            self.evaluator.input.take_events(stream, events)
        if complete is not None:
            self.evaluator.input.promise(stream, complete)
        return self._blocks()

    def heartbeat(self, stream: str, time: int) -> list[Block]:
        """Nothing at or before `time` will come any more on a stream; what is answered."""
        self.evaluator.input.promise(stream, time)
        return self._blocks()

    def end(self, stream: str) -> list[Block]:
        """A stream has no more elements; what is answered."""
        self.evaluator.input.end(stream)
        return self._blocks()

    def said(self) -> list[Block]:
        """What live queries have said to updates."""
        return self._as_blocks([])

    def _blocks(self) -> list[Block]:
        """What has become complete, as columns."""
        return self._as_blocks(self.evaluator.advance())

    def _as_blocks(self, batches: list[Batch]) -> list[Block]:
        """What live queries have said to updates, then more."""
        batches, blocks = [*self._live, *batches], list[Block]()
        self._live = []
        if not self.keeps:
            self.evaluator.made = []  # nobody makes it last
        if self.setup.memory_limit is not None:  # answers take memory, too: it is counted as they are made
            return self._of_answers(self.evaluator.running.answers(batches))
        for batch in batches:
            if isinstance(batch, DefinedBatch):
                blocks += self._of_answers(batch.answers())
                continue
            assert isinstance(batch, AnswerBatch)
            if batch.is_shared:
                blocks += blocks_of(batch.query, ["", *batch.names], batch.sent, batch.dictionary)
            else:
                blocks.append(Block(batch.query, batch.names[0], batch.sent, batch.dictionary))
        return blocks

    def _of_answers(self, answers: list[Answer]) -> list[Block]:
        """Answers that are objects already."""
        found: dict[str, list[Answer]] = {}
        for answer in answers:
            found.setdefault(answer.query, []).append(answer)
        return [Block.of_answers(self._query(name), name, some) for name, some in found.items()]

    def _query(self, name: str) -> A.Query:
        return (
            self.evaluator.network(name).query
            if name not in self._specs
            else parse_spec(self._specs[name].spec)
        )

    def _memory(self) -> dict[str, int]:
        """Bytes held, counted every few batches: it takes milliseconds."""
        if self._batches % COUNT_BYTES == 0:
            self._held = self.evaluator.nbytes
        self._batches += 1
        return self._held

    def _note(self, step: Step) -> None:
        if any(len(rows) for rows in step.rows.values()):
            self._taken.append((step, self.evaluator.now))

    def _expired(self) -> list[int]:
        """Segments from the oldest on that no window needs."""
        removed = []
        for number in sorted(self._spans):
            if self.keeper.needs(self._spans[number][1]):
                break
            removed.append(number)
        for number in removed:
            del self._spans[number]
        return removed

    def _feed(self, part: Part) -> None:
        streams = self.evaluator.input
        stream = self.declared.streams[part.stream].iri
        if stream not in streams.clock.streams:  # a query of this level or above feeds it
            return
        if part.lane is not None:
            streams.open_lane(stream, part.lane)
        if part.size:
            s, p, o, times, stands_for = part.rows()
            if stream in streams.absorbing and self.declared.streams[part.stream].path.startswith(FED):
                s, p, o = signed(s, p, o, part.graphs())
            streams.take(stream, s, p, o, times, part.events, stands_for, part.lane)
        if part.heartbeat is not None:
            streams.promise(stream, part.heartbeat)
        if part.idle:
            streams.silence(stream, part.lane)
        if part.ends:
            streams.end(stream)


def _without_past_silence(parts: list[Part]) -> list[Part]:
    """Who was silent and has spoken again in the same batch is not idle, at no instant of it."""
    spoke = {(part.stream, part.lane): part.number for part in parts if part.size}
    return [
        replace(part, idle=False)
        if part.idle and spoke.get((part.stream, part.lane), part.number) > part.number
        else part
        for part in parts
    ]


def _events(part: Part) -> int:
    if part.events is None or not part.size:
        return part.size
    return int((np.diff(part.events) != 0).sum()) + 1


def _output(spec: QuerySpec, spread: Spread | None, query: A.Query) -> A.Output | None:
    """What the shard's evaluator is to tell: both differences, if they are to be netted."""
    told = output_of(query) if spec.output is None else A.Output(spec.output)
    if spread is not None and spread.merged and told is not A.Output.RSTREAM:
        return A.Output.CHANGES
    return told


def _told(batch: AnswerBatch) -> Told:
    sent, names = batch.sent, batch.names
    if not batch.is_shared:
        return Told(names, sent)
    at = sent.columns.index(QUERY)
    said = np.zeros(len(names) + 1, np.int64)
    said[sent.values[at]] = 1
    values = sent.values.copy()
    values[at] = (np.cumsum(said) - 1)[sent.values[at]]
    return Told([names[i - 1] for i in np.flatnonzero(said)], sent.with_values(sent.columns, values))


def without(told: Told, silent: set[str]) -> Told:
    """Without the rows of queries that are to be silent."""
    if not silent & set(told.names):
        return told
    heard, sent = np.array([name not in silent for name in told.names]), told.sent
    many = QUERY in sent.columns
    whose = sent.values[sent.columns.index(QUERY)] if many else np.zeros(len(sent.time), np.int64)
    return Told(told.names, sent.select(heard[whose]))


def _lasting(ops: list[Op]) -> list[Op]:
    """The ops without queries that are registered and dropped among them."""
    dropped = {op.name for op in ops if isinstance(op, Drop)}
    again = {op.name for op in ops if isinstance(op, Register)} & dropped
    # A name may come again after a drop: then the order decides, and all are kept.
    gone = {
        name
        for name in again
        if max(i for i, op in enumerate(ops) if isinstance(op, Register) and op.name == name)
        < max(i for i, op in enumerate(ops) if isinstance(op, Drop) and op.name == name)
    }
    return [op for op in ops if getattr(op, "name", None) not in gone]
