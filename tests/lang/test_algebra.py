"""The shape of the algebra, where SPARQL's rules are easily got wrong."""

from __future__ import annotations

import pytest
from pyoxigraph import Literal, NamedNode

from kelda.lang import parse
from kelda.lang.algebra import (
    Aggregate,
    Alternative,
    Call,
    Const,
    Distinct,
    Exists,
    Expr,
    Extend,
    Filter,
    Form,
    FunctionCall,
    Group,
    InGraph,
    Join,
    LeftJoin,
    Link,
    Minus,
    NegatedSet,
    OrderBy,
    PathPattern,
    Pattern,
    Project,
    Query,
    Repeat,
    Slice,
    TriplePattern,
    Triples,
    Union,
    Values,
    Var,
    VarRef,
)
from kelda.lang.walk import nodes

XSD = "http://www.w3.org/2001/XMLSchema#"
X, Y, Z = Var("x"), Var("y"), Var("z")


def e(name: str) -> NamedNode:
    return NamedNode("http://e/" + name)


def query(text: str) -> Query:
    return parse("PREFIX : <http://e/> " + text)


def where(text: str) -> Pattern:
    """The pattern of a group, without the projection around it."""
    pattern = query("SELECT * { " + text + " }").pattern
    assert isinstance(pattern, Project)
    return pattern.pattern


def expr(text: str) -> Expr:
    pattern = where(f"FILTER({text})")
    assert isinstance(pattern, Filter)
    return pattern.condition


def triples(*terms: tuple[object, object, object]) -> Triples:
    return Triples(tuple(TriplePattern(s, p, o) for s, p, o in terms))  # type: ignore[arg-type]


P = triples((X, e("p"), Y))
Q = triples((X, e("q"), Z))
COND = Call(">", (VarRef(Y), Const(Literal(1))))


# ---------------------------------------------------------------------------- groups


def test_a_filter_holds_for_its_whole_group_and_does_not_part_the_triples() -> None:
    assert where("?x :p ?y FILTER(?y > 1) ?x :q ?z") == Filter(COND, Triples(P.patterns + Q.patterns))


def test_the_filter_of_an_optional_group_sees_the_left_side() -> None:
    assert where("?x :p ?y OPTIONAL { ?x :q ?z FILTER(?y > 1) }") == LeftJoin(P, Q, COND)


def test_a_filter_one_level_deeper_does_not() -> None:
    assert where("?x :p ?y OPTIONAL { { ?x :q ?z FILTER(?y > 1) } }") == LeftJoin(P, Filter(COND, Q))


def test_elements_apply_in_the_order_of_the_text() -> None:
    assert where("OPTIONAL { ?x :p ?y } ?x :q ?z") == Join(LeftJoin(Triples(), P), Q)
    assert where("?x :p ?y MINUS { ?x :q ?z }") == Minus(P, Q)
    assert where("MINUS { ?x :q ?z }") == Minus(Triples(), Q)
    assert where("?x :p ?y { ?x :q ?z } UNION { }") == Join(P, Union(Q, Triples()))
    assert where("?x :p ?y BIND(1 AS ?b)") == Extend(P, Var("b"), Const(Literal(1)))
    assert where("GRAPH ?g { ?x :p ?y }") == InGraph(Var("g"), P)


def test_not_exists() -> None:
    assert where("?x :p ?y FILTER NOT EXISTS { ?x :q ?z }") == Filter(Call("!", (Exists(Q),)), P)


def test_values() -> None:
    data = Values((X, Y), ((e("a"), None), (None, Literal(1))))
    assert where("VALUES (?x ?y) { (:a UNDEF) (UNDEF 1) }") == data
    assert where("VALUES ?x { :a 1 }") == Values((X,), ((e("a"),), (Literal(1),)))
    assert where("VALUES () { () () }") == Values((), ((), ()))
    assert query("SELECT ?x { ?x :p ?y } VALUES (?x ?y) { (:a UNDEF) (UNDEF 1) }").pattern == Project(
        Join(P, data), (X,)
    )


# ---------------------------------------------------------------------------- triples


def test_blank_nodes_are_hidden_variables() -> None:
    assert where("_:n :p [] . _:n :q _:m") == triples(
        (Var(".b0"), e("p"), Var(".b1")), (Var(".b0"), e("q"), Var(".b2"))
    )
    assert query("SELECT * { ?x :p [ :q ?y ] }").pattern == Project(
        triples((Var(".b0"), e("q"), Y), (X, e("p"), Var(".b0"))), (Y, X)
    )


def test_collections() -> None:
    rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    first, rest, nil = NamedNode(rdf + "first"), NamedNode(rdf + "rest"), NamedNode(rdf + "nil")
    a, b = Var(".b0"), Var(".b1")
    assert where("?x :p (1 ?y)") == triples(
        (a, first, Literal(1)), (a, rest, b), (b, first, Y), (b, rest, nil), (X, e("p"), a)
    )
    assert where("?x :p ()") == triples((X, e("p"), nil))


def test_property_lists() -> None:
    assert where("?x :p ?y, ?z ; ; :q ?z ; .") == triples((X, e("p"), Y), (X, e("p"), Z), (X, e("q"), Z))


def test_links_inverses_and_sequences_are_plain_triples() -> None:
    via = Var(".path0")
    assert where("?x (:p) ?y") == P
    assert where("?y ^:p ?x") == P
    assert where("?x :p/^:q ?y") == triples((X, e("p"), via), (Y, e("q"), via))
    assert query("SELECT * { ?x :p/:q ?y }").pattern == Project(
        triples((X, e("p"), via), (via, e("q"), Y)), (X, Y)
    )


def test_other_paths() -> None:
    p, q = Link(e("p")), Link(e("q"))
    assert where("?x :p* ?y") == PathPattern(X, Repeat(p, 0, True), Y)
    assert where("?x :p+ ?y") == PathPattern(X, Repeat(p, 1, True), Y)
    assert where("?x :p? ?y") == PathPattern(X, Repeat(p, 0, False), Y)
    assert where("?x ^:p* ?y") == PathPattern(Y, Repeat(p, 0, True), X)
    inside = Alternative((q, NegatedSet((e("p"),), (e("q"),))))
    assert where("?x (:q|!(:p|^:q))* ?y") == PathPattern(X, Repeat(inside, 0, True), Y)


def test_paths_that_are_shorthands() -> None:
    def others(s: Var, iri: str, o: Var, number: int) -> Filter:
        predicate = Var(f".path{number}")
        return Filter(Call("NOT IN", (VarRef(predicate), Const(e(iri)))), triples((s, predicate, o)))

    assert where("?x :p|:q ?y") == Union(triples((X, e("p"), Y)), triples((X, e("q"), Y)))
    assert where("?x !:p ?y") == others(X, "p", Y, 0)
    assert where("?x !^:p ?y") == others(Y, "p", X, 0)
    assert where("?x !(:p|^:q) ?y") == Union(others(X, "p", Y, 0), others(Y, "q", X, 1))
    assert where("?x ^(:p|:q)/:r ?y") == Join(
        Union(triples((Var(".path0"), e("p"), X)), triples((Var(".path0"), e("q"), X))),
        triples((Var(".path0"), e("r"), Y)),
    )


# ---------------------------------------------------------------------------- expressions


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("1 + 2 * 3", "1 + (2 * 3)"),
        ("1 - 2 - 3", "(1 - 2) - 3"),
        ("?x -1", "?x - 1"),
        ("?x -1 * 2", "?x - (1 * 2)"),
        ("?x = 1 || ?y = 2 && ?z = 3", "(?x = 1) || ((?y = 2) && (?z = 3))"),
        ("?x + 1 IN (2, 3)", "(?x + 1) IN (2, 3)"),
        ("!?x && ?y", "(!?x) && ?y"),
        ("-?x * 2", "(-?x) * 2"),
        ("?x < 1 && ?y < 2 && ?z < 3", "((?x < 1) && (?y < 2)) && (?z < 3)"),
        ("uri(?x)", "IRI(?x)"),
        ("isUri(?x)", "ISIRI(?x)"),
    ],
)
def test_precedence(text: str, same: str) -> None:
    assert expr(text) == expr(same)


def test_calls() -> None:
    assert expr("?x NOT IN (1)") == Call("NOT IN", (VarRef(X), Const(Literal(1))))
    assert expr("?x IN ()") == Call("IN", (VarRef(X),))
    assert expr("regex(?x, 'a', 'i')") == Call("REGEX", (VarRef(X), Const(Literal("a")), Const(Literal("i"))))
    assert expr(":f(DISTINCT ?x)") == FunctionCall(e("f"), (VarRef(X),), True)
    assert expr("-?x") == Call("U-", (VarRef(X),))
    assert expr(":c") == Const(e("c"))


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("1", Literal("1", datatype=NamedNode(XSD + "integer"))),
        ("+1", Literal("+1", datatype=NamedNode(XSD + "integer"))),
        ("1.50", Literal("1.50", datatype=NamedNode(XSD + "decimal"))),
        (".5", Literal(".5", datatype=NamedNode(XSD + "decimal"))),
        ("1e3", Literal("1e3", datatype=NamedNode(XSD + "double"))),
        ("TRUE", Literal("true", datatype=NamedNode(XSD + "boolean"))),
        ("'a'", Literal("a")),
        ('"a\\t\\"b\\\\"', Literal('a\t"b\\')),
        ('"""a\n"b" """', Literal('a\n"b" ')),
        ("'''it's'''", Literal("it's")),
        ('""', Literal("")),
        ("'a'@en-GB", Literal("a", language="en-GB")),
        ("'a'^^:t", Literal("a", datatype=e("t"))),
        (r"'\u00e9\U0001F600'", Literal("é😀")),
        (r"'\\u00e9'", Literal(r"\u00e9")),
        (":a\\,b%20", e("a,b%20")),
        (":a.b:c", e("a.b:c")),
    ],
)
def test_terms(text: str, term: object) -> None:
    assert where(f"?x :p {text} .") == triples((X, e("p"), term))


# ---------------------------------------------------------------------------- queries


def test_implicit_group() -> None:
    agg = Var(".agg0")
    assert query("SELECT (COUNT(*) AS ?n) { ?x :p ?y }").pattern == Project(
        Extend(Group(P, (), ((agg, Aggregate("COUNT", None)),)), Var("n"), VarRef(agg)), (Var("n"),)
    )


def test_grouping_in_full() -> None:
    text = """SELECT ?k (SUM(?y) + 1 AS ?s) (?s * 2 AS ?t) { ?x :p ?y }
              GROUP BY (STR(?x) AS ?k) HAVING (SUM(?y) > 1) ORDER BY DESC(MAX(?y)) ?s LIMIT 5 OFFSET 2"""
    k, s, t, total, top = Var("k"), Var("s"), Var("t"), Var(".agg0"), Var(".agg1")
    one, two = Const(Literal(1)), Const(Literal(2))
    group = Group(
        Extend(P, k, Call("STR", (VarRef(X),))),
        (k,),
        ((total, Aggregate("SUM", VarRef(Y))), (top, Aggregate("MAX", VarRef(Y)))),
    )
    having = Filter(Call(">", (VarRef(total), one)), group)
    extended = Extend(Extend(having, s, Call("+", (VarRef(total), one))), t, Call("*", (VarRef(s), two)))
    ordered = OrderBy(extended, ((VarRef(top), True), (VarRef(s), False)))
    assert query(text).pattern == Slice(Project(ordered, (k, s, t)), 2, 5)


def test_a_key_without_a_name_is_hidden() -> None:
    pattern = query("SELECT (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY STR(?x)").pattern
    (group,) = (node for node in nodes(pattern) if isinstance(node, Group))
    assert group.keys == (Var(".key0"),)


def test_an_ungrouped_variable_in_having_is_a_sample() -> None:
    pattern = query("SELECT ?x { ?x :p ?y } GROUP BY ?x HAVING (?y > 1)").pattern
    (group,) = (node for node in nodes(pattern) if isinstance(node, Group))
    assert group.aggregates == ((Var(".agg0"), Aggregate("SAMPLE", VarRef(Y))),)


def test_random_aggregates_are_not_shared() -> None:
    pattern = query("SELECT (MAX(RAND()) AS ?a) (MAX(RAND()) AS ?b) { ?x :p ?y }").pattern
    (group,) = (node for node in nodes(pattern) if isinstance(node, Group))
    assert len(group.aggregates) == 2


def test_a_sub_select_shows_what_it_selects() -> None:
    pattern = query("SELECT * { ?x :p ?y { SELECT DISTINCT ?x { ?x :q ?z } } }").pattern
    assert pattern == Project(Join(P, Distinct(Project(Q, (X,)))), (X, Y))


def test_select_star_leaves_out_what_is_not_in_scope() -> None:
    text = "SELECT * { ?x :p [] MINUS { ?x :p ?m } FILTER EXISTS { ?x :p ?f } OPTIONAL { ?x :p ?o } }"
    pattern = query(text).pattern
    assert isinstance(pattern, Project) and pattern.vars == (X, Var("o"))


def test_construct() -> None:
    built = query("CONSTRUCT { ?x :r [ :s _:n ] . _:n :t ?y } WHERE { ?x :p ?y . ?y :q _:n }")
    assert built.form is Form.CONSTRUCT
    made, named = Var(".new0"), Var(".new1")
    assert built.template == triples((made, e("s"), named), (X, e("r"), made), (named, e("t"), Y)).patterns
    short = query("CONSTRUCT WHERE { ?x :p ?y }")
    assert short.pattern == P and short.template == P.patterns


def test_ask_and_describe() -> None:
    assert query("ASK { ?x :p ?y }").pattern == P
    assert query("DESCRIBE :a ?x { ?x :p ?y }").describe == (e("a"), X)
    assert query("DESCRIBE * { ?x :p ?y }").describe == (X, Y)
    assert query("DESCRIBE :a").pattern == Triples()


def test_dataset() -> None:
    def dataset(text: str) -> tuple[object, object]:
        found = query(f"SELECT * {text} {{ }}").dataset
        return found.default, found.named

    assert dataset("") == (None, None)
    assert dataset("FROM :a FROM :b") == ((e("a"), e("b")), ())
    assert dataset("FROM NAMED :a") == ((), (e("a"),))


def test_base_and_prefixes() -> None:
    found = parse(
        "BASE <http://e/a/> PREFIX p: <b#> BASE <c/> SELECT * { p:x <d> <> }", base="http://unused/"
    )
    assert found.base == "http://e/a/c/"
    assert found.prefixes == (("p", "http://e/a/b#"),)
    assert [t for t in nodes(found.pattern) if isinstance(t, TriplePattern)] == [
        TriplePattern(NamedNode("http://e/a/b#x"), NamedNode("http://e/a/c/d"), NamedNode("http://e/a/c/"))
    ]


def test_dollar_is_a_question_mark() -> None:
    assert query("SELECT $x { ?x :p $y }") == query("SELECT ?x { $x :p ?y }")


def test_keywords_in_any_case_and_without_spaces() -> None:
    tight = query("select?x{?x :p?y.filter(?y>1)optional{?x :q?z}}order by?x")
    assert tight == query("SELECT ?x WHERE { ?x :p ?y . FILTER(?y > 1) OPTIONAL { ?x :q ?z } } ORDER BY ?x")
