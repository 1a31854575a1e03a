"""Queries come, go, pause and resume at any time; alone or sharing a network, they answer by definition."""

from __future__ import annotations

import os

from hypothesis import given, note, settings
from hypothesis import strategies as st

from kelda.engine.answer import Answer
from kelda.engine.reference import ReferenceEvaluator
from kelda.lang import parse
from kelda.lang.algebra import Output
from kelda.rdf.event import Event
from tests.engine.random_queries import STREAMS, change, events
from tests.engine.stores import over
from tests.engine.test_batching import bag
from tests.engine.test_incremental import equip, store
from tests.engine.test_sharing import SHAPES, TERMS, WINDOWS

CASES = int(os.environ.get("KELDA_CASES", "150"))

RSPQL = (
    "SELECT ?y FROM NAMED WINDOW :w ON :a [{0}] WHERE {{ WINDOW :w {{ {1} :p ?y }} }}",
    "SELECT ?x ?z FROM NAMED WINDOW :w ON :a [{0}] FROM NAMED WINDOW :v ON :b [{0}] "
    "WHERE {{ WINDOW :w {{ ?x ?p {1} }} WINDOW :v {{ ?x ?q ?z }} }}",
)
RSPQL_WINDOWS = (
    "RANGE 3",
    "RANGE 7",
    "RANGE 5 STEP 2",
    "RANGE 6 STEP 3",
    "RANGE 2 STEP 5",
    "ELEMENTS 2",
    "ELEMENTS 3 STEP 2",
    "TRIPLES 3",
    "SESSION 2",
    "FROM NOW-PT0.006S TO NOW-PT0.002S",
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A query of a few shapes, so that many are of one."""
    term = draw(st.sampled_from(TERMS))
    if draw(st.booleans()):
        shape, window = draw(st.sampled_from(SHAPES[:3])), draw(st.sampled_from(WINDOWS))
        return "PREFIX : <http://ex/> " + shape.format(window, term)
    shape, window = draw(st.sampled_from(RSPQL)), draw(st.sampled_from(RSPQL_WINDOWS))
    return (
        f"PREFIX : <http://ex/> REGISTER {draw(st.sampled_from(('ISTREAM', 'DSTREAM', 'RSTREAM')))} :o AS "
        + (shape.format(window, term))
    )


@settings(max_examples=CASES, deadline=None)
@given(texts(), texts(), st.sampled_from([None, Output.CHANGES]), events(), events(), st.data())
def test_same_answers(
    one: str, other: str, output: Output | None, a: list[Event], b: list[Event], data: st.DataObject
) -> None:
    reference, engine = ReferenceEvaluator(store=store()), over(store())
    both = (reference, engine)
    for evaluator in both:
        equip(evaluator)
    expected: list[Answer] = []
    found: list[Answer] = []
    left = dict(zip(STREAMS, (a, b), strict=True))
    running: list[str] = []
    count = 0
    for _ in range(data.draw(st.integers(4, 24))):
        action = data.draw(
            st.sampled_from(["register", "register", "drop", "pause", "resume", *6 * ["push"]])
        )
        if action == "register" or len(running) < 2:
            text = data.draw(st.sampled_from([one, one, other]))
            name, count = f"q{count}", count + 1
            note(f"register {name} {text}")
            for evaluator in both:
                evaluator.register(name, parse(text), output=output)
            running.append(name)
        elif action == "push":
            stream, size = data.draw(st.sampled_from(STREAMS)), data.draw(st.integers(1, 3))
            pushed, left[stream] = left[stream][:size], left[stream][size:]
            note(f"push {stream} {[e.time for e in pushed]}")
            expected += reference.push(stream, pushed)
            found += engine.push(stream, pushed)
        else:
            change(action, running, both, data)
    for stream, rest in left.items():
        expected += reference.push(stream, rest) + reference.end(stream)
        found += engine.push(stream, rest) + engine.end(stream)
    assert bag(found) == bag(expected)
