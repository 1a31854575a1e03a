"""Streams as they should not be written: bytes that are nearly right, in each format."""

from __future__ import annotations

from hypothesis import strategies as st

Bytes = st.SearchStrategy[bytes]
BOM = b"\xef\xbb\xbf"
TIME = b"http://www.w3.org/ns/prov#generatedAtTime"
P = b"<http://ex/p>"

ENDS = st.sampled_from([b"\n"] * 6 + [b"\r\n", b"\r\n", b"\r", b"\n\n", b"\r\r\n", b" \t\n", b"\n\r\n", b""])
BLANK = st.sampled_from(
    [b"", b" ", b"\t", b"  \t ", b"\r", b"\x0b", b"\x0c", b"\x00", BOM, b"#", b"# so", b"# \xff\r?"]
)
ODD = [
    b"\x00",
    b"\t",
    b"\r",
    b"\n",
    b" ",
    b'"',
    b"#",
    b"\\",
    b".",
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"<",
    BOM,
    b"5\t",
    b"'",
]


def joined(*parts: Bytes) -> Bytes:
    return st.tuples(*parts).map(b"".join)


def lines(line: Bytes) -> Bytes:
    """Some lines, with all kinds of ends and some with nothing on them."""
    return st.lists(joined(st.one_of(line, line, line, line, BLANK), ENDS), max_size=9).map(b"".join)


TERMS = st.sampled_from(
    [b"<http://ex/a>", b"<http://ex/b>", b"_:b", b"<http://ex/\xc3\xa9>", b"<http://ex/a b>", b"<rel>"]
)
PREDICATES = st.sampled_from([P, P, P, b"<http://ex/q>", b"<http://ex/q>", b"_:p", b"a"])
OBJECTS = st.sampled_from(
    [
        b"<http://ex/o>",
        b'"x"',
        b'"x"',
        b'"1"^^<http://www.w3.org/2001/XMLSchema#integer>',
        b'"7.50"^^<http://www.w3.org/2001/XMLSchema#decimal>',
        b'"\\u00e9 and so on"@EN-us',
        b'"a\\tb\\"c"',
        b'"\xc3\xa9t\xc3\xa9 \xf0\x9f\x98\x80"',
        b'"\x00"',
        b'"\\ud800"',
        b'"\xed\xa0\x80"',
        b'"\xff"',
        b'"open',
        b'"' + b"long " * 30 + b'"',
        b"_:o",
        b"<<( <http://ex/a> <http://ex/p> _:x )>>",
        b"",
    ]
)
GRAPHS = st.sampled_from([b"", b"", b"", b" <http://ex/g>", b" _:g", b" <bad graph>"])
DOTS = st.sampled_from([b" .", b" .", b" .", b".", b"", b" . .", b" . # so", b" .\r#", b" . \r"])
STATEMENTS = joined(
    TERMS, st.sampled_from([b" ", b" ", b"\t", b"", b"\r"]), PREDICATES, st.just(b" "), OBJECTS, GRAPHS, DOTS
)
EPOCHS = st.sampled_from(
    [
        b"1",
        b"2",
        b"3",
        b"4",
        b"5",
        b"5",
        b"6",
        b"9",
        b"-3",
        b"007",
        b"-0",
        b"+1",
        b"1.5",
        b"",
        b"-",
        b"1e3",
        b"0x5",
        b"\xd9\xa3",
        b"253402300799999",
        b"253402300800000",
        b"-62135596800000",
        b"-62135596800001",
        b"1264982552000000",
        b"9" * 18,
        b"9" * 19,
        b"9" * 5000,
        b"0" * 30 + b"7",
    ]
)
TABS = st.sampled_from([b"\t"] * 8 + [b" ", b"\t\t", b" \t", b"\t ", b"\r\t", b""])
TIMED = joined(
    st.sampled_from([b""] * 8 + [b" ", b"\t", BOM, b"\x00"]),
    EPOCHS,
    TABS,
    st.one_of(STATEMENTS, STATEMENTS, STATEMENTS, BLANK),
)
PLAIN = joined(st.sampled_from([b"", b"", b" "]), STATEMENTS)

WHEN = st.sampled_from(
    [
        b'"1"',
        b'"2"',
        b'"5"',
        b'"1970-01-01T00:00:00.004Z"',
        b'"99999999999999999"',
        b'"0001-01-01T00:00:00+14:00"',
        b'"then"',
    ]
)
TIME_LINE = joined(
    st.sampled_from([b"<http://ex/a>", b"<http://ex/b>", b"<http://ex/g>"]),
    st.just(b" <" + TIME + b"> "),
    WHEN,
    st.just(b" ."),
)

MESSAGE = joined(
    st.sampled_from(
        [
            b"",
            b"",
            b"PREFIX ex: <http://ex/>\n",
            b"@prefix ex: <http://ex2/> .",
            b"BASE <http://b/> ",
            b"VERSION '1.2'\n",
        ]
    ),
    st.sampled_from([b"ex:a ", b"<http://ex/a> ", b"<x> ", b"[] ", b"_:b "]),
    st.sampled_from([b"<http://ex/p> ", b"ex:p ", b"a "]),
    st.sampled_from(
        [
            b"1",
            b'"x"',
            b"'x'",
            b'"""a\nMESSAGE\n"""',
            b'"open',
            b"'''",
            b"<open",
            b'"a\\',
            b"(1 2)",
            b'"\xff"',
            b'"' + b"ab " * 40 + b'"',
        ]
    ),
    st.sampled_from([b"", b"", b" ; <" + TIME + b'> "3"', b" ; <" + TIME + b"> 7"]),
    st.sampled_from([b" .", b".", b"", b" .\r", b" . # MESSAGE"]),
)
DELIMITERS = st.sampled_from(
    [b"\nMESSAGE\n"] * 4
    + [
        b"\n@message .\n",
        b"@message.",
        b" message ",
        b"\nMESSAGE",
        b"MESSAGEX",
        b"@message ;",
        b"\r\nMESSAGE\r\n",
    ]
)

JSON_VALUES = st.sampled_from(
    [
        b"1",
        b"7.50",
        b'"x"',
        b'"\\ud800"',
        b'"\\ud83d\\ude00"',
        b'"\\\\ud800"',
        b"[1, 2]",
        b'[{"b": 1}, {"b": [2]}]',
        b"{}",
        b"null",
        b"true",
        b"NaN",
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b'"a b/\xc3\xa9"',
        b'"' + b"long " * 30 + b'"',
        b"[[1]]",
        b"1e999",
        b"5" * 5000,
        b'"\\u0000"',
        b"\t1\r",
    ]
)
JSON_TIMES = st.sampled_from(
    [
        b"1",
        b"2",
        b"3",
        b"5",
        b'"4"',
        b"null",
        b"1e3",
        b"99999999999999999999",
        b"123456789012345678",
        b"[1]",
        b'"x"',
    ]
)
JSON_LINE = joined(
    st.sampled_from([b"", b"", b"", b" ", BOM, b"\x00"]),
    st.just(b'{"t": '),
    JSON_TIMES,
    st.just(b', "v": '),
    JSON_VALUES,
    st.just(b', "w": '),
    JSON_VALUES,
    st.sampled_from([b"}", b"}", b"}", b"}", b"", b"} x", b"}}"]),
)
CONTEXTS = st.sampled_from(
    [
        b'{"@context": {"@vocab": "http://ex/"}}',
        b'{"@context": {"p": "http://ex/p"}}',
        b'{"@context": 5}',
        b'{"@context": {"@vocab": 7}}',
        b'{"@context": "http://nowhere/"}',
        b'{"@context": {"@vocab": "http://ex/"}',
        b'{"@context": null}',
        b'{"@context": {"p": "\\ud800"}}',
        b' {"@context": {"@vocab": "http://ex/"}} ',
    ]
)
DOCUMENT = joined(
    st.sampled_from([b"", b"", b"", BOM, b" "]),
    st.sampled_from(
        [
            b'{"@id": "http://ex/a", ',
            b'{"@id": "rel", ',
            b"{",
            b'[{"@id": "http://ex/b", ',
            b'{"@context": {"p": "http://ex/q"}, ',
        ]
    ),
    st.sampled_from([b'"p": ', b'"http://ex/p": ', b'"nothing": ']),
    JSON_VALUES,
    st.sampled_from(
        [b"", b"", b', "' + TIME + b'": "3"', b', "' + TIME + b'": "then"', b', "' + TIME + b'": 6']
    ),
    st.sampled_from([b"}", b"}", b"}", b"}]", b"", b"\x00}"]),
)

CELLS = st.sampled_from(
    [
        b"1",
        b"2",
        b"3",
        b"x",
        b"a b",
        b"",
        b" ",
        b'"q"',
        b'"a ""b"""',
        b'"two\nlines"',
        b'"open',
        b'mid"dle',
        b'"x"y',
        b"\xff",
        b"\xc3\xa9",
        b"\r",
        b"\x00",
        b"long " * 30,
        b"7,5",
        b'"9\r\n9"',
    ]
)
CSV_TIMES = st.sampled_from(
    [b"1", b"2", b"3", b"5", b"", b"x", b"99999999999999999999", b"123456789012345678", b"1.9"]
)
ROW = joined(CSV_TIMES, st.just(b","), CELLS, st.just(b","), CELLS)
HEADERS = st.sampled_from(
    [b"t,v,w\n"] * 8
    + [
        b"\n\nt,v,w\r\n",
        b'"t","v","w"\n',
        b" t, v , w\n",
        b"t,v\n",
        b"t,v,w",
        b"t,v,w\r",
        b'"t,v\n',
        b"\xff\n",
    ]
)

MAPPING = {
    "time": {"column": "t", "format": "epoch-ms"},
    "triples": [
        ["http://ex/a", "http://ex/p", {"column": "v"}],
        ["http://ex/{w}", "http://ex/q", "_:x"],
    ],
}
TIMELESS = {key: value for key, value in MAPPING.items() if key != "time"}
JSON_MAPPING = {
    **MAPPING,
    "triples": [*MAPPING["triples"], ["http://ex/{v}", "http://ex/r", {"column": "w.b"}]],  # type: ignore[misc]
}

TEXTS: dict[str, tuple[Bytes, dict[str, object] | None]] = {
    "tsnt": (lines(TIMED), None),
    "nquads": (lines(st.one_of(PLAIN, PLAIN, TIME_LINE, TIMED)), None),
    "messages": (
        st.lists(joined(st.one_of(MESSAGE, MESSAGE, MESSAGE, BLANK), DELIMITERS), max_size=7).map(b"".join),
        None,
    ),
    "ndjsonld": (lines(st.one_of(DOCUMENT, DOCUMENT, DOCUMENT, CONTEXTS)), None),
    "csv": (joined(HEADERS, lines(ROW)), MAPPING),
    "json": (lines(JSON_LINE), JSON_MAPPING),
    "json-timeless": (lines(JSON_LINE), TIMELESS),
}


@st.composite
def streams(draw: st.DrawFn, format: str) -> bytes:
    """The bytes of a stream: lines that are odd in themselves, and then some bytes changed."""
    data = draw(TEXTS[format][0])
    if draw(st.integers(0, 5)) == 0:
        data = BOM + data
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        at = draw(st.integers(0, len(data)))
        data = data[:at] + draw(st.sampled_from(ODD)) + data[at + draw(st.integers(0, 1)) :]
    return data.rstrip(b"\n") if draw(st.integers(0, 3)) == 0 else data
