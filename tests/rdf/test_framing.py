"""Streams in: every framing reads what it says, rejects what is broken, and never cares how bytes are cut."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode

from kelda.errors import InputError, UsageError
from kelda.rdf.event import Event, Reject
from kelda.rdf.framing import FORMATS, Chunker, guess_format, read_chunk, read_events, split_records

DATA = Path(os.environ.get("KELDA_DATA", Path(__file__).parents[3] / "shared" / "data"))
EX = "http://example.org/"


def read(data: bytes | str, format: str, **options) -> tuple[list[Event], list[Reject]]:
    rejects: list[Reject] = []
    data = data.encode() if isinstance(data, str) else data
    return list(read_events(data, format=format, on_reject=rejects.append, **options)), rejects


def lines(event: Event) -> list[str]:
    return [str(quad).replace(EX, "") for quad in event.quads]


# ------------------------------------------------------------------------------------ tsnt


def test_tsnt_line_is_an_event_of_one_triple():
    events, rejects = read(
        "# a comment\n\n"
        '10\t<http://example.org/a> <http://example.org/p> "x" .\n'
        "-5\t_:n <http://example.org/p> <http://example.org/b> <http://example.org/g> .\r\n",
        "tsnt",
    )
    assert not rejects
    assert [event.time for event in events] == [10, -5]
    assert lines(events[0]) == ['<a> <p> "x"']
    assert lines(events[1]) == ["_:n <p> <b> <g>"]


def test_tsnt_rejects_broken_lines_and_goes_on():
    good = "1\t<http://example.org/a> <http://example.org/p> <http://example.org/b> .\n"
    events, rejects = read(
        good
        + "nonsense\n"
        + "2\t<http://example.org/a> <http://example.org/p> .\n"
        + "3\t\n"
        + "99999999999999999999\t<a:a> <a:a> <a:a> .\n"
        + "4\t<a:a> <a:a> <a:a> .\r<a:a> <a:a> <a:a> .\n"
        + good,
        "tsnt",
        name="gps",
    )
    assert len(events) == 2
    assert [reject.line for reject in rejects] == [2, 3, 4, 5, 6]
    assert {reject.source for reject in rejects} == {"gps"}
    assert rejects[0].reason == "expected epoch-milliseconds, a TAB and a triple"
    assert rejects[0].record == "nonsense"


def test_a_long_bad_record_is_shown_short():
    _, rejects = read("x" * 1000, "tsnt")
    assert rejects[0].record == "x" * 199 + "…"


def test_strict_is_the_callers_affair():
    def stop(reject: Reject) -> None:
        raise InputError(reject.reason)

    with pytest.raises(InputError):
        list(read_events(b"nonsense\n", format="tsnt", on_reject=stop))


# ---------------------------------------------------------------------------------- nquads


def test_timed_nquads_are_one_event_a_line():
    events, _ = read(
        "1\t<a:a> <a:p> <a:b> <a:g> .\n1\t<a:a> <a:p> <a:c> <a:g> .\n",
        "nquads",
    )
    assert [(event.time, len(event.quads)) for event in events] == [(1, 1), (1, 1)]


def test_plain_nquads_are_one_event_a_graph_with_the_triples_about_the_graph():
    events, rejects = read(
        '<a:g1> <http://www.w3.org/ns/prov#generatedAtTime> "1970-01-01T00:00:01Z" .\n'
        "<a:s> <a:p> <a:o1> <a:g1> .\n"
        "# still the same graph\n\n"
        '<a:s> <a:p> "a \\" . <a:g9> ." <a:g1> . # a comment\n'
        "<a:s> <a:p> <a:o3> <a:g2> .\n",
        "nquads",
    )
    assert not rejects
    assert [(event.time, len(event.quads)) for event in events] == [(1000, 3), (None, 1)]


def test_plain_triples_are_one_event_a_subject():
    events, _ = read(
        '<a:s> <a:p> 1 .\n<a:s> <a:time> "7" .\n<a:t> <a:p> "x"@en .\n'.replace(" 1 ", ' "1" '),
        "nquads",
    )
    assert [len(event.quads) for event in events] == [2, 1]
    events, rejects = read(
        '<a:s> <a:p> "1" .\n<a:s> <a:time> "7" .\n<a:t> <a:p> "x"@en .\n', "nquads", time_predicate="a:time"
    )
    assert [event.time for event in events] == [7]
    assert rejects[0].line == 3 and "no time" in rejects[0].reason


def test_a_broken_plain_line_spoils_its_event_only():
    events, rejects = read(
        "<a:s> <a:p> <a:o> <a:g1> .\n"
        "<a:s> <a:p> broken <a:g1> .\n"
        "<a:s> <a:p> <a:o> <a:g1> .\n"
        "<a:s> <a:p> <a:o> <a:g2> .\n",
        "nquads",
    )
    assert [lines(event) for event in events] == [["<a:s> <a:p> <a:o> <a:g2>"]]
    assert [(reject.line, reject.record) for reject in rejects] == [(2, "<a:s> <a:p> broken <a:g1> .")]


# -------------------------------------------------------------------------------- messages

V = 'VERSION "1.2-messages"\n'


def message_lines(text: str, **options) -> list[list[str]]:
    events, rejects = read(text, "messages", **options)
    assert not rejects
    return [lines(event) for event in events]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (V, []),
        (V + "<a:s> <a:p> <a:o> .", [1]),
        (V + "<a:s> <a:p> <a:o> .\nMESSAGE\n<a:s> <a:p> <a:o> .\n", [1, 1]),
        ('@version "1.2-messages" .\n@prefix a: <a:> .\na:s a:p a:o .\n@message .\na:s a:p a:o .', [1, 1]),
        (V + "MESSAGE\n<a:s> <a:p> <a:o> .", [0, 1]),
        (V + "<a:s> <a:p> <a:o> .\nMESSAGE\nMESSAGE\n<a:s> <a:p> <a:o> .", [1, 0, 1]),
        (V + "<a:s> <a:p> <a:o> .\nMESSAGE\n", [1]),
        (V + "<a:s> <a:p> <a:o> .\nMESSAGE # and a comment\n# another\nPREFIX a: <a:>\n", [1]),
        (V + "<a:s> <a:p> <a:o> <a:g> .\nMESSAGE\n<a:s> <a:p> <a:o> <a:g> .\n<a:s> <a:p> <a:o> .", [1, 2]),
        (V + "<a:g> { <a:s> <a:p> <a:o>, <a:o2> }\nMESSAGE\n<a:s> <a:p> <a:o> .", [2, 1]),
        ("<a:s> <a:p> 'x'@message .MESSAGE <a:s> <a:p> <a:o> .@message.", [1, 1]),
        (V.replace("\n", "\r\n") + "<a:s> <a:p> <a:o> .\r\nMESSAGE\r\n<a:s> <a:p> <a:o> .\r\n", [1, 1]),
    ],
)
def test_message_delimiters(text, expected):
    assert [len(message) for message in message_lines(text)] == expected


def test_message_word_in_strings_iris_names_and_comments_is_no_delimiter():
    text = (
        V
        + "PREFIX MESSAGE: <http://example.org/> # MESSAGE\n"
        + 'MESSAGE:s <http://example.org/ MESSAGE> "x" .\n'.replace(" MESSAGE>", "MESSAGE>")
        + 'MESSAGE:s MESSAGE:p """\nMESSAGE\n"quoted" \\""" MESSAGE\n""", \'MESSAGE\', '
        + '"a \\" MESSAGE "@message, "x"^^MESSAGE:MESSAGE, MESSAGE:o.MESSAGE, MESSAGE:x\\-MESSAGE .'
    )
    assert [len(message) for message in message_lines(text)] == [7]


def test_prefixes_and_base_carry_over():
    text = (
        V
        + "PREFIX ex: <http://example.org/> BASE <http://example.org/dir/> "
        + "PREFIX rel: <sub/>\nex:a ex:p 1 .\n"
        + "MESSAGE ex:b ex:p <x> . MESSAGE PREFIX ex: <http://example.org/two/> ex:c ex:p rel:y .\n"
        + "MESSAGE ex:d ex:p 1 ."
    )
    one = '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
    assert message_lines(text) == [
        [f"<a> <p> {one}"],
        ["<b> <p> <dir/x>"],
        ["<two/c> <two/p> <dir/sub/y>"],
        [f"<two/d> <two/p> {one}"],
    ]


def test_blank_nodes_belong_to_their_message_and_are_labelled_alike_each_time():
    text = V + "_:b <a:p> [ <a:q> _:b ] .\nMESSAGE\n_:b <a:p> ( 1 ) ."
    first, _ = read(text, "messages", name="s")
    again, _ = read(text, "messages", name="s")
    other, _ = read(text, "messages", name="t")
    assert first == again

    def blanks(events):
        return [
            {
                term
                for quad in event.quads
                for term in (quad.subject, quad.object)
                if isinstance(term, BlankNode)
            }
            for event in events
        ]

    here, there = blanks(first), blanks(other)
    assert [len(labels) for labels in here] == [2, 2]
    assert not here[0] & here[1]
    assert not (here[0] | here[1]) & (there[0] | there[1])


def test_a_broken_message_is_rejected_whole():
    text = (
        V
        + "PREFIX ex: <http://example.org/>\nex:a ex:p ex:b .\nMESSAGE\n\n"
        + 'ex:a ex:p ex:b .\nex:a ex:p "unclosed .\nMESSAGE\nex:c ex:p ex:d .\n'
        + "MESSAGE\nex:e ex:p"
    )
    events, rejects = read(text, "messages")
    assert [lines(event) for event in events] == [["<a> <p> <b>"], ["<c> <p> <d>"]]
    assert [reject.line for reject in rejects] == [6, 11]
    assert rejects[0].reason.startswith("line 7: ")
    assert rejects[0].record.startswith("ex:a ex:p ex:b .\nex:a")


@pytest.mark.parametrize(
    "text",
    [
        V + "<a:s> <a:p> <a:o> .\n@message <a:invalid>\n",
        V + "<a:g> {\n<a:s> <a:p> <a:o> .\nMESSAGE\n<a:s> <a:p> <a:o> .\n}\n",
        V + "<a:s> <a:p> <a:o> .\n@message",
        V + "MESSAGE . ",
        V + 'MESSAGE PREFIX ex: "x"',
        V + 'MESSAGE <a:s> <a:p> """never closed\nMESSAGE\n',
    ],
)
def test_what_is_not_a_message_log_is_rejected(text):
    events, rejects = read(text, "messages")
    assert rejects
    assert all(not event.quads for event in events)


def test_message_time():
    def times(value: str, **options):
        events, rejects = read(
            V + f"PREFIX sosa: <http://www.w3.org/ns/sosa/> {value}", "messages", **options
        )
        return [event.time for event in events], [reject.reason for reject in rejects]

    stamp = '"1970-01-01T01:00:01.5+01:00"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    assert times(f"<a:s> sosa:resultTime {stamp} .") == ([1500], [])
    assert times("<a:s> sosa:resultTime 1500 .") == ([1500], [])
    assert times("<a:s> <a:when> 7 .", time_predicate="a:when") == ([7], [])
    assert times("<a:s> <a:when> 7, 9, 8 .", time_predicate="a:when") == ([9], [])
    assert times("<a:s> <a:when> 7 .") == ([None], [])
    assert times(f"<a:s> sosa:phenomenonTime [], 3 ; sosa:resultTime {stamp} .") == ([1500], [])
    assert times("MESSAGE", time_predicate="a:when") == ([None], [])
    for bad in ("<a:s> <a:x> 1 .", '<a:s> <a:when> "noon" .', "<a:s> <a:when> <a:t> ."):
        found, reasons = times(bad, time_predicate="a:when")
        assert not found and "time" in reasons[0] and "a:when" in reasons[0]


# -------------------------------------------------------------------------------- ndjsonld


def test_ndjsonld_lines_contexts_and_empty_documents():
    events, rejects = read(
        '{"@id": "a:s", "a:p": {"a:q": 1}}\n'
        '{"@context": {"@vocab": "http://example.org/"}}\n'
        '{"name": "Ann", "sosaTime": 5}\n'
        "{}\n"
        '{"@context": {"label": "http://example.org/l"}, "@id": "http://example.org/x", '
        '"name": "Bob", "label": "B"}\n',
        "ndjsonld",
        time_predicate=None,
    )
    assert not rejects
    assert [len(event.quads) for event in events] == [2, 2, 0, 2]
    assert [quad.predicate.value.removeprefix(EX) for quad in events[3].quads] == ["name", "l"]
    again, _ = read(
        '{"@context": {"@vocab": "http://example.org/"}}\n{"name": "Ann", "sosaTime": 5}\n', "ndjsonld"
    )
    assert again[0].quads[0].subject == BlankNode("r0b0")


def test_ndjsonld_rejects_with_the_reason():
    events, rejects = read(
        '{"@context": "https://schema.org/", "name": "x"}\n'
        '{"@id": "relative", "a:p": 1}\n'
        '{"unknown": 1}\n'
        '{"a:p": \n'
        "5\n"
        '{"a:p": 1}},"@x":{\n'
        '{"a:p": 1}\n',
        "ndjsonld",
    )
    assert len(events) == 1
    assert [reject.line for reject in rejects] == [1, 2, 3, 4, 5, 6]
    for reject, part in zip(
        rejects, ["network", "relative IRI", "@context", "JSON", "object", "JSON"], strict=True
    ):
        assert part in reject.reason


def test_ndjsonld_context_from_the_mapping():
    mapping = {
        "@context": {"@vocab": EX},
        "contexts": {"https://schema.org/": {"@context": {"@vocab": "s:"}}},
    }
    events, rejects = read(
        '{"name": "x"}\n'
        '{"@context": "https://schema.org/", "name": "x"}\n'
        '{"@context": "https://schema.org/"}\n'
        '{"n": 1}\n',
        "ndjsonld",
        mapping=mapping,
    )
    assert not rejects
    assert [event.quads[0].predicate.value for event in events] == [EX + "name", "s:name", "s:n"]
    with pytest.raises(UsageError, match="'triples'"):
        read("", "ndjsonld", mapping={"triples": []})


# ------------------------------------------------------------------- opening and compression


def packed(data: bytes) -> dict[str, bytes]:
    return {
        "": data,
        ".gz": gzip.compress(data[:20]) + gzip.compress(data[20:]),
        ".bz2": bz2.compress(data),
        ".xz": lzma.compress(data),
        ".zst": zstandard.compress(data[:20]) + zstandard.compress(data[20:]),
    }


LINE = b"1\t<a:a> <a:p> <a:b> .\n"


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz", ".zst"])
def test_compression_is_known_by_content(tmp_path, suffix):
    content = packed(LINE * 1000)[suffix]
    path = tmp_path / "s.tsnt"  # no suffix: the name does not matter
    path.write_bytes(content)
    seen: list[int] = []
    events = list(read_events(path, on_reject=pytest.fail, on_bytes=seen.append))
    assert len(events) == 1000
    assert sum(seen) == len(content)
    assert len(list(read_events(io.BytesIO(content), format="tsnt", on_reject=pytest.fail))) == 1000


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_truncated_compressed_data_is_an_error(tmp_path, suffix):
    path = tmp_path / f"s.tsnt{suffix}"
    path.write_bytes(packed(os.urandom(40_000).hex().encode())[suffix][:-100])
    with pytest.raises(InputError, match=r"s\.tsnt"):
        list(read_events(path, on_reject=lambda _: None))


def test_the_callers_file_stays_open():
    source = io.BytesIO(LINE)
    list(read_events(source, format="tsnt", on_reject=pytest.fail))
    assert not source.closed


def test_guess_format():
    for path, format in {
        "a.tsnt": "tsnt",
        "a.nq.gz": "nquads",
        "dir.x/a.NT.ZST": "nquads",
        "a.messages": "messages",
        "a.trig.xz": "messages",
        "a.ndjsonld": "ndjsonld",
        "a.csv.bz2": "csv",
        "a.jsonl": "json",
    }.items():
        assert guess_format(path) == format
    with pytest.raises(UsageError) as failed:
        guess_format("a.docx.gz")
    assert all(name in str(failed.value) for name in FORMATS if name != "ndjson")


def test_what_makes_no_sense_is_refused_at_once(tmp_path):
    def call(source, **options):
        return read_events(source, on_reject=pytest.fail, **options)

    with pytest.raises(UsageError, match="say the format"):
        call(b"")
    with pytest.raises(UsageError, match="unknown stream format 'tsv2'"):
        call(b"", format="tsv2")
    with pytest.raises(UsageError, match="takes no mapping"):
        call(b"", format="tsnt", mapping={})
    with pytest.raises(UsageError, match="needs a mapping"):
        call(b"", format="csv")
    with pytest.raises(InputError, match=r"nowhere\.tsnt"):
        call(tmp_path / "nowhere.tsnt")
    with pytest.raises(UsageError, match="cannot read the mapping"):
        call(b"", format="csv", mapping=tmp_path / "nowhere.yaml")


def test_byte_order_mark_is_passed_over():
    for format in ("tsnt", "nquads", "messages"):
        data = b"\xef\xbb\xbf" + (LINE if format != "messages" else b"<a:a> <a:p> <a:b> .")
        events, rejects = read(data, format)
        assert len(events) == 1 and not rejects


# ------------------------------------------------------------------------- the law of cutting

CSV_MAPPING = {
    "time": {"column": "t", "format": "epoch-ms"},
    "triples": [
        ["urn:{id}", "urn:p", {"column": "v"}],
        ["_:x", "urn:q", {"column": "n", "datatype": "xsd:integer"}],
    ],
}
MAPPINGS = {"csv": CSV_MAPPING, "json": CSV_MAPPING}

PIECES = {
    "tsnt": [
        "1\t<a:a> <a:p> _:b .\n",
        '2\t<a:a> <a:p> "é" <a:g> .\r\n',
        "\n",
        "# c\n",
        "bad\n",
        "3\t<a:a> .\n",
    ],
    "nquads": [
        "<a:s> <a:p> _:b <a:g> .\n",
        "<a:s> <a:p> <a:o> <a:h> .\n",
        '<a:g> <http://www.w3.org/ns/prov#generatedAtTime> "5" .\n',
        "1\t<a:a> <a:p> <a:b> .\n",
        "\n",
        "# c\n",
        "<a:s> <a:p> bad <a:g> .\n",
        '<a:s> <a:p> <<( <a:s> <a:p> "<a:x> ." )>> <a:g> .\n',
    ],
    "messages": [
        V,
        "MESSAGE\n",
        "MESSAGE ",
        "@message .\n",
        "@message\n.",
        "@message ",
        "PREFIX ex: <http://example.org/>\n",
        "@prefix ex: <b/> .\n",
        "BASE <http://example.org/x/>\n",
        "ex:a ex:p [ ex:q _:b ] .\n",
        "<rel> a <a:x\\u0041> .",
        'ex:a ex:p """x\nMESSAGE\n"" """@message .\n',
        "ex:a ex:p 'MESSAGE \\' é' .\n",
        "<a:g> { ex:a ex:p ex:o.MESSAGE }\n",
        "<a:s> <a:p> <a:o> <a:g> .\n",
        "# MESSAGE\n",
        '"',
        "'''",
        '"""',
        "<",
        "\\",
        ". ",
        "\n",
    ],
    "ndjsonld": [
        '{"@context": {"@vocab": "http://example.org/"}}\n',
        '{"@context": {"@vocab": "http://example.org/two/"}}\n',
        '{"name": "é", "knows": {"name": "x"}}\n',
        "{}\n",
        "\n",
        "bad\n",
    ],
    "csv": [
        '1,x,"a ""b""\nc",5\n',
        "2,y,é,6\r\n",
        "3,,,\n",
        "4,z,bad,x\n",
        "\n",
        '5,"open\n',
        '6,a"b,c,7\n',
        "t,id,v,n\n",
    ],
    "json": [
        '{"t": 1, "id": "é", "v": "x", "n": 5}\n',
        '{"t": "2", "id": 7, "n": 5.5}\n',
        "[]\n",
        "\n",
        "{\n",
    ],
}


def in_one_go(data: bytes, format: str):
    return read(data, format, mapping=MAPPINGS.get(format), name="s")


@pytest.mark.parametrize("format", list(PIECES))
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_events_do_not_depend_on_how_the_bytes_are_cut(format, data):
    pieces = data.draw(st.lists(st.sampled_from(PIECES[format]), max_size=10))
    head = "t,id,v,n\n" if format == "csv" else ""
    text = (head + "".join(pieces)).encode()
    text = text[: data.draw(st.integers(0, len(text)))] if data.draw(st.booleans()) and not head else text
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    portions = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]

    chunker = Chunker(format, mapping=MAPPINGS.get(format), max_records=data.draw(st.integers(1, 4)))
    chunks = [chunk for portion in portions for chunk in chunker.feed(portion)] + chunker.finish()
    rejects: list[Reject] = []
    events = [
        event
        for chunk in chunks
        for event in read_chunk(
            chunk, format, mapping=MAPPINGS.get(format), on_reject=rejects.append, name="s"
        )
    ]
    assert (events, rejects) == in_one_go(text, format)
    whole = Chunker(format, mapping=MAPPINGS.get(format), max_records=10**9)
    assert sum(map(len, (c.data for c in chunks))) == sum(
        len(c.data) for c in whole.feed(text) + whole.finish()
    )


@pytest.mark.parametrize("format", list(PIECES))
def test_byte_by_byte(format):
    text = (("t,id,v,n\n" if format == "csv" else "") + "".join(PIECES[format] * 2)).encode()
    chunker = Chunker(format, mapping=MAPPINGS.get(format))
    chunks = [chunk for byte in text for chunk in chunker.feed(bytes([byte]))] + chunker.finish()
    rejects: list[Reject] = []
    events = [
        event
        for chunk in chunks
        for event in read_chunk(
            chunk, format, mapping=MAPPINGS.get(format), on_reject=rejects.append, name="s"
        )
    ]
    assert (events, rejects) == in_one_go(text, format)


def test_chunks_are_bounded_and_numbered():
    chunker = Chunker("messages", max_records=2)
    chunks = chunker.feed(
        (V + "PREFIX ex: <http://example.org/>\n" + "ex:a a ex:b .\nMESSAGE\n" * 5).encode()
    )
    assert [(chunk.first_line, chunk.ordinal) for chunk in chunks] == [(1, 0), (6, 2), (10, 4)]
    assert chunks[1].context == b"PREFIX ex: <http://example.org/> "
    assert chunker.finish() == []


def test_split_records():
    assert split_records("tsnt", b"1\tx\n2\ty") == 4
    assert split_records("tsnt", b"1\tx\n2\ty", at_end=True) == 7
    assert split_records("messages", b"<a:a> a <a:b> .\nMESSAGE\n<a:a>") == 23
    assert split_records("nquads", b"<a:a> <a:p> <a:b> .\n<a:a> <a:p> <a:c> .\n") == 0
    assert split_records("csv", b'a,b\n1,"x\n', mapping={"triples": [["urn:{a}", "urn:p", "urn:b"]]}) == 4


@pytest.mark.skipif(not (DATA / "lsbench").is_dir(), reason=f"no LSBench data at {DATA}")
def test_lsbench_streams():
    rejects: list[Reject] = []
    events = list(read_events(DATA / "lsbench" / "gps.tsnt.gz", on_reject=rejects.append))
    assert not rejects and len(events) > 1000
    assert events[0].time == 1264982552000
    assert isinstance(events[0].quads[0].subject, NamedNode)
    assert any(isinstance(event.quads[0].object, Literal) for event in events)
