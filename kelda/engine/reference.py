"""The reference evaluator: docs/semantics.md in executable form.

Every query is evaluated by definition (`by_definition.py`) at each instant that matters to any of them. Slow,
obviously right, complete: it is the oracle of every test.

Elements are taken one by one and instants are visited in time order once they are complete, so
the answers cannot depend on how the input was cut into batches.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TypeVar

from pyoxigraph import DefaultGraph, NamedNode, Quad

from kelda.engine.absorb import Absorb
from kelda.engine.answer import Answer
from kelda.engine.budget import NO_LIMIT
from kelda.engine.by_definition import Definition, Told, check_continuous
from kelda.engine.clock import FOREVER, NEVER, Clock
from kelda.engine.feed import Feed, check_feed
from kelda.engine.functions import check_functions
from kelda.engine.oneshot import Result, evaluate
from kelda.engine.plain_update import updated
from kelda.engine.remembered import Remembered
from kelda.engine.report import Report, output_of, report_of
from kelda.engine.stopped import EVERYBODYS, Stopped
from kelda.engine.window import Element
from kelda.errors import UsageError
from kelda.lang import algebra as A
from kelda.lang import parse
from kelda.plan.stored_reads import GraphName
from kelda.rdf import wire
from kelda.rdf.event import Event
from kelda.rdf.graphstore import GraphStore
from kelda.store import moments

T = TypeVar("T")


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
        self._stored = Remembered(self.store)
        self._absorb: dict[str, Absorb] = {}  # by stream
        self._late_facts: list[tuple[int, str, tuple[Quad, ...]]] = []  # since when, of which stream
        self._feeds: dict[str, Feed] = {}  # by query

    # -------------------------------------------------------------------- set-up

    def add_stream(
        self, iri: str, *, lateness: int = 0, from_start: bool = False, absorb: Absorb | None = None
    ) -> None:
        """Declare a stream. `from_start`: the clock waits for it even before its first element. With `absorb`
        its elements become facts of a stored graph."""
        if absorb is not None and absorb.graph is not None:
            self._refuse_fed([NamedNode(absorb.graph)], f"stream <{iri}> cannot be absorbed")
        self.clock.add(iri, lateness, from_start)
        if absorb is not None:
            self._absorb[iri] = absorb
        self.late[iri] = 0
        for query in self._queries.values():
            query.open_windows(iri)

    def drop_stream(self, iri: str) -> None:
        """Forget a stream that no query reads. The clock does not wait for it any more."""
        del self.clock.streams[iri], self.late[iri]
        self._absorb.pop(iri, None)
        self._late_facts = [waiting for waiting in self._late_facts if waiting[1] != iri]
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
        """Add a query; it sees the elements of the instants that are still to be visited. One without windows
        is live: it reports when stored graphs change."""
        if name in self._queries or name in self.stopped:
            raise UsageError(f"a query named {name!r} is registered already: choose another name or drop it")
        check_continuous(name, query, self.clock, live=report is None)
        check_functions(query)
        wanted, told = output or output_of(query), report or report_of(query)
        registered = Definition(name, query, wanted, told, self.t0, self._registrations, self.store)
        self._registrations += 1
        for stream in self.clock.streams:
            registered.open_windows(stream)
        self._queries[name] = registered

    def feed(self, name: str, graph: str) -> None:
        """From now on the answers of a query, which has reported nothing yet, go into a stored graph."""
        query = self._queries[name]
        check_feed(name, query.query, query.output)
        target = NamedNode(graph)
        refused = f"query {name!r} cannot feed <{graph}>"
        self._refuse_fed([target], refused)
        if any(absorb.graph == graph for absorb in self._absorb.values()):
            raise UsageError(f"{refused}: a stream is absorbed into it")
        readers = [other.name for other in self._queries.values() if target in other.reads]
        if readers:
            raise UsageError(
                f"{refused}: {', '.join(map(repr, readers))} reads it already; a query that feeds a graph is "
                "registered before those that read it, and reads nothing that comes from there"
            )
        self._feeds[name] = Feed(query.query, graph, f"q{query.number}")

    def drop(self, name: str) -> None:
        """Forget a query and its windows. What it has fed into a graph stays."""
        if self.stopped.pop(name, None) is not None:
            return
        self._feeds.pop(name, None)
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

    def _each(self, now: int, do: Callable[..., T], *args: object) -> Iterator[tuple[Definition, T]]:
        """What `do` gives for each query; one that fails is stopped, the others do not notice."""
        for query in list(self._queries.values()):
            try:
                done = do(query, *args)
            except EVERYBODYS:
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is, it is this query's alone
                why = Stopped.by(error, now)
                why.warn([query.name])
                self.stop(query.name, why)
            else:
                yield query, done

    # -------------------------------------------------------------------- stored graphs

    def load(self, quads: Iterable[Quad]) -> list[Answer]:
        """Store facts; returns what live queries say to that."""
        return self._carry_out([], quads)

    def clear(self, graph: str | None) -> list[Answer]:
        """Take out all that is in a graph (None: the default graph)."""
        name = DefaultGraph() if graph is None else NamedNode(graph)
        return self._carry_out([quad for quad in self._stored if quad.graph_name == name], [])

    def update(self, text: str) -> list[Answer]:
        """Carry out a SPARQL update, one that is deterministic."""
        before = set(self._stored)
        after = updated(before, text)
        return self._carry_out(before - after, after - before)

    def ask(self, text: str, at: int | None = None) -> Result:
        """Ask once: the stored graphs as they are now, or as they were at a moment."""
        return evaluate(parse(text), self._stored.at(FOREVER if at is None else at))

    @property
    def moment(self) -> int:
        """Up to which all is stored."""
        return max(self._stored.latest, moments.of_instant(self._now))

    def stored_changed(self) -> list[Answer]:
        """Somebody else has changed the stored graphs: queries see that from their next report on."""
        for query in self._queries.values():
            query.stored_changed()
        return self._live(moments.behind(self._now, self._stored.latest))

    def _carry_out(self, gone: Iterable[Quad], new: Iterable[Quad]) -> list[Answer]:
        """Change stored graphs between two instants."""
        gone, new = list(gone), list(new)
        self._refuse_fed({quad.graph_name for quad in [*gone, *new]}, "this cannot be carried out")
        moment = moments.behind(self._now, self._stored.latest)
        return self._live(moment) if self._change(moment, gone, new) else []

    def _live(self, moment: int) -> list[Answer]:
        """What live queries say between two instants. Before the first there is no time to say it at: they
        wait for it, unless there is no stream that would bring it."""
        if self._now == NEVER and self.clock.streams:
            return []
        time = self.t0 if self._now == NEVER else moments.instant_of(moment)
        return self._say(self._now, moment, time, lambda query: _told_if_live(query, time))

    def _change(self, moment: int, gone: Iterable[Quad], new: Iterable[Quad]) -> bool:
        graphs = self._stored.change(moment, gone, new)
        for query in self._queries.values() if graphs else ():
            query.stored_changed(graphs)
        return bool(graphs)

    def _refuse_fed(self, graphs: Collection[GraphName], refused: str) -> None:
        for name, feed in self._feeds.items():
            if feed.graph in graphs:
                raise UsageError(f"{refused}: {feed.graph} is what query {name!r} feeds, and nobody else")

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
                self._absorb_late(stream, clock.closed, event.quads)
                if self.on_late is not None:
                    self.on_late(stream, event)
                continue
            heapq.heappush(self._pending, (event.time, self._arrivals, stream, event.quads))
            self._arrivals += 1
            clock.newest = max(clock.newest, event.time)
            answers += self._advance()
        return answers

    def _absorb_late(self, stream: str, closed: int, quads: tuple[Quad, ...]) -> None:
        """What is late is a fact all the same: from the first instant on that its stream and all queries have
        before them; if its stream has ended, from the next one on."""
        if stream in self._absorb:
            since = NEVER if closed == FOREVER else max(closed, self._now) + 1
            self._late_facts.append((since, stream, quads))

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
        first = min(self._pending[0][0] - 1, closed) if self._pending else closed
        visited = first if self._now == NEVER else self._now
        while True:
            by_itself = [at for _, at in self._each(visited, Definition.next_instant, visited)]
            facts = [max(since, visited + 1) for since, _, _ in self._late_facts]
            elements = [self._pending[0][0]] if self._pending else []
            instant = min([*elements, *facts, *by_itself], default=FOREVER)
            if instant > closed:
                break
            answers += self._visit(visited, instant)
            visited = instant
        self._now = closed
        return answers

    def _visit(self, visited: int, instant: int) -> list[Answer]:
        """What comes at an instant is stored, then all queries are asked."""
        came = self._deliver(instant)
        moment = moments.of_instant(instant)
        facts = [(stream, element.quads) for stream, element in came if stream in self._absorb]
        facts += [(stream, quads) for since, stream, quads in self._late_facts if since <= instant]
        self._late_facts = [late for late in self._late_facts if late[0] > instant]
        for stream, quads in facts:
            self._change(moment, [], self._absorb[stream].facts(quads))
        return self._say(visited, moment, instant, Definition.told, instant, came, NO_LIMIT)

    def _say(
        self, visited: int, moment: int, time: int, do: Callable[..., Told], *args: object
    ) -> list[Answer]:
        """What queries say, in the order of their registration: what one feeds into a graph is there when the
        next is asked, and only queries after it read it."""
        answers: list[Answer] = []
        for query, told in self._each(visited, do, *args):
            if (feed := self._feeds.get(query.name)) is not None:
                self._change(moment, *feed.facts(time, told))
            else:
                answers += query.answers(time, "-", told.gone) + query.answers(time, "+", told.new)
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
        """What must survive a restart, apart from the streams and queries themselves."""
        input = (self.clock, self.late, self._pending, self._arrivals, self._now, self._late_facts)
        queries = {name: query.snapshot() for name, query in self._queries.items()}
        made = {name: feed.made for name, feed in self._feeds.items()}
        return wire.encode((input, self._stored.snapshot(), queries, made))

    def restore(self, data: bytes) -> None:
        """Go on from a snapshot, on an evaluator with the same streams and queries."""
        input, stored, queries, made = wire.decode(data, "what the reference evaluator keeps")
        self.clock, self.late, self._pending, self._arrivals, self._now, self._late_facts = input
        self._stored.restore(stored)
        for name, kept in queries.items():
            self._queries[name].restore(kept)
        for name, count in made.items():
            self._feeds[name].made = count


def _told_if_live(query: Definition, time: int) -> Told:
    return query.told(time, [], NO_LIMIT) if query.is_live else Told()
