"""Queries of different shape share an equal join, and answer as if each were alone."""

from __future__ import annotations

import os

from hypothesis import given, note, settings
from hypothesis import strategies as st

from kelda.engine.answer import Answer
from kelda.engine.incremental import IncrementalEvaluator
from kelda.engine.nodes import JoinWindows, Node
from kelda.engine.reference import ReferenceEvaluator
from kelda.lang import parse
from kelda.lang.algebra import Output
from kelda.rdf.event import Event
from tests.engine.random_queries import EX, STREAMS, change, events
from tests.engine.stores import over
from tests.engine.test_batching import bag
from tests.engine.test_incremental import equip, store

CASES = int(os.environ.get("KELDA_CASES", "150"))
PREFIX = "PREFIX : <http://ex/> "

GROUPS = (  # the second and the third are the first, with other names and in another order
    "STREAM :a [{0}] {{ ?x :p ?y . ?z :q ?y }}",
    "STREAM :a [{0}] {{ ?y :p ?z . ?x :q ?z }}",
    "STREAM :a [{0}] {{ ?z :q ?y . ?x :p ?y }}",
    "STREAM :a [{0}] {{ ?x :p ?y }} STREAM :b [{0}] {{ ?z :q ?y }}",
    "STREAM :a [{0}] {{ ?x :p ?y . ?z :q ?y }} ?x :k ?k .",
)
ABOVE = (
    "SELECT ?x ?y ?z {{ {0} }}",
    "SELECT ?x {{ {0} FILTER(?y != 1) }}",
    "SELECT ?z {{ {0} FILTER(?y = 1) }}",
    "SELECT DISTINCT ?y {{ {0} }}",
    "SELECT ?y (COUNT(*) AS ?n) {{ {0} }} GROUP BY ?y",
    "SELECT (COUNT(*) AS ?n) {{ {0} FILTER(?x != ?z) }}",
    "ASK {{ {0} FILTER(?x = ?z) }}",
    "SELECT ?x ?z {{ {0} OPTIONAL {{ {0} ?z :k ?m }} }}",
    "SELECT ?x ?y {{ {0} }} ORDER BY ?y ?x LIMIT 2",
    "CONSTRUCT {{ ?x :with ?z }} {{ {0} MINUS {{ ?x :k 2 }} }}",
)
WINDOWS = ("RANGE 5ms", "RANGE 4ms SLIDE 2ms", "TRIPLES 3", "NOW", "SESSION GAP 2ms")


@settings(max_examples=CASES, deadline=None)
@given(st.sampled_from(WINDOWS), st.sampled_from([None, *Output]), events(), events(), st.data())
def test_same_answers(
    window: str, output: Output | None, a: list[Event], b: list[Event], data: st.DataObject
) -> None:
    reference, engine = ReferenceEvaluator(store=store()), over(store())
    both = (reference, engine)
    for evaluator in both:
        equip(evaluator)
    expected: list[Answer] = []
    found: list[Answer] = []
    left = dict(zip(STREAMS, (a, b), strict=True))
    running: list[str] = []
    for i in range(data.draw(st.integers(2, 10))):
        text = data.draw(st.sampled_from(ABOVE)).format(data.draw(st.sampled_from(GROUPS)).format(window))
        note(f"q{i} {text}")
        for evaluator in both:
            evaluator.register(f"q{i}", parse(PREFIX + text), output=output)
        running.append(f"q{i}")
        action = data.draw(st.sampled_from(["", "", "", "push", "push", "drop", "pause", "resume"]))
        if action == "push":
            stream = data.draw(st.sampled_from(STREAMS))
            pushed, left[stream] = left[stream][:3], left[stream][3:]
            note(f"push {len(pushed)} on {stream}")
            expected += reference.push(stream, pushed)
            found += engine.push(stream, pushed)
        elif action:
            change(action, running, both, data)
    assert not engine.reasons
    for stream, rest in left.items():
        expected += reference.push(stream, rest) + reference.end(stream)
        found += engine.push(stream, rest) + engine.end(stream)
    assert bag(found) == bag(expected)


# ------------------------------------------------------------------------------ what is shared


def engine_with(*texts: str) -> IncrementalEvaluator:
    engine = over(store())
    equip(engine)
    for i, text in enumerate(texts):
        engine.register(f"q{i}", parse(PREFIX + text))
    assert not engine.reasons
    return engine


def joins(engine: IncrementalEvaluator) -> int:
    """How many joins run."""
    found: set[int] = set()

    def visit(node: Node) -> None:
        if isinstance(node, JoinWindows):
            found.add(id(node))
        for source in node.inputs:
            visit(source)

    for network in engine.networks():
        visit(network.root)
    return len(found)


def test_one_join_whatever_is_above_and_however_it_is_written() -> None:
    texts = [above.format(GROUPS[i % 3].format("RANGE 5ms")) for i, above in enumerate(ABOVE)]
    engine = engine_with(*texts)
    assert joins(engine) == 2  # the group, and in one query the group with a stored part
    assert "one join with q0, q1, q2, q4, q5 and 4 more" in engine.say("q3")


def test_another_window_constant_or_stored_part_is_another_join() -> None:
    group = GROUPS[0].format("RANGE 5ms")
    others = (
        GROUPS[0].format("RANGE 6ms"),
        group.replace(":q", ":r"),
        group.replace(":a", ":b"),
        group + " ?x :k ?k",
        group + " ?x :knows ?k",
    )
    engine = engine_with(f"SELECT ?x {{ {group} }}", *(f"SELECT DISTINCT ?x {{ {o} }}" for o in others))
    assert joins(engine) == 1 + len(others)


def test_who_comes_later_has_a_join_of_its_own() -> None:
    group = GROUPS[0].format("RANGE 5ms")
    engine = engine_with(f"SELECT ?x {{ {group} }}", f"SELECT DISTINCT ?x {{ {group} }}")
    engine.heartbeat(STREAMS[0], 3)
    engine.heartbeat(STREAMS[1], 3)
    engine.register("later", parse(f"{PREFIX} SELECT ?x (COUNT(*) AS ?n) {{ {group} }} GROUP BY ?x"))
    assert joins(engine) == 2
    assert "one join with" not in engine.say("later")


def test_a_lone_reader_hands_its_filter_down() -> None:
    group = GROUPS[0].format("RANGE 5ms")
    one = engine_with(f"SELECT ?x {{ {group} FILTER(?y = 1) }}")
    two = engine_with(f"SELECT ?x {{ {group} FILTER(?y = 1) }}", f"SELECT ?z {{ {group} FILTER(?y = 2) }}")
    two.drop("q1")  # before anything was delivered
    three = engine_with(f"SELECT ?x {{ {group} FILTER(?y = 1) }}", f"SELECT DISTINCT ?z {{ {group} }}")
    for engine, conditions in ((one, 1), (two, 1), (three, 0)):
        for stream in STREAMS:
            engine.heartbeat(stream, 3)
        node = engine.networks()[0].root
        while not isinstance(node, JoinWindows):
            (node,) = node.inputs
        assert len(node.join.conditions) == conditions


def test_the_shared_join_outlives_the_query_that_made_it() -> None:
    group = GROUPS[3].format("TRIPLES 2")
    engine = engine_with(f"SELECT ?x {{ {group} }}", f"SELECT DISTINCT ?x {{ {group} }}")
    reference = ReferenceEvaluator(store=store())
    equip(reference)
    reference.register("q1", parse(f"{PREFIX} SELECT DISTINCT ?x {{ {group} }}"))
    engine.drop("q0")
    from pyoxigraph import NamedNode, Quad

    node = [NamedNode(f"{EX}n{i}") for i in range(3)]
    for stream, predicate in zip(STREAMS, "pq", strict=True):
        pushed = [Event(t, (Quad(node[t % 3], NamedNode(EX + predicate), node[0]),)) for t in range(6)]
        assert bag(engine.push(stream, pushed)) == bag(reference.push(stream, pushed))
    for stream in STREAMS:
        answers = engine.end(stream)
        assert bag(answers) == bag(reference.end(stream))
    assert answers
