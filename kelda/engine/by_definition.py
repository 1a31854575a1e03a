"""A query by definition: docs/semantics.md in executable form, for one query.

At each instant that matters to it, put the contents of its windows into graphs of a store, ask pyoxigraph
the query as plain SPARQL, and send the difference to the report before. Slow, obviously right, complete.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from pyoxigraph import DefaultGraph, NamedNode, Quad, Triple

from kelda.engine.answer import Answer
from kelda.engine.budget import NO_LIMIT, Budget
from kelda.engine.clock import FOREVER, Clock
from kelda.engine.oneshot import Solutions, as_select, ask, instantiate, named_graphs
from kelda.engine.report import Report, When
from kelda.engine.window import Element, WindowState, make_window
from kelda.errors import UsageError
from kelda.lang import algebra as A
from kelda.lang.timestamps import TIMESTAMP, asks, latest
from kelda.lang.to_sparql import ROW_O, ROW_P, ROW_S, WINDOW_PREFIX, WindowGraph, to_sparql
from kelda.plan.rules.deterministic import deterministic
from kelda.plan.stored_reads import GraphName, StoredReads, stored_reads
from kelda.rdf import wire
from kelda.rdf.exact import Needs, to_store
from kelda.rdf.graphstore import GraphStore
from kelda.rdf.times import ms_to_literal

wire.plain(WindowGraph)  # a snapshot has some

SUBJECT, PREDICATE, OBJECT = (NamedNode(iri[1:-1]) for iri in (ROW_S, ROW_P, ROW_O))


def check_continuous(name: str, query: A.Query, clock: Clock, *, live: bool = False) -> None:
    """Refuse a query that reads a stream that is not there, or has no window and is not to be `live`."""
    if not query.windows and not live:
        raise UsageError(
            f"query {name!r} has no window: it is a one-shot query over stored data, not a continuous one"
        )
    if not query.windows and query.every is not None:
        raise UsageError(
            f"query {name!r} has no window: it reports when stored graphs change, not every {query.every} ms"
        )
    for window in query.windows:
        if isinstance(window.stream, NamedNode) and window.stream.value not in clock.streams:
            raise UsageError(f"query {name!r} reads the unknown stream {window.stream}; {clock.known}")


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


class Told(NamedTuple):
    """The items that are gone, and those that are new, in a report; nothing if there is none."""

    gone: Sequence[Any] = ()
    new: Sequence[Any] = ()


@dataclass
class Definition:
    """A query and where it stands. The graphs of its windows are in `store`, under its `number`."""

    name: str
    query: A.Query
    output: A.Output
    report: Report
    t0: int
    number: int
    store: GraphStore
    windows: list[_Window] = field(default_factory=list)
    default_triples: Counter[Triple] = field(default_factory=Counter)
    last: Counter[Any] = field(default_factory=Counter)
    was_empty: bool = True
    paused: bool = False
    text: str | None = None  # kept while it depends neither on NOW() nor on the streams and graphs there are
    text_needs: Needs = Needs.NOTHING
    asks_times: bool = field(init=False)
    is_live: bool = field(init=False)  # it has no windows, and reports when a graph that it reads has changed
    due: bool = True  # if it is live: it has something to report, its whole answer to begin with
    reads: StoredReads = field(init=False)

    def __post_init__(self) -> None:
        self.query = deterministic(self.query)
        self.asks_times = asks(self.query.pattern)
        self.is_live = not self.query.windows
        self.reads = stored_reads(self.query)

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

    def window_graph(self, i: int) -> str:
        """The graph of a window alone, by its place."""
        return f"{WINDOW_PREFIX}{self.number}:{i}"

    def new_window(self, definition: A.WindowDef, stream: str) -> _Window:
        is_default = definition.name in self.query.dataset.windows
        graph = WindowGraph(
            stream=NamedNode(stream),
            graph=self.default_graph if is_default else self.window_graph(len(self.windows)),
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

    def stored_changed(self, graphs: Collection[GraphName] | None = None) -> None:
        """Stored graphs have changed (None: any of them). A triple is in the graph of a window if it is not
        beside it; who is live has something to report."""
        if graphs is None or self.reads.any_of(graphs):
            self.due = True
            for window in self.windows:
                window.beside_changed(self.store)

    def forget(self) -> None:
        """It is gone: so are its graphs."""
        for window in self.windows:
            self.store.remove_graph(window.graph.graph)
            self.store.remove_graph(window.graph.rows)

    @property
    def empty(self) -> bool:
        return not any(w.state.content for w in self.windows)

    def next_instant(self, t: int) -> int:
        """The first instant after t at which this query has something to do by itself."""
        if self.is_live:
            return t + 1 if self.due and not self.paused else FOREVER
        instants = [w.state.next_change(t) for w in self.windows]
        silent = self.empty and (self.was_empty or self.output is A.Output.RSTREAM)
        if not (self.report.non_empty and silent):
            if self.report.when is When.WINDOW_CLOSE:
                instants += [w.state.next_close(t) for w in self.windows]
            elif self.report.when is When.PERIODIC:
                assert self.report.every is not None
                instants.append(t + 1 + (self.t0 - t - 1) % self.report.every)
        return min(instants, default=FOREVER)

    def visit(self, t: int, came: list[tuple[str, Element]], budget: Budget) -> list[Answer]:
        """What it says at t, when the elements that came then are in its windows."""
        told = self.told(t, came, budget)
        return self.answers(t, "-", told.gone) + self.answers(t, "+", told.new)

    def told(self, t: int, came: list[tuple[str, Element]], budget: Budget) -> Told:
        """Take the elements that came at t, move the windows there and report if the policy says so."""
        for window in self.windows:
            for stream, element in came:
                if window.graph.stream.value == stream:
                    window.state.add(element)
            window.move(t, self.store)
        if self.paused or not self.reports_at(t):
            return Told()
        self.was_empty, self.due = self.empty, False
        return self.difference(self.result(t, budget))

    def reports_at(self, t: int) -> bool:
        if self.is_live:
            return self.due
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

    def sparql(self, t: int) -> str:
        needs = self.store.needs
        if self.text is not None and self.text_needs == needs:
            return self.text
        graphs: dict[str, tuple[WindowGraph, ...]] = {w.name: () for w in self.query.windows}
        for window in self.windows:
            graphs[window.name] += (window.graph,)
        query = self.query
        if query.form is A.Form.CONSTRUCT:
            # Differences are taken between bags of solutions; the template is filled in afterwards.
            query = as_select(query)
        stored = named_graphs(query, self.store)
        text, later = (
            to_sparql(query, windows=graphs, now=ms_to_literal(now), named_graphs=stored, needs=needs)
            for now in (t, t + 1)
        )
        if text == later and stored is None:
            self.text, self.text_needs = text, needs
        return text

    def result(self, t: int, budget: Budget = NO_LIMIT) -> list[Any]:
        """The answer at t as a list of hashable items, in result order."""
        found = ask(
            self.store,
            self.sparql(t),
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

    def difference(self, items: list[Any]) -> Told:
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
        return Told(minus, plus)

    def answers(self, t: int, sign: str, items: Sequence[Any]) -> list[Answer]:
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

    # ---------------------------------------------------------------- what survives

    def snapshot(self) -> bytes:
        """What must survive a restart, apart from the query itself and stored graphs."""
        windows = [(w.name, w.graph, w.graph.graph == self.default_graph, w.state) for w in self.windows]
        return wire.encode((windows, self.last, self.was_empty, self.paused, self.due))

    def restore(self, data: bytes) -> None:
        """Go on from a snapshot."""
        windows, self.last, self.was_empty, self.paused, self.due = wire.decode(
            data, "what a query by definition keeps"
        )
        self.forget()
        self.default_triples.clear()
        self.windows = []
        for i, (name, graph, is_default, state) in enumerate(windows):
            # The query may have another number than before, and that one may be somebody else's.
            own = replace(graph, graph=self.default_graph if is_default else self.window_graph(i))
            self.windows.append(self.place(name, own, state))
        self.text = None
        for window in self.windows:
            window.put(window.state.content.values(), self.store)


def _in_order(wanted: Counter[Any], items: list[Any]) -> list[Any]:
    """The wanted multiset, in the order of `items` (the last occurrences of a repeated item)."""
    out = []
    for item in reversed(items):
        if wanted[item] > 0:
            wanted[item] -= 1
            out.append(item)
    return out[::-1]
