"""Places of terms against the order in which pyoxigraph sorts pairs of them."""

from __future__ import annotations

from itertools import product

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode, QuerySolutions, Store

from kelda.engine.term_order import Aspect, Place, TermOrder, _asked
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.exact import Value, to_store

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


@pytest.mark.parametrize("a", TERMS, ids=str)
def test_pairs_as_pyoxigraph_orders_them(a: Value) -> None:
    for b in TERMS:
        assert Place(a).compared(Place(b)) == _asked(a, b), (a, b)


def test_unbound_then_blank_nodes_then_iris_then_literals() -> None:
    places = [Place(t) for t in (None, BlankNode("a"), BlankNode("b"), NamedNode("http://ex/"), Literal(""))]
    for (i, a), (j, b) in product(enumerate(places), repeat=2):
        assert (a < b) == (i < j) and (a == b) == (i == j)


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
        assert order.place(id, aspect).term == next(found)["v"]
