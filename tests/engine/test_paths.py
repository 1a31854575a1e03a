"""Property paths over windows, from the changes alone and by definition."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from pyoxigraph import RdfFormat
from pyoxigraph import parse as parse_rdf

from kelda.engine.answer import Answer
from kelda.engine.incremental import IncrementalEvaluator
from kelda.engine.oneshot import Solutions, evaluate
from kelda.engine.reference import ReferenceEvaluator
from kelda.lang import parse
from kelda.lang.algebra import Output
from kelda.rdf.event import Event
from kelda.rdf.graphstore import GraphStore
from tests.engine.random_queries import STREAMS, events
from tests.engine.stores import over
from tests.engine.test_batching import bag
from tests.engine.test_incremental import equip, store

CASES = int(os.environ.get("KELDA_CASES", "150"))
LINKS = st.sampled_from([":p", ":q"])
NEGATED = st.sampled_from(["!:p", "!(:p|:q)", "!^:p", "!(:q|^:p)"])


def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        inner.map(lambda p: f"^({p})"),
        inner.map(lambda p: f"({p})?"),
        st.tuples(inner, inner).map(lambda p: f"({p[0]}|{p[1]})"),
        st.tuples(inner, inner).map(lambda p: f"({p[0]}/{p[1]})"),
    )


PATHS = st.recursive(LINKS | NEGATED, grown, max_leaves=4)
ENDS = st.sampled_from(["?x", "?x", "?y", "?y", ":n0", ":n1", "1"])


@st.composite
def texts(draw: st.DrawFn) -> str:
    s, path, o = draw(ENDS.filter(lambda e: e != "1")), draw(PATHS), draw(ENDS)
    inside = f"{s} {path} {o}" + draw(st.sampled_from(["", "", " . ?x :p ?z", " . ?x ?r ?y"]))
    other = draw(st.sampled_from(["?y :q ?w", f"?y {draw(PATHS)} ?w", f"?w {draw(PATHS)} :n0"]))
    word = draw(st.sampled_from(["OPTIONAL", "MINUS", "FILTER EXISTS", "FILTER NOT EXISTS"]))
    outside = draw(st.sampled_from(["", "", "?x :k ?k", f"{word} {{ STREAM :b [RANGE 3ms] {{ {other} }} }}"]))
    head = draw(st.sampled_from(["SELECT *", "SELECT DISTINCT ?x", "SELECT (COUNT(*) AS ?n)"]))
    match draw(st.integers(0, 2)):
        case 0:
            window = draw(st.sampled_from(["RANGE 4ms", "TRIPLES 3", "RANGE 5ms SLIDE 2ms"]))
            text = f"{head} WHERE {{ STREAM :a [{window}] {{ {inside} }} {outside} }}"
        case 1:
            text = (
                f"REGISTER ISTREAM :o AS {head} FROM NAMED WINDOW :w ON :a [RANGE 4 STEP 2] "
                f"WHERE {{ WINDOW :w {{ {inside} }} }}"
            )
        case _:
            text = (
                f"REGISTER QUERY q AS {head} FROM STREAM <http://ex/a> [RANGE 3ms STEP 1ms] "
                f"FROM STREAM <http://ex/b> [RANGE 4ms STEP 2ms] WHERE {{ {inside} }}"
            )
    return "PREFIX : <http://ex/> " + text


@settings(max_examples=CASES, deadline=None)
@given(texts(), st.sampled_from([None, *Output]), events(), events())
def test_same_answers(text: str, output: Output | None, a: list[Event], b: list[Event]) -> None:
    note(text)
    reference, engine = ReferenceEvaluator(store=store()), over(store())
    expected: list[Answer] = []
    found: list[Answer] = []
    for evaluator in (reference, engine):
        equip(evaluator)
        evaluator.register("q", parse(text), output=output)
    assert set(engine.reasons.values()) <= {"EXISTS with a property path that a value filled in may stay at"}
    for stream, pushed in zip(STREAMS, (a, b), strict=True):
        expected += reference.push(stream, pushed) + reference.end(stream)
        found += engine.push(stream, pushed) + engine.end(stream)
    assert bag(found) == bag(expected)


@pytest.mark.parametrize(
    "path, reason",
    [
        (":p*", "a property path of any length"),
        ("(:p/:q)+", "a property path of any length"),
        (":q|:p*", "a property path of any length"),
    ],
)
def test_other_paths_go_by_the_reference(path: str, reason: str) -> None:
    engine = IncrementalEvaluator()
    equip(engine)
    engine.register("q", parse(f"PREFIX : <http://ex/> SELECT * {{ STREAM :a [NOW] {{ ?x {path} ?y }} }}"))
    assert engine.reasons == {"q": reason}


BOTH = "<http://ex/n1> <http://ex/m> <http://ex/n0> . <http://ex/n1> <http://ex/k> <http://ex/n0> ."


@pytest.mark.parametrize(
    "group, rows",
    [
        ("?c :m|:k ?a", 2),
        ("?c :m|:m ?a", 2),
        ("?c !:x ?a", 2),
        ("?c !() ?a", 2),
        ("VALUES (?c ?a) { (:n1 :n0) } ?c :m|:k ?a", 2),
        ("VALUES (?c ?a) { (:n1 :n0) } ?c !(:x|:y) ?a", 2),
        ("VALUES (?c ?a) { (:n1 :n0) } ?a !^:m ?c", 1),
        ("?c !(:m|^:m) ?a", 2),
        ("?c (:m|:k)/^(:m|:k) ?a", 4),
        (":n1 (:m|:k) :n0", 2),
        ("?c (:m|:k)? ?a", 3),
        ("?c (:m|:k)+ ?a", 1),
        ("?c :m?|:k? ?a", 6),
    ],
)
def test_ways_are_a_bag(group: str, rows: int) -> None:
    """As SPARQL 1.1 has it: one solution for each way, but for `?`, `*` and `+`. Asked once over stored data
    and continuously over a window that is a graph."""
    stored = GraphStore(parse_rdf(BOTH, RdfFormat.TURTLE))
    prefix = "PREFIX : <http://ex/> "
    found = evaluate(parse(prefix + f"SELECT * {{ {group} }}"), stored)
    assert isinstance(found, Solutions)
    assert len(found.rows) == rows
    assert set(found.variables) <= {"c", "a"}
    counted = evaluate(parse(prefix + f"SELECT (COUNT(*) AS ?n) {{ {group} }}"), stored)
    assert isinstance(counted, Solutions)
    assert [row["n"].value for row in counted.rows] == [str(rows)]
    text = prefix + f"SELECT * FROM NAMED WINDOW :w ON :a [RANGE 4 STEP 2] {{ WINDOW :w {{ {group} }} }}"
    for evaluator in (ReferenceEvaluator(), IncrementalEvaluator()):
        equip(evaluator)
        evaluator.register("q", parse(text))
        pushed = evaluator.push("http://ex/a", [Event(1, tuple(parse_rdf(BOTH, RdfFormat.TURTLE)))])
        answers = pushed + evaluator.heartbeat("http://ex/a", 2) + evaluator.heartbeat("http://ex/b", 2)
        assert len(answers) == rows


def test_hidden_variables_are_not_counted() -> None:
    """Neither the predicate of a negated set nor what is between two steps makes a solution another one."""
    stored = GraphStore(parse_rdf(BOTH, RdfFormat.TURTLE))
    for group in ("?c !:x ?a", "?c ?p [] ; !:x ?a"):
        text = f"PREFIX : <http://ex/> SELECT (COUNT(DISTINCT *) AS ?n) {{ {group} }}"
        found = evaluate(parse(text), stored)
        assert isinstance(found, Solutions)
        assert [row["n"].value for row in found.rows] == ["2" if "?p" in group else "1"]
