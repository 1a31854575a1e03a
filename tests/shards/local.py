"""Shards in one process: what the driver on Spark does, without Spark, and with crashes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from kelda.engine.answer import Answer
from kelda.io.job import StreamSource
from kelda.io.sources.reader import Piece
from kelda.rdf.dictionary import Dictionary, Entries
from kelda.rdf.event import Event
from kelda.shards.catalog import Catalog, Load, Op
from kelda.shards.ingest import encoded, ingest
from kelda.shards.merge import merge
from kelda.shards.parcel import Part, cut, pack
from kelda.shards.planner import Planner
from kelda.shards.setup import Setup
from kelda.shards.shard import News, Outcome, Shard
from kelda.store.changes import Changes
from kelda.store.store import Store


def declare(
    planner: Planner, streams: Iterable[StreamSource], graphs: Iterable[tuple[str | None, str]] = ()
) -> list[Op]:
    """Let a planner know of streams and graphs; returns what the catalog must say."""
    ops: list[Op] = [Load(graph, path) for graph, path in graphs]
    planner.route(ops)
    for stream in streams:
        ops.append(planner.declare(stream))
        planner.route(ops[-1:])
    return ops


@dataclass
class Kept:
    """What one shard has given to be kept: the state store of the pipeline."""

    memory: bytes | None = None
    segments: dict[int, tuple[int, bytes]] = field(default_factory=dict)


class LocalShards:
    """All shards of a set-up, batch by batch."""

    def __init__(
        self,
        setup: Setup,
        streams: Iterable[StreamSource] = (),
        graphs: Iterable[tuple[str | None, str]] = (),
    ) -> None:
        self.setup = setup
        self.planner = Planner(setup)
        self.planner.balancer.load.shards = setup.shards
        self.catalog = Catalog()
        self.shards = [Shard(i, setup) for i in range(setup.shards)]
        self.kept = [Kept() for _ in self.shards]
        self.stored: list[tuple[Changes, Entries | None]] = []  # what batches have changed in stored graphs
        self.batch = 0
        self._numbers: Counter[int] = Counter()
        self.catalog.add(declare(self.planner, streams, graphs))

    def apply(self, ops: Iterable[Op]) -> None:
        """What holds from the next batch on."""
        ops = list(ops)
        self.catalog.add(ops)
        self.planner.route(ops)
        self.planner.stand(ops)

    def push(
        self,
        events: Mapping[str, list[Event]],
        *,
        ends: Iterable[str] = (),
        heartbeats: Mapping[str, int] | None = None,
    ) -> list[Answer]:
        """One batch: events of some streams, in the order of their arrival."""
        dictionary = Dictionary()
        parts: list[list[Part]] = [[] for _ in self.shards]
        beats = heartbeats or {}
        for stream in dict.fromkeys([*events, *beats, *ends]):
            routing = self.planner.routing
            elements = encoded(events.get(stream, []), dictionary, routing.to(stream))
            place = self.planner.declared.number(stream)
            number = self._numbers[place]
            pieces = cut(elements, place, number, len(self.shards), routing.counts(stream))
            for some, part in zip(parts, pieces, strict=True):
                some.append(replace(part, ends=stream in set(ends), heartbeat=beats.get(stream)))
            self._numbers[place] += 1
        outcomes = self._take([pack(some, dictionary, self.catalog.version) for some in parts])
        return merge(outcomes, self.planner.standing).answers()

    def read(self, pieces: Iterable[Piece]) -> tuple[list[Answer], News]:
        """One batch of what sources hand out; its answers, and what it was."""
        version, routing = self.catalog.version, self.planner.routing
        outcomes = self._take(
            ingest(pieces, self.planner.declared.streams, routing, len(self.shards), version)
        )
        return merge(outcomes, self.planner.standing).answers(), outcomes[0].news

    def _take(self, parcels: list[bytes]) -> list[Outcome]:
        outcomes = []
        for shard, kept, parcel in zip(self.shards, self.kept, parcels, strict=True):
            outcome = shard.take(self.batch, self.catalog, [parcel])
            kept.memory = outcome.memory
            kept.segments |= {number: (outcome.version, data) for number, data in outcome.put.items()}
            for number in outcome.removed:
                del kept.segments[number]
            outcomes.append(outcome)
        self.stored.append((outcomes[0].changes, outcomes[0].entries))
        self.batch += 1
        return outcomes

    def crash(self) -> None:
        """Forget everything but what was kept, and stand up again."""
        self.shards = [
            Shard.stand_up(
                i, self.setup, self.catalog, self.batch - 1, kept.memory, kept.segments, store=self._store()
            )
            for i, kept in enumerate(self.kept)
        ]

    def _store(self) -> Store:
        """The stored graphs, made again of what batches have changed."""
        store = Store()
        for changes, entries in self.stored:
            if entries is not None:
                store.dictionary.add_entries(entries)
            store.apply(changes)
        return store
