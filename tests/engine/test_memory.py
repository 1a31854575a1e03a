"""Bytes are told by owner, index and table, and add up."""

from __future__ import annotations

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kelda.engine.incremental import IncrementalEvaluator
from kelda.errors import MemoryLimitError
from kelda.lang import parse
from kelda.rdf.event import Event

S = "http://ex/s"
JOIN = "STREAM :s [RANGE 1s] { ?x :p ?y } STREAM :s [RANGE 2s] { ?z :p ?y }"
QUERIES = {
    "join": f"SELECT ?x ?z {{ {JOIN} }}",
    "count": f"SELECT ?y (COUNT(*) AS ?n) {{ {JOIN} }} GROUP BY ?y",
    "one": "SELECT ?y { STREAM :s [RANGE 1s] { :x1 :p ?y } }",
    "two": "SELECT ?y { STREAM :s [RANGE 3s] { :x2 :p ?y } }",
    "minus": "SELECT ?x { STREAM :s [RANGE 1s] { ?x :p ?y } MINUS { STREAM :s [RANGE 2s] { ?x :p 1 } } }",
}


def engine(limit: int | None = None) -> IncrementalEvaluator:
    evaluator = IncrementalEvaluator(memory_limit=limit)
    evaluator.add_stream(S)
    for name, text in QUERIES.items():
        evaluator.register(name, parse("PREFIX : <http://ex/> " + text))
    return evaluator


def some(count: int) -> list[Event]:
    p = NamedNode("http://ex/p")
    return [Event(t, (Quad(NamedNode(f"http://ex/x{t}"), p, Literal(t % 7)),)) for t in range(count)]


def test_parts_add_up_to_the_whole() -> None:
    evaluator = engine()
    evaluator.push(S, some(500))
    memory = evaluator.memory()
    assert sum(held.bytes for held in memory) == sum(evaluator.nbytes.values())
    assert {held.kind for held in memory} == {"query", "shape", "join", "stream", "dictionary"}
    assert all(held.bytes >= 0 for held in memory)
    # Operators that tell what they hold tell no more than was found.
    for network in evaluator.networks():
        found = sum(evaluator.nbytes[whose] for whose in evaluator.nbytes if network.name in whose)
        assert found >= network.root.nbytes


def test_every_index_is_there() -> None:
    evaluator = engine()
    evaluator.push(S, some(500))
    shared = {held.name.partition(": ")[2]: held for held in evaluator.memory() if held.kind == "join"}
    assert {"index of leaf 0 by ?y", "index of leaf 1 by ?y", "rows of leaf 0", "results"} <= set(shared)
    assert {held.owner for held in shared.values()} == {"join, count"}
    assert shared["rows of leaf 0"].bytes >= 500 * 8 * 2
    assert "index of leaf 0 by ?y: " in evaluator.say("join")
    names = {held.name for held in evaluator.memory() if held.owner == "count"}
    assert "group on ?y: groups" in names and "group on ?y: aggregates" in names


def test_nothing_counts_twice() -> None:
    alone = IncrementalEvaluator()
    alone.add_stream(S)
    alone.register("join", parse("PREFIX : <http://ex/> " + QUERIES["join"]))
    both = engine()
    for evaluator in (alone, both):
        evaluator.push(S, some(500))
    assert sum(h.bytes for h in both.memory() if h.kind == "join") <= alone.nbytes["query join"]


def test_the_limit_names_the_part_that_holds_most() -> None:
    evaluator = engine(limit=100_000)
    with pytest.raises(MemoryLimitError, match=r"most by join join, count in its .*: \w+ .*smaller windows"):
        evaluator.push(S, some(300))
