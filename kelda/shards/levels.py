"""Levels: queries that read the answers of other queries have a clock of their own.

A query reports an instant when all its streams have come so far. If one of these is the answers of
another query, they come after that query has reported: so it cannot wait on the same clock. All queries
of a level have one clock, over the streams from outside and those that lower levels feed. Without such
streams there is level 0 alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from kelda.rdf import wire
from kelda.rdf.dictionary import Dictionary, Entries
from kelda.shards.catalog import Catalog, Register, RegisterMany
from kelda.shards.parcel import version_of
from kelda.shards.setup import Setup
from kelda.shards.shard import Outcome, Shard

LEVEL = 1 << 48  # the numbers of a level's segments lie this far from those of the next


class Levels:
    """All levels of one shard, with the interface of one."""

    def __init__(self, number: int, setup: Setup) -> None:
        self.number, self.setup = number, setup
        self.shards = [Shard(number, setup)]
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
    ) -> Levels:
        """See `Shard.stand_up`."""
        levels = cls(number, setup)
        if memory is None:
            return levels
        levels.shards = [
            Shard.stand_up(
                number,
                setup,
                catalog,
                batch,
                kept,
                {n % LEVEL: segment for n, segment in segments.items() if n // LEVEL == level},
                level,
            )
            for level, kept in enumerate(wire.decode(memory, "what a shard keeps"))
        ]
        levels.batch = batch
        return levels

    def take(self, batch: int, catalog: Catalog, parcels: Iterable[bytes]) -> Outcome:
        """See `Shard.take`; `reported` of the news tells up to when each level has answered."""
        parcels = list(parcels)
        version = max(map(version_of, parcels), default=0)
        ops = catalog.between(self.shards[0].version, version)
        highest = max((op.level for op in ops if isinstance(op, Register | RegisterMany)), default=0)
        for level in range(len(self.shards), highest + 1):
            self.shards.append(Shard(self.number, self.setup, level))
        outcomes = [shard.take(batch, catalog, parcels) for shard in self.shards]
        self.batch = batch
        first = outcomes[0]
        memory = wire.encode([outcome.memory for outcome in outcomes])
        news = [outcome.news for outcome in outcomes]
        return Outcome(
            [told for outcome in outcomes for told in outcome.told],
            [answer for outcome in outcomes for answer in outcome.answers],
            _together([outcome.entries for outcome in outcomes]),
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
                memory=dict(sum((Counter(n.memory) for n in news), Counter())),
            ),
            first.version,
            {n + i * LEVEL: data for i, outcome in enumerate(outcomes) for n, data in outcome.put.items()},
            [n + i * LEVEL for i, outcome in enumerate(outcomes) for n in outcome.removed],
            memory,
        )


def _together(entries: list[Entries | None]) -> Entries | None:
    some = [e for e in entries if e is not None]
    if len(some) < 2:
        return some[0] if some else None
    dictionary = Dictionary()
    for each in some:
        dictionary.add_entries(each)
    return dictionary.entries()
