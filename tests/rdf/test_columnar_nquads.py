"""N-Quads read by columns are what their framing says, however odd they are."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kelda.io.job import StreamSource
from kelda.io.sources.reader import Piece
from kelda.rdf.columnar import READERS, found_of
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.event import Event, Reject
from kelda.rdf.framing import read_chunk
from kelda.rdf.framings.base import Chunk, Reading
from kelda.rdf.framings.eventtime import TIME_PREDICATES
from kelda.rdf.ids import encode
from kelda.rdf.keyset import KeySet
from kelda.rdf.skim import Asked, Rule, Skimmer
from kelda.shards.ingest import read
from kelda.shards.routing import Routing
from tests.io.odd_bytes import streams
from tests.rdf.by_columns import EVERYTHING, check
from tests.rdf.test_ntriples import FAST, INVALID, INVALID_BYTES, SLOW

CASES = int(os.environ.get("KELDA_CASES", "150"))
FIRST = int(os.environ.get("KELDA_RANDOM", "0"))

DATETIME = b"^^<http://www.w3.org/2001/XMLSchema#dateTime>"
GENERATED, RESULT = (b"<%s>" % TIME_PREDICATES[i].encode() for i in (0, 1))
SUBJECTS = [b"<http://ex/a>", b"<http://ex/ab>", b"_:a", b"_:ab", b"<http://ex/%s>" % (b"long" * 40)]
PREDICATES = [b"<http://ex/p>", b"<http://ex/p>", b"<http://ex/q#r>", b"<a:b>", b"<http://ex/time>"]
OBJECTS = [
    b"<http://ex/a>",
    b"<http://ex/b>",
    b"_:o",
    b'"text"',
    b'"' + b"long " * 40 + b'"',
    b'"1"^^<http://www.w3.org/2001/XMLSchema#integer>',
    b'"a\\"b"@EN',
    b'"x"@x-odd-tag',
    b'"a\\tb"',
    '"\u00e9"'.encode(),
]
TIMES = [
    b'"1970-01-01T00:00:05Z"' + DATETIME,
    b'"2024-02-29T23:59:59.25+05:30"' + DATETIME,
    b'"0001-01-01T00:00:00.1-14:00"' + DATETIME,
    b'"2024-01-01T00:00:00"',
    b'"1700000000123"',
    b'"2024"@en',
    b'"-5"',
    b'" 7 "',
    b'"999999999999999"',
    b'"1700000000123456"',
    b'"2024-01-01"',
    b'"2024-13-01T00:00:00Z"' + DATETIME,
    b'"2024-01-01T00:00:00.123456Z"' + DATETIME,
    b"<http://ex/no-time>",
    b'"when"',
]
GRAPHS = [b"", b"", b"", b" <http://ex/g>", b" <http://ex/gh>", b" _:g"]
BLANKS = [
    b"\n",
    b"# so\n",
    b"  \t\n",
    b"\r\n",
    b"# \xff\rand\n",
    b"\r \n",
    b" \r\r\n",
    b"5\t\n",
    b"nonsense\n",
]
ENDS = [b" .\n"] * 6 + [b" . # so\n", b" .\r\n", b".\n", b" \t.\t\n", b" . \r\n", b" . # a\rb\n", b" .\r\r\n"]
ODD = b'<>"\\ \t\n\r.#@^_:/%~0a{}\x00\xff\xc3'


def a_text(choose: random.Random) -> bytes:
    """Lines with much in common, some of which are odd."""
    tidy, timed = choose.random() < 0.3, choose.choice([0.0, 0.0, 0.2, 1.0])
    lines = []
    s, g = choose.choice(SUBJECTS), b""
    for _ in range(choose.randrange(1, 60)):
        if choose.random() < 0.3:
            s, g = choose.choice(SUBJECTS), choose.choice(GRAPHS)
        p, o = choose.choice(PREDICATES), choose.choice(OBJECTS[:6] if tidy else OBJECTS)
        if choose.random() < 0.3:
            p, o = (
                choose.choice([GENERATED, RESULT, PREDICATES[-1]]),
                choose.choice(TIMES[: 5 if tidy else 99]),
            )
        end = b" .\n" if tidy else choose.choice(ENDS)
        line = b"%s %s %s%s%s" % (s, p, o, g, end)
        if choose.random() < timed:
            line = b"%d\t%s" % (choose.choice([1, 1, 2, -3, 1700000000123]), line)
        if not tidy and choose.random() < 0.1:
            wrong = bytearray(line)
            wrong[choose.randrange(len(wrong))] = choose.choice(ODD)
            line = bytes(wrong)
        lines.append(line)
        if choose.random() < 0.1:
            lines.append(choose.choice(BLANKS[: 4 if tidy else 99]))
    text = b"".join(lines)
    return text[: -choose.randrange(1, 9)] if choose.random() < 0.2 else text


def keys(*terms: bytes) -> KeySet:
    found, known = KeySet(), Dictionary()
    events = list(_events(b"".join(b"<a:b> <a:b> %s .\n" % term for term in terms)))
    found.add(np.unique(found_of(events, known).o))
    return found


def _events(data: bytes, **how: Any) -> list[Event]:
    return list(read_chunk(Chunk(1, 0, b"", data), "nquads", on_reject=lambda _: None, **how))


RULES: list[Sequence[Rule]] = [
    EVERYTHING,
    [],
    [(encode(_events(b"<a:b> <http://ex/p> <a:b> .")[0].quads[0].predicate), None, None)],
    [(None, keys(*SUBJECTS[:2]), None), (7, None, None)],
    [
        (None, None, keys(*OBJECTS[:4])),
        (encode(_events(b"<a:b> <a:b> <a:b> .")[0].quads[0].subject), None, None),
    ],
]


@pytest.mark.parametrize("seed", range(FIRST, FIRST + CASES))
def test_random_texts(seed: int) -> None:
    choose = random.Random(seed)
    data = a_text(choose)
    cuts = sorted(choose.randrange(len(data) + 1) for _ in range(choose.randrange(4)))
    check(
        "nquads",
        data,
        time_predicate=choose.choice([None, None, "http://ex/time", TIME_PREDICATES[0]]),
        needs_time=choose.random() < 0.3,
        rules=choose.choice(RULES),
        cuts=cuts,
        max_records=choose.choice([1, 2, 5, 4096]),
    )


@settings(deadline=None, max_examples=CASES)
@given(streams("nquads"), st.sampled_from([1, 3, 4096]), st.booleans(), st.sampled_from(RULES))
def test_odd_bytes(data: bytes, most: int, needs_time: bool, rules: Sequence[Rule]) -> None:
    check("nquads", data, max_records=most, needs_time=needs_time, rules=rules)


def test_all_kinds_of_lines() -> None:
    lines = [line.encode() for line in FAST + SLOW + INVALID] + INVALID_BYTES
    for one in lines:
        for line in (one, b"5\t" + one, one + b"\r"):
            check("nquads", line)
            check("nquads", b"<a:s> <a:p> <a:o> .\n" + line + b"\n" + line + b"\n<a:t> <a:p> <a:o> .\n")


def test_times() -> None:
    for predicate in (GENERATED, RESULT, PREDICATES[-1]):
        for time in TIMES:
            for named in (None, "http://ex/time", "not an IRI"):
                for needs_time in (True, False):
                    check(
                        "nquads",
                        b"<a:s> %s %s .\n<a:s> <a:p> <a:o> .\n<a:t> <a:p> <a:o> .\n" % (predicate, time),
                        time_predicate=named,
                        needs_time=needs_time,
                        columnar=named != "not an IRI",
                    )


def test_events_are_told_apart_by_bytes() -> None:
    found = READERS["nquads"](
        Chunk(
            1, 0, b"", b"_:a <a:p> <a:o> .\n_:ab <a:p> <a:o> .\n_:ab <a:q> _:a <a:g> .\n<a:g> <a:q> _:a .\n"
        ),
        Reading("s", lambda _: None),
        Asked.of(EVERYTHING),
        Dictionary(),
    )
    assert found is not None and found.event.tolist() == [0, 1, 2, 2]


def test_more_terms_than_there_is_room_for() -> None:
    lines = [
        b"<http://ex/s%d> <http://ex/p%d> <http://ex/o%d> <http://ex/g%d> .\n" % (i, i, i, i)
        for i in range(900)
    ]
    assert check("nquads", b"".join(lines)) == 900


# ------------------------------------------------------------------------------ text with times


def ingested(data: bytes, rules: Routing) -> tuple[Any, list[Reject]]:
    rejects: list[Reject] = []
    source = StreamSource("http://ex/s", "s.nq", "nquads")
    piece = Piece(0, 0, Chunk(4, 0, b"", data), 1, 1, arrived=7, format="nquads", name="s")
    skimmer = Skimmer(Dictionary())
    return (read(piece, source, skimmer, rules, rejects), skimmer.dictionary), rejects


@pytest.mark.parametrize("seed", range(FIRST, FIRST + CASES // 3))
def test_what_is_ingested_is_what_the_framing_reads(seed: int) -> None:
    """Timed text is skimmed, other text read by columns: an event the same, however it came."""
    data = a_text(random.Random(seed))
    routing = Routing()
    routing.everything("http://ex/s", 0)
    (elements, dictionary), rejects = ingested(data, routing)
    slow: list[Reject] = []
    chunk = Chunk(4, 0, b"", data)
    events = list(read_chunk(chunk, "nquads", on_reject=slow.append, name="s"))
    assert rejects == slow
    wanted = found_of([Event(7 if e.time is None else e.time, e.quads) for e in events], Dictionary())
    assert elements.size == wanted.size
    heads = np.append(elements.heads, elements.size)
    assert np.repeat(elements.times, np.diff(heads)).tolist() == wanted.time.tolist()
    numbers = np.arange(elements.size) if elements.events is None else elements.events
    assert numbers.tolist() == wanted.event.tolist()
    for part in ("s", "p", "o"):
        assert getattr(elements, part).tolist() == getattr(wanted, part).tolist()
    known = dictionary.terms(np.concatenate([elements.s, elements.p, elements.o]))
    assert [encode(term) for term in known] == np.concatenate([wanted.s, wanted.p, wanted.o]).tolist()
