"""Queries by definition run on the same input and clock as the others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad

from kelda.engine.answer import Answer
from kelda.engine.incremental import IncrementalEvaluator
from kelda.engine.reference import ReferenceEvaluator
from kelda.engine.report import Report, When
from kelda.engine.segments import memory_of, stand_up
from kelda.lang import parse
from kelda.rdf import wire
from kelda.rdf.event import Event
from tests.engine.test_batching import bag

S, OTHER = "http://ex/s", "http://ex/other"
PREFIX = "PREFIX : <http://ex/> "
NOW = PREFIX + "SELECT ?x ?now { STREAM :s [RANGE 5ms] { ?x :p ?y } BIND(NOW() AS ?now) }"
COUNT = PREFIX + "SELECT (COUNT(*) AS ?n) (MAX(NOW()) AS ?now) { STREAM :s [RANGE 3ms] { ?x :p ?y } }"
PLAIN = PREFIX + "SELECT ?x { STREAM :s [RANGE 5ms] { ?x :p 1 } }"


def event(time: int, graph: str | None = None) -> Event:
    triple = NamedNode(f"http://ex/x{time % 3}"), NamedNode("http://ex/p"), Literal(time % 2)
    return Event(time, (Quad(*triple, *([] if graph is None else [NamedNode(graph)])),))


def columns(engine: IncrementalEvaluator, events: list[Event]) -> tuple[object, ...]:
    encode = engine.dictionary.encode
    triples = [[encode(t) for t in e.quads[0].triple] for e in events]
    s, p, o = np.array(triples, np.int64).T
    return s, p, o, np.array([e.time for e in events], np.int64)


def test_all_answers_come_in_one_list() -> None:
    engine = IncrementalEvaluator()
    engine.add_stream(S)
    for name, text in (("now", NOW), ("plain", PLAIN)):
        engine.register(name, parse(text))
    assert list(engine.reasons) == ["now"] and engine.say("now").startswith("by the reference evaluator")
    batches = engine.push_batch(S, *columns(engine, [event(t) for t in range(1, 9)]))  # type: ignore[arg-type]
    assert {name for batch in batches for name in batch.queries} == {"now", "plain"}
    assert all(len(batch) == len(batch.answers()) for batch in batches)
    answers = engine.push(S, [event(t) for t in range(9, 20)])
    assert [a.time for a in answers] == sorted(a.time for a in answers)


def test_every_query_if_asked_for() -> None:
    engine = IncrementalEvaluator(by_definition=True)
    engine.add_stream(S)
    engine.register("plain", parse(PLAIN))
    engine.register("equal", parse(PLAIN))
    assert set(engine.reasons) == {"plain", "equal"}
    assert {a.query for a in engine.push(S, [event(t) for t in range(1, 9)])} == {"plain", "equal"}
    engine.drop("equal")
    assert set(engine.reasons) == {"plain"} and engine.queries == ["plain"]


def test_a_stream_that_comes_later_is_read_by_who_reads_every_stream() -> None:
    engine = IncrementalEvaluator(by_definition=True)
    engine.add_stream(S)
    engine.register("q", parse(PREFIX + "SELECT ?s ?x { STREAM ?s [NOW] { ?x :p ?y } }"))
    engine.push(S, [event(1), event(2)])
    engine.add_stream(OTHER)
    found = engine.push(OTHER, [event(5)]) + engine.push(S, [event(7)]) + engine.end(OTHER)
    assert {str(a.bindings["s"]) for a in found if a.bindings} == {f"<{S}>", f"<{OTHER}>"}


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=8).map(sorted),
    st.integers(0, 3),
    st.sampled_from([NOW, COUNT]),
    st.sampled_from([When.PERIODIC, When.CONTENT_CHANGE]),
    st.data(),
)
def test_where_time_begins(
    times: list[int], lateness: int, text: str, when: When, data: st.DataObject
) -> None:
    """Reports with empty windows, too: how the first elements are cut into batches makes no difference."""
    report = Report(when, every=2 if when is When.PERIODIC else None)
    answers: list[list[Answer]] = []
    for evaluator in (ReferenceEvaluator(), IncrementalEvaluator()):
        evaluator.add_stream(S, lateness=lateness)
        evaluator.register("q", parse(text), report=report)
        left, found = [event(t) for t in times], []
        while left:
            size = data.draw(st.integers(1, len(left)))
            found += evaluator.push(S, left[:size])
            left = left[size:]
        answers.append(found + evaluator.heartbeat(S, 40) + evaluator.end(S))
    assert bag(answers[1]) == bag(answers[0])


def test_the_graph_of_a_triple_makes_no_difference() -> None:
    answers = []
    for graph in (None, "http://ex/g"):
        engine = IncrementalEvaluator()
        engine.add_stream(S)
        engine.register("q", parse(NOW))
        answers.append(bag(engine.push(S, [event(t, graph) for t in range(1, 9)]) + engine.end(S)))
    assert answers[0] == answers[1] != {}


@pytest.mark.parametrize("cut", [1, 4, 7])
def test_it_stands_up_again(cut: int) -> None:
    def made() -> IncrementalEvaluator:
        engine = IncrementalEvaluator()
        engine.add_stream(S, lateness=1)
        return engine

    def register(engine: IncrementalEvaluator) -> None:
        for name, text in (("now", NOW), ("count", COUNT)):
            engine.register(name, parse(text))

    whole, first, second = made(), made(), made()
    register(whole)
    register(first)
    expected = whole.push(S, [event(t) for t in range(1, 10)]) + whole.end(S)
    found = first.push(S, [event(t) for t in range(1, cut)])
    memory = wire.decode(wire.encode(memory_of(first)))
    registered = []

    def once(batch: int | None) -> None:
        if not registered:
            registered.append(batch)
            register(second)

    stand_up(second, memory, [(0, [])], once, lambda segment: None)
    assert second.now == first.now
    found += second.push(S, [event(t) for t in range(cut, 10)]) + second.end(S)
    assert bag(found) == bag(expected)


def test_a_query_that_stands_up_with_another_number_keeps_its_windows_for_itself():
    """The number that it had before may be that of a query which comes later."""

    def engine(*names: str) -> ReferenceEvaluator:
        evaluator = ReferenceEvaluator()
        for stream in "ab":
            evaluator.add_stream(f"http://ex/{stream}", from_start=True)
        for name in names:
            evaluator.register(name, parse("SELECT * { STREAM ?s [RANGE 9s] { ?x ?p ?y } }"))
        return evaluator

    one = NamedNode("http://ex/one")
    before = engine("gone", "kept")
    before.drop("gone")
    after = engine("kept")
    after.restore(before.snapshot())
    after.register("next", parse("SELECT * { STREAM <http://ex/b> [RANGE 9s] { ?x ?p ?y } }"))
    after.push("http://ex/b", [Event(time, (Quad(one, one, one),)) for time in (1000, 2000)])
    answers = after.end("http://ex/a") + after.end("http://ex/b")
    assert {(a.bindings or {}).get("s") for a in answers if a.query == "kept"} == {NamedNode("http://ex/b")}
