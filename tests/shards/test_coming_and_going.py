"""Queries come, go, pause and move at any time, on any number of shards, with crashes in between: the
answers are those of the reference evaluator, or of a run in which nothing moves."""

from __future__ import annotations

import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from kelda.engine.answer import Answer
from kelda.engine.reference import ReferenceEvaluator
from kelda.io.job import QuerySpec, parse_spec
from kelda.lang import parse
from kelda.lang.algebra import Output
from kelda.rdf.event import Event
from kelda.rdf.graphs import load_graph
from kelda.shards.catalog import Drop, Pause, Switch, Warm
from tests.engine.random_queries import EX, STREAMS, events
from tests.engine.test_batching import bag
from tests.engine.test_pause import texts
from tests.shards.local import LocalShards
from tests.shards.worlds import PREFIX, event, local_shards, write_stored

CASES = int(os.environ.get("KELDA_CASES", "150")) // 3


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_stored(tmp_path_factory.mktemp("stored"))


@settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    texts(),
    texts(),
    st.sampled_from([None, Output.CHANGES]),
    st.sampled_from([1, 2, 5]),
    events(),
    events(),
    st.data(),
)
def test_same_answers(
    stored: str,
    one: str,
    other: str,
    output: Output | None,
    shards: int,
    a: list[Event],
    b: list[Event],
    data: st.DataObject,
) -> None:
    reference = ReferenceEvaluator()
    load_graph(reference.store, stored)
    for stream in STREAMS:
        reference.add_stream(stream, lateness=1, from_start=True)
    local = local_shards(shards, stored, lateness=1)
    expected: list[Answer] = []
    found: list[Answer] = []
    left = {s: [e for e in some if e.quads] for s, some in zip(STREAMS, (a, b), strict=True)}
    running: list[str] = []
    newest = -1
    actions = ["register", "register", "drop", "pause", "resume", "crash", *6 * ["push"]]
    for count in range(data.draw(st.integers(4, 16))):
        action = data.draw(st.sampled_from(actions))
        if action == "register" or len(running) < 2:
            text, name = data.draw(st.sampled_from([one, one, other])), f"q{count}"
            note(f"register {name} {text}")
            # Nothing may wait for its instant: whether it was sent was decided before the query was there.
            for stream in STREAMS:
                expected += reference.heartbeat(stream, newest)
            found += local.push({}, heartbeats=dict.fromkeys(STREAMS, newest))
            names = [f"{name}-{i}" for i in range(data.draw(st.integers(1, 3)))]
            for each in names:
                reference.register(each, parse(text), output=output)
            specs = [QuerySpec(each, text, output=output and output.value) for each in names]
            local.apply([local.planner.plan(spec) for spec in specs])
            running += names
        elif action == "push":
            batch = {}
            for stream in STREAMS:
                size = data.draw(st.integers(0, 3))
                batch[stream], left[stream] = left[stream][:size], left[stream][size:]
                expected += reference.push(stream, batch[stream])
            newest = max([newest, *(e.time or 0 for some in batch.values() for e in some)])
            note(f"push {[[e.time for e in some] for some in batch.values()]}")
            found += local.push(batch)
        elif action == "crash":
            note("crash")
            local.crash()
        else:
            name = data.draw(st.sampled_from(running))
            note(f"{action} {name}")
            if action == "drop":
                reference.drop(name)
                local.apply([Drop(name)])
                running.remove(name)
            else:
                reference.pause(name, action == "pause")
                local.apply([Pause(name, action == "pause")])
    for stream, rest in left.items():
        expected += reference.push(stream, rest)
    for stream in left:
        expected += reference.end(stream)
    found += local.push(left, ends=list(left))
    assert bag(found) == bag(expected)


# No axis: a query without a key to group by is whole, on one shard.
COUNTED = PREFIX + "SELECT (COUNT(*) AS ?n) {{ STREAM :a [RANGE 5ms] {{ :{0} :p ?y }} }}"
SEEN = PREFIX + "SELECT * {{ STREAM :a [RANGE 5ms] {{ :{0} :p 3 }} }}"
LOWEST = PREFIX + "SELECT ?y {{ STREAM :a [RANGE 4ms SLIDE 2ms] {{ :{0} :p ?y }} }} ORDER BY DESC(?y) LIMIT 1"
READING = [event(i, f"n{i * i % 3}", "p", i * 7 % 5) for i in range(1, 40)]
STREAM, OVER = STREAMS


def whole(text: str) -> LocalShards:
    """Four whole queries of one shape, two on each shard; one of the streams is over."""
    local = local_shards(2)
    for i in range(4):
        local.apply([local.planner.plan(QuerySpec(f"q{i}", text.format(f"n{i % 3}"), output="changes"))])
    assert local.planner.placed == {"q0": 0, "q1": 1, "q2": 0, "q3": 1}
    assert local.push({}, ends=[OVER]) == []
    return local


@pytest.mark.parametrize("text", [COUNTED, LOWEST, SEEN], ids=["count", "lowest", "seen"])
@pytest.mark.parametrize("crashing", [False, True])
def test_a_query_moves_and_nobody_notices(text: str, crashing: bool) -> None:
    still = whole(text)
    expected = [answer for some in READING for answer in still.push({STREAM: [some]})]
    local, found = whole(text), []
    for some in READING:
        if some.time == 10:
            local.apply([Warm("q0", 1)])
        if some.time == 20:
            local.apply([Switch("q0", 1)])
        found += local.push({STREAM: [some]})
        if crashing and some.time % 3 == 0:
            local.crash()
    assert bag(found) == bag(expected)
    assert {answer.query for answer in expected if answer.time > 25} >= {"q0", "q1", "q3"}
    assert "q0" not in local.shards[0].evaluator.queries
    assert local.planner.placed["q0"] == 1


def test_what_is_dropped_says_nothing_and_the_name_is_free() -> None:
    local = whole(COUNTED)
    found = local.push({STREAM: READING[:10]})
    local.apply([Drop("q0")])
    found += local.push({STREAM: READING[10:20]})
    local.apply([local.planner.plan(QuerySpec("q0", COUNTED.format("n1"), output="changes"))])
    local.crash()
    found += local.push({STREAM: READING[20:]}, ends=[STREAM])
    times = Counter("early" if a.time <= 11 else "late" for a in found if a.query == "q0")
    assert times["early"] and times["late"]
    assert not [a for a in found if a.query == "q0" and 11 < a.time < 20]
    assert [shard.evaluator.queries for shard in local.shards] == [["q2", "q0"], ["q1", "q3"]]


def test_many_queries_at_once() -> None:
    text = PREFIX + "SELECT ?y { STREAM :a [RANGE 5ms] { $who :p ?y } }"
    names, given = [f"q{i}" for i in range(6)], [f"<{EX}n{i % 3}>" for i in range(6)]
    reference = ReferenceEvaluator()
    for stream in STREAMS:
        reference.add_stream(stream, from_start=True)
    for name, who in zip(names, given, strict=True):
        reference.register(name, parse_spec(QuerySpec(name, text, params={"who": who})))
    expected = reference.push(STREAM, READING) + reference.end(OVER) + reference.end(STREAM)
    local = local_shards(5)
    local.apply([local.planner.plan_many(QuerySpec("q", text), names, {"who": given})])
    found = local.push({STREAM: READING[:20]})
    local.crash()
    found += local.push({STREAM: READING[20:]}, ends=STREAMS)
    assert bag(found) == bag(expected)
    assert {answer.query for answer in found} == {"q0", "q1", "q3", "q4"}


def test_a_query_by_definition_does_not_wait_for_what_it_is_not_sent() -> None:
    """Its query reads one stream; the elements of the other are sent to other shards, their times to all."""
    local = local_shards(2)
    described = PREFIX + "DESCRIBE ?x { STREAM :a [RANGE 3ms] { ?x :p ?y } }"
    asked = PREFIX + "ASK { STREAM :b [RANGE 3ms] { ?x :q ?y } }"
    for name, text in (("d", described), ("a", asked)):
        local.apply([local.planner.plan(QuerySpec(name, text))])
    assert local.planner.placed == {"d": 0, "a": 1}
    for i in range(1, 10):
        local.push({STREAM: [event(i, "n0", "p", i)], OVER: [event(i, "n0", "q", i)]})
        for shard in local.shards:
            assert shard.evaluator.now == i - 1


@pytest.mark.parametrize("crashing", [False, True])
def test_a_query_by_definition_knows_the_time_before_it(stored: str, crashing: bool) -> None:
    local = local_shards(1, stored)
    local.apply([local.planner.plan(QuerySpec("a", PREFIX + "ASK { STREAM :a [NOW] { ?x :p ?y } }"))])
    local.push({STREAM: READING[:4]}, ends=[OVER])
    if crashing:
        local.crash()
    described = PREFIX + "DESCRIBE ?x { STREAM :a [RANGE 2ms] { ?x :p ?y } }"
    local.apply([local.planner.plan(QuerySpec("d", described))])
    found = [answer for some in READING[4:9] for answer in local.push({STREAM: [some]})]
    # The element at 4 waits for its instant when the query comes.
    assert {answer.time for answer in found if answer.query == "d"} <= set(range(4, 9))
    assert "d" in {answer.query for answer in found}
