"""A short run of the oracle (`make oracle` is the long one), and whether it would find something."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import Literal, NamedNode

from kelda.engine.oneshot import Solutions, evaluate
from tests.conformance.results import Rows, row

from . import cases, quirks
from .cases import Case, Difference, Slice, judge
from .compare import in_order, one
from .jena import Jena, NoOracle
from .run import outcome, run
from .shrink import shrink
from .terms import XSD
from .windows import Arrival, Window, reports

CASES = int(os.environ.get("KELDA_CASES", "150"))
SEED = int(time.time()) if "KELDA_RANDOM" in os.environ else 1
QUICKLY = 60  # seconds in which Maven may fetch what is missing


@pytest.fixture(scope="module")
def jena() -> Iterator[Jena]:
    try:
        with Jena(QUICKLY) as jena:
            yield jena
    except NoOracle as problem:
        pytest.skip(f"no oracle here: {problem}")


@pytest.mark.parametrize(("kind", "count"), [("oneshot", CASES), ("streamed", CASES // 3)])
def test_the_same_as_jena(jena: Jena, kind: str, count: int) -> None:
    counts: Counter[str] = Counter()
    found = list(run(jena, kind, SEED, range(count), counts))
    assert not found, "\n".join(map(str, found))
    assert counts["the same"] > count / 2, counts  # a run in which nothing is found shows nothing


# ---------------------------------------------------------------------------- does it find anything


DATA = tuple(
    f"<http://ex/{s}> <http://ex/p> {o} ." for s, o in (("a", "_:b0"), ("b", '"1"'), ("c", '"x"@en'))
)


def test_a_wrong_answer_is_found_and_made_small(jena: Jena, monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(*given: Any) -> Any:
        found = evaluate(*given)
        return replace(found, rows=found.rows[1:]) if isinstance(found, Solutions) else found

    text = "SELECT ?x ?v @from@ WHERE { { ?x <http://ex/p> ?v . } OPTIONAL { ?v <http://ex/q> ?w . } }"
    case = Case(text, DATA)
    assert judge(case, jena) is True
    monkeypatch.setattr(cases, "evaluate", forgetful)
    assert outcome(case, jena)[0] == "different"
    small = shrink(case, lambda other: outcome(other, jena)[0] == "different")
    assert len(small.data) <= 1 and len(small.query) < len(case.query) / 2


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ('IF("x"^^xsd:integer, 1, 0)', "0"),  # ill-typed: false
        ('IF("abc"@en, 1, 0)', "1"),
        ('YEAR("P1Y"^^xsd:duration)', None),
        ('HOURS("1999-12-31T24:00:00Z"^^xsd:dateTime)', "0"),
        ('langMatches("a"@en, "*")', None),
        ('SUBSTR("abc", 0)', "abc"),
        ('SUBSTR("abc", 1.5)', None),
        ('ROUND("INF"^^xsd:double)', "INF"),
        ('"NaN"^^xsd:double >= 1', "false"),
        (":a < :b", None),
        ('IRI("a b")', None),
        ('xsd:decimal("300"^^xsd:byte)', None),
    ],
)
def test_jena_is_held_to_the_letter(jena: Jena, expression: str, value: str | None) -> None:
    """What Strict.java promises: SPARQL's operators where ARQ has its own."""
    for text in (f"SELECT ({expression} AS ?x) {{}}", f"SELECT (MAX({expression}) AS ?x) {{}}"):
        (found,) = jena.ask(Case(text, ()).jena(), ())["rows"]
        assert found.get("x", [None, None])[1] == value


def test_minus_is_held_to_the_letter(jena: Jena) -> None:
    text = """SELECT * { VALUES (?x ?y ?v) { (1 UNDEF UNDEF) (UNDEF 2 3) }
        MINUS { VALUES (?x ?y ?v) { (1 4 3) } } }"""
    (left,) = jena.ask(text, ())["rows"]  # (2, 3) and (4, 3) are not compatible
    assert sorted(left) == ["v", "y"]


def test_graphs_of_windows_are_no_graphs_to_graph_variables(jena: Jena) -> None:
    data = ("<http://ex/a> <http://ex/p> 1 <urn:window:0> .".replace("1", '"1"'),)
    every = jena.ask("SELECT * { GRAPH ?g { ?s ?p ?o } }", data, graphs=["urn:window:1"])
    assert every["rows"] == []
    for number, rows in ((0, 1), (1, 0)):
        assert (
            len(jena.ask(f"SELECT * {{ GRAPH <urn:window:{number}> {{ ?s ?p ?o }} }}", data)["rows"]) == rows
        )
    assert jena.ask("ASK { GRAPH <urn:window:1> {} }", data, graphs=["urn:window:1"])["boolean"]


def test_no_excuse_for_what_is_simply_wrong(jena: Jena) -> None:
    """Each excuse is for a kind of difference: a solution too few is none of them."""
    text = "SELECT ?x (MIN(?v) AS ?n1) (SUM(?v) AS ?n2) @from@ WHERE { ?x <http://ex/p> ?v . } GROUP BY ?x"
    case = Case(text, DATA)
    whole = Rows(tuple(row([("x", NamedNode(f"http://ex/{s}")), ("n1", Literal("1"))]) for s in "abc"))
    fewer = Rows(whole.rows[1:])
    found = cases.compare(fewer, whole, Slice((), None, 0), lax=False)
    assert found is not None and quirks.excuse(case, found, lambda other: True) is None


@pytest.mark.parametrize(
    ("having", "excused"),
    [
        ("(COUNT(?y) > 1)", False),
        ("(SUM((?y + STRLEN(?z))) > ?x) ORDER BY (?x)", False),
        ("( ?w )", True),
        ("(COUNT(*) > STR ( ?w ))", True),
    ],
)
def test_having_is_excused_for_variables_that_are_no_keys(having: str, excused: bool) -> None:
    case = Case(f"SELECT ?x {{ ?x ?p ?v }} GROUP BY ?x HAVING {having}", ())
    found = quirks.excuse(case, Difference(None, None, "any"), lambda other: True)
    assert (found is not None and found.startswith("HAVING")) == excused


def test_every_excuse_is_in_the_docs() -> None:
    page = Path(__file__).parents[2].joinpath("docs", "oracle.md").read_text(encoding="utf-8")
    for name in quirks.EXCUSES:
        assert f"- {name[0].upper()}{name[1:]}.\n" in page


# ---------------------------------------------------------------------------- the arithmetic of windows

# The worked example of docs/semantics.md: a@1, b@1.5, a@2, c@9.
EVENTS = [Arrival("a", t, (name,)) for t, name in ((1000, "a"), (1500, "b"), (2000, "a"), (9000, "c"))]


def shown(window: Window, t: int, on_close: bool) -> str:
    return "".join(EVENTS[i].triples[j] for i, j in window.content(EVENTS, t, on_close))


def test_windows_of_the_worked_example() -> None:
    assert reports([Window("a", "range", 3000)], EVENTS, "cqels", 0, False) == [
        1000, 1500, 2000, 4000, 4500, 5000, 9000,
    ]  # fmt: skip
    sliding = Window("a", "range", 3000, 1000)
    times = reports([sliding], EVENTS, "rspql", 0, False)
    assert [(t // 1000, shown(sliding, t, True)) for t in times] == [
        (1, "a"), (2, "aba"), (3, "aba"), (4, "ba"), (9, "c"),
    ]  # fmt: skip
    pairs = Window("a", "triples", 2, 2)
    assert [shown(pairs, t, False) for t in (1000, 1500, 2000, 9000)] == ["", "ab", "ab", "ac"]
    session = Window("a", "session", 2000)
    assert [shown(session, t, False) for t in (2000, 3999, 4000, 9000)] == ["aba", "aba", "", "c"]


# ---------------------------------------------------------------------------- what is the same


def test_what_sparql_leaves_open_is_made_one() -> None:
    def literal(text: str, kind: str) -> Literal:
        return Literal(text, datatype=NamedNode(XSD + kind))

    for a, b, kind in (
        ("1.0", "1.00", "decimal"),
        ("-0.0", "0", "decimal"),
        ("0.333333333333333333", "0.3333333333333333333333", "decimal"),
        ("1.0E0", "1", "double"),
        ("16777217", "16777216", "float"),
        ("1999-12-31T24:00:00Z", "2000-01-01T00:00:00+00:00", "dateTime"),
    ):
        assert one(literal(a, kind)) == one(literal(b, kind))
    for a, b, kind in (("1e0", "1", "decimal"), ("300", "0300", "byte"), ("1.5", "1.25", "decimal")):
        assert one(literal(a, kind)) != one(literal(b, kind))


def test_order_is_checked_where_there_is_one() -> None:
    def rows(*values: object) -> list[Any]:
        return [row([("v", Literal(v) if not isinstance(v, NamedNode) else v)]) for v in values]

    iri = NamedNode("http://ex/a")
    assert in_order(rows(iri, 1, "x", 2), [("v", False)])  # nothing says where the text is to stand
    assert not in_order(rows(iri, 2, "x", 1), [("v", False)])
    assert in_order(rows(2, 1, iri), [("v", True)])
    assert not in_order(rows(1, iri), [("v", False)])
