"""Stored graphs that grow, by definition: absorbing, updates, live queries, feeding, the past."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from pyoxigraph import Quad, RdfFormat
from pyoxigraph import parse as parse_rdf

from kelda.engine.absorb import Absorb
from kelda.engine.answer import Answer
from kelda.engine.oneshot import Solutions
from kelda.engine.reference import ReferenceEvaluator
from kelda.engine.report import Report, When
from kelda.errors import QueryError, UsageError
from kelda.lang import parse
from kelda.lang.algebra import Output
from kelda.rdf.event import Event
from kelda.store.moments import FOREVER, of_instant

EX = "http://ex/"
S, OTHER, G, H = EX + "s", EX + "other", EX + "g", EX + "h"
PREFIX = "PREFIX : <http://ex/> "
ALL_OF_G = "SELECT ?x ?y { GRAPH :g { ?x ?p ?y } }"


def triples(turtle: str) -> tuple[Quad, ...]:
    dot = "" if turtle.endswith("}") else " ."
    return tuple(parse_rdf("@prefix : <http://ex/> . " + turtle + dot, RdfFormat.TRIG))


def event(time: int, turtle: str) -> Event:
    return Event(time, triples(turtle))


def absorbing(**more: object) -> ReferenceEvaluator:
    evaluator = ReferenceEvaluator()
    evaluator.add_stream(S, absorb=Absorb(G, **more))  # type: ignore[arg-type]
    return evaluator


def register(evaluator: ReferenceEvaluator, name: str, text: str, output: Output | None = None) -> None:
    evaluator.register(name, parse(PREFIX + text), output=output)


def said(answers: list[Answer]) -> list[tuple[int, str, str]]:
    """(time, sign, values) of each answer, in order of time, what is gone first."""
    lines = [(a.time, a.sign, _row(a.bindings or {})) for a in answers]
    return sorted(lines, key=lambda line: (line[0], line[1] == "+", line[2]))


def _row(bindings: Mapping[str, object]) -> str:
    return " ".join(_short(value) for _, value in sorted(bindings.items()))


def _short(term: object) -> str:
    return str(getattr(term, "value", term)).removeprefix(EX)


def asked(evaluator: ReferenceEvaluator, text: str, at: int | None = None) -> list[str]:
    """The rows of a one-shot query, sorted; now, or as queries at the instant `at` saw them."""
    found = evaluator.ask(PREFIX + text, None if at is None else of_instant(at))
    assert isinstance(found, Solutions)
    return sorted(map(_row, found.rows))


# ------------------------------------------------------------------------------ absorbing


def test_windows_and_stored_part_of_one_instant_see_it_both() -> None:
    """
    time     1        2        3
    stream   a p b    b p c    (end)
    """
    evaluator = absorbing()
    register(evaluator, "q", "SELECT ?x ?z { STREAM :s [NOW] { ?x :p ?y } GRAPH :g { ?z :p ?y } }")
    found = evaluator.push(S, [event(1, ":a :p :b"), event(2, ":c :p :b")]) + evaluator.end(S)
    assert said(found) == [(1, "+", "a a"), (2, "+", "c a"), (2, "+", "c c")]


def test_what_is_absorbed_is_seen_by_one_shot_queries_when_its_instant_is_complete() -> None:
    evaluator = absorbing()
    evaluator.push(S, [event(1, ":a :p 1"), event(2, ":b :p 2")])
    assert asked(evaluator, ALL_OF_G) == ["a 1"]
    evaluator.heartbeat(S, 2)
    assert asked(evaluator, ALL_OF_G) == ["a 1", "b 2"]
    assert asked(evaluator, "SELECT * { ?s ?p ?o }") == []


def test_split_by_predicate() -> None:
    evaluator = absorbing(predicates=frozenset([EX + "q"]))
    register(evaluator, "window", "SELECT ?y { STREAM :s [NOW] { ?x ?p ?y } }")
    found = evaluator.push(S, [event(1, ":a :p 1 ; :q 2")]) + evaluator.end(S)
    assert {values for _, _, values in said(found)} == {"1", "2"}
    assert asked(evaluator, ALL_OF_G) == ["a 2"]


def test_into_the_default_graph_beside_the_windows_of_csparql() -> None:
    """A triple of the window that is stored at the same instant is in the merged graph once."""
    evaluator = ReferenceEvaluator()
    evaluator.add_stream(S, absorb=Absorb(None))
    text = "REGISTER QUERY q AS SELECT ?x FROM STREAM :s [RANGE 2ms STEP 1ms] WHERE { ?x :p ?y }"
    register(evaluator, "q", text.replace(":s ", f"<{S}> "))
    found = evaluator.push(S, [event(1, ":a :p 1"), event(2, ":b :p 1")]) + evaluator.end(S)
    assert said(found) == [(1, "+", "a"), (2, "+", "a"), (2, "+", "b")]


def test_a_fact_that_comes_again_changes_nothing() -> None:
    evaluator = absorbing()
    register(evaluator, "live", ALL_OF_G)
    found = evaluator.push(S, [event(1, ":a :p 1"), event(3, ":a :p 1"), event(5, ":b :p 1")])
    assert said(found + evaluator.end(S)) == [(1, "+", "a 1"), (5, "+", "b 1")]


@pytest.mark.parametrize("promised", [False, True])
def test_what_is_late_is_a_fact_from_the_next_instant_on(promised: bool) -> None:
    """
    arrives     10    (promise: 14)    4, late    20
    closed       9           14
    """
    evaluator = absorbing()
    register(evaluator, "live", ALL_OF_G)
    register(evaluator, "window", "SELECT ?y { STREAM :s [ALL] { :late ?p ?y } }")
    found = evaluator.push(S, [event(10, ":a :p 1")])
    if promised:
        found += evaluator.heartbeat(S, 14)
    found += evaluator.push(S, [event(4, ":late :p 1")])
    assert evaluator.late == {S: 1}
    found += evaluator.push(S, [event(20, ":b :p 1")]) + evaluator.end(S)
    at = 15 if promised else 10
    assert said(found) == [(10, "+", "a 1"), (at, "+", "late 1"), (20, "+", "b 1")]


def test_what_is_late_for_an_instant_that_other_streams_have_closed() -> None:
    """The stream comes so late that all has been answered: the next instant is the first it can count at."""
    evaluator = ReferenceEvaluator()
    evaluator.add_stream(OTHER)
    evaluator.push(OTHER, [event(10, ":a :p 1")])
    evaluator.add_stream(S, absorb=Absorb(G))
    register(evaluator, "live", ALL_OF_G)
    found = evaluator.push(S, [event(5, ":late :p 1")]) + evaluator.push(OTHER, [event(20, ":a :p 1")])
    assert said(found) == [(10, "+", "late 1")]


@pytest.mark.parametrize("ending", ["end", "for ever"])
def test_what_comes_after_the_end_of_its_stream(ending: str) -> None:
    evaluator = absorbing()
    evaluator.add_stream(OTHER, from_start=True)
    register(evaluator, "live", ALL_OF_G)
    if ending == "end":
        evaluator.end(S)
    else:
        evaluator.heartbeat(S, FOREVER)
    assert evaluator.push(S, [event(5, ":late :p 1")]) == []
    assert asked(evaluator, ALL_OF_G) == []
    found = evaluator.push(OTHER, [event(7, ":a :p 1"), event(9, ":a :p 1")])
    assert said(found)[-1] == (7, "+", "late 1")


def test_the_example_of_the_semantics_page() -> None:
    evaluator = absorbing()
    register(evaluator, "live", ALL_OF_G)
    register(evaluator, "window", "SELECT ?x ?y { STREAM :s [RANGE 3ms] { ?x :p ?y } }")
    count = "SELECT (COUNT(*) AS ?n) { STREAM :s [NOW] { ?a ?b ?c } GRAPH :g { ?x :p ?y } }"
    register(evaluator, "count", count)
    found = evaluator.push(S, [event(10, ":a :p 1")])
    found += evaluator.update(PREFIX + "INSERT DATA { GRAPH :g { :x :p 0 } }")
    found += evaluator.push(S, [event(12, ":b :p 2"), event(7, ":c :p 3"), event(15, ":d :p 4")])
    found += evaluator.end(S)
    of = {name: said([a for a in found if a.query == name]) for name in evaluator.queries}
    assert of["live"] == [
        *[(10, "+", "a 1"), (10, "+", "x 0")],
        *[(12, "+", "b 2"), (12, "+", "c 3")],
        (15, "+", "d 4"),
    ]
    assert of["window"] == [(10, "+", "a 1"), (12, "+", "b 2"), (15, "+", "d 4")]
    counted = {10: "2", 11: "0", 12: "4", 13: "0", 15: "5"}
    assert of["count"] == [(time, "+", n) for time, n in counted.items()]
    stored = {9: [], 10: ["a 1", "x 0"], 12: ["a 1", "b 2", "c 3", "x 0"]}
    assert {at: asked(evaluator, ALL_OF_G, at) for at in stored} == stored


# ------------------------------------------------------------------------------ live queries


def test_a_live_query_tells_its_whole_answer_then_changes() -> None:
    evaluator = absorbing()
    assert evaluator.load(triples("GRAPH :g { :stored :p 0 }")) == [], "there is no time to tell it at"
    register(evaluator, "live", ALL_OF_G)
    assert evaluator.update(PREFIX + "INSERT DATA { GRAPH :g { :updated :p 0 } }") == []
    found = evaluator.push(S, [event(10, ":a :p 1"), event(12, ":b :p 1")])
    assert said(found) == [(10, "+", "a 1"), (10, "+", "stored 0"), (10, "+", "updated 0")]
    found = evaluator.update(PREFIX + "DELETE WHERE { GRAPH :g { ?x :p 0 } }")
    assert said(found) == [(12, "-", "stored 0"), (12, "-", "updated 0")]
    assert evaluator.update(PREFIX + "DELETE WHERE { GRAPH :g { ?x :p 0 } }") == []
    assert said(evaluator.end(S)) == [(12, "+", "b 1")]
    found = evaluator.clear(G)
    assert said(found) == [(13, "-", "a 1"), (13, "-", "b 1")]


def test_its_first_report_is_at_the_first_instant_after_its_registration() -> None:
    """Whether or not anything comes then."""
    evaluator = absorbing()
    evaluator.push(S, [event(10, ":a :p 1")])
    evaluator.heartbeat(S, 10)
    register(evaluator, "live", ALL_OF_G)
    assert said(evaluator.heartbeat(S, 50)) == [(11, "+", "a 1")]


def test_it_reports_only_what_concerns_its_graphs() -> None:
    evaluator = absorbing()
    register(evaluator, "live", ALL_OF_G, Output.RSTREAM)
    found = evaluator.push(S, [event(1, ":a :p 1"), event(2, ":a :p 1"), event(4, ":b :p 1")])
    found += evaluator.heartbeat(S, 4) + evaluator.load(triples(":a :p 1"))
    assert said(found) == [(1, "+", "a 1"), (4, "+", "a 1"), (4, "+", "b 1")]


def test_a_paused_one_tells_what_it_missed_at_the_first_instant_after() -> None:
    evaluator = absorbing()
    register(evaluator, "live", ALL_OF_G)
    found = evaluator.push(S, [event(1, ":a :p 1"), event(2, ":b :p 1")])
    evaluator.pause("live")
    found += evaluator.push(S, [event(5, ":c :p 1")]) + evaluator.clear(G)
    evaluator.pause("live", False)
    found += evaluator.heartbeat(S, 9)
    assert said(found) == [(1, "+", "a 1"), (5, "-", "a 1"), (5, "+", "c 1")]


def test_an_engine_without_streams_stands_still() -> None:
    evaluator = ReferenceEvaluator(t0=7)
    register(evaluator, "live", "ASK { ?x :p ?y }")
    found = evaluator.load(triples(":a :q 1")) + evaluator.load(triples(":a :p 1"))
    assert [(a.time, a.sign, a.boolean) for a in found] == [(7, "+", False), (7, "-", False), (7, "+", True)]


def test_it_does_not_see_the_windows_of_others() -> None:
    evaluator = ReferenceEvaluator()
    evaluator.add_stream(S)
    register(evaluator, "window", "SELECT ?x { STREAM :s [ALL] { ?x :p ?y } }", Output.DSTREAM)
    register(evaluator, "live", "SELECT ?g { GRAPH ?g { ?x ?p ?y } }")
    assert evaluator.push(S, [event(1, ":a :p 1"), event(2, ":a :p 1")]) + evaluator.end(S) == []


def test_a_live_query_has_no_policy() -> None:
    evaluator = absorbing()
    query = parse(PREFIX + ALL_OF_G)
    with pytest.raises(UsageError, match="no window"):
        evaluator.register("live", query, report=Report(When.PERIODIC, every=3))
    with pytest.raises(UsageError, match="not every 3 ms"):
        register(evaluator, "live", "REGISTER QUERY q COMPUTED EVERY 3ms AS SELECT ?x { ?x ?p ?y }")


# ------------------------------------------------------------------------------ updates and the past


def test_updates_are_seen_from_the_next_instant_on() -> None:
    """
    time     1     2        3
    stream   a     b        c
    update      k       - k
    """
    evaluator = absorbing()
    text = "SELECT ?x ?k { STREAM :s [RANGE 9ms] { ?x :p ?y } OPTIONAL { ?x :k ?k } }"
    register(evaluator, "q", text, Output.CHANGES)
    found = evaluator.push(S, [event(1, ":a :p 1")]) + evaluator.heartbeat(S, 1)
    assert evaluator.update(PREFIX + "INSERT DATA { :a :k 5 . :b :k 6 }") == []
    found += evaluator.push(S, [event(2, ":b :p 1")]) + evaluator.heartbeat(S, 2)
    evaluator.update(PREFIX + "DELETE { ?x :k ?k } INSERT { ?x :k 7 } WHERE { ?x :k ?k FILTER(?k < 6) }")
    found += evaluator.push(S, [event(3, ":c :p 1")]) + evaluator.heartbeat(S, 3)
    assert said(found) == [
        (1, "+", "a"),
        *[(2, "-", "a"), (2, "+", "5 a"), (2, "+", "6 b")],
        *[(3, "-", "5 a"), (3, "+", "7 a"), (3, "+", "c")],
    ]


def test_the_past_can_be_asked() -> None:
    evaluator = absorbing()
    evaluator.load(triples("GRAPH :g { :first :p 0 }"))
    evaluator.push(S, [event(1, ":a :p 1"), event(3, ":b :p 1")])
    states = [(evaluator.moment, ["a 1", "first 0"])]
    for text, stored in (("DELETE", ["first 0"]), ("INSERT", ["a 1", "first 0"])):
        evaluator.update(PREFIX + text + " DATA { GRAPH :g { :a :p 1 } }")
        states.append((evaluator.moment, stored))
    evaluator.end(S)
    states.append((evaluator.moment, ["a 1", "b 1", "first 0"]))
    for moment, stored in states:
        found = evaluator.ask(PREFIX + ALL_OF_G, moment)
        assert isinstance(found, Solutions) and sorted(map(_row, found.rows)) == stored
    assert asked(evaluator, ALL_OF_G) == ["a 1", "b 1", "first 0"]
    assert asked(evaluator, ALL_OF_G, at=0) == ["first 0"]


def test_a_literal_is_the_term_that_was_written() -> None:
    evaluator = ReferenceEvaluator()
    evaluator.update(
        PREFIX + 'PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> INSERT DATA { :a :k 1, 01, "1"^^xsd:int, '
        '1.0, "#x", "02"^^<http://www.w3.org/2001/XMLSchema#integer> . :n01 :k01 "01" } # 03'
    )
    assert asked(evaluator, "SELECT ?a ?k { ?a ?p ?k }") == [
        *["a #x", "a 01", "a 02", "a 1", "a 1", "a 1.0"],
        "n01 01",
    ]
    evaluator.update(PREFIX + "DELETE DATA { :a :k 01 } ; DELETE WHERE { :a :k 1 }")
    assert asked(evaluator, "SELECT ?k { :a ?p ?k }") == ["#x", "02", "1", "1.0"]
    with pytest.raises(QueryError, match="update"):
        evaluator.update("INSERT { } ?")


def test_updates_never_touch_windows() -> None:
    evaluator = absorbing()
    register(evaluator, "q", "SELECT ?x { STREAM :s [ALL] { ?x :p ?y } }", Output.RSTREAM)
    evaluator.push(S, [event(1, ":a :p 1")])
    evaluator.heartbeat(S, 1)
    evaluator.update("CLEAR ALL")
    assert asked(evaluator, ALL_OF_G) == []
    assert said(evaluator.push(S, [event(2, ":b :p 1")]) + evaluator.end(S))[-2:] == [
        (2, "+", "a"),
        (2, "+", "b"),
    ]


# ------------------------------------------------------------------------------ feeding a graph

COPY = "CONSTRUCT { ?x :seen ?p } { STREAM :s [RANGE 3ms] { ?x ?p ?y } }"
ALL_OF_H = "SELECT ?x ?y { GRAPH :h { ?x :seen ?y } }"


def feeding(text: str, output: Output | None = None) -> ReferenceEvaluator:
    evaluator = absorbing()
    register(evaluator, "feeds", text, output)
    evaluator.feed("feeds", H)
    return evaluator


def test_what_a_query_adds_is_a_fact_from_that_instant_on() -> None:
    evaluator = feeding(COPY)
    register(evaluator, "live", ALL_OF_H)
    register(evaluator, "window", "SELECT ?x { STREAM :s [NOW] { ?x ?p ?y } GRAPH :h { ?x ?q ?p } }")
    found = evaluator.push(S, [event(1, ":a :p 1"), event(9, ":b :p 1")]) + evaluator.end(S)
    assert said(found) == [(1, "+", "a"), (1, "+", "a p"), (9, "+", "b"), (9, "+", "b p")]
    assert asked(evaluator, ALL_OF_H) == ["a p", "b p"]


def test_with_changes_a_triple_goes_when_no_solution_makes_it() -> None:
    """
    time      1     2     3     4     5
    stream    a 1   a 2               (promise)
    leaves                      a 1   a 2
    """
    evaluator = feeding(COPY, Output.CHANGES)
    register(evaluator, "live", ALL_OF_H)
    found = evaluator.push(S, [event(1, ":a :p 1"), event(2, ":a :p 2")]) + evaluator.heartbeat(S, 9)
    assert said(found) == [(1, "+", "a p"), (5, "-", "a p")]


def test_a_view_of_a_graph_is_kept_current_by_updates() -> None:
    evaluator = feeding("CONSTRUCT { ?y :seen ?x } { GRAPH :g { ?x :p ?y } }")
    register(evaluator, "live", ALL_OF_H)
    found = evaluator.push(S, [event(1, ":a :p :b")]) + evaluator.heartbeat(S, 1)
    found += evaluator.update(PREFIX + "DELETE DATA { GRAPH :g { :a :p :b } }")
    assert said(found) == [(1, "+", "b a"), (2, "-", "b a")]


def test_nobody_else_changes_it() -> None:
    evaluator = feeding(COPY)
    evaluator.push(S, [event(1, ":a :p 1")])
    evaluator.heartbeat(S, 1)
    for change in (
        lambda: evaluator.load(triples("GRAPH :h { :a :p 1 }")),
        lambda: evaluator.clear(H),
        lambda: evaluator.update("DELETE WHERE { GRAPH ?g { ?s ?p ?o } }"),
        lambda: evaluator.add_stream(OTHER, absorb=Absorb(H)),
    ):
        with pytest.raises(UsageError, match="feeds"):
            change()
    assert asked(evaluator, ALL_OF_G) == ["a 1"], "an update is carried out as a whole or not at all"
    evaluator.drop("feeds")
    assert asked(evaluator, ALL_OF_H) == ["a p"]
    evaluator.clear(H)
    assert asked(evaluator, ALL_OF_H) == []


@pytest.mark.parametrize(
    "text, output, why",
    [
        ("SELECT ?x { GRAPH :g { ?x ?p ?y } }", None, "only CONSTRUCT"),
        ("CONSTRUCT { GRAPH :k { ?x :q ?y } } { GRAPH :g { ?x :p ?y } }", None, "GRAPH of its own"),
        (COPY, Output.DSTREAM, "DSTREAM"),
        ("CONSTRUCT { ?x :q [] } { GRAPH :g { ?x :p ?y } }", None, "blank nodes"),
        ("CONSTRUCT { ?x :q ?y } { GRAPH :h { ?x :p ?y } }", None, "reads it already"),
        ("CONSTRUCT { ?x :q ?y } { GRAPH ?g { ?x :p ?y } }", None, "reads it already"),
    ],
)
def test_what_cannot_feed_a_graph(text: str, output: Output | None, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        feeding(text, output)


def test_no_circles() -> None:
    """first reads g2 and feeds g1; second would read g1 and feed g2."""
    evaluator = ReferenceEvaluator()
    register(evaluator, "first", "CONSTRUCT { ?x :q ?y } { GRAPH :g2 { ?x :p ?y } }")
    evaluator.feed("first", EX + "g1")
    register(evaluator, "second", "CONSTRUCT { ?x :p ?y } { GRAPH :g1 { ?x :q ?y } }")
    with pytest.raises(UsageError, match="'first' reads it already"):
        evaluator.feed("second", EX + "g2")
    with pytest.raises(UsageError, match="feeds"):
        evaluator.feed("second", EX + "g1")


def test_a_graph_that_absorbs_is_not_fed() -> None:
    evaluator = absorbing()
    register(evaluator, "q", COPY)
    with pytest.raises(UsageError, match="absorbed into it"):
        evaluator.feed("q", G)


def test_blank_nodes_of_templates_are_new() -> None:
    evaluator = feeding("CONSTRUCT { ?x :seen [] } { STREAM :s [NOW] { ?x ?p ?y } }", Output.ISTREAM)
    evaluator.push(S, [event(1, ":a :p 1, 2"), event(2, ":a :p 3")])
    evaluator.end(S)
    assert len(asked(evaluator, ALL_OF_H)) == 3


# ------------------------------------------------------------------------------ standing up again


@pytest.mark.parametrize("cut", range(7))
def test_it_goes_on_from_a_snapshot(cut: int) -> None:
    def made() -> ReferenceEvaluator:
        evaluator = feeding(COPY, Output.CHANGES)
        register(evaluator, "live", ALL_OF_H)
        register(evaluator, "also", ALL_OF_G)
        return evaluator

    events = [event(t, f":a :p {t}") for t in (1, 2, 5, 3, 6, 12)]
    whole = made()
    expected = whole.push(S, events) + whole.end(S)
    first, second = made(), made()
    found = first.push(S, events[:cut])
    second.restore(first.snapshot())
    found += second.push(S, events[cut:]) + second.end(S)
    assert said(found) == said(expected)
    for instant in range(14):
        for text in (ALL_OF_G, ALL_OF_H):
            assert asked(second, text, instant) == asked(whole, text, instant)
