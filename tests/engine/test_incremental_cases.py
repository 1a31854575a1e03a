"""Queries that the incremental engine once got wrong, or easily might: the reference says what is right."""

from __future__ import annotations

import pytest
from pyoxigraph import Literal, NamedNode, Quad, RdfFormat
from pyoxigraph import parse as parse_rdf

from kelda.engine.answer import Answer
from kelda.engine.incremental import IncrementalEvaluator
from kelda.engine.reference import ReferenceEvaluator
from kelda.errors import UsageError
from kelda.lang import parse
from kelda.lang.algebra import Output
from kelda.rdf.event import Event
from tests.engine.random_queries import EX, STREAMS
from tests.engine.stores import over
from tests.engine.test_batching import bag
from tests.engine.test_incremental import equip, store

PREFIX = "PREFIX : <http://ex/> "

CASES = {
    "a join on VALUES with UNDEF in a merged default graph": """REGISTER QUERY q AS
        ASK FROM STREAM <http://ex/a> [RANGE 3ms STEP 1ms]
        WHERE { ?x :p ?y VALUES (?x ?y) { (:n0 1) (:n1 UNDEF) } ?x :knows ?z FILTER(?x != ?z) }""",
    "a join on VALUES with UNDEF": """SELECT * WHERE { STREAM :a [RANGE 4ms] { ?x :p ?y }
        VALUES (?x ?y) { (:n0 1) (:n1 UNDEF) (UNDEF 2) } }""",
    "OPTIONAL on what an OPTIONAL may have bound": """SELECT * WHERE { STREAM :a [RANGE 4ms] { ?x :p ?y }
        OPTIONAL { STREAM :b [RANGE 3ms] { ?x :q ?z } } OPTIONAL { STREAM :b [RANGE 6ms] { ?w :p ?z } } }""",
    "a join on what an OPTIONAL may have bound": """SELECT * WHERE {
        { STREAM :a [RANGE 4ms] { ?x :p ?y } OPTIONAL { STREAM :b [RANGE 3ms] { ?x :q ?z } } }
        { STREAM :b [RANGE 6ms] { ?w :p ?y } OPTIONAL { STREAM :a [RANGE 2ms] { ?w :q ?z } } } }""",
    "MINUS without a shared bound variable removes nothing": """SELECT * WHERE {
        STREAM :a [RANGE 4ms] { ?x :p ?y } OPTIONAL { STREAM :b [RANGE 3ms] { ?x :q ?z } }
        MINUS { STREAM :b [RANGE 5ms] { ?w :p ?z } } }""",
    "EXISTS with an unbound variable": """SELECT * WHERE {
        STREAM :a [RANGE 4ms] { ?x :p ?y } OPTIONAL { STREAM :b [RANGE 3ms] { ?x :q ?z } }
        FILTER EXISTS { STREAM :b [RANGE 5ms] { ?w :p ?z } } }""",
    "EXISTS with a condition on both": """SELECT * WHERE { STREAM :a [RANGE 4ms] { ?x :p ?y }
        FILTER EXISTS { STREAM :b [RANGE 5ms] { ?w :p ?z FILTER(?z > ?y) } } }""",
    "NOT EXISTS as the condition of an OPTIONAL": """SELECT * WHERE { STREAM :a [RANGE 4ms] { ?x :p ?y }
        OPTIONAL { ?x :knows ?z FILTER NOT EXISTS { STREAM :b [RANGE 5ms] { ?z :p ?w } } } }""",
    "the greatest two": """SELECT ?x ?y WHERE { STREAM :a [RANGE 4ms] { ?x :p ?y } }
        ORDER BY DESC(?y) LIMIT 2""",
    "an order by what is not shown": """SELECT DISTINCT ?x WHERE { STREAM :a [RANGE 4ms] { ?x :p ?y } }
        ORDER BY (?y * -1) OFFSET 1""",
    "a limit of nothing": "SELECT ?x WHERE { STREAM :a [RANGE 4ms] { ?x :p ?y } } LIMIT 0",
    "CONSTRUCT with a limit": """CONSTRUCT { ?x :new ?y } WHERE { STREAM :a [RANGE 4ms] { ?x :p ?y } }
        ORDER BY ?y LIMIT 1""",
    "CONSTRUCT of every stream with a limit": """CONSTRUCT { ?x :in ?s }
        WHERE { STREAM ?s [RANGE 4ms] { ?x ?p ?y } } LIMIT 1""",
    "values joined in order": """SELECT ?x (GROUP_CONCAT(?y) AS ?all)
        WHERE { STREAM :a [ALL] { ?x :p ?y } } GROUP BY ?x""",
    "different solutions": """SELECT (COUNT(DISTINCT *) AS ?n) (COUNT(*) AS ?all) (SUM(?y) AS ?sum)
        WHERE { STREAM :a [RANGE 4ms] { ?x :p ?y } OPTIONAL { STREAM :b [RANGE 3ms] { ?x :q ?z } } }""",
    "different solutions of a group, in which a blank node of the query does not count": """SELECT ?x
        (COUNT(DISTINCT *) AS ?n) WHERE { STREAM :a [RANGE 4ms] { ?x ?p [] } } GROUP BY ?x
        HAVING(COUNT(DISTINCT *) > 0)""",
    "a running session": "SELECT * WHERE { STREAM :a [SESSION GAP 2ms] { ?x :p ?y } }",
    "sessions of two streams": """SELECT * WHERE { STREAM :a [SESSION GAP 2ms] { ?x :p ?y }
        STREAM :b [SESSION GAP 4ms] { ?x ?r ?z } }""",
    "the last closed session": """REGISTER RSTREAM :o AS SELECT * FROM NAMED WINDOW :w ON :a [SESSION 2]
        WHERE { WINDOW :w { ?x :p ?y } }""",
    "stated times": """REGISTER ISTREAM :o AS SELECT * FROM NAMED WINDOW :w ON :a [RANGE 4 @:at]
        FROM NAMED WINDOW :v ON :a [RANGE 3 STEP 2 @:at]
        WHERE { WINDOW :w { ?x :p ?y } WINDOW :v { ?x ?r ?z } }""",
    "an element that comes in between two boundaries": """REGISTER ISTREAM :o AS SELECT (COUNT(*) AS ?n)
        FROM NAMED WINDOW :w ON :a [RANGE 5 STEP 2 @:at] WHERE { WINDOW :w { ?x :p ?y } }""",
    "IRI() against the base": """BASE <http://base/> SELECT ?x (IRI("leaf") AS ?i) (IRI(STR(?y)) AS ?j)
        WHERE { STREAM :a [RANGE 4ms] { ?x :p ?y } }""",
    "every stream": "SELECT * WHERE { STREAM ?s [RANGE 3ms] { ?x :p ?y } }",
    "every stream, joined on the stream": """SELECT * WHERE { STREAM ?s [RANGE 3ms] { ?x :p ?y }
        STREAM ?s [RANGE 6ms] { ?y ?r ?z } }""",
}  # fmt: skip


def stream(*events: tuple[int, str]) -> list[Event]:
    return [Event(t, tuple(parse_rdf(PREFIX + text, RdfFormat.TRIG))) for t, text in events]


A = stream(
    (0, ":n1 :p 0 ."), (1, ":n0 :p 1 , 2 ."), (1, ":n0 :p 1 ."), (2, ":n1 :q :n0 ; :p :n2 ."),
    (4, ":n2 :p 2 , 1.5 ."), (6, ":n0 :p 1 ; :q :n1 ."), (7, ":n1 :p 10 , 9 , \"9\" ."), (15, ":n0 :p 2 ."),
    (16, ":n0 :at 12 ; :p 3 ."), (16, ":n1 :at :n0 , 20 , 25 ; :p 3 ."), (17, ":n0 :at 15 ; :p 4 ."),
    (17, ":n0 :at 1 ; :p 3 ."),
    (30, ":n0 :p 3 ."),
)  # fmt: skip
B = stream(
    (1, ":n1 :q 1 ."), (2, ":n0 :q 2 ; :p 1 ."), (3, ":n2 :p 2 ."), (5, ":n2 :q :n0 ."),
    (7, ":n0 :p 1 ; :q 1 ."), (11, ":n1 :p 1 ."), (16, ":n1 :q 3 ."),
)  # fmt: skip


def run(evaluator: ReferenceEvaluator | IncrementalEvaluator, size: int) -> list[Answer]:
    answers: list[Answer] = []
    for at in range(0, max(len(A), len(B)), size):
        for iri, events in zip(STREAMS, (A, B), strict=True):
            answers += evaluator.push(iri, events[at : at + size])
    return answers + [a for iri in STREAMS for a in evaluator.end(iri)]


@pytest.mark.parametrize("output", [None, *Output])
@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize("name", CASES)
def test_same_as_reference(name: str, size: int, output: Output | None) -> None:
    query = parse(PREFIX + CASES[name])
    reference, engine = ReferenceEvaluator(store=store()), over(store())
    for evaluator in (reference, engine):
        equip(evaluator)
        evaluator.register("q", query, output=output)
    assert engine.reasons == {}
    assert bag(run(engine, size)) == bag(run(reference, 100))


def test_exists_in_exists_with_a_variable_that_may_be_unbound() -> None:
    # EXISTS fills in ?y before it evaluates, also where its group would leave ?y unbound.
    query = parse(
        PREFIX
        + """ASK { STREAM :a [RANGE 3ms] { ?x :p ?y } FILTER NOT EXISTS {
            { ?x :k ?y } UNION { ?x :knows ?z } FILTER NOT EXISTS { ?x :k ?y } } }"""
    )
    reference, engine = ReferenceEvaluator(store=store()), over(store())
    for evaluator in (reference, engine):
        equip(evaluator)
        evaluator.register("q", query)
    assert bag(run(engine, 1)) == bag(run(reference, 100))


def test_iris_are_made_against_the_base_of_each_query() -> None:
    text = 'BASE <http://{}/> SELECT (IRI("leaf") AS ?i) {{ STREAM <http://ex/a> [NOW] {{ ?x ?p ?y }} }}'
    engine = IncrementalEvaluator()
    engine.add_stream(EX + "a")
    for name in ("one", "two"):
        engine.register(name, parse(text.format(name)))
    engine.push(EX + "a", [Event(1, (Quad(NamedNode(EX + "n"), NamedNode(EX + "p"), Literal("v")),))])
    answers = engine.end(EX + "a")
    assert {(a.query, str(a.bindings and a.bindings["i"])) for a in answers} == {
        ("one", "<http://one/leaf>"),
        ("two", "<http://two/leaf>"),
    }


def test_a_stream_that_is_added_before_any_element_is_read_too() -> None:
    engine = IncrementalEvaluator()
    engine.add_stream(STREAMS[0])
    engine.register("q", parse(PREFIX + CASES["every stream"]))
    engine.add_stream(STREAMS[1])
    engine.push(STREAMS[1], stream((1, ":n0 :p 1 .")))
    answers = engine.end(STREAMS[1])
    assert [a.bindings and str(a.bindings["s"]) for a in answers] == [f"<{STREAMS[1]}>"]
    with pytest.raises(UsageError, match="comes too late for 'q'"):
        engine.add_stream("http://ex/c")
    engine.drop("q")
    engine.add_stream("http://ex/c")


def test_the_first_query_by_reference_sees_what_waits_and_knows_what_is_late() -> None:
    """The reference evaluator is not told of elements while it has no query."""
    plain = "PREFIX : <http://ex/> SELECT ?x { STREAM :a [NOW] { ?x :p ?y } }"
    by_reference = "PREFIX : <http://ex/> SELECT ?x { STREAM :a [RANGE 3ms] { ?x :p/:q* ?y } }"
    answers = []
    for evaluator in (ReferenceEvaluator(), IncrementalEvaluator()):
        evaluator.add_stream(EX + "a", lateness=2)
        evaluator.register("q0", parse(plain))
        found = []
        for time in (10, 20, 19, 21):  # 19, 20 and 21 wait
            quad = Quad(NamedNode(f"{EX}n{time}"), NamedNode(EX + "p"), Literal(1))
            found += evaluator.push(EX + "a", [Event(time, (quad, quad))])
        evaluator.register("q1", parse(by_reference))
        for time in (12, 30):  # 12 is late
            quad = Quad(NamedNode(f"{EX}n{time}"), NamedNode(EX + "p"), Literal(1))
            found += evaluator.push(EX + "a", [Event(time, (quad,))])
        answers.append((bag(found + evaluator.end(EX + "a")), evaluator.late))
    assert answers[0] == answers[1]
    assert isinstance(evaluator, IncrementalEvaluator) and "q1" in evaluator.reasons
    assert "n19" in str(answers[0][0])
