"""Parts of a pattern that share no variable: each is joined by itself, before all rows go with all rows."""

from __future__ import annotations

import re

from pyoxigraph import Literal, NamedNode, Quad

from kelda.engine.incremental import IncrementalEvaluator
from kelda.engine.reference import ReferenceEvaluator
from kelda.lang import parse
from kelda.rdf.event import Event
from kelda.rdf.graphstore import GraphStore
from tests.engine.stores import over
from tests.engine.test_batching import bag

EX = "http://ex/"
PREFIX = f"PREFIX : <{EX}> "
STREAM = EX + "s"


def node(name: str) -> NamedNode:
    return NamedNode(EX + name)


def stored() -> GraphStore:
    store = GraphStore()
    for i in range(40):
        store.add(Quad(node(f"p{i}"), node("kind"), node("Level")))
        store.add(Quad(node(f"e{i % 7}"), node("title"), Literal(f"t{i % 7}")))
        store.add(Quad(node(f"e{i % 7}"), node("at"), Literal(i % 7)))
    return store


def events() -> list[Event]:
    return [
        Event(100 * i, (Quad(ob, node("of"), node(f"p{i % 50}")), Quad(ob, node("is"), Literal(i))))
        for i, ob in enumerate(node(f"o{i}") for i in range(30))
    ]


def both(text: str) -> IncrementalEvaluator:
    """The engine, after it has given the same answers as by definition."""
    ours, reference = over(stored()), ReferenceEvaluator(store=stored())
    query = parse(PREFIX + text)
    for evaluator in (ours, reference):
        evaluator.add_stream(STREAM)
        evaluator.register("q", query)
    found, expected = (e.push(STREAM, events()) + e.end(STREAM) for e in (ours, reference))
    assert expected and bag(found) == bag(expected)
    assert not ours.reasons
    return ours


def test_unconnected_parts_are_joined_by_themselves() -> None:
    window = f"STREAM <{STREAM}> [RANGE 1s]"
    ours = both(
        f"SELECT ?ob ?t {{ {{ {window} {{ ?ob :of ?p }} }} UNION {{ {window} {{ ?ob :is ?p }} }} "
        "?p :kind :Level . ?e :title ?t . ?e :at ?n FILTER(?n > 4) }"
    )
    joins = [line for line in ours.say("q").splitlines() if line.strip().startswith("join")]
    depth = {re.sub(r" \(.*", "", line.strip()): len(line) - len(line.lstrip()) for line in joins[::-1]}
    assert depth["join"] < depth["join on ?p"] == depth["join on ?e"]


def test_a_window_is_crossed_before_facts_that_a_constant_picks() -> None:
    """There are many facts of a kind and few rows in a window."""
    window = f"STREAM <{STREAM}> [RANGE 1s]"
    ours = both(
        f"SELECT ?a ?b {{ {window} {{ ?a :of ?p }} ?p :kind :Level . "
        f"{window} {{ ?b :of ?q }} ?q :kind :Level }}"
    )
    said = ours.say("q")
    leaves = {int(n): line for n, line in re.findall(r"leaf (\d) (\(.*)", said)}
    (first, other) = (n for n, line in leaves.items() if line.startswith("(window"))
    (facts,) = (n for n, line in leaves.items() if line.startswith("(facts: ?q)"))
    probed = [int(n) for n in re.findall(r"(\d) \(~", leaves[first].partition("probes")[2])]
    assert probed.index(other) < probed.index(facts)
