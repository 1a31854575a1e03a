"""Kafka without a broker: addresses, settings, offsets, what messages say."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as settings_of_tests
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode

from kelda.engine.answer import Answer
from kelda.errors import UsageError
from kelda.io.formats import Shape
from kelda.io.job import StreamSource
from kelda.io.jobfile import read_job
from kelda.io.kafka.answers import Out, Writer, kafka_output
from kelda.io.kafka.events import events_in, runs
from kelda.io.kafka.place import KafkaPlace
from kelda.io.kafka.settings import settings_in
from kelda.io.kafka.spot import KafkaSpot, Message
from kelda.io.sinks.outbox import Outbox
from kelda.io.sources import check_source
from kelda.io.sources.address import absolute, read_address
from kelda.io.sources.kafka import KafkaReader, kafka_options
from kelda.io.sources.reader import Piece
from kelda.lang.algebra import Form
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.event import Event, Reject
from kelda.rdf.skim import Skimmer
from kelda.shards.ingest import read_messages
from kelda.shards.routing import Routing

S = "http://ex/s"
PLACE = KafkaPlace("127.0.0.1:9092", "rooms")


# ------------------------------------------------------------------------------ addresses


def test_options() -> None:
    options = kafka_options(
        read_address("kafka://a:1,b:2/rooms?start=1970-01-01T00:00:01Z&group=g&time=broker")
    )
    assert options.place == KafkaPlace("a:1,b:2", "rooms")
    assert (options.start, options.group, options.by_broker) == (1000, "g", True)
    assert (options.isolation, options.on_gap, options.bounded) == ("read_committed", "fail", False)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("kafka://rooms", "write kafka://host:port/topic"),
        ("kafka://h:9092/", "write kafka://host:port/topic"),
        ("kafka://h:9092/a b", "write kafka://host:port/topic"),
        ("kafka://h:9092/t?start=soon", "no value for the option 'start'"),
        ("kafka://h:9092/t?on_gap=ignore", "'on_gap' is fail or skip, not 'ignore'"),
        ("kafka://h:9092/t?isolation=none", "read_committed or read_uncommitted"),
        ("kafka://h:9092/t?colour=red", "no option 'colour'; it takes: start, end"),
    ],
)
def test_addresses_that_are_refused(address: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        check_source(StreamSource(S, address, format="tsnt"))


def test_a_format_is_needed() -> None:
    with pytest.raises(UsageError, match="say the format of the stream"):
        check_source(StreamSource(S, "kafka://h:9092/t"))


def test_the_client_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(UsageError, match=r"pip install 'kelda\[kafka\]'"):
        check_source(StreamSource(S, "kafka://h:9092/t", format="tsnt"))


def test_one_time_only() -> None:
    with pytest.raises(UsageError, match="say one"):
        check_source(StreamSource(S, "kafka://h:9092/t?time=broker", format="messages", time="http://ex/at"))


def test_settings_beside_the_job() -> None:
    assert (
        absolute("kafka://h:1/t?settings=k.toml&x=1", Path("/jobs"))
        == "kafka://h:1/t?settings=/jobs/k.toml&x=1"
    )


# ------------------------------------------------------------------------------ settings


def settings(folder: Path, text: str) -> dict[str, Any]:
    (folder / "k.toml").write_text("[kafka]\n" + text)
    return settings_in(folder / "k.toml")


def test_secrets_are_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("K_PASSWORD", "s3cret")
    (tmp_path / "key").write_text("k3y\n")
    text = """
security.protocol = "SASL_SSL"
"sasl.username" = "ann"
sasl.password = {env = "K_PASSWORD"}
ssl.key.password = {file = "key"}
socket.timeout.ms = 1000
"""
    assert settings(tmp_path, text) == {
        "security.protocol": "SASL_SSL",
        "sasl.username": "ann",
        "sasl.password": "s3cret",
        "ssl.key.password": "k3y",
        "socket.timeout.ms": 1000,
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('sasl.password = "x"', "'sasl.password' is a secret"),
        ('sasl.password = {env = "NOT_SET_HERE"}', "NOT_SET_HERE, which is not set"),
        ('sasl.password = {file = "nowhere"}', "cannot read 'sasl.password'"),
        ('group.id = "x"', "'group.id' is not to be set"),
        ("sasl.username = [1]", "is a text, a number or a boolean"),
    ],
)
def test_settings_that_are_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        settings(tmp_path, text)


# ------------------------------------------------------------------------------ offsets


class Topic(KafkaReader):
    """A reader of a topic whose offsets are known without a broker."""

    ends: dict[int, int]

    def _look(self, at: Any) -> None:
        self._partitions, self._ends = sorted(self.ends), dict(self.ends)

    def _offsets(self, partitions: list[int], what: str | int) -> dict[int, int]:
        return {p: 0 if what == "earliest" else self.ends[p] for p in partitions}


def topic(ends: dict[int, int], options: str = "", **source: Any) -> Topic:
    address = f"kafka://127.0.0.1:9092/rooms{options}"
    how = StreamSource(S, address, format="tsnt", **source)
    reader = Topic(
        kafka_options(read_address(address)), how, 0, format="tsnt", piece_records=4, now=lambda: NOW[0]
    )
    reader.ends = ends
    return reader


NOW = [0.0]


def said(reader: Topic, begin: Any, end: Any) -> list[tuple[Any, ...]]:
    found = []
    for piece in reader.pieces(begin, end):
        spot = piece.chunk
        span = (spot.begin, spot.end) if isinstance(spot, KafkaSpot) else "idle" if piece.idle else "opens"
        found.append((piece.number, piece.lane, "ends" if piece.ends else span))
    return found


def test_offsets_and_pieces() -> None:
    reader = topic({0: 10, 1: 0})
    begin = reader.start()
    end = reader.latest(begin, 6)
    assert said(reader, begin, end) == [(0, 0, "opens"), (1, 0, (0, 4)), (5, 0, (4, 6)), (7, 1, "opens")]
    assert (end["pieces"], end["records"]) == (8, 6)
    reader.ends = {0: 10, 1: 3, 2: 5}  # one was added
    last = reader.latest(end)
    assert said(reader, end, last) == [
        (8, 0, (6, 10)),
        (12, 1, (0, 3)),
        (15, 2, "opens"),
        (16, 2, (0, 4)),
        (20, 2, (4, 5)),
    ]
    assert reader.latest(last) == last
    assert last["pieces"] == 21
    # In one go, with other pieces: the same offsets.
    spans = [(lane, span) for _, lane, span in said(topic({}), begin, last) if isinstance(span, tuple)]
    assert spans == [(0, (0, 4)), (0, (4, 8)), (0, (8, 10)), (1, (0, 3)), (2, (0, 4)), (2, (4, 5))]


def test_latest_is_fixed_when_it_is_first_asked() -> None:
    reader = topic({0: 10}, "?start=latest")
    end = reader.latest(reader.start())
    assert end["partitions"] == {"0": [10, 10, False]}
    reader.ends = {0: 12}
    assert said(reader, reader.start(), reader.latest(end)) == [(0, 0, "opens"), (1, 0, (10, 12))]


def test_silence_is_that_of_a_partition() -> None:
    NOW[0] = 0.0
    reader = topic({0: 3, 1: 0}, idle_ms=1000)
    first = reader.latest(reader.start())
    NOW[0], reader.ends = 1.5, {0: 5, 1: 0}
    second = reader.latest(first)
    assert said(reader, first, second) == [(5, 0, (3, 5)), (7, 1, "idle")]
    reader.ends = {0: 5, 1: 1}
    third = reader.latest(second)
    assert said(reader, second, third) == [(8, 1, (0, 1))]
    NOW[0] = 4.0
    fourth = reader.latest(third)
    assert said(reader, third, fourth) == [(9, 0, "idle"), (10, 1, "idle")]
    # Read in one batch: who spoke in it and fell silent says so behind what it said.
    assert [lane for _, lane, what in said(reader, first, fourth) if what == "idle"] == [0, 1]


def test_a_bounded_stream_ends() -> None:
    reader = topic({0: 3, 1: 0}, "?end=latest")
    end = reader.latest(reader.start())
    reader.ends = {0: 9, 1: 9}
    assert said(reader, reader.start(), end)[-1] == (6, None, "ends")
    assert end["pieces"] == 7
    assert reader.finished(end) and reader.latest(end) == end


def test_who_lags_behind_gets_more() -> None:
    reader = topic({0: 1000, 1: 10, 2: 0})
    end = reader.latest(reader.start(), 101)
    assert end["records"] == 101
    assert end["partitions"]["0"][1] == 100 and end["partitions"]["1"][1] == 1


# ------------------------------------------------------------------------------ messages


class Known(KafkaSpot):
    """A spot whose messages are known."""

    __slots__ = ()
    said: ClassVar[list[Message]] = []

    def messages(self) -> Iterator[Message]:
        yield from self.said


def known(by_broker: bool = False) -> Known:
    how = {"isolation": "read_committed", "on_gap": "fail", "by_broker": by_broker}
    return Known(0, 5, b"", b"", place=PLACE, partition=2, begin=5, end=99, **how)  # type: ignore[arg-type]


def read(format: str, *values: bytes, kind: str | None = None, time: int | None = 77, **how: Any) -> Any:
    by_broker = how.pop("by_broker", False)
    source = StreamSource(S, "kafka://h:1/rooms", format=format, **how)
    spot = known(by_broker)
    Known.said = [Message(5 + 2 * i, value, time, kind) for i, value in enumerate(values)]
    rejects: list[Reject] = []
    events: list[Event] = []
    for run in runs(spot, format, rejects):
        events += events_in(spot, run, source, format, rejects)
    return events, rejects


NT = b"<http://ex/a> <http://ex/p> <http://ex/b> ."


def test_a_message_is_an_event() -> None:
    two = NT + b"\n<http://ex/c> <http://ex/p> _:x .\n"
    events, rejects = read("nquads", two, NT, b"", b"1500\t" + NT)
    assert not rejects
    assert [(event.time, len(event.quads)) for event in events] == [(77, 2), (77, 1), (1500, 1)]
    again, _ = read("messages", b"PREFIX e: <http://ex/> e:a e:p _:x", b"e:a e:p _:x .")
    assert not again  # the first lacks its dot, and the prefix of one is not the other's


def test_messages_are_read_alone() -> None:
    broken = b'<http://ex/a> <http://ex/p> """'
    turtle = b"PREFIX e: <http://ex/> e:a e:p [] ."
    events, rejects = read("messages", turtle, broken, b"e:a e:p 1 .", turtle)
    assert len(events) == 2
    assert [reject.source for reject in rejects] == [f"{PLACE}, partition 2, offset {o}" for o in (7, 9)]
    labels = {str(event.quads[0].object) for event in events}
    assert len(labels) == 2  # a blank node belongs to its message


def test_the_header_says_the_format() -> None:
    events, rejects = read("tsnt", b'{"@id": "http://ex/a",\n "http://ex/p": 1}', kind="application/ld+json")
    assert not rejects and events[0].quads[0].subject == NamedNode("http://ex/a")
    _, rejects = read("tsnt", b'{"a": 1}', kind="application/json")
    assert "needs a mapping" in rejects[0].reason


def test_time_of_the_broker() -> None:
    events, _ = read("tsnt", b"1000\t" + NT, by_broker=True)
    assert events[0].time == 77
    events, rejects = read("nquads", NT, time=None)
    assert not events and "no time" in rejects[0].reason


def test_a_message_that_is_too_long() -> None:
    events, rejects = read("nquads", NT, NT + b" " * 100, max_record=len(NT))
    assert len(events) == 1 and "at most" in rejects[0].reason


# ------------------------------------------------------------------------------ answers


SELECT = Shape(("who", "room"), form=Form.SELECT)


def test_keys_and_values() -> None:
    answers = [
        Answer("q", 1000, "+", bindings={"who": NamedNode("http://ex/ann"), "room": Literal("1\n2")}),
        Answer("q", 1000, "+", bindings={"who": NamedNode("http://ex/bob")}),
    ]
    one = kafka_output("kafka://h:1/t?key=room", "q", SELECT)
    both = kafka_output("kafka://h:1/t?key=who,room", "q", SELECT)
    messages = Writer(one, "q", SELECT, "http://ex/t").messages(answers)
    assert [m.key for m in messages] == [b"1\n2", None]
    assert [m.value.decode() for m in messages] == [answer.to_json() for answer in answers]
    keys = [m.key for m in Writer(both, "q", SELECT, "http://ex/t").messages(answers)]
    assert keys == [b'["http://ex/ann", "1\\n2"]', b'["http://ex/bob", null]']


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("kafka://h:1/t?key=floor", "the key names ?floor, and query 'q' has ?who, ?room"),
        ("kafka://h:1/t?format=messages", "answers with rows"),
        ("kafka://h:1/t?delivery=maybe", "exactly-once or at-least-once"),
        ("kafka://h:1/t?format=avro", "one of json, messages, nquads"),
    ],
)
def test_sinks_that_are_refused(spec: str, told: str) -> None:
    with pytest.raises(UsageError, match=re.escape(told)):
        kafka_output(spec, "q", SELECT)


def test_the_outbox_keeps_its_order(tmp_path: Path) -> None:
    box = Outbox(tmp_path / "box")
    box.put(3, "c3", [Out(None, b"a"), Out(b"k", b"b")])
    box.put(12, "c12", [Out(None, b"c")])
    again = Outbox(tmp_path / "box")
    assert (len(again), again.held.batch, again.held.content) == (2, 12, "c12")
    assert again.first() == (3, "c3", [Out(None, b"a"), Out(b"k", b"b")])
    again.drop(3)
    assert again.first() == (12, "c12", [Out(None, b"c")])
    again.drop(12)
    assert Outbox(tmp_path / "box").first() is None


def test_the_settings_of_a_job_are_in_its_file(tmp_path: Path) -> None:
    job = tmp_path / "job.toml"
    text = """
[[stream]]
iri = "http://ex/s"
source = "kafka://h:1/t?start=latest"
format = "tsnt"
[[query]]
name = "q"
text = "SELECT ?s WHERE { STREAM <http://ex/s> [NOW] { ?s ?p ?o } }"
sink = "kafka://h:1/out"
"""
    job.write_text('[kafka]\nsasl.username = "ann"\n' + text)
    read = read_job(job)
    assert read.streams[0].path == f"kafka://h:1/t?start=latest&settings={job}"
    assert read.queries[0].sink == f"kafka://h:1/out?settings={job}"
    job.write_text('[kafka]\nsasl.password = "s3cret"\n' + text)
    with pytest.raises(UsageError, match=r"'sasl\.password' is a secret") as raised:
        read_job(job)
    assert "s3cret" not in str(raised.value)


MAPPING = """
prefixes: {ex: "http://ex/"}
time: {column: t, format: epoch-ms}
columns: [t, who, n]
triples:
  - ["ex:{who}", "ex:said", {column: n}]
  - ["_:row", "ex:by", "ex:{who}"]
"""


@settings_of_tests(max_examples=int(os.environ.get("KELDA_CASES", "60")))
@given(st.data())
def test_messages_that_are_read_together(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """As rows, as lines, or one by one: the same elements, rejects and blank nodes."""
    folder = tmp_path_factory.getbasetemp()
    mapping = folder / "mapping.yaml"
    mapping.write_text(MAPPING)
    format = data.draw(st.sampled_from(["json", "csv", "tsnt"]))
    record = {
        "json": st.builds(
            lambda t, n: b'{"t": %d, \n"who": "a", "n": %d}' % (t, n), st.integers(0, 99), st.integers()
        ),
        "csv": st.builds(lambda t, n: b"%d,a,%d" % (t, n), st.integers(0, 99), st.integers()),
        "tsnt": st.builds(lambda t: b"%d\t%s" % (t, NT), st.integers(0, 99)),
    }[format]
    odd = st.sampled_from(
        [b"?", b'{"t": "', b'"', b"{}", b"1,2", b"5\t<a", b"\n", b"1,b,2\n3,c,4", b'1,"b",2']
    )
    values = data.draw(st.lists(st.one_of(record, record, record, odd), min_size=1, max_size=40))
    gaps = data.draw(st.sets(st.integers(0, 40), max_size=2))
    said, offset = [], 5
    for i, value in enumerate(values):
        offset += 1 + (i in gaps)
        said.append(Message(offset, value, 77, None))
    source = StreamSource(
        S, "kafka://h:1/rooms", format=format, mapping=None if format == "tsnt" else str(mapping)
    )

    def elements(portions: list[list[Message]]) -> Any:
        found, rejects = [], list[Reject]()
        skimmer = Skimmer(Dictionary())
        routing = Routing()
        routing.everything(S, 0)
        for some in portions:
            Known.said = some
            piece = Piece(0, 0, known(), len(some), 0, format=format)
            parts, size = read_messages(piece, known(), source, skimmer, routing, rejects)
            assert size == sum(len(message.value) for message in some)
            for part in parts:
                times = np.repeat(part.times, np.diff(part.heads, append=part.size))
                terms = [
                    [str(term) for term in skimmer.dictionary.terms(column)]
                    for column in (part.s, part.p, part.o)
                ]
                found += zip(times.tolist(), *terms, strict=True)
        return found, rejects

    assert elements([said]) == elements([[message] for message in said])
