"""An engine that only remembers what it is told: for tests of what steers engines."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kelda.engine.answer import Answer
from kelda.errors import UsageError
from kelda.io.hold import Hold
from kelda.io.job import StreamSource
from kelda.rdf.event import Reject
from kelda.shards.shard import News


@dataclass
class FakeFigures:
    batches: int = 0
    events: int = 0
    answers: int = 0
    rejected: int = 0
    rate: float = 0.0
    batch_seconds: float = 0.0
    state_bytes: int = 0
    lag_seconds: float | None = None


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


@dataclass
class FakeBatch:
    news: list[News]
    merged: list[Answer] = field(default_factory=list)

    @property
    def rejects(self) -> list[Reject]:
        return [reject for news in self.news for reject in news.rejects]


class FakeEngine:
    """Streams and queries, and a list of what was done to them. It runs until `ends` is set, or `stop`."""

    def __init__(self, *streams: str) -> None:
        self.graphs: list[tuple[str | None, str]] = []
        self.streams = [FakeStream(iri, StreamSource(iri, "s.tsnt")) for iri in streams]
        self.queries: list[FakeQuery] = []
        self.figures = FakeFigures()
        self.late: dict[str, int] = {}
        self.rejects: list[Reject] = []
        self.batches: list[FakeBatch] = []  # what it will bring
        self.done: list[str] = []
        self.hold: Hold | None = None
        self.started, self.ends = threading.Event(), threading.Event()
        self.fails_with: Exception | None = None
        self.watchers: list[Callable[[FakeBatch], None]] = []

    def stream(self, iri: str, source: str, *, lateness: int = 0, **more: object) -> None:
        declared = StreamSource(iri, source, lateness=lateness)
        if not any(stream.iri == iri for stream in self.streams):
            self.streams.append(FakeStream(iri, declared))
            self.done.append(f"stream {iri}")

    def load(self, path: str, graph: str | None, *, format: str | None) -> None:
        self.graphs.append((graph, str(Path(path).absolute())))
        self.done.append(f"load {Path(path).name}")

    def register(
        self, text: str, name: str, params: Mapping[str, object], *, sink: str | None = None, **more: object
    ) -> FakeQuery:
        if any(query.name == name for query in self.queries):
            raise UsageError(f"a query named '{name}' is registered already")
        query = FakeQuery(self, name, text, sink, params)
        self.queries.append(query)
        self.done.append(f"add {name}")
        return query

    def update(self, text: str, *, base: str | None = None) -> None:
        self.done.append(f"update {text} at {base}")

    def watch(self, watcher: Callable[[FakeBatch], None]) -> None:
        self.watchers.append(watcher)

    def start(self) -> None:
        self.done.append("start")
        self.started.set()

    def wait(self, timeout: float | None = None) -> bool:
        for batch in self.batches:
            self.rejects += batch.rejects
            for watcher in self.watchers:
                watcher(batch)
        ended = self.ends.wait(timeout)
        if self.fails_with is not None:
            raise self.fails_with
        return ended

    def stop(self) -> None:
        if self.hold is not None:
            self.done.append("stop")
            self.hold.release()
            self.hold = None
        self.ends.set()


class FakeWorld:
    """`connect`, with checkpoints that are remembered."""

    def __init__(self) -> None:
        self.engines: dict[Path, FakeEngine] = {}
        self.asked: dict[str, object] = {}

    def connect(self, master: str | None = None, *, checkpoint: Path | None, **more: object) -> FakeEngine:
        self.asked = {"master": master, "checkpoint": checkpoint, **more}
        if checkpoint is None:
            return FakeEngine()
        checkpoint.mkdir(exist_ok=True)
        setup = {"driver": "inprocess", "t0": 0, "shards": 1, "by_definition": False}
        (checkpoint / "kelda.json").write_text(json.dumps({"setup": setup}))
        hold = Hold(checkpoint)
        engine = self.engines.setdefault(checkpoint, FakeEngine())
        engine.hold = hold
        engine.started.clear()
        engine.ends.clear()
        return engine
