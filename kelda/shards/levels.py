"""Levels: queries that read the answers of other queries have a clock of their own.

A query reports an instant when all its streams have come so far. If one of these is the answers of
another query, they come after that query has reported: so it cannot wait on the same clock. All queries
of a level have one clock, over the streams from outside and those that lower levels feed. Without such
streams there is level 0 alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from kelda.rdf import wire
from kelda.rdf.dictionary import together
from kelda.shards.catalog import Catalog, Op, Register, RegisterMany
from kelda.shards.feeding import fed_graph
from kelda.shards.parcel import Part, version_of
from kelda.shards.setup import Setup
from kelda.shards.shard import News, Outcome, Shard
from kelda.store.changes import Changes
from kelda.store.store import Store

LEVEL = 1 << 48  # the numbers of a level's segments lie this far from those of the next


class Levels:
    """All levels of one shard, with the interface of one."""

    def __init__(self, number: int, setup: Setup, *, keeps: bool = True, store: Store | None = None) -> None:
        self.number, self.setup, self._keeps = number, setup, keeps
        self.shards = [Shard(number, setup, keeps=keeps, store=store)]
        self.batch = -1

    @classmethod
    def stand_up(
        cls,
        number: int,
        setup: Setup,
        catalog: Catalog,
        batch: int,
        memory: bytes | None,
        segments: Mapping[int, tuple[int, bytes]],
        store: Store | None = None,
    ) -> Levels:
        """See `Shard.stand_up`."""
        levels = cls(number, setup, store=store)
        if memory is None:
            return levels
        store = levels.store
        levels.shards = [
            Shard.stand_up(
                number,
                setup,
                catalog,
                batch,
                kept,
                {n % LEVEL: segment for n, segment in segments.items() if n // LEVEL == level},
                level,
                store,
            )
            for level, kept in enumerate(wire.decode(memory, "what a shard keeps"))
        ]
        levels.batch = batch
        return levels

    def take(self, batch: int, catalog: Catalog, parcels: Iterable[bytes]) -> Outcome:
        """See `Shard.take`; `reported` of the news tells up to when each level has answered."""
        parcels = list(parcels)
        version = max(map(version_of, parcels), default=0)
        self._grow(catalog.between(self.version, version))
        return self._outcome(batch, [shard.take(batch, catalog, parcels) for shard in self.shards])

    @property
    def store(self) -> Store:
        """The stored graphs, of all levels."""
        return self.shards[0].evaluator.store

    @property
    def version(self) -> int:
        """That of the catalog that holds."""
        return self.shards[0].version

    def hold(self, catalog: Catalog, version: int) -> None:
        """See `Shard.hold`."""
        self._grow(catalog.between(self.version, version))
        for shard in self.shards:
            shard.hold(catalog, version)

    def apply(self, ops: Sequence[Op], catalog: Catalog) -> None:
        """Carry out what is about to be the next entry of the catalog."""
        self._grow(ops)
        for shard in self.shards:
            shard.hold(catalog, catalog.version)  # one that is new knows nothing yet
            shard.apply(ops)
            shard.version += 1

    def _grow(self, ops: Sequence[Op]) -> None:
        """Have all levels that entries ask for."""
        # What feeds a stored graph is heard by the level above, which stores it.
        feeding = [op.level + 1 for op in ops if isinstance(op, Register) and fed_graph(op) is not None]
        levels = [op.level for op in ops if isinstance(op, Register | RegisterMany)]
        highest = max([*levels, *feeding], default=0)
        for level in range(len(self.shards), highest + 1):
            shard = Shard(self.number, self.setup, level, keeps=self._keeps, store=self.store)
            self.shards.append(shard)

    def take_parts(self, batch: int, parts: list[Part]) -> Outcome:
        """See `Shard.take_parts`; the dictionary of the first level knows the terms."""
        first, *others = self.shards
        first.near = not others
        if others and parts:
            columns = [a for part in parts for a in (part.s, part.p, part.o, part.g) if a is not None]
            entries = first.evaluator.dictionary.entries_of(np.concatenate(columns))
            for shard in others:
                shard.evaluator.dictionary.add_entries(entries)
        return self._outcome(batch, [shard.take_parts(batch, list(parts)) for shard in self.shards])

    def clocks(self) -> News:
        """Where the clocks stand, without a batch."""
        evaluators = [shard.evaluator for shard in self.shards]
        return News(
            now=min(evaluator.now for evaluator in evaluators),
            horizon=max(evaluator.clock.horizon for evaluator in evaluators),
            told={iri: time for evaluator in evaluators for iri, time in evaluator.clock.told.items()},
        )

    def _outcome(self, batch: int, outcomes: list[Outcome]) -> Outcome:
        self.batch = batch
        first = outcomes[0]
        memory = wire.encode([outcome.memory for outcome in outcomes])
        news = [outcome.news for outcome in outcomes]
        return Outcome(
            [told for outcome in outcomes for told in outcome.told],
            [answer for outcome in outcomes for answer in outcome.answers],
            together([outcome.entries for outcome in outcomes]),
            replace(
                news[0],
                now=min(n.now for n in news),
                horizon=max(n.horizon for n in news),
                seconds=sum(n.seconds for n in news),
                held=sum(n.held for n in news),
                segments=sum(n.segments for n in news),
                rebuilt=any(n.rebuilt for n in news),
                ended=all(n.ended for n in news),
                reported=tuple(n.now for n in news),
                ends=tuple(n.ended for n in news),
                stopped={name: why for n in news for name, why in n.stopped.items()},
                told={iri: time for n in news for iri, time in n.told.items()},
                memory=dict(sum((Counter(n.memory) for n in news), Counter())),
            ),
            first.version,
            {n + i * LEVEL: data for i, outcome in enumerate(outcomes) for n, data in outcome.put.items()},
            [n + i * LEVEL for i, outcome in enumerate(outcomes) for n in outcome.removed],
            memory,
            Changes.concat([outcome.changes for outcome in outcomes]),
        )
