"""One-shot queries by operators: what is told beside the answers, and what other tests do not meet."""

from __future__ import annotations

import numpy as np
import pytest
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, Triple
from pyoxigraph import parse as parse_rdf

from kelda.ask.prepared import PreparedAsk, prepare
from kelda.ask.solutions import solutions
from kelda.engine.oneshot import Solutions
from kelda.errors import QueryError, UsageError
from kelda.lang import parse
from kelda.rdf.dictionary import Dictionary
from tests.ask.stored import view_of

PREFIX = "PREFIX : <http://ex/> "
DATA = """
@prefix : <http://ex/> .
:a :knows :b, :c ; :age 3 . :b :knows :c ; :age 4 ; :name "Bea" . :c :age 5 . :d a :Rare .
GRAPH :g { :a :knows :d . :d :age 7 } GRAPH :h { :a :knows :d, :e }
"""


@pytest.fixture(scope="module")
def dictionary() -> Dictionary:
    return Dictionary()


@pytest.fixture(scope="module")
def view(dictionary: Dictionary) -> object:
    return view_of(parse_rdf(DATA, RdfFormat.TRIG), dictionary)


@pytest.fixture
def asked(view, dictionary):  # type: ignore[no-untyped-def]
    def ask(text: str, **options: object) -> object:
        return prepare(PREFIX + text, dictionary).answer(view, **options)

    return ask


def ex(name: str) -> NamedNode:
    return NamedNode("http://ex/" + name)


def rows(found: object) -> list[dict[str, object]]:
    assert isinstance(found, Solutions)
    return found.rows  # type: ignore[return-value]


def test_a_table_of_ids_has_its_columns_in_order(view, dictionary: Dictionary) -> None:  # type: ignore[no-untyped-def]
    table = prepare(PREFIX + "SELECT ?y ?x ?no { ?x :age ?y } ORDER BY ?y", dictionary).run(view)
    assert table.columns == ("y", "x", "no")
    assert dictionary.terms(table.column("x")) == [ex("a"), ex("b"), ex("c")]
    assert not table.column("no").any()


def test_the_plan_starts_where_there_is_least(view, dictionary: Dictionary) -> None:  # type: ignore[no-untyped-def]
    prepared = prepare(PREFIX + "SELECT * { ?x :age ?n . ?x :knows ?y . ?x :name 'Bea' }", dictionary)
    prepared.answer(view)
    plan = prepared.explain().splitlines()
    assert "name" in plan[2] and "(~1 for a row)" in plan[2]
    assert "ask Oxigraph" not in prepared.explain()


def test_what_has_no_operator_goes_to_oxigraph_and_is_told(view, dictionary: Dictionary) -> None:  # type: ignore[no-untyped-def]
    prepared = prepare(
        PREFIX + "SELECT ?x { ?x :age ?n FILTER EXISTS { ?x :knows* ?y OPTIONAL { ?y :age 5 } } }", dictionary
    )
    found = rows(prepared.answer(view))
    assert [row["x"] for row in found] and {row["x"] for row in found} == {ex("a"), ex("b"), ex("c")}
    assert "ask Oxigraph for ?n ?x: EXISTS with a property path" in prepared.explain()


def test_a_value_that_is_filled_in_leads_to_itself(asked) -> None:  # type: ignore[no-untyped-def]
    found = asked("SELECT ?x { VALUES ?x { :a :b :nowhere } FILTER EXISTS { ?x :knows* ?y } }")
    assert [row["x"] for row in rows(found)] == [ex("a"), ex("b"), ex("nowhere")]
    found = asked("SELECT ?x { VALUES ?x { :a :b :nowhere } ?x :knows* ?y }")
    assert {row["x"] for row in rows(found)} == {ex("a"), ex("b")}


def test_an_iri_in_a_condition_is_looked_up(view, dictionary: Dictionary) -> None:  # type: ignore[no-untyped-def]
    prepared = prepare(PREFIX + "SELECT ?y { ?x :knows ?y FILTER(?x = :b) }", dictionary)
    assert rows(prepared.answer(view)) == [{"y": ex("c")}]
    assert "for each ?x" in prepared.explain()


def test_only_what_is_touched_is_copied_for_oxigraph() -> None:
    from kelda.ask.by_oxigraph import touched

    def of(text: str) -> object:
        return touched(parse(PREFIX + "SELECT * { " + text + " }").pattern)

    assert of("?x :p ?y . ?y :q+ ?z") == {ex("p"), ex("q")}
    assert of("?x ?p ?y") is None
    assert of("?x :p* ?y") is None
    assert of("?x !:p ?y") is None


def test_graphs_of_the_dataset(asked) -> None:  # type: ignore[no-untyped-def]
    assert len(rows(asked("SELECT ?y { :a :knows ?y }"))) == 2
    merged = rows(asked("SELECT ?y FROM :g FROM :h { :a :knows ?y }"))
    assert [row["y"] for row in merged] in ([ex("d"), ex("e")], [ex("e"), ex("d")])
    assert len(rows(asked("SELECT ?g ?y { GRAPH ?g { :a :knows ?y } }"))) == 3
    assert len(rows(asked("SELECT ?g ?y FROM NAMED :h { GRAPH ?g { :a :knows ?y } }"))) == 2
    assert asked("ASK { GRAPH :nowhere { } }") is False
    assert asked("ASK { GRAPH :g { } }") is True


def test_a_few_are_enough(asked) -> None:  # type: ignore[no-untyped-def]
    assert len(rows(asked("SELECT * { ?s ?p ?o } LIMIT 3"))) == 3
    assert len(rows(asked("SELECT * { ?s :knows ?o OPTIONAL { ?o :name ?n } } LIMIT 2 OFFSET 1"))) == 2
    assert asked("ASK { ?x :knows ?y . ?y :knows ?z }") is True
    assert asked("ASK { ?x :knows ?y . ?y :knows ?x }") is False


def test_some_rows_at_a_time_are_all_rows_in_the_end() -> None:
    dictionary = Dictionary()
    many = 30_000  # of which only the last has a name
    quads = [Quad(ex(f"n{i}"), ex("next"), ex(f"n{i + 1}")) for i in range(many)]
    quads.append(Quad(ex(f"n{many}"), ex("name"), Literal("last")))
    quads += [Quad(ex(f"m{i}"), ex("name"), Literal(i)) for i in range(2 * many)]
    view = view_of(quads, dictionary)
    found = prepare(PREFIX + "SELECT ?y { ?x :next ?y . ?y :name ?n } LIMIT 1", dictionary).answer(view)
    assert rows(found) == [{"y": ex(f"n{many}")}]


def test_now_and_seed_decide_what_is_new(asked) -> None:  # type: ignore[no-untyped-def]
    made = "(RAND() AS ?r) (UUID() AS ?u) (STRUUID() AS ?s) (BNODE() AS ?b)"
    text = f"SELECT (NOW() AS ?now) {made} {{ ?x :age ?n }}"
    found = rows(asked(text, now_ms=1000, seed="seven"))
    assert found == rows(asked(text, now_ms=1000, seed="seven"))
    assert found != rows(asked(text, now_ms=1000, seed="eight"))
    assert {str(row["now"].value) for row in found} == {"1970-01-01T00:00:01Z"}  # type: ignore[attr-defined]
    assert all(len({row[name] for row in found}) == 3 for name in "rusb")


def test_blank_nodes_of_a_text_are_the_same_within_a_solution(asked) -> None:  # type: ignore[no-untyped-def]
    found = rows(asked("SELECT (BNODE('t') AS ?a) (BNODE('t') AS ?b) (BNODE('u') AS ?c) { ?x :age ?n }"))
    assert all(row["a"] == row["b"] != row["c"] for row in found)
    assert len({row["a"] for row in found}) == 3
    assert all(isinstance(row["a"], BlankNode) for row in found)


def test_templates_make_each_triple_once_and_no_wrong_ones(asked) -> None:  # type: ignore[no-untyped-def]
    found = asked("CONSTRUCT { ?y :known :yes . ?n :of ?x . ?x :p _:new } { ?x :knows ?y . ?x :age ?n }")
    known = [t for t in found if t.predicate == ex("known")]
    assert sorted(map(str, known)) == [
        str(Triple(ex("b"), ex("known"), ex("yes"))),
        str(Triple(ex("c"), ex("known"), ex("yes"))),
    ]
    assert len({t.object for t in found if t.predicate == ex("p")}) == 3  # one for each solution
    assert not [t for t in found if t.predicate == ex("of")]  # numbers are no subjects
    (quad, *_) = asked("CONSTRUCT { GRAPH ?x { ?x :age ?n } } { ?x :age ?n FILTER(?n = 3) }")
    assert quad == Quad(ex("a"), ex("age"), Literal(3), ex("a"))


def test_a_plan_is_made_again_when_its_tables_have_grown() -> None:
    dictionary = Dictionary()
    text = PREFIX + "SELECT * { ?x :p ?y . ?x :q ?z }"
    prepared = prepare(text, dictionary)

    def first(p: int, q: int) -> str:
        facts = [Quad(ex(f"n{i}"), ex("p"), Literal(i)) for i in range(p)]
        facts += [Quad(ex(f"n{i}"), ex("q"), Literal(i)) for i in range(q)]
        prepared.answer(view_of(facts, dictionary))
        return prepared.explain().splitlines()[2]

    assert "/p>" in first(2, 50)
    assert "/q>" in first(5000, 50)


def test_solutions_are_a_function_of_what_is_stored(view, dictionary: Dictionary) -> None:  # type: ignore[no-untyped-def]
    query = parse(PREFIX + "SELECT ?x (SAMPLE(?y) AS ?s) { ?x :knows ?y } GROUP BY ?x ORDER BY ?x LIMIT 1")
    columns, ids = solutions(query, view, dictionary, now=0)
    assert columns == ("x", "s")
    assert dictionary.terms(ids[:, 0]) == [ex("a"), ex("b")]
    assert ids.dtype == np.int64


def test_what_cannot_be_asked_once_is_refused() -> None:
    with pytest.raises(QueryError, match="SERVICE"):
        prepare(parse("SELECT * { SERVICE <http://x> { ?s ?p ?o } }", allow_service=True), Dictionary())
    with pytest.raises(UsageError, match="register"):
        PreparedAsk(parse("SELECT * { STREAM <http://s> [NOW] { ?s ?p ?o } }"), Dictionary())
    with pytest.raises(QueryError, match="unknown function"):
        prepare("SELECT (<http://ex/f>(1) AS ?x) { }", Dictionary())


def test_deep_queries_have_room() -> None:
    text = (
        "SELECT * { "
        + "{ " * 900
        + "VALUES ?x { 1 } "
        + "} " * 900
        + "FILTER("
        + "(" * 900
        + "?x"
        + ")" * 900
    )
    found = prepare(text + " = 1) }", Dictionary()).answer(view_of([], Dictionary()))
    assert rows(found) == [{"x": Literal(1)}]
