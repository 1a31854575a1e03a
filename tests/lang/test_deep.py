"""Queries that nest deeply or have very many parts: a thousand is fine, too many an error, never a crash."""

from __future__ import annotations

import sys
import threading

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kelda.engine.incremental import IncrementalEvaluator
from kelda.engine.oneshot import Solutions, evaluate
from kelda.engine.reference import ReferenceEvaluator
from kelda.errors import QueryError
from kelda.lang import parse, prepare
from kelda.lang.deep import with_room
from kelda.plan.explain import explain
from kelda.plan.partition import partition
from kelda.rdf.event import Event
from kelda.rdf.graphstore import GraphStore

N = 1000
STORED = "?x <e:p> ?v"
WINDOW = "STREAM <e:s> [RANGE 5s] { ?x <e:p> ?v }"
QUADS = [Quad(NamedNode(f"e:a{i}"), NamedNode("e:p"), Literal(i)) for i in range(3)]


def logic(op: str, compare: str, n: int) -> str:
    return "SELECT ?v { @ FILTER(" + f" {op} ".join(f"?v {compare} {i + 1}" for i in range(n)) + ") }"


def nested(before: str, after: str, n: int) -> str:
    return f"SELECT (({before * n}?v{after * n}) AS ?r) {{ @ }}"


def optionals(n: int) -> str:
    return "SELECT ?v " + "{ @ OPTIONAL " * n + "{ @ }" + "}" * n


MANY = {
    "or": (logic("||", "=", N), 2),
    "and": (logic("&&", "!=", N), 1),
    "plus": (f"SELECT (?v{' + 1' * N} AS ?r) {{ @ }}", 3),
    "plus and minus": (f"SELECT (?v{' + ?v - 1' * (N // 2)} AS ?r) {{ @ }}", 3),
    "brackets": (nested("(", ")", N), 3),
    "brackets and plus": (nested("(", "+ 1)", N), 3),
    "not": (nested("!(", ")", N), 3),
    "union": ("SELECT ?v { " + " UNION ".join(["{ @ }"] * N) + " }", 3 * N),
    "groups": ("SELECT ?v " + "{" * N + " @ " + "}" * N, 3),
    "filters": ("SELECT ?v { @ " + " ".join(f"FILTER(?v != {i + 1})" for i in range(N)) + " }", 1),
    "having": ("SELECT ?v { @ } GROUP BY ?v HAVING " + "(COUNT(*) > 0)" * N, 3),
    "binds": ("SELECT * { @ " + " ".join(f"BIND(?v + {i} AS ?w{i})" for i in range(N // 4)) + " }", 3),
    "optionals": (optionals(N // 20), 3),
}


def events() -> list[Event]:
    return [Event(1000 + i, (quad,)) for i, quad in enumerate(QUADS)]


@pytest.mark.parametrize("kind", MANY)
def test_a_thousand(kind: str) -> None:
    text, rows = MANY[kind]
    found = evaluate(parse(text.replace("@", STORED)), GraphStore(QUADS))
    assert isinstance(found, Solutions)
    assert len(found.rows) == rows
    query = parse(text.replace("@", WINDOW))
    assert explain(query)
    partition(query, 4)
    answers = []
    for evaluator in (ReferenceEvaluator(), IncrementalEvaluator()):
        evaluator.add_stream("e:s")
        evaluator.register("q", query)
        answers.append(evaluator.push("e:s", events()) + evaluator.end("e:s"))
        if isinstance(evaluator, IncrementalEvaluator):
            assert evaluator.say("q")
        evaluator.drop("q")
    assert len(answers[0]) == rows
    assert sorted(map(str, answers[0])) == sorted(map(str, answers[1]))


def test_a_thousand_optionals_from_the_changes_alone() -> None:
    engine = IncrementalEvaluator()
    engine.add_stream("e:s")
    engine.register("q", parse(optionals(N).replace("@", WINDOW)))
    assert not engine.reasons
    assert len(engine.push("e:s", events()) + engine.end("e:s")) == 3


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT (?v{' + 1' * 10_000} AS ?r) {{ @ }}",
        nested("!(", ")", 10_000),
        nested("(", "+ 1)", 10_000),
        "SELECT ?v " + "{" * 10_000 + " @ " + "}" * 10_000,
        optionals(10_000),
        "SELECT ?v { @ " + " ".join(f"BIND(?v AS ?w{i})" for i in range(10_000)) + " }",
        "SELECT ?v { ?x " + "(" * 10_000 + "<e:p>" + ")?" * 10_000 + " ?v }",
    ],
    ids=["plus", "not", "brackets", "groups", "optionals", "binds", "path"],
)
def test_ten_thousand_are_refused(text: str) -> None:
    with pytest.raises(QueryError, match="nested too deeply"):
        parse(text.replace("@", STORED))


def test_ten_thousand_side_by_side_are_fine() -> None:
    for text in (logic("||", "=", 10_000), f"SELECT ?v {{ {' UNION '.join(['{ @ }'] * 10_000)} }}"):
        assert parse(text.replace("@", STORED)).depth < 20


def test_deep_with_parameters() -> None:
    prepared = prepare(nested("(", "+ $n)", N).replace("@", STORED))
    found = evaluate(prepared.bind(n=2), GraphStore(QUADS[:1]))
    assert isinstance(found, Solutions)
    assert [row["r"].value for row in found.rows] == [str(2 * N)]


def test_room_is_given_back() -> None:
    """The interpreter's limit and the size of later threads' stacks are as they were, also after errors."""
    before = sys.getrecursionlimit(), threading.stack_size()

    def fails() -> None:
        assert sys.getrecursionlimit() > before[0]
        raise KeyError("x")

    with pytest.raises(KeyError):
        with_room(1000, fails)
    assert with_room(1000, lambda: with_room(2000, lambda: 5)) == 5
    assert (sys.getrecursionlimit(), threading.stack_size()) == before
