"""How a deployment runs, in figures."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kelda.shards.shard import News

SMOOTHED = 0.3  # how much a new rate counts


@dataclass(slots=True)
class Figures:
    """Figures of the last batch, and sums."""

    batch: int = -1
    batches: int = 0
    events: int = 0
    bytes: int = 0  # read, of sources as they are stored
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

    def taken(self, batch: int, news: Sequence[News], answers: int, seconds: float) -> None:
        """A batch was taken, so many seconds after the one before. Each shard has news of it."""
        events = sum(count for count, _ in news[0].read.values()) if news else 0
        self.batch, self.batches = batch, self.batches + 1
        self.events += events
        self.bytes += sum(size for _, size in news[0].read.values()) if news else 0
        self.answers += answers
        self.batch_seconds = seconds
        rate = events / max(1e-6, seconds)
        self.rate = rate if self.batches < 3 else self.rate + SMOOTHED * (rate - self.rate)
        self.late += sum(news[0].late.values()) if news else 0
        self.rejected += sum(len(n.rejects) for n in news)
        self.shard_seconds = [n.seconds for n in news]
        self.state_bytes = sum(n.held for n in news)
        self.segments = sum(n.segments for n in news)
        self.rebuilt += sum(n.rebuilt for n in news)
        if news:
            self.stream_time = min(n.now for n in news)
            lag = time.time() - self.stream_time / 1000
            self.lag_seconds = lag if abs(lag) < 86_400 else None

    def json(self) -> str:
        """For machines."""
        return json.dumps(self.as_dict())

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}
