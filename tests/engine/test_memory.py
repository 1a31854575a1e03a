"""Bytes are told by owner, index and table, and add up."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kelda.engine.budget import Budget
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
    assert "group on ?y: groups" in names and "group on ?y: rows" in names


def test_nothing_counts_twice() -> None:
    alone = IncrementalEvaluator()
    alone.add_stream(S)
    alone.register("join", parse("PREFIX : <http://ex/> " + QUERIES["join"]))
    both = engine()
    for evaluator in (alone, both):
        evaluator.push(S, some(500))
    assert sum(h.bytes for h in both.memory() if h.kind == "join") <= alone.nbytes["query join"]


def test_the_limit_names_the_part_that_holds_most() -> None:
    evaluator = engine()
    evaluator.push(S, some(300))
    evaluator.running.memory_limit = 100_000  # what is held is more than that, whatever the next step takes
    with pytest.raises(MemoryLimitError, match=r"most by join join, count in its .*: \w+ .*smaller windows"):
        evaluator.push(S, some(301)[-1:])
    assert not evaluator.stopped


CROSS = {
    "of windows": "SELECT ?a ?b { STREAM :s [RANGE 10s] { ?a :p ?x } STREAM :s [RANGE 10s] { ?b :p ?y } }",
    "counted": "SELECT (COUNT(*) AS ?n) { STREAM :s [RANGE 9s] { ?a :p ?x } "
    "STREAM :s [RANGE 9s] { ?b :p ?y } }",
    "of deltas": "SELECT ?a ?b { { SELECT DISTINCT ?a { STREAM :s [RANGE 10s] { ?a :p ?x } } } "
    "{ SELECT DISTINCT ?b { STREAM :s [RANGE 10s] { ?b :p ?y } } } }",
    "of bags": "SELECT ?x { { SELECT ?x { STREAM :s [RANGE 10s] { ?a :p ?x } } } "
    "{ SELECT ?y { STREAM :s [RANGE 10s] { ?b :p ?y } } } }",
    "by definition": "SELECT ?a ?b ?now { STREAM :s [RANGE 10s] { ?a :p ?x } "
    "STREAM :s [RANGE 10s] { ?b :p ?y } BIND(NOW() AS ?now) }",
}
PUSH = """
import resource, sys
import kelda
engine = kelda.connect(memory_limit=100_000_000)
for name, text in {queries!r}.items():
    engine.register("PREFIX : <http://ex/> " + text, name=name)
good = engine.register("SELECT ?a {{ STREAM <http://ex/s> [RANGE 10s] {{ ?a <http://ex/p> 1 }} }}")
stream = engine.stream("http://ex/s")
for time in (1, 2):  # kernels are compiled
    stream.push("<http://ex/w> <http://ex/p> 5 .", time=time)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
stream.push("".join(f"<http://ex/s{{i}}> <http://ex/p> {{i % 2}} ." for i in range({many})), time=1000)
stream.push("<http://ex/w> <http://ex/p> 5 .", time=2000)
took = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
assert took < 300, took  # and not gigabytes
stopped = engine._driver.stopped
assert set(stopped) == set({queries!r}), stopped
assert all("more than the limit of 100,000,000" in why.reason for why in stopped.values()), stopped
assert len(list(good.results())) == {many} // 2
"""


@pytest.mark.parametrize("many", [8000, 1200])
def test_the_limit_holds_within_a_step(many: int) -> None:
    """8,000 triples at once have 64 million pairs. 1,200 have few enough to be found, not to be answers."""
    code = PUSH.format(queries=CROSS if many == 8000 else {"of windows": CROSS["of windows"]}, many=many)
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - begin < 60, "in time, that of starting included"


def test_who_takes_most_in_a_step_is_stopped_whoever_asks_for_the_rest() -> None:
    gone: list[int] = []
    budget = Budget(1000, lambda who, error: gone.append(who))
    budget.begin()
    budget.turn(1)
    budget.take(700)
    budget.turn(2)
    budget.take(200)
    budget.take(200)
    assert gone == [1]
    with pytest.raises(MemoryLimitError, match=r"1,100 bytes in one step"):
        budget.take(700)
    budget.begin()
    budget.take(700)
    assert budget.too_much({1: 200, 3: 500}) == [(2, 700)]
    assert Budget().rows(3) > 1 << 50 and Budget().too_much({1: 1 << 50}) == []
