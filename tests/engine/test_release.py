"""Terms that no window needs any more are let go, and nothing else is."""

from __future__ import annotations

import numpy as np
import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kelda.engine import reachable
from kelda.engine.incremental import IncrementalEvaluator
from kelda.engine.reference import ReferenceEvaluator
from kelda.lang import parse
from kelda.rdf.event import Event
from tests.engine.test_batching import bag

QUERIES = (
    "SELECT ?x ?y { STREAM :s [RANGE 9ms] { ?x :p ?y } }",
    "SELECT DISTINCT ?y { STREAM :s [TRIPLES 5] { ?x :p ?y } }",
    "SELECT ?y (MIN(?x) AS ?least) (COUNT(*) AS ?n) { STREAM :s [RANGE 20ms] { ?x :p ?y } } GROUP BY ?y",
    "SELECT ?x ?z { STREAM :s [RANGE 9ms] { ?x :p ?y } "
    "STREAM :s [RANGE 4ms] { ?z :p ?y } BIND(STR(?x) AS ?t) }",
    "SELECT ?x { STREAM :s [RANGE 9ms] { ?x :p ?y } MINUS { STREAM :s [RANGE 3ms] { ?z :p ?y } } }",
)


def test_answers_stay_right_while_terms_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reachable, "LEAST_TERMS", 64)
    rng = np.random.default_rng(7)
    events = [
        Event(
            t // 2,
            (
                Quad(
                    NamedNode(f"http://ex/a-long-name-{t}"),
                    NamedNode("http://ex/p"),
                    Literal(f"a long text number {rng.integers(t // 9, t // 9 + 6)}"),
                ),
            ),
        )
        for t in range(2500)
    ]
    reference, engine = ReferenceEvaluator(), IncrementalEvaluator()
    for evaluator in (reference, engine):
        evaluator.add_stream("http://ex/s", from_start=True)
        for i, text in enumerate(QUERIES):
            evaluator.register(f"q{i}", parse("PREFIX : <http://ex/> " + text))
    assert not engine.reasons
    found = []
    for i in range(0, len(events), 50):
        found += engine.push("http://ex/s", events[i : i + 50])
    found += engine.end("http://ex/s")
    assert bag(found) == bag(reference.push("http://ex/s", events) + reference.end("http://ex/s"))
    assert engine.released > 1200
    assert len(engine.dictionary) < 2000  # rings hold some that are gone


def test_a_view_outlives_the_release() -> None:
    engine = IncrementalEvaluator()
    word = engine.dictionary.encode(NamedNode("http://ex/one"))
    view = engine.dictionary.view()
    engine.dictionary.retain([])
    assert word not in engine.dictionary and view.term(word) == NamedNode("http://ex/one")
