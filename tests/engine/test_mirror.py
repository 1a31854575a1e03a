"""Queries by definition inside the engine see the stored graphs as they were at each instant."""

from __future__ import annotations

import os

import numpy as np
from hypothesis import given, note, settings
from hypothesis import strategies as st
from pyoxigraph import NamedNode, Quad, RdfFormat
from pyoxigraph import parse as parse_rdf

from kelda.engine.absorb import Absorb
from kelda.engine.answer import Answer
from kelda.engine.budget import NO_LIMIT
from kelda.engine.by_definition import Definition
from kelda.engine.clock import NEVER
from kelda.engine.defined_network import DefinedNetwork, Elements
from kelda.engine.input import Input
from kelda.engine.mirror import Mirror
from kelda.engine.nodes import Step
from kelda.engine.reference import ReferenceEvaluator
from kelda.engine.report import output_of, report_of
from kelda.lang import parse
from kelda.lang.algebra import Output
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.event import Event
from kelda.rdf.graphstore import GraphStore
from kelda.store.changes import Changes
from kelda.store.moments import FOREVER, behind, of_instant
from kelda.store.store import Store
from tests.engine.random_queries import EX, STORED, STREAMS, events
from tests.engine.test_batching import bag

CASES = int(os.environ.get("KELDA_CASES", "150"))
G = EX + "g"
ABSORB = {STREAMS[0]: Absorb(G), STREAMS[1]: Absorb(None, frozenset([EX + "p"]))}
POOL = list(parse_rdf(STORED + ":n0 :p 1 . :n1 :p :n0 . GRAPH :g { :n0 :p 1 . :n1 :q 2 }", RdfFormat.TRIG))
P = "PREFIX : <http://ex/> "
QUERIES = (
    "SELECT ?x ?y { GRAPH :g { ?x ?p ?y } }",
    "SELECT ?x (COUNT(*) AS ?n) { ?x ?p ?y } GROUP BY ?x",
    "SELECT ?x { GRAPH ?g { ?x ?p ?y } FILTER NOT EXISTS { ?x :p ?y } }",
    "ASK { :n0 :p ?x }",
    "SELECT ?x ?z { STREAM :a [RANGE 3ms] { ?x ?p ?y } GRAPH :g { ?z ?q ?y } }",
    "SELECT ?x ?n { STREAM :b [NOW] { ?x ?p ?y } OPTIONAL { SELECT (COUNT(*) AS ?n) { ?s :p ?o } } }",
    "REGISTER QUERY q AS SELECT ?x ?y FROM STREAM <http://ex/b> [RANGE 4ms STEP 2ms] WHERE { ?x :p ?y }",
)


class Networks:
    """Queries by definition over a store, with one mirror."""

    def __init__(self) -> None:
        self.dictionary = Dictionary()
        self.input, self.store = Input(self.dictionary), Store(dictionary=self.dictionary)
        self.mirror = Mirror(GraphStore(), self.dictionary)
        self.elements = Elements(self.dictionary)
        self.networks: list[DefinedNetwork] = []
        for stream in STREAMS:
            self.input.add_stream(stream, 0, True)

    def register(self, name: str, text: str, output: Output | None) -> None:
        query = parse(text)
        definition = Definition(
            name,
            query,
            output or output_of(query),
            report_of(query),
            0,
            len(self.networks),
            self.mirror.store,
        )
        for stream in STREAMS:
            definition.open_windows(stream)
        network = DefinedNetwork(definition, self.elements, "a test", self.mirror)
        network.starts_after(self.input.now)
        self.networks.append(network)

    def push(self, stream: str, events: list[Event]) -> list[Answer]:
        self.input.take_events(stream, events)
        return self.advance()

    def end(self, stream: str) -> list[Answer]:
        self.input.end(stream)
        return self.advance()

    def advance(self) -> list[Answer]:
        step = self.input.release(NO_LIMIT)
        if step is None:
            return []
        self.mirror.take(self.store.apply(self.absorbed(step)))
        found = [answer for network in self.networks for answer in network.step(step)]
        self.input.stand_at(step.until)
        self.mirror.settle(of_instant(step.until))
        return found

    def absorbed(self, step: Step) -> Changes:
        rows = []
        for stream, absorb in ABSORB.items():
            graph = self.dictionary.encode(NamedNode(absorb.graph)) if absorb.graph else 0
            wanted = [self.dictionary.encode(NamedNode(p)) for p in absorb.predicates or ()]
            some = step.rows[stream]
            columns = (some.s.tolist(), some.p.tolist(), some.o.tolist(), some.time.tolist())
            for s, p, o, time in zip(*columns, strict=True):
                if absorb.predicates is None or p in wanted:
                    rows.append((graph, s, p, o, of_instant(time), 1))
        rows.sort(key=lambda row: row[4])
        return Changes(*np.array(rows, np.int64).reshape(len(rows), 6).T.copy())

    def change(self, quads: list[Quad], sign: int) -> list[Answer]:
        encode, now = self.dictionary.encode, self.input.now
        moment = behind(now, self.store.latest)
        rows = [
            [*(encode(part) for part in (q.graph_name, q.subject, q.predicate, q.object)), moment, sign]
            for q in quads
        ]
        changes = self.store.apply(Changes(*np.array(rows, np.int64).T.copy()))
        if not len(changes):
            return []
        self.mirror.take(changes)
        if now == NEVER:
            return []
        return [answer for network in self.networks for answer in network.updated(now, NO_LIMIT)]


@settings(max_examples=CASES, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(QUERIES), st.sampled_from([None, *Output])), min_size=1, max_size=4),
    events(),
    events(),
    st.data(),
)
def test_networks_by_definition_over_a_store_that_grows(
    queries: list[tuple[str, Output | None]], a: list[Event], b: list[Event], data: st.DataObject
) -> None:
    reference, networks = ReferenceEvaluator(), Networks()
    for stream in STREAMS:
        reference.add_stream(stream, from_start=True, absorb=ABSORB[stream])
    left = {
        stream: sorted((e for e in some if e.quads), key=lambda e: e.time or 0)  # nothing is late
        for stream, some in zip(STREAMS, (a, b), strict=True)
    }
    expected: list[Answer] = []
    found: list[Answer] = []
    while left:
        action = data.draw(st.sampled_from(["register", "load", "remove", "pause", "resume", *5 * ["push"]]))
        if action == "register" and queries:
            text, output = queries.pop()
            name = f"q{len(queries)}"
            note(f"{name}: {text} {output}")
            reference.register(name, parse(P + text), output=output)
            networks.register(name, P + text, output)
        elif action in ("load", "remove"):
            quads = data.draw(st.lists(st.sampled_from(POOL), min_size=1, max_size=4, unique=True))
            note(f"{action} {quads}")
            if action == "load":
                expected += reference.load(quads)
            else:
                expected += reference._carry_out(quads, [])
            found += networks.change(quads, 1 if action == "load" else -1)
        elif action in ("pause", "resume") and networks.networks:
            network = data.draw(st.sampled_from(networks.networks))
            note(f"{action} {network.name}")
            reference.pause(network.name, action == "pause")
            network.pause(network.name, action == "pause", 0)
        else:
            stream = data.draw(st.sampled_from(sorted(left)))
            pushed, left[stream] = left[stream][:3], left[stream][3:]
            note(f"push {stream} {[(e.time, [str(q) for q in e.quads]) for e in pushed]}")
            cut = data.draw(st.integers(0, len(pushed)))
            expected += reference.push(stream, pushed)
            found += networks.push(stream, pushed[:cut]) + networks.push(stream, pushed[cut:])
            if not left[stream]:
                del left[stream]
                expected += reference.end(stream)
                found += networks.end(stream)
    assert not reference.stopped and not any(reference.late.values())
    assert bag(found) == bag(expected)


def test_it_goes_back_and_on() -> None:
    dictionary = Dictionary()
    store = Store(dictionary=dictionary)
    mirror = Mirror(GraphStore(), dictionary)

    def change(name: str, moment: int, sign: int) -> None:
        n, p = (dictionary.encode(NamedNode(EX + x)) for x in (name, "p"))
        row = [[0], [n], [p], [n], [moment], [sign]]
        mirror.take(store.apply(Changes(*(np.array(column, np.int64) for column in row))))

    def seen() -> list[str]:
        return sorted(quad.subject.value.removeprefix(EX) for quad in mirror.store)  # type: ignore[union-attr]

    change("a", 4, 1)
    change("b", 5, 1)
    change("a", 5, -1)
    change("c", 8, 1)
    assert mirror.next_moment(mirror.place) == 4 and seen() == []
    assert mirror.move(4) and seen() == ["a"]
    mirror.stand(mirror.place + 1)
    assert seen() == ["a", "b"]
    assert mirror.move(7) and not mirror.move(7) and seen() == ["b"]
    place = mirror.place
    mirror.stand(0)
    assert seen() == []
    mirror.settle(4)
    assert seen() == ["a"]
    mirror.stand(place)
    assert seen() == ["b"] and mirror.next_moment(place) == 8
    mirror.settle(FOREVER)
    assert seen() == ["b", "c"] and mirror.next_moment(mirror.place) == FOREVER

    late = Mirror(GraphStore(), dictionary)
    late.begin_with(store.view())
    assert set(late.store) == set(mirror.store)
