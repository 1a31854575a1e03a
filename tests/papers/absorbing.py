"""Stored data that absorb streams: by definition, and on the engine that users hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import pytest
from pyoxigraph import NamedNode, Quad, RdfFormat, serialize

import kelda
from kelda.engine.absorb import Absorb
from kelda.engine.answer import Answer
from kelda.engine.oneshot import Result, Solutions
from kelda.engine.reference import ReferenceEvaluator
from kelda.rdf.event import Event
from tests.growing import KEEP

from .scenario import PROLOGUE, Answers, by_instant, parsed_query, short, triples

Rows = Counter[Any]


class Absorbing(Protocol):
    """Streams that are absorbed into stored graphs, and who asks."""

    def load(self, text: str, graph: str) -> None: ...
    def stream(self, iri: str, absorb: str, predicates: Sequence[str] | None) -> None: ...
    def register(self, name: str, text: str) -> None: ...
    def push(self, stream: str, elements: Sequence[tuple[int, str]]) -> None: ...
    def beat(self, stream: str, time: int) -> None: ...
    def answers(self, name: str) -> Answers: ...
    def ask(self, text: str, at: Any = None) -> Rows: ...
    def snapshot(self) -> Any:
        """The present one."""

    def offsets(self, snapshot: Any) -> dict[str, int]:
        """How many elements of each stream are in a snapshot."""


def _events(elements: Sequence[tuple[int, str]]) -> list[Event]:
    return [Event(time, triples(text)) for time, text in elements]


def _rows(found: Result) -> Rows:
    assert isinstance(found, Solutions)
    return Counter(frozenset((name, short(term)) for name, term in row.items()) for row in found.rows)


class ByDefinition:
    """The reference evaluator; a snapshot is a moment, and the elements up to it."""

    def __init__(self) -> None:
        self._evaluator = ReferenceEvaluator()
        self._answers: list[Answer] = []
        self._times: dict[str, list[int]] = {}  # of the elements of each stream

    def load(self, text: str, graph: str) -> None:
        name = NamedNode(graph)
        quads = [Quad(q.subject, q.predicate, q.object, name) for q in triples(text)]
        self._answers += self._evaluator.load(quads)

    def stream(self, iri: str, absorb: str, predicates: Sequence[str] | None) -> None:
        wanted = None if predicates is None else frozenset(predicates)
        self._evaluator.add_stream(iri, from_start=True, absorb=Absorb(absorb, wanted))
        self._times[iri] = []

    def register(self, name: str, text: str) -> None:
        self._evaluator.register(name, parsed_query(text))

    def push(self, stream: str, elements: Sequence[tuple[int, str]]) -> None:
        self._times[stream] += [time for time, _ in elements]
        self._answers += self._evaluator.push(stream, _events(elements))

    def beat(self, stream: str, time: int) -> None:
        self._answers += self._evaluator.heartbeat(stream, time)

    def answers(self, name: str) -> Answers:
        return by_instant([name], [a for a in self._answers if a.query == name])[name]

    def ask(self, text: str, at: Any = None) -> Rows:
        return _rows(self._evaluator.ask(PROLOGUE + text, None if at is None else at[0]))

    def snapshot(self) -> Any:
        instant = self._evaluator.clock.closed
        taken = {stream: sum(t <= instant for t in times) for stream, times in self._times.items()}
        return self._evaluator.moment, taken

    def offsets(self, snapshot: Any) -> dict[str, int]:
        return dict(snapshot[1])


class OnEngine:
    """What users hold."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._files = folder, 0
        self.engine = kelda.connect(**KEEP)
        self.engine.start()
        self._answers: dict[str, list[Answer]] = {}

    def load(self, text: str, graph: str) -> None:
        path = self._folder / f"{self._files}.nt"
        self._files += 1
        path.write_bytes(serialize((q.triple for q in triples(text)), format=RdfFormat.N_TRIPLES))
        self.engine.load(path, graph)

    def stream(self, iri: str, absorb: str, predicates: Sequence[str] | None) -> None:
        self.engine.stream(iri, absorb=absorb, predicates=predicates)  # type: ignore[call-arg]

    def _stream(self, iri: str) -> kelda.Stream:
        return next(stream for stream in self.engine.streams if stream.iri == iri)

    def register(self, name: str, text: str) -> None:
        self.engine.register(PROLOGUE + text, name)
        self._answers[name] = []

    def push(self, stream: str, elements: Sequence[tuple[int, str]]) -> None:
        if elements:
            self._stream(stream).push(_events(elements))

    def beat(self, stream: str, time: int) -> None:
        self._stream(stream).heartbeat(time)

    def answers(self, name: str) -> Answers:
        assert self.engine.flush(60)
        query = next(query for query in self.engine.queries if query.name == name)
        self._answers[name] += query.results()
        return by_instant([name], self._answers[name])[name]

    def ask(self, text: str, at: Any = None) -> Rows:
        assert self.engine.flush(60)
        return _rows(self.engine.query(PROLOGUE + text, at=at))  # type: ignore[call-arg]

    def snapshot(self) -> Any:
        assert self.engine.flush(60)
        return self.engine.snapshots()[-1].number  # type: ignore[attr-defined]

    def offsets(self, snapshot: Any) -> dict[str, int]:
        every = self.engine.snapshots()  # type: ignore[attr-defined]
        found = next(one for one in every if one.number == snapshot)
        return {stream: int(offset) for stream, offset in found.offsets.items()}


def on_every_side(test: Callable[[Absorbing], None]) -> Callable[[str], None]:
    """Run a test by definition, and on the engine."""

    @pytest.mark.parametrize("where", ["by definition", "engine"])
    def run(where: str) -> None:
        if where == "by definition":
            test(ByDefinition())
            return
        with TemporaryDirectory() as folder:
            side = OnEngine(Path(folder))
            try:
                test(side)
            finally:
                side.engine.stop()

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run
