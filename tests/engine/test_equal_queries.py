"""Many users ask the same: equal queries are evaluated once, and each answers by definition."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad

from kelda.engine.answer import Answer
from kelda.engine.incremental import IncrementalEvaluator
from kelda.engine.reference import ReferenceEvaluator
from kelda.engine.sharing import Parameters
from kelda.errors import QueryError
from kelda.lang import parse, prepare
from kelda.lang.algebra import Output
from kelda.rdf.event import Event
from tests.engine.random_queries import EX, STREAMS, change, events, queries
from tests.engine.stores import over
from tests.engine.test_batching import bag
from tests.engine.test_incremental import equip, store

CASES = int(os.environ.get("KELDA_CASES", "150"))
PREFIX = "PREFIX : <http://ex/> "


@settings(max_examples=CASES, deadline=None)
@given(queries(), queries(), st.sampled_from([None, *Output]), events(), events(), st.data())
def test_same_answers(
    one: str, other: str, output: Output | None, a: list[Event], b: list[Event], data: st.DataObject
) -> None:
    try:
        parsed = {text: parse(text) for text in (one, other)}
    except QueryError:  # a random query may break a rule of SPARQL
        return
    both = ReferenceEvaluator(store=store()), over(store())
    answers: tuple[list[Answer], list[Answer]] = ([], [])
    for evaluator in both:
        equip(evaluator)
    left = dict(zip(STREAMS, (a, b), strict=True))
    running: list[str] = []
    count = 0
    for _ in range(data.draw(st.integers(4, 16))):
        action = data.draw(st.sampled_from(["register", "drop", "pause", "resume", *4 * ["push"]]))
        if action == "register" or not running:
            text = data.draw(st.sampled_from([one, one, other]))
            for _ in range(data.draw(st.integers(1, 4))):
                name, count = f"q{count}", count + 1
                note(f"register {name} {text}")
                for evaluator in both:
                    evaluator.register(name, parsed[text], output=output)
                running.append(name)
        elif action == "push":
            stream, size = data.draw(st.sampled_from(STREAMS)), data.draw(st.integers(1, 4))
            pushed, left[stream] = left[stream][:size], left[stream][size:]
            note(f"push {stream} {[e.time for e in pushed]}")
            for evaluator, found in zip(both, answers, strict=True):
                found += evaluator.push(stream, pushed)
        else:
            change(action, running, both, data)
    for stream, rest in left.items():
        for evaluator, found in zip(both, answers, strict=True):
            found += evaluator.push(stream, rest) + evaluator.end(stream)
    assert bag(answers[1]) == bag(answers[0])


TEXTS = {
    "shared": "SELECT ?x ?y { STREAM :a [RANGE 9ms] { ?x :p ?y } STREAM :b [RANGE 9ms] { ?x :q ?z } }",
    "RSTREAM": "REGISTER RSTREAM :o AS SELECT ?x FROM NAMED WINDOW :w ON :a [RANGE 4 STEP 2] "
    "WHERE { WINDOW :w { ?x :p ?y } }",
    "top": "SELECT ?x ?y { STREAM :a [RANGE 9ms] { ?x :p ?y } } ORDER BY DESC(?y) LIMIT 2",
    "ASK": "ASK { STREAM :a [RANGE 2ms] { ?x :p 1 } }",
}


@pytest.mark.parametrize("kind", TEXTS)
def test_one_of_many_goes_its_own_way(kind: str) -> None:
    """Twenty equal queries; one is paused for a while, one is dropped, one comes later."""
    answers = []
    for evaluator in (ReferenceEvaluator(), IncrementalEvaluator()):
        equip(evaluator)
        for i in range(20):
            evaluator.register(f"q{i}", parse(PREFIX + TEXTS[kind]))
        found: list[Answer] = []
        for time in range(1, 60):
            if time == 20:
                evaluator.pause("q0")
                evaluator.pause("q7")
                evaluator.drop("q1")
                evaluator.register("later", parse(PREFIX + TEXTS[kind]))
            if time == 40:
                evaluator.pause("q0", False)
                evaluator.drop("q9")
            quad = Quad(NamedNode(f"{EX}n{time % 5}"), NamedNode(EX + "pq"[time % 3 == 0]), Literal(time % 4))
            found += evaluator.push(STREAMS[time % 3 == 0], [Event(time, (quad,))])
        answers.append(bag(found))
    assert answers[0] == answers[1] and answers[0]
    assert isinstance(evaluator, IncrementalEvaluator) and not evaluator.reasons


def test_a_network_has_equal_queries_once() -> None:
    prepared = prepare(PREFIX + "SELECT ?y { STREAM :a [RANGE $w] { $who :p ?y } }")
    engine = IncrementalEvaluator()
    equip(engine)
    who = [NamedNode(f"{EX}n{i % 3}") for i in range(600)]
    engine.register_many(prepared, [f"q{i}" for i in range(600)], {"who": who, "w": [5] * 600})
    engine.register("too", prepared.bind(who=who[1], w=5))
    (network,) = engine.networks()
    assert len(network.parameters) == 3 and len(engine.queries) == 601
    assert "601 queries of its shape" in engine.say("too")
    quad = Quad(who[1], NamedNode(EX + "p"), Literal(1))
    found = engine.push(STREAMS[0], [Event(1, (quad,))]) + engine.end(STREAMS[0]) + engine.end(STREAMS[1])
    assert {a.query for a in found} == {f"q{i}" for i in range(1, 600, 3)} | {"too"}
    assert len(found) == 201


def test_equal_queries_that_share_no_network_are_evaluated_once() -> None:
    engine = IncrementalEvaluator()
    equip(engine)
    text = "REGISTER ISTREAM :{} AS SELECT ?x FROM NAMED WINDOW :w ON :a [RANGE 4 STEP 2] "
    text += "WHERE {{ WINDOW :w {{ ?x :p ?y }} }} ORDER BY ?x LIMIT 1"
    for i in range(3):
        engine.register(f"q{i}", parse(PREFIX + text.format(f"o{i}")))
    assert len({id(network.root) for network in engine.networks()}) == 1
    assert "once for 3 queries that are equal" in engine.say("q2")
    engine.heartbeat(STREAMS[0], 3)
    engine.heartbeat(STREAMS[1], 3)
    engine.register("later", parse(PREFIX + text.format("o3")))
    assert len({id(network.root) for network in engine.networks()}) == 2


def test_who_a_row_is_told_to() -> None:
    parameters = Parameters(1, {})
    assert parameters.told_to(np.array([], np.int64)) is None
    parameters.add(["a", "b", "c"], np.array([[7, 8, 7]]), {}, 0)
    parameters.add(["d"], np.array([[8]]), {}, 0)
    parameters.close()
    parameters.add(["e"], np.array([[8]]), {}, 5)
    assert parameters.rows(0).tolist() == [[1, 2, 3], [7, 8, 8]]
    assert parameters.alive.tolist() == [2, 2, 1] and parameters.registered.tolist() == [0, 0, 5]
    parameters.drop("a")
    told = parameters.told_to(np.array([2, 1, 3, 2]))
    assert told is not None
    assert [part.tolist() for part in told] == [[0, 0, 1, 2, 3, 3], [2, 4, 3, 5, 2, 4]]
    parameters.drop("e")
    assert parameters.told_to(np.array([3])) is not None
    assert [part.tolist() for part in parameters.told_to(np.array([3]))] == [[], []]


def test_a_refusal_leaves_nothing_behind() -> None:
    parameters = Parameters(1, {})

    def refuse(_: np.ndarray) -> None:
        raise ValueError("no")

    parameters.readers.append(refuse)
    with pytest.raises(ValueError, match="no"):
        parameters.add(["a"], np.array([[7]]), {}, 0)
    parameters.readers.clear()
    parameters.add(["b"], np.array([[7]]), {}, 0)
    assert parameters.rows(0).tolist() == [[1], [7]] and parameters.classes.tolist() == [0]
