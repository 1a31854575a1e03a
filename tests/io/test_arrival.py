"""Events that say no time have that of their arrival: fixed when they are first read, the same ever after."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

import kelda
from kelda.inprocess import driver
from kelda.io.job import QuerySpec, StreamSource
from kelda.io.sources import open_reader, push_reader
from kelda.io.sources.reader import Piece
from kelda.rdf.event import Reject
from kelda.rdf.framings.base import Chunk
from kelda.shards.setup import Setup
from tests.shards.local import LocalShards

STREAM = "http://ex/s"
QUERY = QuerySpec("q", f"SELECT ?x {{ STREAM <{STREAM}> [NOW] {{ ?x <http://ex/p> ?y }} }}")
TEXT = b"<http://ex/a> <http://ex/p> 1 .\nMESSAGE\n<http://ex/b> <http://ex/p> 2 .\nMESSAGE\nMESSAGE\n"


@pytest.fixture
def source(tmp_path: Path) -> StreamSource:
    path = tmp_path / "s.messages"
    path.write_bytes(TEXT)
    return StreamSource(STREAM, str(path))


@pytest.mark.parametrize("reference", [False, True])
def test_files_in_this_process(
    reference: bool, source: StreamSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "open_reader", partial(open_reader, now=lambda: 7.0))
    with kelda.connect(reference=reference) as engine:
        engine.stream(STREAM, source.path)
        query = engine.register(QUERY.text)
        engine.start()
        assert engine.wait(60)
        assert sorted((a.time, a.bindings["x"].value) for a in query.results()) == [
            (7000, "http://ex/a"),
            (7000, "http://ex/b"),
        ]
        assert engine.figures.events == 2, "an empty message is no event"


def test_a_batch_that_is_read_again_has_the_same_times(source: StreamSource, tmp_path: Path) -> None:
    times = iter([10.0, 20.0, 5.0, 30.0, 40.0, 50.0])
    reader = open_reader(source.path, source, 0, spool=tmp_path, piece_records=1, now=lambda: next(times))
    begin = reader.start()
    ends = [reader.latest(begin, 1)]
    while (end := reader.latest(ends[-1], 1)) != ends[-1]:
        ends.append(json.loads(json.dumps(end)))
    arrived = [[p.arrived for p in reader.pieces(a, b)] for a, b in zip([begin, *ends], ends, strict=False)]
    assert arrived[:2] == [[10_000], [20_000]]
    assert {when for some in arrived[2:] for when in some} == {
        20_000
    }  # a clock set back does not go back here
    again = open_reader(source.path, source, 0, spool=tmp_path, piece_records=1, now=lambda: 99.0)
    assert [p.arrived for p in again.pieces(begin, ends[0])] == [10_000]
    assert reader.latest(ends[-1]) == ends[-1], "nothing new has arrived"


def test_what_is_pushed_arrives_when_it_is_pushed(tmp_path: Path) -> None:
    source = StreamSource(STREAM, "push:", "messages")
    reader = open_reader("push:", source, 0, spool=tmp_path / "spool", now=lambda: 3.0)
    push_reader(reader).push(TEXT)
    end = reader.latest(reader.start())
    assert [p.arrived for p in reader.pieces(reader.start(), end)] == [3000]
    reader.close()
    later = open_reader("push:", source, 0, spool=tmp_path / "spool", now=lambda: 9.0)
    assert [p.arrived for p in later.pieces(later.start(), end)] == [3000]
    later.close()


def test_where_arrival_is_not_known_the_event_is_rejected() -> None:
    """Rows of a DataFrame: they come again without a word of when they came first."""
    source = StreamSource(STREAM, "dataframe:", "messages")
    shards = LocalShards(Setup(), [source])
    shards.apply([shards.planner.plan(QUERY)])
    piece = Piece(0, 0, Chunk(1, 0, b"", TEXT), 2, len(TEXT), ends=True, name="<s>", format="messages")
    answers, news = shards.read([piece])
    assert not answers and news.read == {STREAM: (0, len(TEXT))}
    assert [(r.line, "no time" in r.reason) for r in news.rejects] == [(1, True), (3, True)]
    assert isinstance(news.rejects[0], Reject)
