"""What a family of benchmarks is: streams and stored data from a generator, and queries over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Block(NamedTuple):
    """Some text of one stream, whole lines of `.tsnt`: `<ms>\\t<s> <p> <o> .`"""

    stream: str  # IRI
    text: bytes
    triples: int
    until: int  # the last time in it, ms


@dataclass(frozen=True)
class BenchQuery:
    """One query of a benchmark, in each dialect that can say it (`cqels`, `csparql`, `rspql`)."""

    name: str
    description: str
    texts: dict[str, str]
    streams: tuple[str, ...]  # IRIs it reads
    stored: bool = False  # joins with stored data
    notes: str = ""  # where the dialects differ, what was left out of the original


@dataclass(frozen=True)
class Family:
    """A benchmark. Both generators take keyword parameters, all with defaults, `seed` among them.

    `stream(triples=..., rate=..., seed=..., **skew)` yields blocks of all streams that go forward in
    time together, about `triples` in all at `rate` triples per second of stream time.
    `stored(scale=..., seed=...)` yields N-Triples text of the stored data in blocks.
    """

    name: str
    description: str
    streams: tuple[str, ...]
    stream: Callable[..., Iterator[Block]]
    stored: Callable[..., Iterator[bytes]]
    queries: tuple[BenchQuery, ...]
    defaults: dict[str, Any] = field(default_factory=dict)
    source: str = ""  # the paper or site whose description it follows

    def query(self, name: str) -> BenchQuery:
        """The query of that name."""
        return next(q for q in self.queries if q.name == name)
