"""The reference evaluator: docs/semantics.md in executable form.

At each instant that matters to a query, put the contents of its windows into graphs of a store,
ask pyoxigraph the query as plain SPARQL, and send the difference to the report before. Slow,
obviously right, complete. It is the oracle of every test, and what runs the parts of a query that
have no faster form.

Elements are taken one by one and instants are visited in time order once they are complete, so
the answers cannot depend on how the input was cut into batches.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from pyoxigraph import DefaultGraph, NamedNode, Quad, Triple

from kelda.engine.answer import Answer
from kelda.engine.budget import NO_LIMIT, Budget
from kelda.engine.clock import FOREVER, NEVER, Clock, StreamClock
from kelda.engine.functions import check_functions
from kelda.engine.oneshot import Solutions, as_select, ask, instantiate, named_graphs
from kelda.engine.report import Report, When, output_of, report_of
from kelda.engine.stopped import EVERYBODYS, Stopped
from kelda.engine.window import Element, WindowState, make_window
from kelda.errors import UsageError
from kelda.lang import algebra as A
from kelda.lang.timestamps import TIMESTAMP, asks, latest
from kelda.lang.to_sparql import ROW_O, ROW_P, ROW_S, WINDOW_PREFIX, WindowGraph, to_sparql
from kelda.plan.rules.deterministic import deterministic
from kelda.rdf import wire
from kelda.rdf.event import Event
from kelda.rdf.exact import Needs, to_store
from kelda.rdf.graphstore import GraphStore
from kelda.rdf.times import ms_to_literal

wire.plain(WindowGraph)  # a snapshot has some

SUBJECT, PREDICATE, OBJECT = (NamedNode(iri[1:-1]) for iri in (ROW_S, ROW_P, ROW_O))


@dataclass
class _Window:
    """A window of a query on one stream: its state and its graphs in the store."""

    name: str
    graph: WindowGraph
    state: WindowState
    triples: Counter[Triple] = field(default_factory=Counter)  # how often each is in the graph
    beside: tuple[NamedNode | DefaultGraph, ...] = ()  # stored graphs that are merged with this one

    def move(self, t: int, store: GraphStore) -> None:
        came, left = self.state.move(t)
        self.put(came, store)
        for element in left:
            self.take(element, store)

    def put(self, elements: Iterable[Element], store: GraphStore) -> None:
        quads: list[Quad] = []
        graph = NamedNode(self.graph.graph)
        for element in elements:
            quads += self.row_quads(element)
            for quad in element.quads:
                triple = quad.triple
                self.triples[triple] += 1
                if not any(_in(triple, stored) in store for stored in self.beside):
                    quads.append(_in(triple, graph))
        store.extend(quads)

    def beside_changed(self, store: GraphStore) -> None:
        graph = NamedNode(self.graph.graph)
        for triple in self.triples if self.beside else ():
            store.remove(_in(triple, graph))
            if not any(_in(triple, stored) in store for stored in self.beside):
                store.add(_in(triple, graph))

    def take(self, element: Element, store: GraphStore) -> None:
        graph = NamedNode(self.graph.graph)
        for row in self.row_quads(element):
            store.remove(row)
        for quad in element.quads:
            triple = quad.triple
            self.triples[triple] -= 1
            if not self.triples[triple]:
                del self.triples[triple]
                store.remove(_in(triple, graph))

    def row_quads(self, element: Element) -> list[Quad]:
        if not self.graph.as_rows:
            return []
        graph = NamedNode(self.graph.rows)
        quads = []
        for i, quad in enumerate(element.quads):
            row = NamedNode(f"urn:kelda:row:{element.number}:{i}")
            quads += [
                Quad(row, SUBJECT, quad.subject, graph),
                Quad(row, PREDICATE, quad.predicate, graph),
                Quad(row, OBJECT, quad.object, graph),
            ]
        return quads


def _in(triple: Triple, graph: NamedNode | DefaultGraph) -> Quad:
    return Quad(triple.subject, triple.predicate, triple.object, graph)


@dataclass
class _Registered:
    """A registered query and where it stands."""

    name: str
    query: A.Query
    output: A.Output
    report: Report
    t0: int
    number: int
    windows: list[_Window] = field(default_factory=list)
    default_triples: Counter[Triple] = field(default_factory=Counter)
    last: Counter[Any] = field(default_factory=Counter)
    was_empty: bool = True
    paused: bool = False
    text: str | None = None  # kept while it depends neither on NOW() nor on the streams and graphs there are
    text_needs: Needs = Needs.NOTHING
    asks_times: bool = field(init=False)

    def __post_init__(self) -> None:
        self.asks_times = asks(self.query.pattern)

    # ---------------------------------------------------------------- windows

    def open_windows(self, stream: str) -> None:
        """Give `stream` its windows, if the query reads it."""
        for definition in self.query.windows:
            reads = definition.stream
            if isinstance(reads, A.Var) or (isinstance(reads, NamedNode) and reads.value == stream):
                known = {(w.name, w.graph.stream.value) for w in self.windows}
                if (definition.name, stream) not in known:
                    self.windows.append(self.new_window(definition, stream))
                    self.text = None

    @property
    def default_graph(self) -> str:
        """The graph of all windows that belong to the default graph: their merge."""
        return f"{WINDOW_PREFIX}{self.number}:default"

    def new_window(self, definition: A.WindowDef, stream: str) -> _Window:
        is_default = definition.name in self.query.dataset.windows
        graph = WindowGraph(
            stream=NamedNode(stream),
            graph=self.default_graph if is_default else f"{WINDOW_PREFIX}{self.number}:{len(self.windows)}",
            # In CQELS-QL a stream is a bag of elements; elsewhere a window is an RDF graph.
            as_rows=self.query.dialect is A.Dialect.CQELS,
        )
        on_close = self.report.when is When.WINDOW_CLOSE
        state = make_window(definition.window, t0=self.t0, on_close=on_close)
        return self.place(definition.name, graph, state)

    def place(self, name: str, graph: WindowGraph, state: WindowState) -> _Window:
        """A window with the count of triples in its graph, which default windows share."""
        if graph.graph != self.default_graph:
            return _Window(name, graph, state)
        stored = self.query.dataset.default
        beside = (DefaultGraph(),) if stored is None else stored
        return _Window(name, graph, state, self.default_triples, beside)

    @property
    def empty(self) -> bool:
        return not any(w.state.content for w in self.windows)

    def next_instant(self, t: int) -> int:
        """The first instant after t at which this query has something to do by itself."""
        instants = [w.state.next_change(t) for w in self.windows]
        silent = self.empty and (self.was_empty or self.output is A.Output.RSTREAM)
        if not (self.report.non_empty and silent):
            if self.report.when is When.WINDOW_CLOSE:
                instants += [w.state.next_close(t) for w in self.windows]
            elif self.report.when is When.PERIODIC:
                assert self.report.every is not None
                instants.append(t + 1 + (self.t0 - t - 1) % self.report.every)
        return min(instants, default=FOREVER)

    def visit(
        self, t: int, came: list[tuple[str, Element]], store: GraphStore, budget: Budget
    ) -> list[Answer]:
        """Take the elements that came at t, move the windows there and report if the policy says so."""
        for window in self.windows:
            for stream, element in came:
                if window.graph.stream.value == stream:
                    window.state.add(element)
            window.move(t, store)
        if self.paused or not self.reports_at(t):
            return []
        self.was_empty = self.empty
        return self.send(t, self.result(t, store, budget))

    def reports_at(self, t: int) -> bool:
        match self.report.when:
            case When.CONTENT_CHANGE:
                due = any(w.state.changed for w in self.windows)
            case When.WINDOW_CLOSE:
                due = any(w.state.closed for w in self.windows)
            case When.PERIODIC:
                assert self.report.every is not None
                due = (t - self.t0) % self.report.every == 0
        if not due or not self.report.non_empty or not self.empty:
            return due
        # Empty windows: differences still owe the reader what has just gone.
        return self.output is not A.Output.RSTREAM and not self.was_empty

    # ---------------------------------------------------------------- results

    def sparql(self, t: int, store: GraphStore) -> str:
        if self.text is not None and self.text_needs == store.needs:
            return self.text
        graphs: dict[str, tuple[WindowGraph, ...]] = {w.name: () for w in self.query.windows}
        for window in self.windows:
            graphs[window.name] += (window.graph,)
        query = self.query
        if query.form is A.Form.CONSTRUCT:
            # Differences are taken between bags of solutions; the template is filled in afterwards.
            query = as_select(query)
        stored = named_graphs(query, store)
        text, later = (
            to_sparql(query, windows=graphs, now=ms_to_literal(now), named_graphs=stored, needs=store.needs)
            for now in (t, t + 1)
        )
        if text == later and stored is None:
            self.text, self.text_needs = text, store.needs
        return text

    def result(self, t: int, store: GraphStore, budget: Budget = NO_LIMIT) -> list[Any]:
        """The answer at t as a list of hashable items, in result order."""
        found = ask(
            store,
            self.sparql(t, store),
            self.query,
            windows=tuple(w.graph for w in self.windows),
            default_windows=self.default_graph if self.query.dataset.windows else None,
            functions={TIMESTAMP: latest(self.times())} if self.asks_times else None,
            budget=budget,
        )
        if isinstance(found, Solutions):
            return [tuple(row.items()) for row in found.rows]
        return [found] if isinstance(found, bool) else list(dict.fromkeys(found))

    def times(self) -> dict[tuple[object, object, object], int]:
        """The latest time of each triple in the windows."""
        found: dict[tuple[object, object, object], int] = {}
        for element in (e for w in self.windows for e in w.state.content.values()):
            for quad in element.quads:
                triple = (quad.subject, quad.predicate, to_store(quad.object))
                found[triple] = max(element.time, found.get(triple, element.time))
        return found

    def send(self, t: int, items: list[Any]) -> list[Answer]:
        before, self.last = self.last, Counter(items)
        plus: list[Any] = []
        minus: list[Any] = []
        match self.output:
            case A.Output.RSTREAM:
                plus = items
            case A.Output.ISTREAM:
                plus = _in_order(self.last - before, items)
            case A.Output.DSTREAM:
                minus = list((before - self.last).elements())
            case A.Output.CHANGES:
                minus = list((before - self.last).elements())
                plus = _in_order(self.last - before, items)
        return self.answers(t, "-", minus) + self.answers(t, "+", plus)

    def answers(self, t: int, sign: str, items: list[Any]) -> list[Answer]:
        if not items:
            return []
        match self.query.form:
            case A.Form.SELECT:
                return [Answer(self.name, t, sign, bindings=dict(item)) for item in items]
            case A.Form.ASK:
                return [Answer(self.name, t, sign, boolean=item) for item in items]
            case A.Form.DESCRIBE:
                return [Answer(self.name, t, sign, triples=tuple(items))]
            case A.Form.CONSTRUCT:
                built: dict[Triple | Quad, None] = {}
                for i, item in enumerate(items):
                    built.update(dict.fromkeys(instantiate(self.query.template, dict(item), f"t{t}s{i}")))
                return [Answer(self.name, t, sign, triples=tuple(built))] if built else []


def _in_order(wanted: Counter[Any], items: list[Any]) -> list[Any]:
    """The wanted multiset, in the order of `items` (the last occurrences of a repeated item)."""
    out = []
    for item in reversed(items):
        if wanted[item] > 0:
            wanted[item] -= 1
            out.append(item)
    return out[::-1]


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
        budget: Budget = NO_LIMIT,
    ) -> None:
        self.budget = budget
        self.stopped: dict[str, Stopped] = {}  # queries that have failed
        self.t0 = t0
        self.store = GraphStore() if store is None else store
        self.on_late = on_late
        self.clock = Clock()
        self.late: dict[str, int] = {}
        self._queries: dict[str, _Registered] = {}
        self._registrations = 0
        self._pending: list[tuple[int, int, str, tuple[Quad, ...]]] = []
        self._arrivals = 0
        self._now = NEVER  # every instant up to here has been visited

    # -------------------------------------------------------------------- set-up

    def add_stream(self, iri: str, *, lateness: int = 0, from_start: bool = False) -> None:
        """Declare a stream. `from_start`: the clock waits for it even before its first element."""
        if iri in self.clock.streams:
            raise UsageError(f"stream <{iri}> exists already")
        self.clock.streams[iri] = StreamClock(lateness, from_start)
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
        if not query.windows:
            raise UsageError(
                f"query {name!r} has no window: it is a one-shot query over stored data, not a continuous one"
            )
        for window in query.windows:
            if isinstance(window.stream, NamedNode) and window.stream.value not in self.clock.streams:
                known = ", ".join(f"<{s}>" for s in self.clock.streams) or "none"
                raise UsageError(
                    f"query {name!r} reads the unknown stream {window.stream}; known streams: {known}"
                )
        check_functions(query)
        registered = _Registered(
            name=name,
            query=deterministic(query),
            output=output or output_of(query),
            report=report or report_of(query),
            t0=self.t0,
            number=self._registrations,
        )
        self._registrations += 1
        for stream in self.clock.streams:
            registered.open_windows(stream)
        self._queries[name] = registered

    def drop(self, name: str) -> None:
        """Forget a query and its windows."""
        if self.stopped.pop(name, None) is not None:
            return
        for window in self._queries.pop(name).windows:
            self.store.remove_graph(window.graph.graph)
            self.store.remove_graph(window.graph.rows)

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
        """The stored graphs have changed: a triple is in the graph of a window if it is not beside it."""
        for query in self._queries.values():
            for window in query.windows:
                window.beside_changed(self.store)

    def catch_up(self, clock: Clock, now: int, waiting: Iterable[tuple[str, Event]]) -> None:
        """Stand where another evaluator stands: with its clocks, and what waits there in order of arrival."""
        self.clock = Clock({stream: replace(of) for stream, of in clock.streams.items()})
        self._now, self._pending = now, []
        for stream, event in waiting:
            assert event.time is not None
            heapq.heappush(self._pending, (event.time, self._arrivals, stream, event.quads))
            self._arrivals += 1

    # -------------------------------------------------------------------- input

    def push(self, stream: str, events: Iterable[Event]) -> list[Answer]:
        """Take events, in arrival order; returns the answers of all instants that became complete."""
        clock = self._clock_of(stream)
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
        clock = self._clock_of(stream)
        clock.promised = max(clock.promised, time)
        return self._advance()

    def end(self, stream: str) -> list[Answer]:
        """The stream has no more elements; it no longer holds the clock back."""
        self._clock_of(stream).ended = True
        return self._advance()

    def _clock_of(self, stream: str) -> StreamClock:
        try:
            return self.clock.streams[stream]
        except KeyError:
            known = ", ".join(f"<{s}>" for s in self.clock.streams) or "none"
            raise UsageError(f"unknown stream <{stream}>; known streams: {known}") from None

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
            by_itself = self._each(visited, _Registered.next_instant, visited)
            instant = min(self._pending[0][0] if self._pending else FOREVER, min(by_itself, default=FOREVER))
            if instant > closed:
                break
            came = self._deliver(instant)
            for some in self._each(visited, _Registered.visit, instant, came, self.store, self.budget):
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
        queries = {
            name: ([(w.name, w.graph, w.state) for w in q.windows], q.last, q.was_empty, q.paused)
            for name, q in self._queries.items()
        }
        return wire.encode((self.clock, self.late, self._pending, self._arrivals, self._now, queries))

    def restore(self, data: bytes) -> None:
        """Go on from a snapshot, on an evaluator with the same streams, queries and graphs."""
        self.clock, self.late, self._pending, self._arrivals, self._now, queries = wire.decode(
            data, "what the reference evaluator keeps"
        )
        for name, (windows, last, was_empty, paused) in queries.items():
            query = self._queries[name]
            for old in query.windows:
                self.store.remove_graph(old.graph.graph)
                self.store.remove_graph(old.graph.rows)
            query.default_triples.clear()
            query.windows = [query.place(*parts) for parts in windows]
            query.last, query.was_empty, query.paused, query.text = last, was_empty, paused, None
            for window in query.windows:
                window.put(window.state.content.values(), self.store)
