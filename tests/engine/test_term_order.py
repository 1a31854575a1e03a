"""The order of terms: total, the same wherever it is asked for, and in keeping with `<`."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, QuerySolutions, Store

from kelda.engine.oneshot import Solutions, evaluate
from kelda.engine.term_order import Aspect, TermOrder
from kelda.lang import parse
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.exact import Value, to_store
from kelda.rdf.graphstore import GraphStore
from kelda.rdf.operators import compares, equals
from kelda.rdf.sort_text import sort_text

XSD = "http://www.w3.org/2001/XMLSchema#"


def literal(text: str, datatype: str) -> Literal:
    return Literal(text, datatype=NamedNode(XSD + datatype))


TERMS: tuple[Value, ...] = (
    NamedNode("http://ex/a"),
    NamedNode("http://ex/é"),
    *(literal(t, "integer") for t in ("-3", "2", "10", "010", "9007199254740993", "x")),
    *(literal(t, "decimal") for t in ("2.0", "2.5", "-0.1", "9007199254740992.5")),
    *(literal(t, "double") for t in ("2", "2.5E0", "INF", "-INF", "NaN", "9007199254740992")),
    literal("2.5", "float"),
    Literal(""),
    Literal("10"),
    Literal("b"),
    Literal("Z"),
    Literal("\U0001f600"),
    Literal("\uffee"),
    Literal("b", language="en"),
    Literal("b", language="de"),
    literal("true", "boolean"),
    literal("2024-01-01T00:00:00Z", "dateTime"),
    literal("2024-01-01T01:00:00+02:00", "dateTime"),
    literal("2024-01-02", "date"),
    literal("PT1S", "duration"),
    literal("q", "unknown"),
)


IN_ORDER: tuple[Value, ...] = (
    literal("NaN", "double"),
    literal("-INF", "double"),
    literal("-100000000000000000000", "integer"),
    literal("-99999999999999999999", "integer"),
    literal("-1.5", "decimal"),
    literal("-1.25", "float"),
    literal("0", "integer"),
    literal("0.0999999999999999999999", "decimal"),
    literal("0.1", "double"),
    literal("0.1000000000000000000001", "decimal"),
    literal("0.1", "float"),
    literal("7", "byte"),
    literal("9223372036854775807", "integer"),
    literal("9223372036854775808", "integer"),
    literal("9223372036854775808.5", "decimal"),
    literal("99999999999999999999", "integer"),
    literal("1e300", "double"),
    literal("INF", "double"),
    Literal("a"),
    Literal("a", language="de"),
    Literal("a", language="en"),
    Literal("b"),
    literal("false", "boolean"),
    literal("true", "boolean"),
    literal("2024-01-01T00:00:00+14:00", "dateTime"),
    literal("2024-01-01T00:00:00", "dateTime"),
    literal("2024-01-01T00:00:00.5Z", "dateTime"),
    literal("2023-01-01", "date"),
    literal("2024-01-01Z", "date"),
    literal("PT1S", "dayTimeDuration"),
    literal("P1D", "duration"),
    Literal("a", datatype=NamedNode("http://ex/unit")),
    literal("x", "integer"),
)


def test_what_is_less_comes_first_and_what_comes_first_is_not_greater() -> None:
    for a, b in product(TERMS, repeat=2):
        if compares("<", a, b):
            assert sort_text(a) < sort_text(b), (a, b)
        if sort_text(a) == sort_text(b) and a != b:
            assert equals(a, b) is not False or compares("<", a, b) is None, (a, b)


def test_unbound_then_blank_nodes_then_iris_then_literals() -> None:
    terms = (None, BlankNode("a"), BlankNode("b"), NamedNode("http://ex/"), *IN_ORDER)
    places = [sort_text(t) for t in terms]
    for (i, a), (j, b) in product(enumerate(places), repeat=2):
        assert (a < b) == (i < j), (terms[i], terms[j])


def test_a_query_sorts_in_this_order() -> None:
    terms = list(dict.fromkeys([*TERMS, *IN_ORDER]))
    Random(1).shuffle(terms)
    subject, predicate = NamedNode("http://ex/s"), NamedNode("http://ex/p")
    store = GraphStore(Quad(subject, predicate, term) for term in terms)
    for direction in ("ASC", "DESC"):
        text = f"SELECT ?v {{ ?s ?p ?v }} ORDER BY {direction}(?v) DESC(STR(?v))"
        found = evaluate(parse(text), store)
        assert isinstance(found, Solutions)
        places = [sort_text(row["v"]) for row in found.rows]
        assert places == sorted(places, reverse=direction == "DESC")


def test_many_literals_of_mixed_kinds_are_sorted() -> None:
    """Oxigraph's own order of these is no order, and its sort ends the process over it."""
    kinds = [
        ("integer", "{}"),
        ("double", "{}.5"),
        ("date", "2020-01-{:02}"),
        ("integer", "x{}"),
        ("string", "{}"),
    ]
    data = [
        Quad(NamedNode(f"http://ex/s{i}"), NamedNode("http://ex/p"), literal(form.format(i), kind))
        for i in range(1, 29)
        for kind, form in kinds
    ]
    for tail in ("ORDER BY ?v", "ORDER BY DESC(?v) ?s LIMIT 100", "GROUP BY ?v ORDER BY MAX(?v)"):
        found = evaluate(parse(f"SELECT ?v {{ ?s ?p ?v }} {tail}"), GraphStore(data))
        assert isinstance(found, Solutions) and len(found.rows) in (len(data), 100)


def test_places_by_id() -> None:
    dictionary = Dictionary()
    order = TermOrder(dictionary)
    one, ten = (dictionary.encode(literal(t, "integer")) for t in ("1", "10"))
    assert order.place(0) < order.place(one) < order.place(ten)
    assert order.place(one) is order.place(one)


PLAIN = [term for term in TERMS if to_store(term) is term]  # as pyoxigraph spells them


@pytest.mark.parametrize("term", [*PLAIN, BlankNode("a"), None], ids=str)
def test_aspects_are_what_the_functions_say(term: Value | None) -> None:
    order = TermOrder(dictionary := Dictionary())
    id = 0 if term is None else dictionary.encode(term)
    functions = {NamedNode("http://ex/it"): lambda: term}
    for aspect, text in [
        (Aspect.TEXT, "STR(?t)"),
        (Aspect.DATATYPE, "STR(DATATYPE(?t))"),
        (Aspect.LANGUAGE, "LANG(?t)"),
    ]:
        query = f"SELECT ({text} AS ?v) {{ BIND(<http://ex/it>() AS ?t) }}"
        found = Store().query(query, custom_functions=functions)
        assert isinstance(found, QuerySolutions)
        assert order.place(id, aspect) == sort_text(next(found)["v"])
