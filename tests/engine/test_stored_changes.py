"""Stored graphs change while queries run: each report sees them as they are then, whoever shares what."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad, RdfFormat
from pyoxigraph import parse as parse_rdf

from kelda.engine.answer import Answer
from kelda.engine.incremental import IncrementalEvaluator
from kelda.engine.reference import ReferenceEvaluator
from kelda.errors import QueryError
from kelda.lang import parse
from kelda.lang.algebra import Output
from kelda.rdf.event import Event
from kelda.rdf.graphstore import GraphStore
from kelda.store.changes import changes_of
from tests.engine.random_queries import EX, STORED, STREAMS, change, events, queries
from tests.engine.stores import over
from tests.engine.test_batching import bag
from tests.engine.test_incremental import equip
from tests.engine.test_sharing import ALONE, SHAPES, TERMS, WINDOWS

CASES = int(os.environ.get("KELDA_CASES", "120"))

# What may come and go; some of it also comes on the streams.
POOL = list(
    parse_rdf(
        STORED + ":n2 :k 2 ; :knows :n0 . :n0 :k 2 . :n1 :p :n0 . :n0 :q 1 . "
        "GRAPH :g { :n1 :in :n0 } GRAPH :h { :n0 :in 2 }",
        RdfFormat.TRIG,
    )
)
JOINED = [
    *SHAPES[2:4],
    *SHAPES[12:],
    ALONE,
    "SELECT ?x ?k {{ STREAM :a [{0}] {{ ?x :p ?y }} OPTIONAL {{ ?x :k ?k }} FILTER(?x != {1}) }}",
    "SELECT ?x {{ STREAM :a [{0}] {{ ?x :p ?y }} MINUS {{ ?x :knows {1} }} }}",
    "SELECT ?k (COUNT(*) AS ?n) {{ STREAM :a [{0}] {{ ?x ?p ?y }} ?x :k ?k . {1} :knows ?z }} GROUP BY ?k",
]

Evaluators = tuple[ReferenceEvaluator, IncrementalEvaluator]


def evaluators(stored: list[Quad]) -> Evaluators:
    both = ReferenceEvaluator(store=GraphStore(stored)), over(GraphStore(stored))
    for evaluator in both:
        equip(evaluator)
    return both


def toggle(both: Evaluators, quads: list[Quad]) -> None:
    """Put quads in that are not stored, and take those out that are."""
    reference, engine = both
    added = [quad for quad in quads if quad not in reference.store]
    removed = [quad for quad in quads if quad in reference.store]
    for quad in removed:
        reference.store.remove(quad)
    reference.store.extend(added)
    reference.stored_changed()
    terms, moment = engine.store.dictionary, engine.next_moment
    engine.change(changes_of(removed, terms, moment, -1))
    engine.change(changes_of(added, terms, moment))


def run(
    both: Evaluators, a: list[Event], b: list[Event], names: list[str], data: st.DataObject
) -> tuple[list[Answer], list[Answer]]:
    """Push both streams in pieces, with changes between them; the incremental engine gets smaller pieces."""
    reference, engine = both
    expected: list[Answer] = []
    found: list[Answer] = []
    left = dict(zip(STREAMS, (a, b), strict=True))
    while left:
        action = data.draw(st.sampled_from(["push", "push", "change", "change", "pause", "resume"]))
        if action == "change":
            quads = data.draw(st.lists(st.sampled_from(POOL), min_size=1, max_size=4, unique=True))
            note(f"change {quads}")
            toggle(both, quads)
        elif action != "push":
            change(action, names, both, data)
        stream = data.draw(st.sampled_from(sorted(left)))
        pushed, left[stream] = left[stream][:4], left[stream][4:]
        cut = data.draw(st.integers(0, len(pushed)))
        note(f"push {stream} {[(e.time, [str(q) for q in e.quads]) for e in pushed]}")
        expected += reference.push(stream, pushed)
        found += engine.push(stream, pushed[:cut])
        found += engine.push(stream, pushed[cut:])
        if not left[stream]:
            expected += reference.end(stream)
            found += engine.end(stream)
            del left[stream]
    return expected, found


@settings(max_examples=CASES, deadline=None)
@given(
    queries(),
    st.sampled_from([None, *Output]),
    st.lists(st.sampled_from(POOL), unique=True),
    events(),
    events(),
    st.data(),
)
def test_any_query(
    text: str, output: Output | None, stored: list[Quad], a: list[Event], b: list[Event], data: st.DataObject
) -> None:
    note(text)
    note(f"stored {stored}")
    try:
        query = parse(text)
    except QueryError:  # a random query may break a rule of SPARQL
        return
    both = evaluators(stored)
    for evaluator in both:
        evaluator.register("q", query, output=output)
    note(f"by reference: {both[1].reasons}")
    expected, found = run(both, a, b, ["q"], data)
    assert not both[1].stopped
    assert bag(found) == bag(expected)


@settings(max_examples=CASES, deadline=None)
@given(
    st.lists(st.sampled_from(JOINED), min_size=1, max_size=2).flatmap(
        lambda shapes: st.lists(
            st.tuples(st.sampled_from(shapes), st.sampled_from(WINDOWS), st.sampled_from(TERMS)),
            min_size=2,
            max_size=8,
        )
    ),
    st.sampled_from([None, Output.CHANGES]),
    st.lists(st.sampled_from(POOL), unique=True),
    events(),
    events(),
    st.data(),
)
def test_many_queries(
    many: list[tuple[str, str, str]],
    output: Output | None,
    stored: list[Quad],
    a: list[Event],
    b: list[Event],
    data: st.DataObject,
) -> None:
    note(f"stored {stored}")
    both = evaluators(stored)
    expected: list[Answer] = []
    found: list[Answer] = []
    for i, (shape, window, term) in enumerate(many):
        text = "PREFIX : <http://ex/> " + shape.format(window, term)
        note(text)
        for evaluator in both:
            evaluator.register(f"q{i}", parse(text), output=output)
        if data.draw(st.booleans()):
            quads = data.draw(st.lists(st.sampled_from(POOL), min_size=1, max_size=3, unique=True))
            note(f"change {quads}")
            toggle(both, quads)
        if a and data.draw(st.booleans()):
            expected += both[0].push(STREAMS[0], a[:1])
            found += both[1].push(STREAMS[0], a[:1])
            a = a[1:]
    more = run(both, a, b, [f"q{i}" for i in range(len(many))], data)
    assert not both[1].stopped
    assert bag(found + more[1]) == bag(expected + more[0])


def test_what_is_new_by_a_change_is_told_at_the_next_report() -> None:
    """Not right after the change, by queries that share a network neither.

    time     0      1      2
    stream   x      |
    stored       + k|      x has left: no report sees both
    """
    text = "PREFIX : <http://ex/> SELECT ?x ?k {{ STREAM :a [RANGE {0}ms] {{ ?x :p :n0 }} ?x :k ?k }}"
    both = evaluators([])
    for evaluator in both:
        evaluator.register("first", parse(text.format(2)))
        for i in (2, 2, 4):
            evaluator.register(f"q{len(evaluator.queries)}", parse(text.format(i)))
    n0, p, k = (NamedNode(EX + name) for name in ("n0", "p", "k"))
    answers: list[list[Answer]] = [[], []]
    for evaluator, found in zip(both, answers, strict=True):
        found += evaluator.push(STREAMS[0], [Event(0, (Quad(n0, p, n0),))])
        for stream in STREAMS:
            found += evaluator.heartbeat(stream, 0)
    toggle(both, [Quad(n0, k, Literal(1))])
    for evaluator, found in zip(both, answers, strict=True):
        for stream in STREAMS:
            found += evaluator.heartbeat(stream, 1)
        found += evaluator.push(STREAMS[0], [Event(3, (Quad(n0, p, p),))])
        for stream in STREAMS:
            found += evaluator.end(stream)
    assert bag(answers[1]) == bag(answers[0])
    assert [(a.query, a.time) for a in answers[1]] == [("q3", 3)]


@pytest.mark.parametrize("window", ["RANGE 9ms STEP 1ms", "RANGE TRIPLES 3"])
def test_a_window_that_was_alone_in_the_default_graph(window: str) -> None:
    """C-SPARQL's FROM STREAM: what is stored comes in beside a window that has rows already."""
    text = (
        "PREFIX : <http://ex/> REGISTER QUERY q AS SELECT ?x ?y ?z "
        f"FROM STREAM <http://ex/a> [{window}] WHERE {{ ?x :p ?y OPTIONAL {{ ?y :q ?z }} }}"
    )
    both = evaluators([])
    answers: list[list[Answer]] = [[], []]
    p, q = NamedNode(EX + "p"), NamedNode(EX + "q")
    n = [NamedNode(f"{EX}n{i}") for i in range(4)]
    for evaluator in both:
        for name in ("q", "equal"):
            evaluator.register(name, parse(text), output=Output.CHANGES)
    for t, quad in enumerate(
        [Quad(n[0], p, n[1]), Quad(n[1], q, n[2]), Quad(n[2], p, n[3]), Quad(n[0], p, n[1])]
    ):
        for evaluator, found in zip(both, answers, strict=True):
            found += evaluator.push(STREAMS[0], [Event(t, (quad,))])
            for stream in STREAMS:
                found += evaluator.heartbeat(stream, t)
        if t == 2:
            assert "merged graph" not in both[1].say("q")
            toggle(both, [Quad(n[3], q, n[0]), Quad(n[0], p, n[1])])
    for evaluator, found in zip(both, answers, strict=True):
        for stream in STREAMS:
            found += evaluator.end(stream)
    assert bag(answers[1]) == bag(answers[0])
    assert any(a.time > 2 and a.bindings.get("z") == n[0] for a in answers[1]), "what is stored is seen"
    assert "merged graph" in both[1].say("q") and "2 queries that are equal" in both[1].say("q")
