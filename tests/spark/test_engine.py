"""The engine on Spark before any Spark is started: what is checked, what threads may do, what it says."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import kelda
from kelda.errors import UsageError
from kelda.io.job import StreamSource
from kelda.spark.pipeline import Pipeline

S = "http://ex/s"
TRIPLE = "<http://ex/a> <http://ex/p> <http://ex/b> ."
NOW = "SELECT ?x { STREAM <http://ex/s> [NOW] { ?x <http://ex/p> ?y } }"


@pytest.mark.parametrize("said", [1763458000.5, True, "5", 1.5, 2**63 - 1])
def test_a_time_that_is_no_time_is_refused(said, tmp_path) -> None:
    with kelda.SparkEngine(checkpoint=tmp_path) as engine:
        stream = engine.stream(S)
        event = kelda.Event(said, ())
        for say in (
            lambda: stream.push(TRIPLE, time=said),
            lambda: stream.push(event),
            lambda: stream.push([event]),
            lambda: stream.heartbeat(said),
            lambda: kelda.SparkEngine(t0=said),
        ):
            with pytest.raises(UsageError, match="datetime, or whole milliseconds since 1970"):
                say()


def test_seconds_of_today_get_a_hint(tmp_path) -> None:
    with kelda.SparkEngine(checkpoint=tmp_path) as engine:
        stream = engine.stream(S, format="tsnt")
        with pytest.warns(UserWarning, match="in seconds it would be 2025-11-18") as told:
            stream.push(TRIPLE, time=1763458000)
        assert told[0].filename == __file__


def test_a_stream_that_is_pushed_may_be_slow_and_fall_silent(tmp_path) -> None:
    with kelda.SparkEngine(checkpoint=tmp_path) as engine:
        stream = engine.stream(S, format="tsnt", idle_ms=500, rate=100)
        engine.register(NOW)
        assert stream.push(TRIPLE, time=1000) == 1


def test_many_threads_push_and_register(tmp_path) -> None:
    with kelda.SparkEngine(checkpoint=tmp_path) as engine:
        stream = engine.stream(S, format="tsnt")
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
        assert len(engine.pipeline.pushed) == 1
        assert engine.pipeline.pushed[0].records == 120
        assert len(engine.queries) == len(engine.pipeline.queries) == 6


def test_objects_say_what_they_are(tmp_path) -> None:
    with kelda.SparkEngine(master="local[2]", checkpoint=tmp_path) as engine:
        stream, query = engine.stream(S), engine.register(NOW, name="q")
        assert repr(engine) == "<kelda.SparkEngine at local[2]: 1 stream, 1 query, not running>"
        assert repr(stream) == "<kelda.SparkStream http://ex/s>"
        assert repr(query) == "<kelda.SparkQuery 'q': 0 answers unread>"


def test_paths_are_told_in_full_to_processes_that_stand_elsewhere(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    Path("s.csv").write_text("a,t\n1,1\n")
    triples = "triples: [['http://ex/{a}', 'http://ex/p', 'http://ex/o']]"
    Path("m.yaml").write_text(f"time: {{column: t, format: epoch-ms}}\n{triples}\n")
    mapped = StreamSource(S, "s.csv", "csv", mapping="m.yaml")
    watched = StreamSource("http://ex/w", "folder:in?watch=true", "csv", mapping="m.yaml")
    streams = Pipeline([mapped, watched], tmp_path / "state").run.setup.streams
    assert [s.path for s in streams] == [f"{tmp_path}/s.csv", f"folder:{tmp_path}/in?watch=true"]
    assert [s.mapping for s in streams] == [f"{tmp_path}/m.yaml"] * 2


def test_whoever_starts_first_starts_and_the_others_need_not(tmp_path, monkeypatch) -> None:
    begun: list[str] = []
    monkeypatch.setattr(Pipeline, "start", lambda self, master, **_: begun.append(master))
    with kelda.SparkEngine(master="local[2]", checkpoint=tmp_path) as engine:
        engine.stream(S)
        threads = [threading.Thread(target=engine.start) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert begun == ["local[2]"]
        assert "running" in repr(engine)


def test_an_engine_that_could_not_start_can_be_started_again(tmp_path, monkeypatch) -> None:
    def fails(self: Pipeline, master: str, **_: object) -> None:
        raise UsageError("no such master")

    with kelda.SparkEngine(master="nowhere", checkpoint=tmp_path) as engine:
        engine.stream(S)
        for _ in range(2):
            monkeypatch.setattr(Pipeline, "start", fails)
            with pytest.raises(UsageError, match="no such master"):
                engine.start()
