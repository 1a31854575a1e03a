"""Queries of one shape run as one network, and answer as if each were alone."""

from __future__ import annotations

from hypothesis import given, note, settings
from hypothesis import strategies as st

from kelda.engine.answer import Answer
from kelda.engine.incremental import IncrementalEvaluator
from kelda.engine.reference import ReferenceEvaluator
from kelda.lang import parse, prepare
from kelda.lang.algebra import Output
from kelda.rdf.event import Event
from tests.engine.random_queries import EX, STREAMS, events
from tests.engine.test_batching import bag
from tests.engine.test_incremental import equip, store

SHAPES = (
    "SELECT ?y {{ STREAM :a [{0}] {{ {1} :p ?y }} }}",
    "SELECT ?x ?p {{ STREAM :a [{0}] {{ ?x ?p {1} }} }}",
    "SELECT ?x ?y ?k {{ STREAM :a [{0}] {{ ?x ?p {1} }} STREAM :b [{0}] {{ ?x ?q ?y }} ?x :k ?k }}",
    "SELECT ?x ?n {{ STREAM :a [{0}] {{ ?x :p ?y }} {1} :knows ?x . ?x :k ?n FILTER(?y != 1) }}",
    "SELECT ?x (COUNT(*) AS ?n) {{ STREAM :a [{0}] {{ ?x ?p ?y . {1} ?q ?y }} }} GROUP BY ?x",
    "SELECT DISTINCT ?x {{ STREAM :a [{0}] {{ ?x :p ?y }} STREAM :b [{0}] {{ {1} :q ?y }} }}",
)
WINDOWS = (
    "RANGE 2ms",
    "RANGE 5ms",
    "RANGE 9ms",
    "TRIPLES 1",
    "TRIPLES 2",
    "TRIPLES 4",
    "NOW",
    "RANGE 4ms SLIDE 2ms",
)
TERMS = (":n0", ":n1", ":n2")


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(SHAPES), st.sampled_from(WINDOWS), st.sampled_from(TERMS), st.integers(0, 3)
        ),
        min_size=2,
        max_size=8,
    ),
    st.sampled_from([Output.ISTREAM, Output.CHANGES]),
    events(),
    events(),
    st.data(),
)
def test_same_answers(queries, output: Output, a: list[Event], b: list[Event], data: st.DataObject) -> None:
    reference, engine = ReferenceEvaluator(store=store()), IncrementalEvaluator(store=store())
    equip(reference)
    equip(engine)
    expected: list[Answer] = []
    found: list[Answer] = []
    left = dict(zip(STREAMS, (a, b), strict=True))
    dropped: set[str] = set()
    for i, (shape, window, term, drops) in enumerate(queries):
        text = "PREFIX : <http://ex/> " + shape.format(window, term)
        note(text)
        for evaluator in (reference, engine):
            evaluator.register(f"q{i}", parse(text), output=output)
        stream = data.draw(st.sampled_from(STREAMS))
        pushed, left[stream] = left[stream][:2], left[stream][2:]
        expected += reference.push(stream, pushed)
        found += engine.push(stream, pushed)
        if not drops and f"q{i // 2}" not in dropped:
            dropped.add(f"q{i // 2}")
            reference.drop(f"q{i // 2}")
            engine.drop(f"q{i // 2}")
    for stream, rest in left.items():
        expected += reference.push(stream, rest) + reference.end(stream)
        found += engine.push(stream, rest) + engine.end(stream)
    assert bag(found) == bag(expected)


def test_a_thousand_queries_are_one_network() -> None:
    prepared = prepare("PREFIX : <http://ex/> SELECT ?y { STREAM :a [RANGE $w] { $who :p ?y } }")
    engine = IncrementalEvaluator()
    equip(engine)
    from pyoxigraph import NamedNode

    people = [NamedNode(f"{EX}n{i}") for i in range(1000)]
    engine.register_many(
        prepared, [f"q{i}" for i in range(1000)], {"who": people, "w": [1 + i % 7 for i in range(1000)]}
    )
    assert len(engine.queries) == 1000 and not engine.reasons
    push = ["1", "2"]
    from pyoxigraph import Literal, Quad

    events = [Event(int(t), (Quad(people[7], NamedNode(EX + "p"), Literal(t)),)) for t in push]
    answers = engine.push(STREAMS[0], events) + engine.end(STREAMS[0]) + engine.end(STREAMS[1])
    assert [(a.query, a.time) for a in answers] == [("q7", 1), ("q7", 2)]
