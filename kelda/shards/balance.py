"""Balancing: on which shard a query goes whose state cannot be spread, after CQELS+'s three strategies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kelda.errors import UsageError


@dataclass
class Load:
    """What shards said of themselves lately."""

    shards: int
    seconds: list[float] = field(default_factory=list)  # per batch, smoothed
    bytes: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.seconds = self.seconds or [0.0] * self.shards
        self.bytes = self.bytes or [0] * self.shards

    def told(self, shard: int, seconds: float, held: int) -> None:
        """A shard has taken a batch."""
        self.seconds[shard] += 0.2 * (seconds - self.seconds[shard])
        self.bytes[shard] = held


class Balancer(Protocol):
    """Chooses a shard for a query; `placed` has those of the other whole queries."""

    load: Load

    def place(self, name: str, placed: Mapping[str, int]) -> int: ...


class Rotation:
    """One after another: the shard with the fewest whole queries, the first of them."""

    def __init__(self, load: Load | None = None) -> None:
        self.load = load or Load(1)

    def place(self, name: str, placed: Mapping[str, int]) -> int:
        counts = Counter(placed.values())
        return min(range(self.load.shards), key=lambda shard: (counts[shard], shard))


class LeastLatency(Rotation):
    """The shard that took its last batches fastest."""

    def place(self, name: str, placed: Mapping[str, int]) -> int:
        counts = Counter(placed.values())
        return min(range(self.load.shards), key=lambda s: (self.load.seconds[s], counts[s], s))


class SmallestBuffers(Rotation):
    """The shard that holds the fewest bytes."""

    def place(self, name: str, placed: Mapping[str, int]) -> int:
        counts = Counter(placed.values())
        return min(range(self.load.shards), key=lambda s: (self.load.bytes[s], counts[s], s))


STRATEGIES: dict[str, type[Rotation]] = {
    "rotation": Rotation,
    "least-latency": LeastLatency,
    "smallest-buffers": SmallestBuffers,
}


def balancer(name: str, shards: int) -> Rotation:
    """The strategy of that name."""
    if name not in STRATEGIES:
        raise UsageError(f"no balancing strategy {name!r}: choose one of {', '.join(STRATEGIES)}")
    return STRATEGIES[name](Load(shards))
