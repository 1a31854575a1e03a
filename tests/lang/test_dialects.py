"""The stream clauses of the three dialects."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyoxigraph import NamedNode

from kelda.engine.report import report_of
from kelda.errors import QueryError
from kelda.lang import parse, parse_update, prepare
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
    QuadPattern,
    Query,
    Report,
    TimeWindow,
    TriplePattern,
    Triples,
    Union,
    Values,
    Var,
    When,
    WindowDef,
)
from kelda.lang.timestamps import TIMESTAMP

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
    *queries, update = examples
    assert [parse(text).dialect for text in queries] == [Dialect.CQELS, Dialect.CSPARQL, Dialect.RSPQL]
    assert parse_update(update).operations


# ---------------------------------------------------------------------------- texts in circulation


@pytest.mark.parametrize("word", ["RSTREAM", "ISTREAM", "DSTREAM"])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT {} ?x FROM NAMED WINDOW <e:w> ON <e:s> [RANGE PT1S] {{ WINDOW <e:w> {{ ?x ?p ?o }} }}",
        "SELECT {} DISTINCT ?x FROM STREAM <e:s> [RANGE 1s STEP 1s] {{ ?x ?p ?o }}",
        "SELECT {} (COUNT(*) AS ?n) {{ STREAM <e:s> [NOW] {{ ?x ?p ?o }} }}",
        "CONSTRUCT {} {{ ?x <e:q> ?o }} {{ STREAM <e:s> [NOW] {{ ?x ?p ?o }} }}",
    ],
)
def test_the_query_form_says_what_is_sent(text: str, word: str) -> None:
    assert parse(text.format(word)).output is Output(word.lower())


def test_what_is_sent_is_said_once_and_of_streams() -> None:
    window = "FROM NAMED WINDOW <e:w> ON <e:s> [RANGE PT1S] { WINDOW <e:w> { ?x ?p ?o } }"
    assert parse(f"REGISTER ISTREAM <e:o> AS SELECT ISTREAM ?x {window}").output is Output.ISTREAM
    with pytest.raises(QueryError, match="REGISTER says RSTREAM, and this says ISTREAM"):
        parse(f"REGISTER RSTREAM <e:o> AS SELECT ISTREAM ?x {window}")
    with pytest.raises(QueryError, match="ISTREAM makes a stream of answers, and there is no window"):
        parse("SELECT ISTREAM ?x { ?x ?p ?o }")


def test_aggregates_without_brackets_in_rspql() -> None:
    tail = "FROM NAMED WINDOW <e:w> ON <e:s> [RANGE PT1S] { WINDOW <e:w> { ?x ?p ?v } }"
    bare, usual = parse(f"SELECT AVG(?v) AS ?a {tail}"), parse(f"SELECT (AVG(?v) AS ?a) {tail}")
    assert bare == usual
    with pytest.raises(QueryError, match="without brackets' is CQELS-QL and RSP-QL"):
        parse("SELECT AVG(?v) AS ?a FROM STREAM <e:s> [RANGE 1s] { ?x ?p ?v }", dialect="csparql")


def test_a_window_named_behind() -> None:
    """As the RSP community group's drafts write it."""
    before = parse("SELECT * FROM NAMED WINDOW <e:w> ON <e:s> [RANGE PT1H] { WINDOW <e:w> { ?x ?p ?o } }")
    for on in ("ON", "ON STREAM"):
        text = (
            f"SELECT * FROM NAMED WINDOW {on} <e:s> [RANGE PT1H] AS <e:w> {{ WINDOW <e:w> {{ ?x ?p ?o }} }}"
        )
        assert parse(text) == before


@pytest.mark.parametrize(
    ("window", "size", "report"),
    [
        ("SLIDING 10 SLIDE 2 REPORT ON_WINDOW_CLOSE TICK TIME_DRIVEN", (10, 2), (When.WINDOW_CLOSE, True)),
        ("RANGE 10 STEP 2 REPORT NON_EMPTY_CONTENT", (10, 2), (When.WINDOW_CLOSE, True)),
        ("TUMBLING 10 REPORT ON_CONTENT_CHANGE TICK TIME_DRIVEN", (10, 10), (When.CONTENT_CHANGE, False)),
        ("RANGE PT1S TICK TIME_DRIVEN", (1000, None), None),
    ],
)
def test_policies_in_the_window(
    window: str, size: tuple[int, int | None], report: tuple[When, bool] | None
) -> None:
    text = "SELECT * FROM NAMED WINDOW <e:w> ON <e:s> [{}] {{ WINDOW <e:w> {{ ?x ?p ?o }} }}"
    query = parse(text.format(window))
    assert query.windows[0].window == TimeWindow(*size)
    assert query.report == (None if report is None else Report(*report))
    assert report_of(query) == (query.report or Report(When.WINDOW_CLOSE, non_empty=True))


@pytest.mark.parametrize(
    ("window", "why"),
    [
        ("RANGE 10 REPORT SOMETIMES", "REPORT is one of ON_WINDOW_CLOSE"),
        ("RANGE 10 REPORT", "REPORT is one of ON_WINDOW_CLOSE"),
        ("RANGE 10 TICK TUPLE_DRIVEN", "TICK can only be TIME_DRIVEN"),
        ("NOW", r"say how far it goes back, as in \[NOW - 10s\]"),
    ],
)
def test_policies_that_cannot_be_had(window: str, why: str) -> None:
    with pytest.raises(QueryError, match=why):
        parse(f"SELECT * FROM NAMED WINDOW <e:w> ON <e:s> [{window}] {{ WINDOW <e:w> {{ ?x ?p ?o }} }}")


def test_windows_of_a_query_report_alike() -> None:
    with pytest.raises(QueryError, match="windows of one query report alike"):
        parse(
            "SELECT * FROM NAMED WINDOW <e:w> ON <e:s> [RANGE 10 REPORT ON_CONTENT_CHANGE] "
            "FROM NAMED WINDOW <e:v> ON <e:s> [RANGE 10 REPORT ON_WINDOW_CLOSE] { WINDOW <e:w> { ?x ?p ?o } }"
        )


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ("NOW - 10 S SLIDE 10 S", TimeWindow(10_000, 10_000)),
        ("NOW - 10 S", TimeWindow(10_000)),
        ("NOW - 3 HOURS TO NOW - 1 HOURS STEP 10 MINUTES", TimeWindow(7_200_000, 600_000, 3_600_000)),
        ("NOW-PT35M TO NOW", TimeWindow(2_100_000)),
    ],
)
def test_windows_of_sparqlstream(window: str, expected: TimeWindow) -> None:
    assert parse(f"SELECT * FROM STREAM <e:s> [{window}] {{ ?x ?p ?o }}").windows[0].window == expected
    rspql = f"SELECT * FROM NAMED WINDOW <e:w> ON <e:s> [{window}] {{ WINDOW <e:w> {{ ?x ?p ?o }} }}"
    assert parse(rspql).windows[0].window == expected


def test_relative_iris_have_a_base() -> None:
    text = "PREFIX : <vocab#> SELECT * FROM STREAM <s> [RANGE 1s] { ?x :p <../y> }"
    assert parse(text).windows[0].stream == NamedNode("kelda:/s")
    given = parse(text, base="http://e/a/b")
    assert given.windows[0].stream == NamedNode("http://e/a/s")
    assert given.pattern.pattern.patterns[0].p == NamedNode("http://e/a/vocab#p")  # type: ignore[attr-defined]
    assert parse("BASE <http://f/> " + text, base="http://e/").windows[0].stream == NamedNode("http://f/s")
    with pytest.raises(QueryError, match="the base 'a/b' is not an absolute IRI"):
        parse(text, base="a/b")


def test_quads_in_a_template() -> None:
    query = parse(
        "CONSTRUCT { ?x <e:a> ?y . GRAPH ?y { ?x <e:b> _:n . _:n <e:c> 1 } GRAPH <e:g> { } . _:n <e:d> 2 } "
        "{ ?x ?p ?y }"
    )
    graphs = [getattr(t, "graph", None) for t in query.template]
    assert graphs == [None, Var("y"), Var("y"), None]
    assert query.template[1].o == query.template[3].s  # one blank node, wherever it stands
    prepared = prepare("CONSTRUCT { GRAPH $g { ?x ?p ?y } } { ?x ?p ?y }")
    assert prepared.bind(g="e:g").template == (QuadPattern(Var("x"), Var("p"), Var("y"), NamedNode("e:g")),)
    with pytest.raises(QueryError, match="not in CONSTRUCT WHERE"):
        parse("CONSTRUCT WHERE { GRAPH <e:g> { ?x ?p ?y } }")
    with pytest.raises(QueryError, match="property path cannot stand in a template"):
        parse("CONSTRUCT { GRAPH <e:g> { ?x <e:a>/<e:b> ?y } } { ?x ?p ?y }")


def test_time_stamps_of_variables() -> None:
    text = "SELECT * FROM STREAM <e:s> [RANGE 1s] {{ ?x <e:p> ?y . ?y ?q ?z FILTER({} > 5) }}"
    condition = parse(text.format("timestamp(?y)")).pattern.pattern.condition  # type: ignore[attr-defined]
    assert condition.args[0].function == TIMESTAMP
    assert len(condition.args[0].args) == 6
    for wrong, why in [
        ("timestamp(?other)", "no triple pattern has .other"),
        ("timestamp(1)", "takes a variable"),
    ]:
        with pytest.raises(QueryError, match=why):
            parse(text.format(wrong))
    with pytest.raises(QueryError, match=r"'timestamp\(…\)' is C-SPARQL"):
        parse("SELECT * { STREAM <e:s> [NOW] { ?x ?p ?y FILTER(timestamp(?x) > 5) } }")
