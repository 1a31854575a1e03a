"""Messages by columns: what the framing says, byte for byte."""

from __future__ import annotations

import os
from random import Random, SystemRandom
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from pyoxigraph import NamedNode

from kelda.rdf.columnar import messages
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.framing import Chunker
from kelda.rdf.framings.base import Chunk, Reading
from kelda.rdf.framings.messages import MessageSplitter
from kelda.rdf.ids import encode
from kelda.rdf.keyset import KeySet
from kelda.rdf.messages import chunks, walk
from kelda.rdf.skim import Asked, Rule
from kelda.rdf.turtle import Reader
from tests.rdf import turtle_text
from tests.rdf.by_columns import check

CASES = int(os.environ.get("KELDA_CASES", "300"))
FIRST = SystemRandom().randrange(10**9) if "KELDA_RANDOM" in os.environ else 0


def _id(iri: str) -> int:
    return encode(NamedNode(iri))


def rules_of(draw: Random) -> list[Rule]:
    some = KeySet()
    some.add(np.array([_id(f"http://{name}") for name in ("example.org/a", "ex/a", "example.org/b1")]))
    rules: list[list[Rule]] = [
        [(None, None, None)],
        [(None, None, None)],
        [],
        [(_id("http://example.org/a"), None, None), (_id("http://ex/p"), some, None)],
        [(None, some, None), (_id("http://www.w3.org/1999/02/22-rdf-syntax-ns#type"), None, some)],
    ]
    return draw.choice(rules)


def run(seed: int) -> None:
    draw = Random(seed)
    data = turtle_text.messages(draw, calm=draw.random() < 0.6)
    cuts = sorted(draw.randrange(len(data) + 1) for _ in range(draw.choice([0, 0, 1, 5])))
    when = draw.choice([None, None, None, *turtle_text.TIMES[:2]])
    check(
        "messages",
        data,
        time_predicate=when,
        needs_time=draw.random() < 0.2,
        rules=rules_of(draw),
        cuts=cuts,
        max_records=draw.choice([1, 2, 3, 4096, 4096]),
    )


@pytest.mark.parametrize("part", range(4))
def test_any_messages(part: int) -> None:
    for seed in range(FIRST + part, FIRST + CASES, 4):
        try:
            run(seed)
        except BaseException as error:
            error.add_note(f"run({seed})")
            raise


def test_where_messages_end() -> None:
    for seed in range(FIRST, FIRST + CASES):
        draw = Random(seed)
        data = turtle_text.mutated(draw, turtle_text.messages(draw, calm=False))
        longest = draw.choice([16_000_000, 16_000_000, 30, 200])
        expected = MessageSplitter(longest=longest).messages(data, True)
        found = walk(data, b"", longest, at_end=True)
        ends = list(zip(found.text_ends.tolist(), found.ends.tolist(), strict=True))
        assert ends == [(m.text_end, m.end) for m in expected], f"seed {seed}"
        contexts = [[c for first, c in found.contexts if first <= i + 1][-1] for i in range(len(ends))]
        assert contexts == [m.context for m in expected], f"seed {seed}"
        assert found.tail == bool(expected and not expected[-1].record), f"seed {seed}"
        if longest == 16_000_000:
            chunker = Chunker("messages", max_records=1)
            assert list(chunks(data, 1)) == [*chunker.feed(data), *chunker.finish()], f"seed {seed}"
            several = [chunk.data for chunk in chunks(data, 3)]
            assert (
                b"".join(several)
                == data[: ends[-1][1] if ends and not found.tail else len(b"".join(several))]
            )
        sofar = walk(data, b"", longest, at_end=False)
        assert sofar.ends.tolist() == [m.end for m in expected][: len(sofar.ends)], f"seed {seed}"


P = b"PREFIX : <http://ex/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\nMESSAGE\n"
USUAL = [
    b':a :p :b , "x" ; a :C ; :q 1 , 1.5 , 1e6 , true .',
    b"<http://ex/a> <http://ex/p> 'it' , \"\"\"long \"x\"\n\"\"\" , '''y''' .",
    b':a :p "a text"@en-GB , "1.5"^^xsd:decimal , "2024-01-01T00:00:00Z"^^xsd:dateTime , "z"^^:t .',
    b"_:b :p _:c . _:c :q _:b , [] , [ :p [ :q 1 ] ] . [] :p 1 . [ :p 2 ] .",
    b':a :p ( 1 "x" "y"@en ( ) ( "z"^^:t :b ) [ :q "s" ] ) , ("a" "b") .',
    b":g { :a :p 1 . :b :q 2 } GRAPH :h { } { :a :p 3 . } _:g { :a :p _:b }",
    b'<http://ex/a> <http://ex/p> <http://ex/b> <http://ex/g> .\n<http://ex/a> <http://ex/p> "x" _:g .\n',
    b"# a comment\n:a :p 1 . # MESSAGE\nPREFIX : <http://ex/>\n:b :p 2 .",
]


class Placed(Reader):
    """A reader whose scratch buffer lies before the text in memory, or behind it."""

    before = True

    def __init__(self, buffer: np.ndarray, *settings: Any) -> None:
        room, size = 1 << 16, len(buffer)
        arena = np.zeros(2 * room + size, np.uint8)
        own = arena[room : room + size]
        own[:] = buffer
        super().__init__(own, *settings)
        scratch = arena[:room] if self.before else arena[room + size :]
        self._work = self._work._replace(scratch=scratch)


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("text", USUAL)
def test_wherever_memory_lies(text: bytes, before: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Placed, "before", before)
    monkeypatch.setattr(messages, "Reader", Placed)
    test_what_is_usual_is_not_left_to_the_framing(text)


@pytest.mark.parametrize("text", USUAL)
def test_what_is_usual_is_not_left_to_the_framing(text: bytes) -> None:
    data = P + text + b"\nMESSAGE\n" + text + b"\n@message .\n"
    assert check("messages", data) > 0
    chunk = Chunk(1, 0, b"PREFIX : <http://ex/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> ", text)
    with patch.object(messages.MESSAGES, "read", side_effect=AssertionError("left to the framing")):
        found = messages.read(chunk, Reading("s", print), Asked.of([(None, None, None)]), Dictionary())
    assert found is not None and found.size > 0


@pytest.mark.parametrize(
    "data",
    [
        P
        + b':a :p (""@de-Latn), 0 .',  # what a token tells comes last first: a language is a token of its own
        b'PREFIX : <http://a/>\nBASE <http://b/>\nPREFIX : <#>\n:a\\~ :p "x" .\nMESSAGE\n:a :p 1 .',
        b"PREFIX l: <http://ex/%s>\nMESSAGE\nl:a l:p %s ."
        % (b"long/" * 150, b", ".join([b'"x"^^l:t'] * 900)),
        P
        + b":a :p "
        + b"(" * 99
        + b")" * 99
        + b" .\nMESSAGE\n:a :p "
        + b"[ :q " * 50
        + b"1"
        + b"]" * 50
        + b" .",
        P + b"".join(b"_:b%d :p _:b%d .\n" % (n, n // 2) for n in range(20_000)),
        P + b":a :p " + b", ".join(b'"text number %d"@en' % n for n in range(5000)) + b" .",
        P + b":a :p " + b"'''" + b'"\n' * 100_000 + b"''' .",
    ],
)
def test_what_was_found(data: bytes) -> None:
    check("messages", data)
