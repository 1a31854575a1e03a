"""The law: answers do not depend on how the input was cut into batches, nor on restarts."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad

from kelda.engine.answer import Answer
from kelda.engine.reference import ReferenceEvaluator
from kelda.lang import parse
from kelda.rdf.event import Event

EX = "http://ex/"
STREAMS = (EX + "a", EX + "b")
XSD_INTEGER = NamedNode("http://www.w3.org/2001/XMLSchema#integer")

WINDOWS = st.sampled_from(
    ["NOW", "ALL", "RANGE 3ms", "RANGE 5ms SLIDE 2ms", "RANGE 4ms TUMBLING", "TRIPLES 3", "SESSION GAP 3ms"]
)
PATTERNS = st.sampled_from(
    [
        "SELECT ?x ?y {{ STREAM <http://ex/a> [{0}] {{ ?x <http://ex/p> ?y }} }}",
        "SELECT ?x ?z {{ STREAM <http://ex/a> [{0}] {{ ?x ?p ?y }} "
        "STREAM <http://ex/b> [{1}] {{ ?z ?q ?y }} }}",
        "SELECT ?x (SUM(?y) AS ?n) {{ STREAM <http://ex/a> [{0}] {{ ?x ?p ?y }} }} GROUP BY ?x",
        "SELECT ?x {{ STREAM <http://ex/a> [{0}] {{ ?x ?p ?y }} "
        "FILTER NOT EXISTS {{ STREAM <http://ex/b> [{1}] {{ ?x ?q ?z }} }} }}",
        "SELECT ?x ?z {{ STREAM <http://ex/a> [{0}] {{ ?x ?p ?y }} "
        "OPTIONAL {{ STREAM <http://ex/b> [{1}] {{ ?x ?q ?z }} }} }} ORDER BY ?x LIMIT 3",
        "SELECT (SAMPLE(?y) AS ?any) (GROUP_CONCAT(?x) AS ?all) "
        "{{ STREAM <http://ex/a> [{0}] {{ ?x ?p ?y }} }}",
        "CONSTRUCT {{ ?x <http://ex/q> ?y }} {{ STREAM ?s [{0}] {{ ?x ?p ?y }} }}",
        "ASK {{ STREAM <http://ex/a> [{0}] {{ ?x ?p 2 }} }}",
    ]
)
OUTPUTS = st.sampled_from(["istream", "dstream", "rstream", "changes"])


@st.composite
def events(draw: st.DrawFn) -> list[Event]:
    out, time = [], 0
    for _ in range(draw(st.integers(0, 8))):
        time = max(0, time + draw(st.integers(-1, 3)))
        s, o = draw(st.integers(0, 2)), draw(st.integers(0, 3))
        triple = Quad(NamedNode(f"{EX}{s}"), NamedNode(EX + "p"), Literal(str(o), datatype=XSD_INTEGER))
        out.append(Event(time, (triple,) * draw(st.integers(1, 2))))
    return out


def build(queries: list[tuple[str, str]]) -> ReferenceEvaluator:
    evaluator = ReferenceEvaluator()
    for stream in STREAMS:
        evaluator.add_stream(stream, lateness=1, from_start=True)
    for i, (text, output) in enumerate(queries):
        from kelda.lang.algebra import Output

        evaluator.register(f"q{i}", parse(text), output=Output(output))
    return evaluator


def bag(answers: list[Answer]) -> Counter[str]:
    lines = []
    for a in answers:
        triples = None if a.triples is None else sorted(map(str, a.triples))
        bindings = None if a.bindings is None else sorted((k, str(v)) for k, v in a.bindings.items())
        lines.append(repr((a.query, a.time, a.sign, bindings, triples, a.boolean)))
    return Counter(lines)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.tuples(PATTERNS, WINDOWS, WINDOWS).map(lambda x: x[0].format(x[1], x[2])), OUTPUTS),
        min_size=1,
        max_size=2,
    ),
    events(),
    events(),
    st.data(),
)
def test_same_answers_for_every_batching(
    queries, a: list[Event], b: list[Event], data: st.DataObject
) -> None:
    plain = build(queries)
    expected = plain.push(STREAMS[0], a) + plain.end(STREAMS[0])
    expected += plain.push(STREAMS[1], b) + plain.end(STREAMS[1])

    cut = build(queries)
    found: list[Answer] = []
    left = {STREAMS[0]: a, STREAMS[1]: b}
    while left:
        stream = data.draw(st.sampled_from(sorted(left)))
        size = data.draw(st.integers(1, 4))
        found += cut.push(stream, left[stream][:size])
        left[stream] = left[stream][size:]
        if not left[stream]:
            found += cut.end(stream)
            del left[stream]
        if data.draw(st.booleans()):
            restarted = build(queries)
            restarted.restore(cut.snapshot())
            cut = restarted
    assert bag(found) == bag(expected)
    assert cut.late == plain.late
