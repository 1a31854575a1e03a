"""Answers that are columns are written as answers that are objects are."""

from __future__ import annotations

import io
import os
import random
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyoxigraph import BaseDirection, BlankNode, Literal, NamedNode, Triple

import kelda
from kelda.engine.block import Block
from kelda.engine.columnar import Columnar, blocks_in, last_time
from kelda.engine.sent import Sent
from kelda.errors import UsageError
from kelda.io.formats import Csv, Format, Messages, Ndjson, NQuads, Parquet, columns_in, shape_of
from kelda.io.spelling import CSV, JSON, NTRIPLES, NTRIPLES_IN_JSON
from kelda.io.spelling_kernels import spelled
from kelda.lang import algebra as A
from kelda.lang import parse
from kelda.lang.scope import visible
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.ids import Term
from tests.rdf.test_arrow import ALL, lit

SEED = int(os.environ.get("KELDA_RANDOM", random.randrange(1 << 32)))
CASES = int(os.environ.get("KELDA_CASES", 40))

PREFIX = "PREFIX : <http://ex/> "
QUERIES = {
    "select": "SELECT ?y ?x ?none WHERE { STREAM :s [NOW] { ?x :p ?y } }",
    "odd names": "SELECT (?y AS ?time) (?x AS ?sign) (?x AS ?größe) WHERE { STREAM :s [NOW] { ?x :p ?y } }",
    "no columns": "SELECT * WHERE { STREAM :s [NOW] { :a :p :b } }",
    "ask": "REGISTER RSTREAM :o AS ASK FROM NAMED WINDOW :w ON :s [RANGE 2 STEP 1] "
    "WHERE { WINDOW :w { ?x :p ?y } }",
    "construct": """CONSTRUCT { ?x :is ?y . ?y :of ?x . :c ?z "c" . ?x a :C }
        WHERE { STREAM :s [NOW] { ?x ?z ?y } }""",
    "blank nodes": "CONSTRUCT { [] :of ?x ; :is _:b . _:b :y ?y } WHERE { STREAM :s [NOW] { ?x ?z ?y } }",
    "quads": """CONSTRUCT { ?x :is ?y . GRAPH ?z { ?x :is ?y } GRAPH :g { ?x :is 1 } }
        WHERE { STREAM :s [NOW] { ?x ?z ?y } }""",
    "its time": """PREFIX prov: <http://www.w3.org/ns/prov#>
        CONSTRUCT { ?x prov:generatedAtTime ?y } WHERE { STREAM :s [NOW] { ?x ?z ?y } }""",
}
NAMES = ("q", "http://ex/jam", 'a "quoted", name\nin two lines', "größe 日本 \U0001f600", "\x01\x7f")
ODD = [
    '"',
    "\\",
    "\n",
    "\r",
    "\t",
    "\b",
    "\f",
    "\0",
    "\x1f",
    "\x7f",
    ",",
    "é",
    "日",
    "\U0001f600",
    "\ufffe",
    "\uffff",
]
ODD += ["\\n", '\\"', "a", " ", "'", "<", ">", "@en", "^^<", "--ltr", "\u2028", "\x85"]


def random_text(rng: random.Random) -> str:
    return "".join(rng.choice(ODD) for _ in range(rng.choice((0, 1, 2, 3, 8, 40))))


def random_term(rng: random.Random, deep: int = 0) -> Term:
    """A term of any kind."""
    text = random_text(rng)
    match rng.randrange(11):
        case 0:
            return NamedNode(f"http://ex/{rng.randrange(6)}é?a=1&b='2'")
        case 1:
            return BlankNode(f"b{rng.randrange(5)}")
        case 2:
            return Literal(text)
        case 3:
            return Literal(text, language=rng.choice(("en", "de-AT", "x-a-b")))
        case 4:
            direction = BaseDirection(rng.choice(("ltr", "rtl")))
            return Literal(text, language="ar", direction=direction)
        case 5:
            return Literal(text, datatype=NamedNode(f"http://ex/type{rng.randrange(3)}"))
        case 6:
            return Literal(rng.choice((0, -1, 2**56, -(2**56), 2**70, rng.randrange(-999, 9999))))
        case 7:
            return rng.choice(
                (Literal(1.5), lit("2.50", "decimal"), lit("-0.0", "double"), lit("1.2E-3", "float"))
            )
        case 8:
            return rng.choice((Literal(True), Literal(False), lit("1", "boolean")))
        case 9 if deep < 3:
            subject = rng.choice((NamedNode("http://ex/s"), BlankNode("t")))
            return Triple(subject, NamedNode("http://ex/p"), random_term(rng, deep + 1))
    return rng.choice(ALL)


def random_sent(rng: random.Random, columns: tuple[str, ...], dictionary: Dictionary, *, ask: bool) -> Sent:
    """What a query may send: the same at many instants, or each at one; nothing, too."""
    size = rng.choice((0, 1, 2, 7, 40))
    terms = [random_term(rng) for _ in range(rng.choice((1, 5, 60)))]
    ids = [0, *(dictionary.encode(term) for term in terms)]
    values = np.array([[rng.choice(ids) for _ in range(size)] for _ in columns], np.int64).reshape(
        len(columns), size
    )
    if ask:
        values = np.array([[rng.randrange(2) for _ in range(size)]], np.int64)
    sign = np.array([rng.choice((1, 1, -1)) for _ in range(size)], np.int64)
    if rng.random() < 0.5:
        sign[:] = rng.choice((1, -1))
    begin = rng.choice((0, -5, 1_700_000_000_000, -62_135_596_800_000, 253_402_300_799_990, 10**16, 10))
    time = np.sort(
        np.array([begin + rng.randrange(6) * rng.choice((1, 10, 100)) for _ in range(size)], np.int64)
    )
    if rng.random() < 0.5 or not size:
        return Sent(columns, time, sign, values)
    reports = np.unique(time)
    last = np.array([rng.choice(reports[reports >= t]) for t in time], np.int64)
    return Sent(columns, time, sign, values, last, reports)


def random_blocks(rng: random.Random, query: A.Query, name: str) -> list[Block]:
    dictionary, blocks = Dictionary(), []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if rng.random() < 0.2:
            dictionary = Dictionary()
        columns = tuple(v.name for v in visible(query.pattern))
        if query.form is A.Form.SELECT:
            columns = tuple(n for n in shape_of(query).columns if n != "none")
            columns = tuple(rng.sample(columns, len(columns)))
        sent = random_sent(rng, columns, dictionary, ask=query.form is A.Form.ASK)
        blocks.append(Block(query, name, sent, dictionary))
    return blocks


def formats(query: A.Query) -> list[Format]:
    columns = shape_of(query).columns
    found: list[Format] = [Ndjson(), Csv(columns), Csv((*columns, "more")), Parquet(columns, query.form)]
    for sign in "+-":
        found += [NQuads(sign=sign), Messages(sign=sign, time_predicate="http://ex/at")]
    return found


def said(format: Format, answers: Any) -> object:
    """What a format makes of answers: bytes, or a table, or the refusal."""
    try:
        body = bytes(format.body(answers))
    except UsageError as error:
        return str(error)
    if not isinstance(format, Parquet):
        return body
    table = pq.read_table(io.BytesIO(body))
    return table.schema.remove_metadata(), table.to_pydict()


@pytest.mark.parametrize("name", QUERIES)
def test_columns_are_written_as_answers_are(name: str) -> None:
    query = parse(PREFIX + QUERIES[name])
    for case in range(CASES):
        rng = random.Random(f"{SEED} {name} {case}")
        blocks = random_blocks(rng, query, rng.choice(NAMES))
        columns = Columnar(blocks)
        assert blocks_in(columns) is not None
        answers = [answer for block in blocks for answer in block.answers()]
        where = f"KELDA_RANDOM={SEED}, case {case}"
        assert len(columns) == len(answers) and list(columns) == answers, where
        assert last_time(columns) == last_time(answers), where
        if not answers:
            continue
        assert columns_in(columns) == columns_in(answers), where
        for format in formats(query):
            assert said(format, columns) == said(format, answers), (where, type(format).__name__)


def test_bytes_that_are_no_canonical_text_are_read_within_bounds() -> None:
    rng = random.Random(SEED)
    texts = [
        bytes(rng.choice(b'"\\<>@^-n_:\xef\xbf\xbe\x00a') for _ in range(rng.randrange(1, 12)))
        for _ in range(3000)
    ]
    offsets = np.cumsum([0, *map(len, texts)])
    whole = np.frombuffer(b"".join(texts) + bytes(8), np.uint8).copy()
    inline = np.array([rng.randrange(-(2**63), 0) for _ in range(3000)], np.int64)
    inline[:200] |= (1 << 62) - 1  # of all kinds, with all bits
    for spelling in (JSON, CSV, NTRIPLES, NTRIPLES_IN_JSON):
        out, starts, ends, _ = spelled(whole, offsets, inline, spelling.tables)
        assert (starts >= 0).all() and (starts <= ends).all() and (ends <= len(out)).all(), SEED
        assert (starts[1:] >= ends[:-1]).all(), SEED


def test_a_callback_is_given_all_answers_of_a_batch_at_once() -> None:
    engine = kelda.connect()
    query = engine.register("SELECT ?x { STREAM <http://ex/s> [NOW] { ?x <http://ex/p> ?y } }")
    blocks: list[Block] = []
    each: list[kelda.Answer] = []
    query.subscribe_to_batches(blocks.append)
    query.subscribe(each.append)
    for time in (1, 2):
        triples = [(f"http://ex/{n}", "http://ex/p", n) for n in range(time + 1)]
        engine.stream("http://ex/s").push(triples, time)
    engine.stream("http://ex/s").end()
    assert [answer for block in blocks for answer in block.answers()] == each
    assert len(each) == 3 and len(blocks) == 2 and not query.unread

    def fails(block: Block) -> None:
        raise ValueError("no room")

    other = engine.register("SELECT ?x { STREAM <http://ex/t> [NOW] { ?x <http://ex/p> ?y } }")
    other.subscribe_to_batches(fails)
    engine.stream("http://ex/t").push(("http://ex/a", "http://ex/p", 1), 7)
    engine.stream("http://ex/t").end()
    assert other.state == "stopped" and "no room" in str(other.error)
