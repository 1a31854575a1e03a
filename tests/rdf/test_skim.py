"""Skimming gives the times of all statements, and those that are asked for as the whole text has them."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kelda.errors import InputError
from kelda.io.sources.spot import Spot
from kelda.rdf import ids, skim
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.event import Reject
from kelda.rdf.framings.base import Chunk, Flow
from kelda.rdf.keyset import KeySet
from kelda.rdf.ntriples import read
from kelda.rdf.skim import Asked, Rule, Skimmer
from tests.rdf.test_ntriples import FAST, INVALID, INVALID_BYTES, SLOW, lines

ANYTHING: Rule = (None, None, None)
Row = tuple[int, int, int, int]  # its number, s, p, o


def keys(*members: int) -> KeySet:
    found = KeySet()
    found.add(np.array([m for m in members if m], np.int64))
    return found


def skimmed(
    text: Flow, rules: list[Rule], skimmer: Skimmer | None = None
) -> tuple[list[int], list[Row], list[Reject]]:
    """(the time of each statement, those that were found, rejects)."""
    skimmer = skimmer or Skimmer(Dictionary())
    heads, times, found, rejects, size = [], [], [], [], 0
    for block in skimmer.read(text, Asked.of(rules), source="s", first_line=3):
        heads += block.heads.tolist()
        times += block.times.tolist()
        rejects += block.rejects
        size += block.rows
        every = np.arange(len(block.found))
        block.know(every)
        found += list(zip(*(a.tolist() for a in (block.found, block.s, block.p, block.o)), strict=True))
        for column in (block.s, block.p, block.o):  # each id is known, and means its term
            assert [ids.encode(term) for term in skimmer.dictionary.terms(column)] == column.tolist()
    assert heads == sorted(set(heads)) and all(a != b for a, b in pairwise(times))
    return (
        np.repeat(np.array(times, np.int64), np.diff(np.array([*heads, size], np.int64))).tolist(),
        found,
        rejects,
    )


class ByPortions:
    """A text that comes in portions of these sizes, again and again."""

    file, at, end = -1, 0, 0

    def __init__(self, data: bytes, sizes: list[int]) -> None:
        self.left, self.sizes = data, cycle(sizes)

    def fill(self, buffer: memoryview) -> int:
        size = min(len(buffer), next(self.sizes))
        some, self.left = self.left[:size], self.left[size:]
        buffer[: len(some)] = some
        return len(some)


@contextmanager
def in_a_file(data: bytes) -> Iterator[Flow]:
    """A text in the middle of a file."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"<a:before> " + data + b"7\t<a:behind> <a:p> <a:o> .\n")
        file.flush()
        with Spot(1, 0, b"", b"", file.name, 11, len(data), data[-64:]).text() as text:
            yield text


def check(data: bytes, sizes: list[int], block: int = skim.BLOCK) -> None:
    """As `ntriples.read` reads it, however it comes, whatever is asked for."""
    whole = read(data, Dictionary(), timed=True, source="s", first_line=3)
    assert whole.t is not None
    every = list(zip(range(len(whole)), whole.s.tolist(), whole.p.tolist(), whole.o.tolist(), strict=True))
    some_s, some_p, some_o = (set(column.tolist()[::3]) for column in (whole.s, whole.p, whole.o))
    p = next(iter(some_p), 7)
    rules: list[list[Rule]] = [
        [],
        [ANYTHING],
        [(p, None, None)],
        [(None, keys(*some_s), None)],
        [(None, None, keys(*some_o))],
        [(p, keys(*some_s), keys(*some_o))],
        [(p, None, keys(*some_o)), (7, None, None), (None, keys(*some_s), keys(*some_o))],
    ]
    skimmer = Skimmer(Dictionary())
    if block != skim.BLOCK:
        skimmer._room(block)
    for some in rules:
        wanted = [row for row in every if any(matches(row, rule) for rule in some)]
        with in_a_file(data) as text:
            for flow in (ByPortions(data, sizes), text):
                times, found, rejects = skimmed(flow, some, skimmer)
                assert times == whole.t.tolist() and rejects == whole.rejects
                assert found == wanted


def matches(row: Row, rule: Rule) -> bool:
    _, s, p, o = row
    in_s, in_o = (
        keys is None or bool(keys.holds(np.array([x], np.int64))[0])
        for keys, x in ((rule[1], s), (rule[2], o))
    )
    return rule[0] in (None, p) and in_s and in_o


LINES = [line.encode() for line in FAST + SLOW + INVALID] + INVALID_BYTES


@pytest.mark.parametrize("block", [1, 7, 64, 1000, skim.BLOCK])
def test_all_kinds_of_lines(block: int) -> None:
    """Each line twice, so that the second finds what is remembered of the first."""
    data = b"".join(b"%d\t%s\n" % (i // 3, line) for i, line in enumerate(LINES) for _ in range(2))
    check(data, [10**9], block)
    check(data.replace(b"\n", b"\r\n"), [block, 3], block)


def test_line_ends_comments_and_times() -> None:
    line = b"5\t<a:b> <a:b> <a:c> ."
    data = b"\r\n".join([line] * 3) + b"\r" + line + b" # so\n# no\n\n6\t\n5 <a:b> <a:b> <a:c> .\n-" + line
    for portion in range(1, 20):
        check(data, [portion])
        check(data + b"\r", [portion])
        check(data + b"\r\n", [portion])


def test_names_are_told_apart() -> None:
    """One that begins as another does; predicates that share a place, or are too long for any."""
    some = [b"<a:p>", b"<a:p:>", b"<a:p:p>", b"<a:%s>" % (b"p" * 200), b"<a:%s>" % (b"p" * 201)]
    some += [b"<a:%d>" % i for i in range(300)]
    order = random.Random(1).choices(some, k=3000)
    check(b"".join(b"7\t%s %s %s .\n" % (a, b, a) for a, b in pairwise(order)), [10**9])
    check(b"".join(b"7\t_:a%s <a:b> _:b .\n" % (b"x" * (i % 5)) for i in range(50)), [10**9])


SUBJECTS = [
    b"<http://ex.org/a/1>",
    b"<http://ex.org/a/2>",
    b"<https://ex.org/a#1>",
    b"_:b1",
    b"_:b12",
    b"<urn:a>",
]
PREDICATES = [b"<http://ex.org/p>", b"<http://ex.org/p#q>", b"<http://www.ex.com/some/long/name#of-it>"]
OBJECTS = [
    b"<http://ex.org/a/1>",
    b"<http://other.org/ns#" + b"x" * 60 + b">",
    b'"text"',
    b'"' + b"long " * 40 + b'"',
    b'"a\\"b"@EN',
    b'"1"^^<http://www.w3.org/2001/XMLSchema#integer>',
    b'"x"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>',
    '"\u00e9"@fr-CA'.encode(),
]
ENDS = [b" .\n", b" .\n", b".\r\n", b" <http://ex.org/g> .\n", b" . # so\n"]
ODD = b'<>"\\ \t\n\r.#@^_:/%~0a{}\x00\xff\xc3'


@pytest.mark.parametrize("seed", range(30))
def test_lines_that_are_nearly_alike(seed: int) -> None:
    """Lines that share their pieces with those before, and some in which one byte is another."""
    choose = random.Random(seed)
    text = []
    for i in range(120):
        s, p, o, end = (
            choose.choice(some) for some in (SUBJECTS[:3] * 3 + SUBJECTS, PREDICATES, OBJECTS, ENDS)
        )
        line = bytearray(b"%d\t%s %s %s%s" % (i // 7, s, p, o, end))
        if choose.random() < 0.3:
            line[choose.randrange(len(line))] = choose.choice(ODD)
        text.append(bytes(line))
    data = b"".join(text)
    check(data, [10**9])
    check(data, [choose.randrange(1, 300)], choose.choice([64, 500, skim.BLOCK]))


def test_rejects_have_the_line_as_it_came() -> None:
    check(b'1\t<a:b> <a:b> ""@EN <a> .\n2\t<a:b> <a:b> "x"@EN .\n', [1])


def test_a_line_longer_than_a_block() -> None:
    data = b'1\t<a:b> <a:b> "%s" .\n2\t<a:b> <a:b> "x" .\n' % (b"x" * 5000)
    check(data, [100], 1000)


@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.tuples(st.integers(0, 2), lines, st.sampled_from(["\n", "\n", "\r\n", "\r"])), max_size=8),
    st.lists(st.integers(1, 80), min_size=1, max_size=4),
    st.sampled_from([16, 200, skim.BLOCK]),
)
def test_random_texts(some: list[tuple[int, str, str]], sizes: list[int], block: int) -> None:
    text = "".join(f"{time}\t{line}{end}" for time, line, end in some)
    check(text.encode(errors="replace"), sizes, block)


def test_text_in_a_file_is_read_by_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many blocks none comes through Python, which is asked once, at the end, whether that was all."""
    data = b"".join(b"%d\t<a:b> <a:p%d> <a:c> .\n" % (i, i % 3) for i in range(1000))
    skimmer = Skimmer(Dictionary())
    skimmer._room(500)
    with in_a_file(data) as text:
        asked: list[int] = []
        fill = text.fill
        monkeypatch.setattr(text, "fill", lambda buffer: asked.append(fill(buffer)) or asked[-1])
        assert len(skimmed(text, [ANYTHING], skimmer)[0]) == 1000
    assert asked == [0]


def test_chunks_and_spots(tmp_path: Path) -> None:
    data = b"".join(b"%d\t<a:b> <a:p%d> <a:c> .\n" % (i, i % 3) for i in range(1000))
    path = tmp_path / "s.tsnt"
    path.write_bytes(b"# before\n" + data + b"# behind\n")
    spot = Spot(1, 0, b"", b"", str(path), 9, len(data), data[-64:])
    assert spot.load() == Chunk(1, 0, b"", data)
    with spot.text() as one, Chunk(1, 0, b"", data).text() as other:
        found = skimmed(one, [ANYTHING])
        assert found == skimmed(other, [ANYTHING]) and len(found[1]) == 1000
    path.write_bytes(b"# before\n" + data.replace(b"999", b"998"))
    with spot.text() as text, pytest.raises(InputError, match="has changed while it was read"):
        skimmed(text, [ANYTHING])
    path.write_bytes(b"# before\n" + data[:-100])
    with spot.text() as text, pytest.raises(InputError, match="has changed while it was read"):
        skimmed(text, [ANYTHING])
