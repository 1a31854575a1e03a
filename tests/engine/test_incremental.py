"""The incremental engine against the reference evaluator, answer by answer."""

from __future__ import annotations

import os

from hypothesis import given, note, settings
from hypothesis import strategies as st
from pyoxigraph import RdfFormat
from pyoxigraph import parse as parse_rdf

from kelda.engine.answer import Answer
from kelda.engine.incremental import IncrementalEvaluator
from kelda.engine.reference import ReferenceEvaluator
from kelda.errors import QueryError
from kelda.lang import parse
from kelda.lang.algebra import Output, Slice
from kelda.rdf.event import Event
from kelda.rdf.graphstore import GraphStore
from tests.engine.random_queries import STORED, STREAMS, events, queries
from tests.engine.stores import over
from tests.engine.test_batching import bag

CASES = int(os.environ.get("KELDA_CASES", "800"))


def store() -> GraphStore:
    return GraphStore(parse_rdf(STORED, RdfFormat.TRIG))


def equip(evaluator: ReferenceEvaluator | IncrementalEvaluator) -> None:
    for stream in STREAMS:
        evaluator.add_stream(stream, lateness=1, from_start=True)


@settings(max_examples=CASES, deadline=None)
@given(queries(), st.sampled_from([None, *Output]), events(), events(), st.data())
def test_same_answers(
    text: str, output: Output | None, a: list[Event], b: list[Event], data: st.DataObject
) -> None:
    both_ways(over(store()), text, output, a, b, data)


@settings(max_examples=CASES // 4, deadline=None)
@given(queries(), st.sampled_from([None, *Output]), events(), events(), st.data())
def test_same_answers_by_definition(
    text: str, output: Output | None, a: list[Event], b: list[Event], data: st.DataObject
) -> None:
    """Instants are visited a step at a time, not an element at a time."""
    both_ways(over(store(), by_definition=True), text, output, a, b, data)


def both_ways(
    engine: IncrementalEvaluator,
    text: str,
    output: Output | None,
    a: list[Event],
    b: list[Event],
    data: st.DataObject,
) -> None:
    """The engine, given the elements in pieces, answers as the reference evaluator."""
    note(text)
    try:
        query = parse(text)
    except QueryError:  # a random query may break a rule of SPARQL
        return
    reference = ReferenceEvaluator(store=store())
    expected: list[Answer] = []
    equip(reference)
    equip(engine)
    reference.register("q", query, output=output)
    engine.register("q", query, output=output)
    note(f"by reference: {engine.reasons}")
    for stream, pushed in zip(STREAMS, (a, b), strict=True):
        expected += reference.push(stream, pushed)
        expected += reference.end(stream)

    found: list[Answer] = []
    left = dict(zip(STREAMS, (a, b), strict=True))
    while left:
        stream = data.draw(st.sampled_from(sorted(left)))
        size = data.draw(st.integers(1, 6))
        found += engine.push(stream, left[stream][:size])
        left[stream] = left[stream][size:]
        if not left[stream]:
            found += engine.end(stream)
            del left[stream]
    assert bag(found) == bag(expected)
    if isinstance(query.pattern, Slice):  # which makes the order total
        assert [a for a in found if a.sign == "+"] == [a for a in expected if a.sign == "+"]
    assert engine.late == reference.late
