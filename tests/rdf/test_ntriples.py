"""The fast lane reads exactly what pyoxigraph reads, line by line."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import RdfFormat, parse

from kelda.rdf import ids, ntriples
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.ntriples import read

XSD = "http://www.w3.org/2001/XMLSchema#"
DATA = Path(os.environ.get("KELDA_DATA", Path(__file__).parents[3] / "shared" / "data"))


def by_pyoxigraph(data: bytes, quads: bool = True) -> tuple[list[tuple[int, ...]], list[int], list[int]]:
    """(rows of ids, their lines, rejected lines): what `read` must give, from pyoxigraph line by line."""
    rows, lines, rejected = [], [], []
    for number, line in enumerate(data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"), 1):
        try:
            found = list(parse(line, RdfFormat.N_QUADS if quads else RdfFormat.N_TRIPLES))
        except SyntaxError:
            rejected.append(number)
            continue
        rows += [tuple(ids.encode(term) for term in quad) for quad in found]
        lines += [number] * len(found)
    return rows, lines, rejected


def check(data: bytes, quads: bool = True) -> ntriples.Columns:
    dictionary = Dictionary()
    columns = read(data, dictionary, quads=quads)
    rows, lines, rejected = by_pyoxigraph(data, quads)
    assert list(zip(*(c.tolist() for c in (columns.s, columns.p, columns.o, columns.g)), strict=True)) == rows
    assert columns.line.tolist() == lines
    assert [reject.line for reject in columns.rejects] == rejected
    # Every id is known, and means the term that it was computed from.
    for column in (columns.s, columns.p, columns.o, columns.g):
        assert [ids.encode(term) for term in dictionary.terms(column)] == column.tolist()
    return columns


def is_slow(line: bytes) -> bool:
    """Whether the kernel leaves the line to pyoxigraph."""
    scratch = ntriples._Scratch.of(len(line))
    _, slow, _ = ntriples._scan(memoryview(line), Dictionary(), True, False, 1, scratch)
    return slow.shape[1] == 1


# ---------------------------------------------------------------------------- single lines

FAST = [
    "<http://example.org/s> <http://example.org/p> <http://example.org/o> .",
    "<http://example.org/s> <http://example.org/p> <http://example.org/o> <http://example.org/g> .",
    "<http://a.b:8080/s?q=1&r=%20#f> <urn:x-y:z> <http://a.b> .",
    "<http://a.b/snø> <a:b> <a:퟿> .",
    "_:a <a:b> _:B-1_ _:g .",
    '\t_:a\t<a:b>\t"x"\t.\t# a comment',
    '<a:b><a:b>"x"<a:g>.',
    '_:a <a:b> "".',
    '_:a <a:b> "a longer string, snø, 日本, 😀, \t raw tab"@en .',
    '_:a <a:b> "quote \\" backslash \\\\ LF \\n CR \\r"@zh-Hant-TW .',
    '_:a <a:b> "\\n\\\\"@ES-419 .',
    '_:a <a:b> "\\n\\r\\"\\\\" .',
    f'_:a <a:b> "x"^^<{XSD}string> .',
    f'_:a <a:b> "a longer string"^^<{XSD}string> .',
    *(f'_:a <a:b> "{x}"^^<{XSD}integer> .' for x in ("1", "-12", "01", "", "x")),
    *(f'_:a <a:b> "{x}"^^<{XSD}double> .' for x in ("1.5", "1.5E3", "1e5", "NaN", "\\n")),
    *(f'_:a <a:b> "{x}"^^<{XSD}dateTime> .' for x in ("2024-05-01T00:00:00Z", "2024-05-01")),
    f'_:a <a:b> "true"^^<{XSD}boolean> .',
    '_:a <a:b> "x"^^<a:other> .',
]
SLOW = [
    '_:a <a:b> "\\u00e9\\U0001F600\\t\\b\\f\\\'" .',
    "<a:\\u00e9> <a:b> <a:c> .",
    '<a:b> <a:b> <<( _:a <a:b> <<( <a:a> <a:b> "x\\n\\u0009" )>> )>> .',
    "_:a.b <a:b> _:é .",
    "_:a <a:b> _:b.",
    '_:a<a:b>"x"@en.',
    '_:a <a:b> "x"@x-private .',
    '_:a <a:b> "x"@en--ltr .',
    '_:a <a:b> "x" @en .',
    '_:a <a:b> "x"^^ <a:b> .',
    "<http://user@[::1]:80/> <a:b> <a:c> .",
    "<a:😀> <a:b> <a:\uf900> .",
    '_:a <a:b> "x"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#HTML> .',
]
INVALID = [
    "foo",
    "_:a <a:b> .",
    '_:a <a:b> "x"',
    '_:a <a:b> "x" . .',
    '_:a <a:b> "x" . _:a <a:b> "y" .',
    '_:a <a:b> "x',
    '_:a <a:b> "x\\',
    '_:a <a:b> "\\x" .',
    '_:a <a:b> "\\uD800" .',
    '"x" <a:b> "x" .',
    "_:a _:b <a:c> .",
    '_:a <a:b> "x" "g" .',
    "<a> <a:b> <a:c> .",
    "<a:b c> <a:b> <a:c> .",
    "<a:%zz> <a:b> <a:c> .",
    "<a:b##> <a:b> <a:c> .",
    "<a:{b}> <a:b> <a:c> .",
    "<a:\x80> <a:b> <a:c> .",
    "<http://a:port/> <a:b> <a:c> .",
    "<http://[::z]/> <a:b> <a:c> .",
    "<1a:b> <a:b> <a:c> .",
    '_:a <a:b> "x"@e .',
    '_:a <a:b> "x"@toolonglanguage .',
    *(f'_:a <a:b> "x"@es-{region} .' for region in (".19", "4.9", "41.", "41", "", "a1", "4é")),
    '_:a <a:b> "x"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString> .',
    "_:-a <a:b> <a:c> .",
    "_: <a:b> <a:c> .",
    "\ufeff_:a <a:b> <a:c> .",
    "_:a\x0b<a:b> <a:c> .",
    "<<( _:a <a:b> <a:c> )>> <a:b> <a:c> .",
]
INVALID_BYTES = [
    b'_:a <a:b> "\xff" .',
    b'_:a <a:b> "\xed\xa0\x80" .',
    b'_:a <a:b> "\xc0\x80" .',
    b'_:a <a:b> "\xe0\x80\x80" .',
    b'_:a <a:b> "\xf4\x90\x80\x80" .',
    b'_:a <a:b> "\xf0\x80\x80\x80" .',
    b'_:a <a:b> "\xc3" .',
    b'_:a <a:b> "\xe2\x82" .',
    b"<a:\xc3> <a:b> <a:c> .",
    b"<a:\xe2\x82\x28> <a:b> <a:c> .",
]


@pytest.mark.parametrize("line", FAST)
def test_fast_line(line: str) -> None:
    assert len(check(line.encode())) == 1
    assert not is_slow(line.encode())


@pytest.mark.parametrize("line", SLOW)
def test_slow_line(line: str) -> None:
    assert len(check(line.encode())) == 1
    assert is_slow(line.encode())


@pytest.mark.parametrize("line", [line.encode() for line in INVALID] + INVALID_BYTES)
def test_invalid_line(line: bytes) -> None:
    columns = check(b"<a:b> <a:b> <a:b> .\n" + line + b"\n<a:b> <a:b> <a:b> .")
    assert columns.line.tolist() == [1, 3]


def test_reject_says_where_and_why() -> None:
    data = b"\n_:a <a:b> <a:c d> .\n" + b"x" * 1000
    columns = read(data, Dictionary(), source="test.nt", first_line=11)
    first, second = columns.rejects
    assert (first.source, first.line, first.record) == ("test.nt", 12, "_:a <a:b> <a:c d> .")
    assert first.reason == "columns 11 and 18: Invalid IRI code point ' '"
    assert second.line == 13 and len(second.record) == 200


# ---------------------------------------------------------------------------- whole texts


@pytest.mark.parametrize("data", [b"", b"\n", b"# only this", b"\r\r\n\n  \t\n#\xff\n"])
def test_nothing_in_it(data: bytes) -> None:
    columns = check(data)
    assert len(columns) == 0 and not columns.rejects and columns.s.dtype == np.int64


def test_line_ends() -> None:
    line = b"_:a <a:b> <a:c> ."
    columns = check(b"\r\n".join([line] * 2) + b"\n" + b"\r".join([line] * 2) + b" \r" + line)
    assert columns.line.tolist() == [1, 2, 3, 4, 5]


def test_graphs_only_in_quads() -> None:
    data = b"_:a <a:b> <a:c> _:g .\n_:a <a:b> <a:c> .\n"
    assert len(check(data)) == 2
    assert check(data, quads=False).line.tolist() == [2]


def test_times() -> None:
    data = (
        b"1264982552000\t<a:b> <a:b> <a:c> .\r\n# comment\n\n"
        b'-5\t_:a <a:b> "\\u0041" <a:g> .\n'
        b"7 <a:b> <a:b> <a:c> .\n<a:b> <a:b> <a:c> .\n1.5\t<a:b> <a:b> <a:c> .\n1\t\n"
        b"9999999999999999999\t<a:b> <a:b> <a:c> .\n0\t<a:b> <a:b> .\n8\t\t<a:b> <a:b> <a:c> ."
    )
    columns = read(data, Dictionary(), timed=True)
    assert columns.t is not None
    assert columns.t.tolist() == [1264982552000, -5, 8]
    assert columns.line.tolist() == [1, 4, 11]
    assert [reject.line for reject in columns.rejects] == [5, 6, 7, 8, 9, 10]
    assert all("milliseconds" in reject.reason for reject in columns.rejects[:5])
    assert "object" in columns.rejects[5].reason
    assert read(b"", Dictionary()).t is None


@pytest.mark.parametrize("block", [1, 7, 64, 1000])
def test_blocks_make_no_difference(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = "\n".join(FAST + SLOW + INVALID).encode() + b"\r\n" + b"\r".join([FAST[0].encode()] * 3)
    whole = read(data, Dictionary())
    monkeypatch.setattr(ntriples, "_BLOCK", block)
    parts = read(data, Dictionary())
    assert parts.rejects == whole.rejects
    for name in ("s", "p", "o", "g", "line"):
        assert getattr(parts, name).tolist() == getattr(whole, name).tolist()


def test_dictionary_grows_during_the_read() -> None:
    lines = [f'<a:{i}> <a:p> "{i} and so on"@en .\n' for i in range(5000)]
    dictionary = Dictionary()
    columns = read("".join(lines).encode(), dictionary)
    assert len(dictionary) == 10_001
    assert [term.value for term in dictionary.terms(columns.s)] == [f"a:{i}" for i in range(5000)]
    read("".join(lines).encode(), dictionary)
    assert len(dictionary) == 10_001


def test_rejected_lines_leave_no_terms() -> None:
    dictionary = Dictionary()
    read(b'<a:new> <a:new2> <a:new3> <a b> .\n<a:new> <a:new2> "\\u" .\n', dictionary)
    assert len(dictionary) == 0


def test_the_seed_is_the_dictionary_s() -> None:
    dictionary = Dictionary(seed=7)
    columns = read(b'<a:b> <a:b> "\\u0041 long string" .\n', dictionary)
    assert columns.s.tolist() == [ids.hash_text(b"<a:b>", 7)]
    assert columns.o.tolist() == [ids.hash_text(b'"A long string"', 7)]
    assert str(dictionary.term(int(columns.o[0]))) == '"A long string"'


def test_any_buffer_will_do() -> None:
    data = b"_:a <a:b> <a:c> .\n"
    for buffer in (bytearray(data), memoryview(data)):
        assert len(read(buffer, Dictionary())) == 1


# ---------------------------------------------------------------------------- random texts

characters = st.one_of(
    st.sampled_from(list("ab \t0'\x01\x7f\u0085é\u2028\ud7ff\ufffe\U0001f600")),
    st.sampled_from(["\\n", "\\r", '\\"', "\\\\", "\\t", "\\u00e9", "\\U0001F600", "\\u0000", "\\'"]),
)
mistakes = st.sampled_from(["\\x", "\\uD800", "\\u12", '"', "\r", "\\"])
values = st.lists(st.one_of(characters, characters, characters, mistakes), max_size=18).map("".join)
good_values = st.lists(characters, max_size=18).map("".join)
lexical = st.one_of(
    st.sampled_from(
        [
            "0",
            "1",
            "-1",
            "01",
            "+1",
            "-0",
            "1.5",
            "1.50",
            "-0.0",
            "1.5E3",
            "1e3",
            "1.0E-3",
            "NaN",
            "true",
            "false",
            "144115188075855872",
        ]
    ),
    st.sampled_from(["2024-05-01T10:20:30Z", "2024-05-01T10:20:30.25+05:45", "2024-02-30T00:00:00", ""]),
    good_values,
)
iris = st.one_of(
    st.sampled_from(
        ["<a:b>", "<http://example.org/x>", "<https://e.x:80/?a=b#c>", "<urn:a:b>", "<http://é/>"]
    ),
    st.sampled_from(
        ["<a:%41>", "<a:\\u00e9>", "<a:snø>", "<a:\ue000>", "<a:?\ue000>", "<http://u@h/>", "<http:>"]
    ),
    st.sampled_from(
        ["<a>", "<>", "<a:b c>", "<a:%4>", "<a:^>", "<a:#b#c>", "<a:[>", "<http://a:b/>", "<a:\x7f>"]
    ),
    st.text("ab:/?#%4@[]{}\\|^`\"<>é. -_~!$&'()*+,;=", max_size=12).map(lambda t: f"<a:{t}>"),
    st.text("ab:/?#%4@[].-", max_size=8).map(lambda t: f"<http://{t}>"),
)
good_iris = st.sampled_from(["<a:b>", "<http://example.org/x>", "<urn:a:b>", "<a:snø>", "<a:\\u00e9>"])
blanks = st.one_of(
    st.sampled_from(["_:a", "_:b1", "_:A-b_c"]), st.text("ab0.-_é·:", max_size=4).map(lambda t: f"_:{t}")
)
tags = st.one_of(
    st.sampled_from(
        [
            "en",
            "EN",
            "en-US",
            "zh-Hant-TW",
            "es-419",
            "x-a",
            "i-klingon",
            "de-1901",
            "en--ltr",
            "en--LTR",
            "e",
            "enn",
            "abcd",
        ]
    ),
    st.text("aB1-", max_size=10),
)
datatypes = st.one_of(
    st.sampled_from(
        ["integer", "decimal", "double", "float", "dateTime", "boolean", "string", "int", "langString"]
    ).map(lambda name: f"<{XSD}{name}>"),
    st.sampled_from(["<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>", "<a:b>"]),
)
literals = st.one_of(
    values.map(lambda v: f'"{v}"'),
    st.builds('"{}"@{}'.format, good_values, tags),
    st.builds('"{}"^^{}'.format, lexical, datatypes),
)
triple_terms = st.builds(
    "<<( {} {} {} )>>".format, st.one_of(good_iris, blanks), good_iris, st.one_of(literals, iris)
)
objects = st.one_of(literals, literals, literals, good_iris, iris, blanks, triple_terms)
gaps = st.sampled_from([" ", " ", " ", "\t", "", "  ", "\x0b"])
nodes = st.one_of(good_iris, good_iris, iris, blanks)
ends = st.sampled_from([".", ".", ".", ".", " . ", ". # c é", "..", "", ". x"])
triples = st.tuples(gaps, nodes, gaps, st.one_of(good_iris, good_iris, nodes), gaps, objects, gaps, ends).map(
    "".join
)
quads = st.tuples(triples.map(lambda t: t.rstrip(". ")), gaps, nodes, gaps, ends).map("".join)
lines = st.one_of(
    triples, triples, quads, st.sampled_from(["", "# comment", "  ", "foo", "."]), st.text(max_size=10)
)
texts = st.lists(st.tuples(lines, st.sampled_from(["\n", "\n", "\r\n", "\r"])), max_size=6).map(
    lambda pairs: "".join(a + b for a, b in pairs)
)


@settings(deadline=None, max_examples=400)
@given(texts, st.booleans(), st.booleans())
def test_random_texts(text: str, whole: bool, quads: bool) -> None:
    data = text.encode(errors="replace")
    check(data if whole else data.rstrip(), quads)


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(FAST + SLOW), st.data())
def test_random_damage(line: str, data: st.DataObject) -> None:
    """A good line with a byte changed, left out or put in is still read as pyoxigraph reads it."""
    raw = bytearray(line.encode())
    at = data.draw(st.integers(0, len(raw) - 1))
    byte = data.draw(st.sampled_from(list(b'\x00\t\r\n "#%.-0:<>@E[\\]^_az{\x7f\x80\xbf\xc2\xe2\xf0\xff')))
    change = data.draw(st.sampled_from(["replace", "insert", "delete"]))
    raw[at : at + (change != "insert")] = b"" if change == "delete" else bytes([byte])
    check(bytes(raw))


@pytest.mark.parametrize("name", ["gps", "post"])
def test_lsbench_streams(name: str) -> None:
    path = DATA / "lsbench" / f"{name}.tsnt.gz"
    if not path.exists():
        pytest.skip(f"no {path}; set KELDA_DATA to where the LSBench streams are")
    with gzip.open(path) as file:
        data = b"".join(line for line, _ in zip(file, range(3000), strict=False))
    columns = read(data, Dictionary(), timed=True)
    rows, numbers, _ = by_pyoxigraph(b"\n".join(line.partition(b"\t")[2] for line in data.splitlines()))
    assert (
        list(zip(columns.s.tolist(), columns.p.tolist(), columns.o.tolist(), columns.g.tolist(), strict=True))
        == rows
    )
    assert columns.line.tolist() == numbers and not columns.rejects
