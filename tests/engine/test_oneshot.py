"""Queries that are asked once."""

from __future__ import annotations

from collections import Counter

import pytest
from pyoxigraph import RdfFormat
from pyoxigraph import parse as parse_rdf

from kelda.engine.oneshot import Solutions, evaluate
from kelda.lang import parse
from kelda.rdf.graphstore import GraphStore

PREFIX = "PREFIX : <http://ex/> "


def store(text: str) -> GraphStore:
    return GraphStore(parse_rdf(PREFIX + text, RdfFormat.TRIG))


@pytest.mark.parametrize(
    ("text", "described"),
    [
        ("DESCRIBE :a", "a"),
        ("DESCRIBE :a { ?x :nothing ?y }", "a"),  # what is named is described without a solution
        ("DESCRIBE :a ?x { ?x :q ?y }", "ab"),
        ("DESCRIBE :a :c ?x { ?x :q ?y } ORDER BY ?x LIMIT 1", "abc"),
        ("DESCRIBE :a ?x { ?x :q ?y } LIMIT 0", "a"),
        ("DESCRIBE ?x { ?x :q ?y }", "b"),
        ("DESCRIBE * { ?x :q ?y }", "bc"),
    ],
)
def test_describe(text: str, described: str) -> None:
    found = evaluate(parse(PREFIX + text), store(":a :p 1 . :b :q :c . :c :r 2 ."))
    assert isinstance(found, list)
    assert {t.subject.value for t in found} == {f"http://ex/{name}" for name in described}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("path", "graphs"),
    [
        (":b :r* ?v", {"g1": 1, "g2": 2}),  # of no length in each graph; in :g2 also to :d
        ("?v :r* :b", {"g1": 1, "g2": 1}),
        (":z :r? :z", {"g1": 1, "g2": 1}),
        ("?x :r* ?v", {"g1": 3, "g2": 3}),
    ],
)
def test_a_path_of_no_length_is_in_every_named_graph(path: str, graphs: dict[str, int]) -> None:
    data = store("GRAPH :g1 { :c :r :d } GRAPH :g2 { :b :r :d }")
    found = evaluate(parse(PREFIX + f"SELECT * {{ GRAPH ?g {{ {path} }} }}"), data)
    assert isinstance(found, Solutions)
    assert Counter(str(row["g"]) for row in found.rows) == {f"<http://ex/{g}>": n for g, n in graphs.items()}
    assert evaluate(parse(PREFIX + f"ASK {{ GRAPH ?g {{ {path} }} }}"), store("")) is False
