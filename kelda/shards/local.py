"""Shards in one process: what the Spark pipeline does, without Spark. For tests, and to try a spread."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from kelda.engine.answer import Answer
from kelda.io.sources.reader import Piece
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.event import Event
from kelda.shards.catalog import Catalog, Op
from kelda.shards.ingest import encoded, ingest
from kelda.shards.merge import merge
from kelda.shards.parcel import Part, cut, pack
from kelda.shards.planner import Planner, Setup
from kelda.shards.shard import News, Outcome, Shard


@dataclass
class Kept:
    """What one shard has given to be kept: the state store of the pipeline."""

    memory: bytes | None = None
    segments: dict[int, tuple[int, bytes]] = field(default_factory=dict)


class LocalShards:
    """All shards of a set-up, batch by batch."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.planner = Planner(setup)
        self.planner.balancer.load.shards = setup.shards
        self.catalog = Catalog()
        self.shards = [Shard(i, setup) for i in range(setup.shards)]
        self.kept = [Kept() for _ in self.shards]
        self.batch = 0
        self._places = {stream.iri: i for i, stream in enumerate(setup.streams)}
        self._numbers = dict.fromkeys(self._places, 0)

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
            place, number = self._places[stream], self._numbers[stream]
            pieces = cut(elements, place, number, len(self.shards), routing.counts(stream))
            for some, part in zip(parts, pieces, strict=True):
                some.append(replace(part, ends=stream in set(ends), heartbeat=beats.get(stream)))
            self._numbers[stream] += 1
        outcomes = self._take([pack(some, dictionary, self.catalog.version) for some in parts])
        return merge(outcomes, self.planner.standing).answers()

    def read(self, pieces: Iterable[Piece]) -> tuple[list[Answer], News]:
        """One batch of what sources hand out; its answers, and what it was."""
        version, routing = self.catalog.version, self.planner.routing
        outcomes = self._take(ingest(pieces, self.setup.streams, routing, len(self.shards), version))
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
        self.batch += 1
        return outcomes

    def crash(self) -> None:
        """Forget everything but what was kept, and stand up again."""
        self.shards = [
            Shard.stand_up(i, self.setup, self.catalog, self.batch - 1, kept.memory, kept.segments)
            for i, kept in enumerate(self.kept)
        ]
