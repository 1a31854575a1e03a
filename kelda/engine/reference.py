"""The reference evaluator: docs/semantics.md in executable form.

Every query is evaluated by definition (`by_definition.py`) at each instant that matters to any of them. Slow,
obviously right, complete: it is the oracle of every test.

Elements are taken one by one and instants are visited in time order once they are complete, so
the answers cannot depend on how the input was cut into batches.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pyoxigraph import Quad

from kelda.engine.answer import Answer
from kelda.engine.budget import NO_LIMIT
from kelda.engine.by_definition import Definition, check_continuous
from kelda.engine.clock import FOREVER, NEVER, Clock
from kelda.engine.functions import check_functions
from kelda.engine.report import Report, output_of, report_of
from kelda.engine.stopped import EVERYBODYS, Stopped
from kelda.engine.window import Element
from kelda.errors import UsageError
from kelda.lang import algebra as A
from kelda.rdf import wire
from kelda.rdf.event import Event
from kelda.rdf.graphstore import GraphStore


class ReferenceEvaluator:
    """Registered queries over streams and stored graphs, evaluated by definition.

    >>> from pyoxigraph import parse, RdfFormat
    >>> from kelda.lang import parse as parse_query
    >>> evaluator = ReferenceEvaluator()
    >>> evaluator.add_stream("http://ex/s")
    >>> text = "SELECT ?x WHERE { STREAM <http://ex/s> [RANGE 2s] { ?x ?p ?y } }"
    >>> evaluator.register("q", parse_query(text))
    >>> quads = tuple(parse(b"<http://ex/a> <http://ex/p> 1 .", RdfFormat.TURTLE))
    >>> answers = evaluator.push("http://ex/s", [Event(1000, quads)]) + evaluator.end("http://ex/s")
    >>> [(a.time, a.sign, a.bindings["x"].value) for a in answers]
    [(1000, '+', 'http://ex/a')]
    """

    def __init__(
        self,
        *,
        t0: int = 0,
        store: GraphStore | None = None,
        on_late: Callable[[str, Event], None] | None = None,
    ) -> None:
        self.stopped: dict[str, Stopped] = {}  # queries that have failed
        self.t0 = t0
        self.store = GraphStore() if store is None else store
        self.on_late = on_late
        self.clock = Clock()
        self.late: dict[str, int] = {}
        self._queries: dict[str, Definition] = {}
        self._registrations = 0
        self._pending: list[tuple[int, int, str, tuple[Quad, ...]]] = []
        self._arrivals = 0
        self._now = NEVER  # every instant up to here has been visited

    # -------------------------------------------------------------------- set-up

    def add_stream(self, iri: str, *, lateness: int = 0, from_start: bool = False) -> None:
        """Declare a stream. `from_start`: the clock waits for it even before its first element."""
        self.clock.add(iri, lateness, from_start)
        self.late[iri] = 0
        for query in self._queries.values():
            query.open_windows(iri)

    def drop_stream(self, iri: str) -> None:
        """Forget a stream that no query reads. The clock does not wait for it any more."""
        del self.clock.streams[iri], self.late[iri]
        self._pending = [waiting for waiting in self._pending if waiting[2] != iri]
        heapq.heapify(self._pending)

    def register(
        self,
        name: str,
        query: A.Query,
        *,
        output: A.Output | None = None,
        report: Report | None = None,
    ) -> None:
        """Add a query; it sees the elements of the instants that are still to be visited."""
        if name in self._queries or name in self.stopped:
            raise UsageError(f"a query named {name!r} is registered already: choose another name or drop it")
        check_continuous(name, query, self.clock)
        check_functions(query)
        wanted, told = output or output_of(query), report or report_of(query)
        registered = Definition(name, query, wanted, told, self.t0, self._registrations, self.store)
        self._registrations += 1
        for stream in self.clock.streams:
            registered.open_windows(stream)
        self._queries[name] = registered

    def drop(self, name: str) -> None:
        """Forget a query and its windows."""
        if self.stopped.pop(name, None) is not None:
            return
        self._queries.pop(name).forget()

    def pause(self, name: str, paused: bool = True) -> None:
        """A paused query keeps its windows up to date but reports nothing."""
        if name not in self.stopped:
            self._queries[name].paused = paused

    @property
    def queries(self) -> list[str]:
        """Names of the registered queries, those that were stopped included."""
        return [*self._queries, *self.stopped]

    def stop(self, name: str, why: Stopped) -> None:
        """A query has failed: it answers nothing any more, but is still registered."""
        if name not in self.stopped:
            self.drop(name)
        self.stopped[name] = why

    def _each(self, now: int, do: Callable[..., Any], *args: object) -> Iterator[Any]:
        """What `do` gives for each query; one that fails is stopped, the others do not notice."""
        for query in list(self._queries.values()):
            try:
                yield do(query, *args)
            except EVERYBODYS:
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is, it is this query's alone
                why = Stopped.by(error, now)
                why.warn([query.name])
                self.stop(query.name, why)

    def stored_changed(self) -> None:
        """The stored graphs have changed: queries see that from their next report on."""
        for query in self._queries.values():
            query.stored_changed()

    # -------------------------------------------------------------------- input

    def push(self, stream: str, events: Iterable[Event]) -> list[Answer]:
        """Take events, in arrival order; returns the answers of all instants that became complete."""
        clock = self.clock.of(stream)
        answers: list[Answer] = []
        for event in events:
            if not event.quads:
                continue  # an empty message says nothing
            if event.time is None:
                raise UsageError(f"an event on <{stream}> has no time: give one, or a time predicate")
            if event.time <= max(clock.closed, self._now):
                self.late[stream] += 1
                if self.on_late is not None:
                    self.on_late(stream, event)
                continue
            heapq.heappush(self._pending, (event.time, self._arrivals, stream, event.quads))
            self._arrivals += 1
            clock.newest = max(clock.newest, event.time)
            answers += self._advance()
        return answers

    def heartbeat(self, stream: str, time: int) -> list[Answer]:
        """The stream promises that no element at or before `time` will come any more."""
        clock = self.clock.of(stream)
        clock.promised = max(clock.promised, time)
        return self._advance()

    def end(self, stream: str) -> list[Answer]:
        """The stream has no more elements; it no longer holds the clock back."""
        self.clock.of(stream).ended = True
        return self._advance()

    # -------------------------------------------------------------------- time

    def _advance(self) -> list[Answer]:
        """Visit every complete instant that matters, in order."""
        closed = self.clock.closed
        answers: list[Answer] = []
        if closed <= self._now:
            return answers
        first = self._pending[0][0] - 1 if self._pending else closed
        visited = first if self._now == NEVER else self._now
        while True:
            by_itself = self._each(visited, Definition.next_instant, visited)
            instant = min(self._pending[0][0] if self._pending else FOREVER, min(by_itself, default=FOREVER))
            if instant > closed:
                break
            came = self._deliver(instant)
            for some in self._each(visited, Definition.visit, instant, came, NO_LIMIT):
                answers += some
            visited = instant
        self._now = closed
        return answers

    def _deliver(self, instant: int) -> list[tuple[str, Element]]:
        """The elements of an instant, with their streams."""
        came = []
        while self._pending and self._pending[0][0] == instant:
            time, number, stream, quads = heapq.heappop(self._pending)
            came.append((stream, Element(number, time, quads)))
        return came

    # -------------------------------------------------------------------- state

    def snapshot(self) -> bytes:
        """What must survive a restart, apart from stored graphs and the queries themselves."""
        queries = {name: query.snapshot() for name, query in self._queries.items()}
        return wire.encode((self.clock, self.late, self._pending, self._arrivals, self._now, queries))

    def restore(self, data: bytes) -> None:
        """Go on from a snapshot, on an evaluator with the same streams, queries and graphs."""
        self.clock, self.late, self._pending, self._arrivals, self._now, queries = wire.decode(
            data, "what the reference evaluator keeps"
        )
        for name, kept in queries.items():
            self._queries[name].restore(kept)
