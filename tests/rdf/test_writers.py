"""RDF out: what is written can be read back."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, RdfFormat, Triple, parse

from kelda.errors import UsageError
from kelda.rdf.event import Event
from kelda.rdf.framing import read_events
from kelda.rdf.times import FIRST_MS, LAST_MS
from kelda.rdf.writers import WRITE_FORMATS, write_messages, write_rdf, write_tsnt

PROV_TIME = "http://www.w3.org/ns/prov#generatedAtTime"

iris = st.sampled_from([NamedNode("http://ex/a"), NamedNode("http://ex/b"), NamedNode("http://ex/é")])
texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8) | st.sampled_from(
    ["MESSAGE", '"\nMESSAGE\n"""', "\t\r\n\\", "\u0085\u2028", "'''"]
)
literals = (
    texts.map(Literal) | texts.map(lambda text: Literal(text, language="en")) | st.integers().map(Literal)
)
quads = st.builds(Quad, iris, iris, iris | literals, st.just(DefaultGraph()) | iris)
events = st.builds(Event, st.integers(FIRST_MS, LAST_MS), st.lists(quads, max_size=4).map(tuple))


def read_back(data: bytes, format: str, **options) -> list[Event]:
    return list(read_events(data, format=format, on_reject=pytest.fail, **options))


@settings(max_examples=60, deadline=None)
@given(st.lists(events, max_size=5))
def test_messages_come_back_as_they_were(sent):
    out = io.BytesIO()
    assert write_messages(sent, out) == len(sent)
    assert [event.quads for event in read_back(out.getvalue(), "messages")] == [event.quads for event in sent]


@settings(max_examples=60, deadline=None)
@given(st.lists(events, max_size=5))
def test_tsnt_lines_come_back_as_they_were(sent):
    out = io.BytesIO()
    write_tsnt(sent, out)
    expected = [Event(event.time, (quad,)) for event in sent for quad in event.quads]
    assert read_back(out.getvalue(), "tsnt") == expected
    assert read_back(out.getvalue(), "nquads") == expected


def test_messages_can_carry_the_time():
    blank = Quad(BlankNode("event0"), NamedNode("a:p"), Literal("x"))
    told = Quad(NamedNode("a:s"), NamedNode(PROV_TIME), Literal("5"))
    out = io.BytesIO()
    write_messages(
        [Event(1500, (blank,)), Event(7, (told,)), Event(None, ()), Event(9, ())],
        out,
        time_predicate=PROV_TIME,
    )
    back = read_back(out.getvalue(), "messages")
    assert [event.time for event in back] == [1500, 5, None, 9]
    assert [len(event.quads) for event in back] == [2, 1, 0, 1]
    assert back[0].quads[0].subject != back[0].quads[1].subject


def test_tsnt_needs_times():
    with pytest.raises(UsageError, match="without time"):
        write_tsnt([Event(None, ())], io.BytesIO())


@pytest.mark.parametrize("format", list(WRITE_FORMATS))
def test_rdf_comes_back_as_it_was(format):
    given = [
        Quad(NamedNode("http://ex/a"), NamedNode("http://ex/p"), Literal('x "y"\n')),
        Quad(
            NamedNode("http://ex/a"),
            NamedNode("http://ex/p"),
            Triple(BlankNode("b"), NamedNode("http://ex/p"), Literal("z", language="en")),
        ),
    ]
    text = write_rdf(given, format, prefixes={"ex": "http://ex/"})
    assert list(parse(text, WRITE_FORMATS[format])) == given
    assert write_rdf([quad.triple for quad in given], format, prefixes={"ex": "http://ex/"}) == text
    assert (b"ex:a" in text) == (format in ("turtle", "trig"))
    named = [Quad(NamedNode("a:s"), NamedNode("a:p"), Literal("o"), NamedNode("a:g"))]
    if WRITE_FORMATS[format] in (RdfFormat.N_QUADS, RdfFormat.TRIG):
        assert list(parse(write_rdf(named, format), WRITE_FORMATS[format])) == named
    else:
        with pytest.raises(UsageError, match="write nquads or trig"):
            write_rdf(named, format)


def test_unknown_format():
    with pytest.raises(UsageError, match="there are: ntriples"):
        write_rdf([], "word")
