"""The driver in this process: what a restart must not change, and what queries tell each other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import kelda
from kelda.errors import UsageError
from kelda.rdf.event import Event

SEEN = "SELECT ?x { STREAM <x:s> [RANGE 5s] { ?x <x:p> ?y } }"


def lines(*times: int) -> str:
    return "".join(f"{time}\t<x:n{time}> <x:p> <x:o> .\n" for time in times)


@pytest.mark.parametrize("restarted", [False, True])
def test_a_new_query_sees_what_is_pushed_next(tmp_path: Path, restarted: bool) -> None:
    engine = kelda.connect(checkpoint=tmp_path / "state")
    stream = engine.stream("x:s", format="tsnt")
    engine.register(SEEN, "first", sink="null")
    engine.start()
    stream.push(lines(1000, 2000))
    stream.heartbeat(2000)
    assert engine.flush(60)
    if restarted:
        engine.stop()
        engine = kelda.connect(checkpoint=tmp_path / "state")
        stream = engine.stream("x:s")
    query = engine.register(SEEN, "second")
    engine.start()
    stream.push(lines(3000, 4000))
    stream.heartbeat(4000)
    assert engine.flush(60)
    assert [answer.time for answer in query.results()] == [3000, 4000]
    engine.stop()


@pytest.mark.parametrize("restarted", [False, True])
def test_a_registration_that_waits(tmp_path: Path, restarted: bool) -> None:
    """It sees what came after it, although that was read while it waited."""
    engine = kelda.connect(checkpoint=tmp_path / "state")
    for name in ("x:s", "x:t"):
        engine.stream(name, format="tsnt")
    engine.start()
    engine.stream("x:t").push(lines(1000))
    engine.stream("x:s").push(lines(1000, 2000, 3000))
    assert engine.flush(60)
    engine.register(SEEN, "late", sink=str(tmp_path / "late.ndjson"))  # <x:t> has come to 1000 only
    engine.stream("x:s").push(lines(4000, 5000))
    assert engine.flush(60)
    if restarted:
        engine.stop()
        engine = kelda.connect(checkpoint=tmp_path / "state")
        engine.start()
    engine.stream("x:s").push(lines(6000))
    engine.stream("x:t").push(lines(3500))
    assert engine.flush(60)
    for name in ("x:s", "x:t"):
        engine.stream(name).end()
    assert engine.wait(60)
    engine.stop()
    told = [json.loads(line)["time"] for line in (tmp_path / "late.ndjson").read_text().splitlines()]
    assert told == [4000, 5000, 6000]


def test_a_restart_before_the_first_batch(tmp_path: Path) -> None:
    """Queries are planned again by the streams and graphs that no batch has seen yet."""
    graph = tmp_path / "rooms.ttl"
    graph.write_text("<x:n1000> <x:in> <x:lab> . <x:n3000> <x:in> <x:hall> .")
    with kelda.connect(checkpoint=tmp_path / "state", fixed_graphs=True) as engine:
        engine.stream("x:s", format="tsnt")
        engine.load(graph)
        text = "SELECT ?x ?r { STREAM <x:s> [NOW] { ?x <x:p> ?y } ?x <x:in> ?r }"
        engine.register(text, "where", sink=str(tmp_path / "where.csv"))
    with kelda.connect(checkpoint=tmp_path / "state", fixed_graphs=True) as engine:
        engine.start()
        engine.stream("x:s").push(lines(1000, 2000, 3000))
        engine.stream("x:s").end()
        assert engine.wait(60)
    assert len((tmp_path / "where.csv").read_text().splitlines()) == 3


def test_how_many_events_were_pushed(tmp_path: Path) -> None:
    with kelda.connect() as engine:
        stream = engine.stream("x:s")
        stream.push("<x:a> <x:p> <x:o> .", time=1)
        stream.push([Event(2, ()), Event(3, ())])
        assert stream.pushed == 3
    for before in (0, 2):
        with kelda.connect(checkpoint=tmp_path / "state") as engine:
            stream = engine.stream("x:s", format="tsnt")
            assert stream.pushed == before
            stream.push(lines(before + 1, before + 2))
            stream.heartbeat(before + 2)
            assert stream.pushed == before + 2
    (tmp_path / "s.tsnt").write_text(lines(1))
    with kelda.connect() as engine, pytest.raises(UsageError, match="nothing can be pushed"):
        _ = engine.stream("x:s", str(tmp_path / "s.tsnt")).pushed


@pytest.mark.parametrize("checkpoint", [False, True])
def test_what_is_pushed_feeds_another_query(tmp_path: Path, checkpoint: bool) -> None:
    with kelda.connect(checkpoint=tmp_path / "state" if checkpoint else None) as engine:
        stream = engine.stream("x:s", format="tsnt")
        engine.stream("x:said", "query:said")
        engine.register("CONSTRUCT { ?x <x:said> ?y } { STREAM <x:s> [NOW] { ?x <x:p> ?y } }", "said")
        heard = engine.register("SELECT ?x { STREAM <x:said> [RANGE 5s] { ?x <x:said> ?y } }", "heard")
        engine.start()
        stream.push(lines(1000, 2000))
        stream.heartbeat(2500)
        assert engine.flush(60)
        assert [answer.time for answer in heard.results()] == [1000, 2000]
        stream.push(lines(3000))
        stream.end()
        assert engine.wait(60)
        assert [answer.time for answer in heard.results()] == [3000]


def test_batches_are_as_small_as_asked_for(tmp_path: Path) -> None:
    (tmp_path / "s.tsnt").write_text(lines(*range(1, 21)))
    with kelda.connect(batch_events=5) as engine:
        engine.stream("x:s", str(tmp_path / "s.tsnt"))
        query = engine.register(SEEN)
        engine.start()
        assert engine.wait(60)
        assert engine.figures.batches >= 4 and len(list(query.results())) == 20
