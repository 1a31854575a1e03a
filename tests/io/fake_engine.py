"""An engine that only remembers what it is told: for tests of what steers engines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kelda.engine.answer import Answer
from kelda.errors import UsageError
from kelda.io.job import StreamSource


@dataclass
class FakeFigures:
    events: int = 0
    answers: int = 0


@dataclass
class FakeStream:
    iri: str
    source: StreamSource


@dataclass
class FakeQuery:
    engine: FakeEngine
    name: str
    text: str
    sink: str | None = None
    params: Mapping[str, object] = field(default_factory=dict)
    state: str = "running"
    error: Exception | None = None
    callbacks: list[Callable[[Answer], None]] = field(default_factory=list)

    def pause(self) -> None:
        self.state = "paused"

    def resume(self) -> None:
        self.state = "running"

    def stop(self) -> None:
        self.engine.done.append(f"drop {self.name}")
        self.engine.queries.remove(self)

    def subscribe(self, callback: Callable[[Answer], None]) -> None:
        self.callbacks.append(callback)


class FakeEngine:
    """Streams and queries, and a list of what was done to them."""

    def __init__(self, *streams: str) -> None:
        self.streams = [FakeStream(iri, StreamSource(iri, "s.tsnt")) for iri in streams]
        self.queries: list[FakeQuery] = []
        self.figures = FakeFigures()
        self.done: list[str] = []

    def register(
        self, text: str, name: str, params: Mapping[str, object], *, sink: str | None = None, **more: object
    ) -> FakeQuery:
        if any(query.name == name for query in self.queries):
            raise UsageError(f"a query named '{name}' is registered already")
        query = FakeQuery(self, name, text, sink, params)
        self.queries.append(query)
        self.done.append(f"add {name}")
        return query
