"""Prepared queries: binding gives the query that one would have written by hand."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from kelda.errors import QueryError
from kelda.lang import parse, prepare, term_from_text
from kelda.lang.algebra import Project, Var
from kelda.lang.params import term_of

XSD = "http://www.w3.org/2001/XMLSchema#"


def test_every_place() -> None:
    text = """SELECT ?x {
        STREAM {s} [RANGE {w} SLIDE {v}] { ?x {p} {o} OPTIONAL { {o} ?q ?x FILTER(?x > {n}) } }
        STREAM <urn:t> [TRIPLES {k}] { ?x <urn:a>* {o} }
        STREAM <urn:t> [SESSION {w}] { ?x <urn:a> {o} }
        GRAPH {g} { ?x <urn:q> {n} }
        VALUES (?a ?b) { ({o} 1) (UNDEF {n}) }
        BIND(STR({o}) AS ?z)
    } ORDER BY ({n} + ?x)"""
    by_hand = {
        "s": "<urn:s>",
        "w": "10s",
        "v": "1500ms",
        "p": "<urn:p>",
        "o": "<urn:o>",
        "n": "5",
        "k": "7",
        "g": "<urn:g>",
    }
    prepared, written = text, text
    for name, value in by_hand.items():
        prepared = prepared.replace("{" + name + "}", "$" + name)
        written = written.replace("{" + name + "}", value)
    query = prepare(prepared)
    assert set(query.parameters) == set(by_hand)
    bound = query.bind(
        s=NamedNode("urn:s"),
        w="10s",
        v=1500,
        p="urn:p",
        o=NamedNode("urn:o"),
        n=5,
        k=7,
        g=NamedNode("urn:g"),
    )
    assert bound == parse(written)


def test_parse_with_params_takes_only_the_names_given() -> None:
    text = "SELECT * { ?x ?p $v . $y ?q ?x }"
    query = parse(text, params={"v": "a"})
    assert query == parse("SELECT * { ?x ?p 'a' . ?y ?q ?x }")
    assert isinstance(query.pattern, Project) and Var("v") not in query.pattern.vars


def test_a_bound_query_shares_what_has_no_parameters() -> None:
    prepared = prepare("SELECT * { { ?x ?p ?y } UNION { ?x ?p $v } }")
    one, two = prepared.bind(v=1), prepared.bind(v=2)
    assert one != two
    assert one.pattern.pattern.left is two.pattern.pattern.left  # type: ignore[attr-defined]


def test_no_parameters() -> None:
    prepared = prepare("ASK { ?x ?p ?y }")
    assert prepared.parameters == ()
    assert prepared.bind() == parse("ASK { ?x ?p ?y }")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "no value for $a, $b"),
        ({"a": 1}, "no value for $b"),
        ({"a": 1, "b": 2, "c": 3}, "no such parameter: $c (the query has $a, $b)"),
        ({"a": 1, "c": 3}, "no value for $b; no such parameter: $c (the query has $a, $b)"),
    ],
)
def test_missing_and_unknown(values: dict[str, int], message: str) -> None:
    with pytest.raises(QueryError) as caught:
        prepare("SELECT * { ?x ?p $a, $b }").bind(**values)
    assert str(caught.value) == message


def test_unknown_in_parse() -> None:
    with pytest.raises(QueryError, match=r"no such parameter: \$z \(the query has none\)"):
        parse("SELECT * { ?x ?p ?y }", params={"z": 1})


@pytest.mark.parametrize(
    ("text", "value", "message"),
    [
        ("SELECT * { ?x $v ?y }", 5, r"\$v is a predicate and must be an IRI"),
        ("SELECT * { ?x $v ?y }", "no iri", r"\$v is a predicate, and 'no iri' is not an IRI"),
        ("SELECT * { GRAPH $v { } }", Literal("x"), r"\$v is the name of a graph"),
        ("SELECT * { STREAM $v [NOW] { } }", 1, r"\$v is a stream"),
        ("SELECT * { STREAM <urn:s> [RANGE $v] { } }", "10 parsecs", r"\$v: unknown time unit"),
        ("SELECT * { STREAM <urn:s> [RANGE $v] { } }", 0, r"\$v: a duration must be longer than zero"),
        ("SELECT * { STREAM <urn:s> [RANGE $v] { } }", 1.5, r"\$v is a duration"),
        ("SELECT * { STREAM <urn:s> [TRIPLES $v] { } }", 0, r"\$v is a number of elements"),
        ("SELECT * { STREAM <urn:s> [TRIPLES $v] { } }", "5", r"\$v is a number of elements"),
        ("SELECT * { STREAM <urn:s> [RANGE $v] { } }", 2**63, "at most 100 years"),
        ("SELECT * { STREAM <urn:s> [RANGE $v] { } }", 10**4000, r"\$v: .* is not a duration"),
        ("SELECT * { STREAM <urn:s> [RANGE $v] { } }", Literal("9" * 5000), r"\$v: .* is not a duration"),
        ("SELECT * { STREAM <urn:s> [TRIPLES $v] { } }", 2**31, r"\$v is .* can be at most 2,147,483,647"),
        ("SELECT * { STREAM <urn:s> [TRIPLES $v] { } }", 10**4000, r"at most .*more than 40 digits"),
        ("SELECT * { ?x ?p $v }", BlankNode("b"), "blank node"),
        ("SELECT * { ?x ?p $v }", [1], "cannot be a parameter"),
    ],
)
def test_values_that_do_not_fit(text: str, value: object, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        prepare(text).bind(v=value)


def typed(value: str, name: str) -> Literal:
    return Literal(value, datatype=NamedNode(XSD + name))


@pytest.mark.parametrize(
    ("value", "term"),
    [
        (5, typed("5", "integer")),
        (True, typed("true", "boolean")),
        ("a", Literal("a")),
        (2.5, Literal(2.5)),
        (Decimal("1.50"), typed("1.50", "decimal")),
        (date(2024, 2, 29), typed("2024-02-29", "date")),
        (datetime(2024, 2, 29, 1, 2, 3), typed("2024-02-29T01:02:03", "dateTime")),
        (datetime(2024, 2, 29, 1, 2, 3, tzinfo=timezone.utc), typed("2024-02-29T01:02:03Z", "dateTime")),
        (NamedNode("urn:x"), NamedNode("urn:x")),
    ],
)
def test_python_values(value: object, term: object) -> None:
    assert term_of(value) == term


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_survives(text: str) -> None:
    literal = Literal(text)
    assert term_from_text(str(literal)) == literal


def test_terms_from_text() -> None:
    assert term_from_text("<urn:x>") == NamedNode("urn:x")
    assert term_from_text('"a"@en') == Literal("a", language="en")
    assert term_from_text('"1"^^<urn:t>') == Literal("1", datatype=NamedNode("urn:t"))
    assert isinstance(term_from_text("<<( <urn:a> <urn:b> <urn:c> )>>"), Triple)
    for bad in ["urn:x", '"a', "_:b", "<urn:x> . <urn:a> <urn:b> <urn:c>", ""]:
        with pytest.raises(QueryError):
            term_from_text(bad)
