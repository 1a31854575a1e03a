"""A query by definition as a network: on the same elements and the same clock as all others.

It takes the rows of its streams as elements, and visits each instant of a step at which one comes or at which
its windows change or report by themselves; if it has no windows, each moment at which stored graphs change.
Before each visit the mirror of the stored graphs is moved there.
"""

from __future__ import annotations

from typing import Any

from pyoxigraph import Quad

from kelda.engine.answer import Answer
from kelda.engine.batch import Batch, DefinedBatch
from kelda.engine.budget import Budget
from kelda.engine.by_definition import Definition
from kelda.engine.clock import FOREVER, NEVER
from kelda.engine.mirror import Mirror
from kelda.engine.network import KeptNetwork, Network
from kelda.engine.nodes import Step
from kelda.engine.stopped import EVERYBODYS
from kelda.engine.stream_rows import NO_ROWS, StreamRows
from kelda.engine.window import Element
from kelda.rdf.dictionary import Dictionary
from kelda.store.moments import instant_of, of_instant

MOST_TERMS = 1 << 14  # that are remembered


class FailedAt(Exception):
    """A query has failed after the instant `at`; what it had `said` up to there stands."""

    def __init__(self, error: Exception, at: int, said: list[Answer]) -> None:
        super().__init__(str(error))
        self.error, self.at, self.said = error, at, said


class Elements:
    """The rows of a step as elements: made once for all queries that want them so."""

    def __init__(self, dictionary: Dictionary) -> None:
        self.dictionary = dictionary
        self._step = -1
        self._made: dict[str, list[Element]] = {}
        self._known: dict[int, object] = {}  # terms by id

    def of(self, stream: str, step: Step) -> list[Element]:
        """The elements of a stream, in the order (time, arrival)."""
        if step.number != self._step:
            self._step, self._made = step.number, {}
        if stream not in self._made:
            self._made[stream] = self._elements(step.rows.get(stream, NO_ROWS))
        return self._made[stream]

    def _elements(self, rows: StreamRows) -> list[Element]:
        columns = [column.tolist() for column in (rows.event, rows.time, rows.s, rows.p, rows.o)]
        found: dict[int, tuple[int, list[Quad]]] = {}
        for number, at, s, p, o in zip(*columns, strict=True):
            if s:  # others are there for their time alone
                found.setdefault(number, (at, []))[1].append(Quad(*self._terms((s, p, o))))
        return [Element(number, at, tuple(quads)) for number, (at, quads) in found.items()]

    def _terms(self, ids: tuple[int, ...]) -> list[Any]:
        """The terms of ids; those that come again are not looked up again."""
        if any(id not in self._known for id in ids):
            if len(self._known) > MOST_TERMS:
                self._known.clear()
            self._known.update(zip(ids, self.dictionary.terms(ids), strict=True))
        return [self._known[id] for id in ids]


class DefinedNetwork(Network):
    """One query, asked anew at each report, for some `reason`."""

    rebuilds = False

    def __init__(
        self, definition: Definition, elements: Elements, reason: str, mirror: Mirror | None = None
    ) -> None:
        self.definition, self._elements, self.reason = definition, elements, reason
        self.name, self.query = definition.name, definition.query
        self._visited = NEVER  # all instants up to here have been
        self._mirror = Mirror(definition.store, elements.dictionary) if mirror is None else mirror
        self._place = self._mirror.place  # of the mirror, as far as the query knows it

    def starts_after(self, now: int) -> None:
        """The query was registered when the clock stood at `now`."""
        self._visited = now
        self._see(FOREVER)

    @property
    def who(self) -> int:
        return id(self)

    @property
    def hears_updates(self) -> bool:
        return True  # it has to follow the mirror

    def step(self, step: Step) -> list[Answer]:
        if step.update is not None:
            return self.updated(step.since, step.budget)
        said: list[Answer] = []
        visited = step.since if self._visited == NEVER else self._visited
        end = of_instant(step.until)
        try:
            came = self._came(step)
            if self._visited == NEVER:
                self._see(of_instant(visited))  # what was there before there was time
            while (moment := self._next_moment(visited, next(iter(came), FOREVER))) <= end:
                self._see(moment)
                instant = instant_of(moment)
                said += self.definition.visit(instant, came.pop(instant, []), step.budget)
                visited = instant
            self._see(end)
        except EVERYBODYS:
            raise
        except Exception as error:
            raise FailedAt(error, visited, said) from error
        self._visited = step.until
        return said

    def updated(self, now: int, budget: Budget) -> list[Answer]:
        """What a live query says to changes of stored graphs that were carried out when all up to `now` had
        been answered. Before time has begun it is to be asked only if there are no streams."""
        said: list[Answer] = []
        if self.definition.is_live:
            while (moment := self._mirror.next_moment(self._place)) < FOREVER:
                self._see(moment)
                time = self.definition.t0 if now == NEVER else instant_of(moment)
                said += self.definition.visit(time, [], budget)
        self._see(FOREVER)
        return said

    def _next_moment(self, visited: int, element: int) -> int:
        """When it has to be visited next, if an `element` comes then."""
        by_itself = of_instant(min(element, self.definition.next_instant(visited)))
        if self.definition.is_live:
            return min(by_itself, self._mirror.next_moment(self._place))
        return by_itself

    def _see(self, moment: int) -> None:
        """Look at the stored graphs at a moment."""
        self._mirror.stand(self._place)
        changed = self._mirror.move(moment)
        self._place = self._mirror.place
        if changed:
            self.definition.stored_changed(changed)

    def _came(self, step: Step) -> dict[int, list[tuple[str, Element]]]:
        """The elements of a step with their streams, by their instants, ascending."""
        streams = {window.graph.stream.value for window in self.definition.windows}
        found: dict[int, list[tuple[str, Element]]] = {}
        for stream in sorted(streams):
            for element in self._elements.of(stream, step):
                found.setdefault(element.time, []).append((stream, element))
        return dict(sorted(found.items()))

    def batch(self, sent: list[Answer], dictionary: Dictionary) -> Batch:
        return DefinedBatch(self.who, self.name, sent)

    def add_stream(self, iri: str) -> None:
        self.definition.open_windows(iri)

    def pause(self, name: str, paused: bool, now: int) -> None:
        self.definition.paused = paused

    def drop(self, name: str) -> None:
        self.definition.forget()

    def say(self, equal: int) -> str:
        return f"by the reference evaluator, anew at each report: {self.reason}"

    def snapshot(self) -> KeptNetwork:
        return KeptNetwork((), (self._visited, self.definition.snapshot()))

    def restore(self, kept: KeptNetwork) -> None:
        self._visited, data = kept.report
        self._mirror.move(FOREVER)
        self._place = self._mirror.place
        self.definition.restore(data)
