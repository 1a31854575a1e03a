"""A query that fails stops, and says why; the others answer as if it had never been."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kelda.engine.answer import Answer
from kelda.engine.batch import AnswerBatch
from kelda.engine.by_definition import Definition
from kelda.engine.incremental import IncrementalEvaluator
from kelda.engine.merging import nodes_of
from kelda.engine.nodes import JoinWindows
from kelda.engine.stored import StoredPattern
from kelda.errors import IdCollisionError, QueryStopped
from kelda.lang import parse
from kelda.rdf.event import Event
from tests.engine.test_batching import bag

S = "http://ex/s"
PREFIX = "PREFIX : <http://ex/> "
ONE = PREFIX + "SELECT ?x { STREAM :s [RANGE 5ms] { ?x :p 1 } }"
COUNT = PREFIX + "SELECT (COUNT(*) AS ?n) { STREAM :s [RANGE 5ms] { ?x :p ?y } }"
NOW = PREFIX + "SELECT ?x ?now { STREAM :s [RANGE 5ms] { ?x :p 1 } BIND(NOW() AS ?now) }"
JOIN = "STREAM :s [RANGE 5ms] { ?x :p ?y } STREAM :s [RANGE 5ms] { ?z :p ?y }"


def events(first: int, last: int) -> list[Event]:
    p = NamedNode("http://ex/p")
    return [
        Event(t, (Quad(NamedNode(f"http://ex/x{t % 3}"), p, Literal(t % 2)),)) for t in range(first, last)
    ]


def evaluator(**queries: str) -> IncrementalEvaluator:
    made = IncrementalEvaluator()
    made.add_stream(S)
    for name, text in queries.items():
        made.register(name, parse(text))
    return made


def breaking(thing: Any, method: str, when: Callable[..., bool] = lambda *args: True) -> None:
    """From now on, the method fails when it is called with such arguments."""
    well = getattr(thing, method)

    def badly(*args: Any) -> Any:
        if when(*args):
            raise ValueError("broken")
        return well(*args)

    setattr(thing, method, badly)


def of(answers: list[Answer], *names: str) -> dict[str, int]:
    return bag([a for a in answers if a.query in names])


def test_the_others_go_on() -> None:
    broken, whole = evaluator(before=ONE, bad=COUNT, after=NOW), evaluator(before=ONE, after=NOW)
    breaking(broken.network("bad").root, "advance", lambda step: step.until > 5)
    found = broken.push(S, events(1, 5)) + broken.push(S, events(5, 9)) + broken.push(S, events(9, 20))
    expected = whole.push(S, events(1, 20))
    assert of(found, "before", "after") == bag(expected)
    assert [a.time for a in found if a.query == "bad"] == [1, 2, 3], "what it had answered stays answered"
    why = broken.stopped["bad"]
    assert (why.at, why.reason) == (3, "ValueError: broken")
    assert broken.say("bad") == "stopped after 1970-01-01T00:00:00.003Z: ValueError: broken"
    assert "bad" in broken.queries
    with pytest.raises(QueryStopped, match=r"(?s)is stopped after .*register it anew") as raised:
        raise why.raised("bad")
    assert isinstance(raised.value.__cause__, ValueError)


def test_it_can_be_registered_anew() -> None:
    broken = evaluator(bad=ONE)
    breaking(broken.network("bad").root, "advance")
    assert broken.push(S, events(1, 5)) == []
    broken.pause("bad")  # does not matter any more
    broken.drop("bad")
    assert broken.queries == [] and broken.stopped == {}
    broken.register("bad", parse(ONE))
    assert broken.push(S, events(5, 8))


def test_what_queries_share_fails_for_those_who_share_it() -> None:
    texts = {
        "all": PREFIX + f"SELECT * {{ {JOIN} }} ORDER BY ?x LIMIT 2",
        "some": PREFIX + f"ASK {{ {JOIN} }}",
        "other": COUNT,
        "equal": COUNT,
        **{
            f"shape{i}": PREFIX + f"SELECT ?x {{ STREAM :s [RANGE {i}ms] {{ ?x :p {i % 2} }} }}"
            for i in (3, 4, 5)
        },
    }
    broken, whole = evaluator(**texts), evaluator(**texts)
    joins = {
        id(node): node
        for network in broken.networks()
        for node in nodes_of(network.root)
        if isinstance(node, JoinWindows) and len(node.windows) == 2
    }
    assert len(joins) == 1
    breaking(next(iter(joins.values())), "advance")
    found, expected = broken.push(S, events(1, 9)), whole.push(S, events(1, 9))
    assert set(broken.stopped) == {"all", "some"}
    assert of(found, "other", "equal", "shape3", "shape4", "shape5") == bag(
        [a for a in expected if a.query not in ("all", "some")]
    )
    breaking(broken.network("other").reporter, "step")
    breaking(broken.network("shape4").root, "advance")
    found, expected = broken.push(S, events(9, 20)), whole.push(S, events(9, 20))
    assert set(broken.stopped) == {"all", "some", "other", "equal", "shape4", "shape5"}
    assert bag(found) == of(expected, "shape3") != {}


def test_windows_that_queries_share() -> None:
    broken = evaluator(
        one=ONE, count=COUNT, longer=PREFIX + "SELECT ?x { STREAM :s [RANGE 9ms] { ?x :p 1 } }"
    )
    breaking(broken.network("one").windows[0].intervals, "observe")
    found = broken.push(S, events(1, 9)) + broken.push(S, events(9, 12))
    assert set(broken.stopped) == {"one", "count"}
    assert {a.query for a in found} == {"longer"}


def test_answers_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    well = AnswerBatch.answers
    monkeypatch.setattr(AnswerBatch, "answers", lambda self: 1 / 0 if self.names == ["bad"] else well(self))
    broken = evaluator(bad=COUNT, good=ONE)
    found = broken.push(S, events(1, 9))
    assert {a.query for a in found} == {"good"}
    assert broken.stopped["bad"].reason == "ZeroDivisionError: division by zero"


def test_by_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    well = Definition.result

    def result(self: Any, t: int, *args: Any) -> Any:
        if self.name == "bad" and t == 4:
            raise ValueError("broken")
        return well(self, t, *args)

    monkeypatch.setattr(Definition, "result", result)
    broken, whole = evaluator(bad=NOW, good=NOW, fast=ONE), evaluator(good=NOW, fast=ONE)
    found = broken.push(S, events(1, 9))
    assert of(found, "good", "fast") == bag(whole.push(S, events(1, 9)))
    assert max(a.time for a in found if a.query == "bad") == 3, "at an instant, however batches are cut"
    assert broken.stopped["bad"].at == 3 and broken.queries.count("bad") == 1
    broken.drop("bad")
    assert "bad" not in broken.queries


def test_two_terms_with_one_id_are_everybodys_trouble() -> None:
    broken = evaluator(bad=COUNT, good=ONE)

    def collide(step: Any) -> Any:
        raise IdCollisionError("two")

    broken.network("bad").root.advance = collide  # type: ignore[method-assign]
    with pytest.raises(IdCollisionError):
        broken.push(S, events(1, 9))


def test_a_query_that_cannot_follow_a_change_of_stored_graphs() -> None:
    texts = dict.fromkeys(("bad", "same"), PREFIX + f"SELECT ?x ?k {{ {JOIN} OPTIONAL {{ ?x :k ?k }} }}")
    broken = evaluator(**texts, good=PREFIX + "SELECT ?x { STREAM :s [RANGE 5ms] { ?x :p 1 } ?x :k 1 }")
    broken.push(S, events(1, 4))
    node = next(n for n in nodes_of(broken.network("bad").root) if isinstance(n, StoredPattern))
    breaking(node, "advance")
    facts = [Quad(NamedNode(f"http://ex/x{i}"), NamedNode("http://ex/k"), Literal(1)) for i in range(3)]
    broken.load(facts)
    found = broken.push(S, events(4, 9))
    assert set(broken.stopped) == {"bad", "same"} and broken.stopped["bad"].at == 2
    assert {a.query for a in found} == {"good"}
