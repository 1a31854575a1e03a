"""Queries that are asked once."""

from __future__ import annotations

import pytest
from pyoxigraph import RdfFormat
from pyoxigraph import parse as parse_rdf

from kelda.engine.oneshot import evaluate
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
