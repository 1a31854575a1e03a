"""An engine on Spark before any Spark is started: what is checked, what threads may do, what it says."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import kelda
from kelda.errors import InputError, QueryError, UsageError
from kelda.spark.driver import SparkDriver
from tests.spark.scene import MASTER

S = "http://ex/s"
TRIPLE = "<http://ex/a> <http://ex/p> <http://ex/b> ."
NOW = "SELECT ?x { STREAM <http://ex/s> [NOW] { ?x <http://ex/p> ?y } }"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[kelda.Engine]:
    with kelda.connect(MASTER, checkpoint=tmp_path / "checkpoint", shards=2) as engine:
        yield engine


@pytest.mark.parametrize("said", [1763458000.5, True, "5", 1.5, 2**63 - 1])
def test_a_time_that_is_no_time_is_refused(said, engine) -> None:
    stream = engine.stream(S)
    event = kelda.Event(said, ())
    for say in (
        lambda: stream.push(TRIPLE, time=said),
        lambda: stream.push(event),
        lambda: stream.push([event]),
        lambda: stream.heartbeat(said),
        lambda: engine.advance(said),
        lambda: kelda.connect(MASTER, t0=said),
    ):
        with pytest.raises(UsageError, match="datetime, or whole milliseconds since 1970"):
            say()


def test_seconds_of_today_get_a_hint(engine) -> None:
    stream = engine.stream(S)
    with pytest.warns(UserWarning, match="in seconds it would be 2025-11-18") as told:
        stream.push(TRIPLE, time=1763458000)
    assert told[0].filename == __file__


def test_a_stream_that_is_pushed_may_be_slow_and_fall_silent(engine) -> None:
    stream = engine.stream(S, idle=500, rate=100)
    engine.register(NOW)
    assert stream.push(TRIPLE, time=1000) == 1


def test_many_threads_push_and_register(engine) -> None:
    stream = engine.stream(S)
    begin = threading.Barrier(6)
    problems: list[Exception] = []

    def work(number: int) -> None:
        begin.wait()
        try:
            for i in range(20):
                stream.push(TRIPLE, time=1000 + i)
            query = engine.register(NOW)
            assert query in engine.queries
            engine.register(NOW).stop()
        except Exception as problem:  # noqa: BLE001 - shown below
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not problems
    (reader,) = engine._driver.pushed.values()
    assert reader.records == 120
    assert len(engine.queries) == len(engine._deployment.queries) == 6


def test_objects_say_what_they_are(engine) -> None:
    stream, query = engine.stream(S), engine.register(NOW, name="q")
    assert repr(engine) == "<kelda.Engine at local[2]: 1 stream, 1 query>"
    assert repr(stream) == "<kelda.Stream http://ex/s>"
    assert repr(query) == "<kelda.Query 'q': 0 answers unread>"
    engine.stop()
    assert repr(engine) == "<kelda.Engine at local[2]: 1 stream, 1 query, stopped>"


def test_paths_are_told_in_full_to_processes_that_stand_elsewhere(engine, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    Path("s.csv").write_text("a,t\n1,1\n")
    triples = "triples: [['http://ex/{a}', 'http://ex/p', 'http://ex/o']]"
    Path("m.yaml").write_text(f"time: {{column: t, format: epoch-ms}}\n{triples}\n")
    mapped = engine.stream(S, "s.csv", format="csv", mapping="m.yaml")
    watched = engine.stream("http://ex/w", "folder:in?watch=true", format="csv", mapping="m.yaml")
    assert mapped.source.path == f"{tmp_path}/s.csv"
    assert watched.source.path == f"folder:{tmp_path}/in?watch=true"
    assert mapped.source.mapping == watched.source.mapping == f"{tmp_path}/m.yaml"
    assert engine.stream(S, "s.csv", format="csv", mapping="m.yaml") is mapped, "and are the same again"


def test_whoever_starts_first_starts_and_the_others_need_not(engine, monkeypatch) -> None:
    begun: list[str] = []
    monkeypatch.setattr(SparkDriver, "start", lambda self: begun.append(self.master))
    monkeypatch.setattr(SparkDriver, "running", property(lambda self: bool(begun)))
    monkeypatch.setattr(SparkDriver, "stop", SparkDriver.close)
    threads = [threading.Thread(target=engine.start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert begun == [MASTER]
    assert "running" in repr(engine)


def test_an_engine_that_could_not_start_can_be_started_again(engine, monkeypatch) -> None:
    def fails(master: str) -> None:
        raise UsageError("no such master")

    monkeypatch.setattr("kelda.spark.driver.session", fails)
    for _ in range(2):
        with pytest.raises(UsageError, match="no such master"):
            engine.start()
        with pytest.raises(UsageError, match=r"does not run: start\(\) it first"):
            engine.flush()


def test_a_query_that_was_refused_can_be_registered_when_it_is_mended(engine, tmp_path) -> None:
    each = "SELECT ?o (COUNT(*) AS ?n) { STREAM <http://ex/a> [RANGE 5s] { ?s ?p ?o } } GROUP BY ?o"
    with pytest.raises(UsageError, match="what kind of sink"):
        engine.register(each, name="q", sink="answers.nonsense")
    with pytest.raises(QueryError):
        engine.register("SELECT ?x WHERE {", name="r")
    assert (engine.queries, engine.streams) == ([], []), "nor are the streams that they name declared"
    query = engine.register(each, name="q", sink=str(tmp_path / "answers.ndjson"))
    assert engine.queries == [query] and "over 2 shards by ?o" in query.explain()
    with pytest.raises(UsageError, match="registered already"):
        engine.register(each, name="q")
    deployment = engine._deployment
    for call in (deployment.drop, deployment.pause, deployment.explain):
        with pytest.raises(UsageError, match="no query named 'r' is registered; there are: q"):
            call("r")
    with pytest.raises(UsageError, match="cannot move"):
        query.move(1)
    engine.stop()

    with kelda.connect(MASTER, checkpoint=tmp_path / "checkpoint", shards=2) as again:
        (query,) = again.queries
        assert (query.name, query.text, query.sink) == ("q", each, str(tmp_path / "answers.ndjson"))
        assert "over 2 shards by ?o" in query.explain()
        query.stop()
    with kelda.connect(MASTER, checkpoint=tmp_path / "checkpoint", shards=2) as last:
        assert last.queries == [] and [stream.iri for stream in last.streams] == ["http://ex/a"]


def test_a_missing_file_is_named_at_once(engine, tmp_path) -> None:
    with pytest.raises(InputError, match=r"building\.ttl"):
        engine.load(tmp_path / "building.ttl")
    with pytest.raises(InputError, match=r"heat\.tsnt"):
        engine.stream(S, str(tmp_path / "heat.tsnt"))
    assert engine.streams == []


def test_a_refused_engine_leaves_nothing_behind(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(UsageError, match="no balancing strategy"):
        kelda.connect(MASTER, balance="luck")
    with pytest.raises(UsageError, match="1 to 63"):
        kelda.connect(MASTER, shards=64)
    kelda.connect(MASTER).stop()
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_is_a_folder(tmp_path) -> None:
    with pytest.raises(UsageError, match="a checkpoint is a folder"):
        kelda.connect(MASTER, checkpoint="s3://bucket/x")
    (tmp_path / "letter").mkdir()
    (tmp_path / "letter" / "letter.txt").write_text("dear")
    with pytest.raises(UsageError, match="not a checkpoint"):
        kelda.connect(MASTER, checkpoint=tmp_path / "letter")


def test_a_checkpoint_is_gone_on_with_as_it_was_begun(engine, tmp_path) -> None:
    with pytest.raises(UsageError, match="in use: held by"):
        kelda.connect(MASTER, checkpoint=tmp_path / "checkpoint", shards=2)
    engine.stop()
    for how, said in (
        ({"master": MASTER, "shards": 3}, "shards was 2 and is 3"),
        ({"master": MASTER, "shards": 2, "t0": 1}, "t0 was 0 and is 1"),
        ({}, "driver was 'spark' and is 'inprocess'"),
    ):
        with pytest.raises(UsageError, match=f"begun in another way .*{said}"):
            kelda.connect(checkpoint=tmp_path / "checkpoint", **how)
    again = kelda.connect(MASTER, checkpoint=tmp_path / "checkpoint", shards=2, memory_limit=10**9)
    again.stop()
