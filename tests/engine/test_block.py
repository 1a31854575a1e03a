"""Answers as columns say what the answers say."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from pyoxigraph import Literal, NamedNode, Quad, Triple

from kelda.engine.answer import Answer
from kelda.engine.block import Block, blocks_of, table_of
from kelda.engine.incremental import IncrementalEvaluator
from kelda.engine.reference import ReferenceEvaluator
from kelda.engine.sent import Sent
from kelda.errors import UsageError
from kelda.lang import algebra as A
from kelda.lang import parse
from kelda.rdf.arrow import Terms
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.event import Event
from kelda.rdf.ids import Term, text
from tests.rdf.test_arrow import ALL, COLUMNS

S = "http://ex/s"
PREFIX = "PREFIX : <http://ex/> "

QUERIES = {
    "all": "SELECT ?y ?x WHERE { STREAM :s [RANGE 5ms] { ?x :p ?y } }",
    "changes of unbound ones": """REGISTER ISTREAM :o AS SELECT * FROM NAMED WINDOW :w ON :s [RANGE 3 STEP 1]
        WHERE { WINDOW :w { ?x :p ?y } OPTIONAL { WINDOW :w { ?x :q ?z } } }""",
    "told again and again": """REGISTER RSTREAM :o AS SELECT ?y FROM NAMED WINDOW :w ON :s [RANGE 5 STEP 1]
        WHERE { WINDOW :w { ?x :p ?y } }""",
    "never bound": "SELECT ?x ?none WHERE { STREAM :s [NOW] { ?x :p ?y } }",
    "odd names": "SELECT (?y AS ?time) (?x AS ?sign) WHERE { STREAM :s [NOW] { ?x :p ?y } }",
    "ask": """REGISTER RSTREAM :o AS ASK FROM NAMED WINDOW :w ON :s [RANGE 2 STEP 1]
        WHERE { WINDOW :w { ?x :q ?y } }""",
    "construct": """CONSTRUCT { ?x :is ?y . ?y :of ?x . :c ?z "c" . ?x a :C }
        WHERE { STREAM :s [RANGE 5ms] { ?x :p ?y } OPTIONAL { STREAM :s [RANGE 3ms] { ?x ?z ?w } } }""",
    "construct blank nodes": """CONSTRUCT { [] :of ?x ; :is _:b . _:b :y ?y }
        WHERE { STREAM :s [RANGE 5ms] { ?x :p ?y } }""",
    "construct quads": """CONSTRUCT { ?x :is ?y . GRAPH ?z { ?x :is ?y } GRAPH :g { ?x :is 1 } }
        WHERE { STREAM :s [NOW] { ?x :p ?y } OPTIONAL { STREAM :s [NOW] { ?x :q ?z } } }""",
    "construct nothing": "CONSTRUCT { } WHERE { STREAM :s [NOW] { ?x :p ?y } }",
}


def events(seed: int, terms: list[Term], size: int = 40) -> Iterator[Event]:
    rng = random.Random(seed)
    for i in range(size):
        subject = NamedNode(f"http://ex/n{rng.randrange(5)}")
        predicate = NamedNode("http://ex/" + rng.choice("pppq"))
        yield Event(i // 3, (Quad(subject, predicate, rng.choice(terms)),))


def blocks(query: A.Query, seed: int, terms: list[Term]) -> list[Block]:
    """What the query answers, in some steps."""
    engine = IncrementalEvaluator()
    engine.add_stream(S)
    engine.register("q", query)
    assert "q" not in engine.reasons
    found = []
    for event in events(seed, terms):
        s, p, o = (np.array([engine.dictionary.encode(t)]) for t in event.quads[0].triple)
        found += engine.push_batch(S, s, p, o, np.array([event.time]))
    return [Block(batch.query, "q", batch.sent, batch.dictionary) for batch in found]


def rows_of(answers: list[Answer], query: A.Query, columns: list[str]) -> list[tuple[object, ...]]:
    """The rows of a table in N-Triples, by definition."""
    rows: list[tuple[object, ...]] = []
    for number, a in enumerate(answers):
        if a.bindings is not None:
            shown = {(f"?{k}" if k in ("time", "sign") else k): text(v) for k, v in a.bindings.items()}
            rows.append((a.time, a.sign, *(shown.get(c) for c in columns[2:])))
        elif a.triples is not None:
            for t in a.triples:
                parts = [text(t.subject), text(t.predicate), text(t.object)]
                if "graph" in columns:
                    parts.append(text(t.graph_name) if isinstance(t, Quad) else None)  # type: ignore[arg-type]
                rows.append((a.time, a.sign, number, *parts))
        else:
            rows.append((a.time, a.sign, a.boolean))
    return rows


def plain_rows(table: pa.Table) -> list[tuple[object, ...]]:
    time = table.column("time").cast(pa.int64()).to_pylist()
    others = [table.column(c).to_pylist() for c in table.column_names[1:]]
    return list(zip(time, *others, strict=True))


def said(table: pa.Table) -> tuple[pa.Schema, str]:
    """All that a table says, in which NaN is NaN."""
    return table.schema, repr(table.to_pydict())


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("kind", [*range(len(COLUMNS)), "all"])
def test_tables_say_what_answers_say(name: str, kind: int | str) -> None:
    query = parse(PREFIX + QUERIES[name])
    terms = ALL if isinstance(kind, str) else [*COLUMNS[kind][1]]
    found = blocks(query, 7, terms)
    answers = [a for block in found for a in block.answers()]
    assert answers or name == "construct nothing"
    table = table_of(query, found, "ntriples")
    assert table.schema.field("time").type == pa.timestamp("ms", "UTC")
    assert plain_rows(table) == rows_of(answers, query, table.column_names)
    assert [len(block) for block in found] == [len(block.answers()) for block in found]
    again = [Block.of_answers(query, "q", block.answers()) for block in found]
    ways: tuple[Terms, ...] = ("values", "ntriples")
    for terms_as in ways:
        assert said(table_of(query, again, terms_as)) == said(table_of(query, found, terms_as))
        for one, other in zip(found, again, strict=True):
            assert said(one.to_arrow(terms_as)) == said(other.to_arrow(terms_as))
    empty = table_of(query, [], "ntriples")
    assert empty.schema == table.schema and len(empty) == 0


def test_columns_have_the_types_of_their_values() -> None:
    query = parse(PREFIX + QUERIES["all"])
    table = table_of(query, blocks(query, 1, [Literal(1), Literal(2)]))
    assert table.schema.names == ["time", "sign", "y", "x"]
    assert table.schema.types[2:] == [pa.int64(), pa.large_string()]
    assert set(table["sign"].to_pylist()) == {"+", "-"} or set(table["sign"].to_pylist()) == {"+"}
    assert set(table["x"].to_pylist()) <= {f"http://ex/n{i}" for i in range(5)}
    floats = table_of(query, blocks(query, 1, [Literal(1), Literal(0.5)]))
    assert table_of(query, blocks(query, 1, [Literal(1)]), schema=floats.schema).schema == floats.schema
    with pytest.raises(UsageError, match="does not fit into a column of double"):
        table_of(query, blocks(query, 1, [Literal("a")]), schema=floats.schema)


def test_describe_comes_from_the_reference_evaluator() -> None:
    query = parse(PREFIX + "DESCRIBE ?x WHERE { STREAM :s [NOW] { ?x :p ?y } }")
    reference = ReferenceEvaluator()
    reference.add_stream(S)
    reference.register("q", query)
    reference.store.add(Quad(NamedNode("http://ex/n1"), NamedNode("http://ex/k"), Literal(5)))
    answers = reference.push(S, events(1, [Literal(1)])) + reference.end(S)
    block = Block.of_answers(query, "q", answers)
    assert len(block) == len(answers) > 1 and block.answers() == answers
    assert block.to_arrow().column_names == ["time", "sign", "answer", "subject", "predicate", "object"]
    assert block.to_arrow()["object"].to_pylist()[0] == "5"


def test_queries_of_one_shape_have_a_block_each() -> None:
    query = parse(PREFIX + QUERIES["all"])
    dictionary = Dictionary()
    ids = [dictionary.encode(Literal(i)) for i in range(4)]
    sent = Sent(("y", ".q"), np.arange(4), np.array([1, -1, 1, 1]), np.array([ids, [2, 1, 2, 1]]))
    found = blocks_of(query, ["", "a", "b"], sent, dictionary)
    assert [(b.name, [(a.query, a.time, a.sign) for a in b.answers()]) for b in found] == [
        ("a", [("a", 1, "-"), ("a", 3, "+")]),
        ("b", [("b", 0, "+"), ("b", 2, "+")]),
    ]
    assert found[0].to_arrow()["y"].to_pylist() == [1, 3]
    assert repr(found[0]) == "<Block of 'a': 2 answers>"


def test_a_triple_is_a_value_too() -> None:
    query = parse(PREFIX + QUERIES["all"])
    triple = Triple(NamedNode("http://ex/a"), NamedNode("http://ex/p"), Literal(1))
    block = Block.of_answers(query, "q", [Answer("q", 1, "+", bindings={"y": triple})])
    assert block.to_arrow()["y"].to_pylist() == [text(triple)]
    assert block.to_arrow()["x"].to_pylist() == [None]
