"""The stream clauses of the three dialects."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyoxigraph import NamedNode

from kelda.lang import parse
from kelda.lang.algebra import (
    AllWindow,
    Const,
    Dialect,
    Extend,
    Filter,
    Form,
    InGraph,
    InWindow,
    Join,
    NowWindow,
    Output,
    Pattern,
    Project,
    Query,
    TimeWindow,
    TriplePattern,
    Triples,
    Union,
    Values,
    Var,
    WindowDef,
)

PREFIX = "PREFIX : <http://e/>\n"
X, Y = Var("x"), Var("y")


def e(name: str) -> NamedNode:
    return NamedNode("http://e/" + name)


def where(query: Query) -> Pattern:
    assert isinstance(query.pattern, Project)
    return query.pattern.pattern


P = Triples((TriplePattern(X, e("p"), Y),))
Q = Triples((TriplePattern(X, e("q"), Y),))

# ---------------------------------------------------------------------------- which dialect


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("SELECT * { ?x :p ?y }", Dialect.SPARQL),
        ("SELECT * { STREAM :s [NOW] { ?x :p ?y } }", Dialect.CQELS),
        ("SELECT ?x count(?y) AS ?n { ?x :p ?y } GROUP BY ?x", Dialect.CQELS),
        ("REGISTER QUERY q AS SELECT * { ?x :p ?y }", Dialect.CSPARQL),
        ("REGISTER STREAM :o AS CONSTRUCT { ?x :p ?y } { ?x :p ?y }", Dialect.CSPARQL),
        ("SELECT * FROM STREAM :s [RANGE 1s] { ?x :p ?y }", Dialect.CSPARQL),
        ("SELECT * FROM :s [RANGE 1s] { ?x :p ?y }", Dialect.CSPARQL),
        ("REGISTER RSTREAM :o AS SELECT * { ?x :p ?y }", Dialect.RSPQL),
        ("SELECT * FROM NAMED WINDOW :w ON :s [PT1S] { ?x :p ?y }", Dialect.RSPQL),
        (
            "REGISTER STREAM :o AS SELECT * FROM NAMED WINDOW :w ON :s [PT1S] { WINDOW :w { ?x :p ?y } }",
            Dialect.RSPQL,
        ),
    ],
)
def test_the_text_decides(text: str, dialect: Dialect) -> None:
    assert parse(PREFIX + text).dialect is dialect


@pytest.mark.parametrize("name", ["cqels", "CQELS-QL", "csparql", "C-SPARQL", "rspql", "RSP-QL", "sparql"])
def test_the_caller_may_say(name: str) -> None:
    assert parse("SELECT * { ?s ?p ?o }", dialect=name).dialect.value in name.lower().replace("-", "")


# ---------------------------------------------------------------------------- CQELS-QL


def test_cqels() -> None:
    query = parse(
        PREFIX
        + """SELECT ?x FROM NAMED :plan
        WHERE { STREAM :s [NOW] { ?x :p ?y } STREAM [RANGE 3s] :s { ?x :q ?y } GRAPH :plan { ?x :p ?y } }"""
    )
    assert query.windows == (
        WindowDef("w0", e("s"), NowWindow()),
        WindowDef("w1", e("s"), TimeWindow(3000)),
    )
    assert where(query) == Join(Join(InWindow("w0", P), InWindow("w1", Q)), InGraph(e("plan"), P))
    assert query.dataset.named == (e("plan"),)
    assert query.dataset.default is None, "the stored default graph stays in reach"
    assert query.output is None


def test_a_stream_variable_is_in_scope() -> None:
    query = parse(PREFIX + "SELECT * { STREAM ?s [ALL] { ?x :p ?y FILTER(?y > 1) } }")
    assert query.windows == (WindowDef("w0", Var("s"), AllWindow()),)
    assert isinstance(query.pattern, Project) and query.pattern.vars == (Var("s"), X, Y)
    window = where(query)
    assert isinstance(window, InWindow) and isinstance(window.pattern, Filter)


def test_cqels_select_without_brackets() -> None:
    old = parse("SELECT ?x count(distinct ?y) as ?n { ?x ?p ?y } GROUP BY ?x")
    new = parse("SELECT ?x (COUNT(DISTINCT ?y) AS ?n) { ?x ?p ?y } GROUP BY ?x", dialect="cqels")
    assert old == new


def test_cqels_construct() -> None:
    query = parse(PREFIX + "CONSTRUCT { ?x :q ?y } WHERE { STREAM :s [NOW] { ?x :p ?y } }")
    assert query.form is Form.CONSTRUCT and query.dialect is Dialect.CQELS


# ---------------------------------------------------------------------------- C-SPARQL


def test_csparql() -> None:
    query = parse(
        "REGISTER QUERY Busy COMPUTED EVERY 5s AS\n"
        + PREFIX
        + "SELECT * FROM STREAM :s [RANGE 10s STEP 1s] FROM :static WHERE { ?x :p ?y }"
    )
    assert (query.name, query.every, query.stream_out) == ("Busy", 5000, None)
    assert query.windows == (WindowDef("w0", e("s"), TimeWindow(10_000, 1000)),)
    assert query.dataset.windows == ("w0",)
    assert query.dataset.default == (e("static"),)
    assert where(query) == P


def test_prefixes_on_either_side_of_register() -> None:
    body = "SELECT * FROM STREAM :s [RANGE 10s STEP 1s] { ?x :p ?y }"
    before = parse(PREFIX + "REGISTER STREAM :out COMPUTE EVERY 1 min AS " + body)
    after = parse("REGISTER STREAM :out COMPUTE EVERY 1 min AS " + PREFIX + body)
    assert before == after
    assert (before.name, before.stream_out, before.every) == ("http://e/out", e("out"), 60_000)


def test_named_streams_are_reached_by_graph() -> None:
    query = parse(
        PREFIX
        + """SELECT * FROM STREAM :s [RANGE 1s STEP 1s] FROM NAMED STREAM :t [RANGE 2s STEP 1s]
        { ?x :p ?y GRAPH :t { ?x :q ?y } }"""
    )
    assert query.dataset.windows == ("w0",)
    assert where(query) == Join(P, InWindow("w1", Q))


def test_wukong() -> None:
    query = parse(
        """REGISTER QUERY QC
        SELECT ?X ?Y ?Z
        FROM Posts [RANGE 10s STEP 1s]
        FROM Likes [RANGE 5s STEP 1s]
        FROM Stored-1
        WHERE { GRAPH Posts { ?X po ?Z } GRAPH Stored-1 { ?X fo ?Y } GRAPH Likes { ?Y li ?Z } }""",
        base="http://e/",
    )
    x, y, z = Var("X"), Var("Y"), Var("Z")
    assert query.dialect is Dialect.CSPARQL and query.name == "QC"
    assert query.windows == (
        WindowDef("w0", e("Posts"), TimeWindow(10_000, 1000)),
        WindowDef("w1", e("Likes"), TimeWindow(5_000, 1000)),
    )
    assert query.dataset.windows == ()
    assert query.dataset.named == (e("Stored-1"),)
    assert where(query) == Join(
        Join(
            InWindow("w0", Triples((TriplePattern(x, e("po"), z),))),
            InGraph(e("Stored-1"), Triples((TriplePattern(x, e("fo"), y),))),
        ),
        InWindow("w1", Triples((TriplePattern(y, e("li"), z),))),
    )


def test_bare_names_without_a_base() -> None:
    query = parse("SELECT ?x FROM Posts [RANGE 10s] { ?x po ?y }")
    assert query.windows[0].stream == NamedNode("urn:kelda:name:Posts")
    assert query.dataset.windows == ("w0",), "no GRAPH names it, so it is in the default graph"


# ---------------------------------------------------------------------------- RSP-QL


@pytest.mark.parametrize("output", [Output.RSTREAM, Output.ISTREAM, Output.DSTREAM])
def test_rspql(output: Output) -> None:
    query = parse(
        PREFIX
        + f"""REGISTER {output.name} :out AS
        SELECT * FROM :static
        FROM NAMED WINDOW :w ON STREAM :s [RANGE PT10S STEP PT5S]
        FROM NAMED WINDOW :unused ON :s [RANGE PT1S]
        FROM WINDOW :merged ON :t [RANGE PT1S STEP PT1S]
        WHERE {{ ?x :q ?y WINDOW :w {{ ?x :p ?y }} }}"""
    )
    assert (query.output, query.stream_out) == (output, e("out"))
    assert [w.name for w in query.windows] == ["http://e/w", "http://e/unused", "http://e/merged"]
    assert [w.stream for w in query.windows] == [e("s"), e("s"), e("t")]
    assert query.dataset.windows == ("http://e/merged",)
    assert query.dataset.default == (e("static"),)
    assert where(query) == Join(Q, InWindow("http://e/w", P))


def test_a_window_variable_ranges_over_the_named_windows() -> None:
    text = """SELECT * FROM NAMED WINDOW :v ON :s [PT1S] FROM NAMED WINDOW :w ON :t [PT2S]
        FROM WINDOW :d ON :s [PT3S] """
    w = Var("w")
    assert where(parse(PREFIX + text + "{ WINDOW ?w { ?x :p ?y } }")) == Union(
        Extend(InWindow("http://e/v", P), w, Const(e("v"))),
        Extend(InWindow("http://e/w", P), w, Const(e("w"))),
    )
    inside = Triples((TriplePattern(w, e("p"), Y),))
    assert where(parse(PREFIX + text + "{ WINDOW ?w { ?w :p ?y } }")) == Union(
        Join(InWindow("http://e/v", inside), Values((w,), ((e("v"),),))),
        Join(InWindow("http://e/w", inside), Values((w,), ((e("w"),),))),
    )


def test_the_words_of_one_dialect_are_names_in_another() -> None:
    prefixes = "PREFIX stream: <http://e/> PREFIX window: <http://e/> PREFIX a: <http://e/>"
    assert where(parse(prefixes + " SELECT * { ?x a:p ?y }")) == P
    assert where(parse(prefixes + " SELECT * { ?x stream:p ?y . }")) == P
    assert where(parse(prefixes + " SELECT * { ?x window:p ?y }")) == P


def test_the_examples_of_the_manual() -> None:
    manual = Path(__file__).parents[2] / "docs" / "languages.md"
    examples = re.findall(r"```sparql\n(.*?)```", manual.read_text(encoding="utf-8"), re.DOTALL)
    assert [parse(text).dialect for text in examples] == [Dialect.CQELS, Dialect.CSPARQL, Dialect.RSPQL]
