"""A streaming DataFrame as a stream, beside one from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kelda.errors import UsageError
from kelda.io.sources.silence import Silence
from kelda.spark.engine import SparkEngine
from tests.spark.scene import MASTER, until

JOINED = "SELECT ?x ?y ?z { STREAM <x:a> [RANGE 5s] { ?x <x:p> ?y } STREAM <x:b> [RANGE 5s] { ?x <x:q> ?z } }"


@pytest.mark.spark
def test_a_dataframe_is_a_stream(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("".join(f"{i}000\t<x:n{i}> <x:p> <x:y> .\n" for i in range(1, 6)))
    (tmp_path / "b.tsnt").write_text("".join(f"{i}000\t<x:n{i}> <x:q> <x:z> .\n" for i in range(1, 6)))
    engine = SparkEngine(master=MASTER, shards=2)
    frame = engine.spark.readStream.text(str(tmp_path / "in"))
    static = engine.spark.read.text(str(tmp_path / "in"))
    engine.stream("x:a", dataframe=frame, format="tsnt")
    engine.stream("x:b", str(tmp_path / "b.tsnt"))
    query = engine.register(JOINED, name="joined")
    with pytest.raises(UsageError, match="not a streaming one"):
        engine.pipeline.read_frame("x:a", static)
    engine.start()
    try:
        until(lambda: engine.wait(0.2) or query.unread >= 4, "four answers")
    finally:
        engine.stop()
    # The DataFrame never ends, so its newest instant stays open.
    assert [(a.time, a.bindings["x"].value) for a in query.results()] == [
        (1000 * i, f"x:n{i}") for i in range(1, 5)
    ]


@pytest.mark.spark
def test_a_dataframe_that_falls_silent_holds_back_nobody(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("".join(f"{i}000\t<x:n{i}> <x:p> <x:y> .\n" for i in range(1, 4)))
    (tmp_path / "b.tsnt").write_text("".join(f"{i}000\t<x:n{i}> <x:q> <x:z> .\n" for i in range(1, 9)))
    with SparkEngine(master=MASTER, shards=2) as engine:
        frame = engine.spark.readStream.text(str(tmp_path / "in"))
        engine.stream("x:a", dataframe=frame, format="tsnt", idle_ms=400)
        engine.stream("x:b", str(tmp_path / "b.tsnt"))
        spoken = engine.register("SELECT ?x { STREAM <x:a> [NOW] { ?x <x:p> ?y } }", name="spoken")
        others = engine.register("SELECT ?x { STREAM <x:b> [NOW] { ?x <x:q> ?y } }", name="others")
        engine.start()
        until(lambda: engine.wait(0.1) or others.unread == 8, "the other stream is answered to its end")
        until(lambda: engine.wait(0.1) or spoken.unread == 3, "so is what was said before the silence")
        (tmp_path / "in" / "b.txt").write_text("9000\t<x:n9> <x:p> <x:y> .\n")
        until(lambda: engine.wait(0.1) or spoken.unread == 4, "it speaks again, and falls silent again")
        assert engine.figures.late == 0


def test_how_fast_a_dataframe_comes_is_for_spark_to_say() -> None:
    frame: Any = object()
    with SparkEngine() as engine:
        with pytest.raises(UsageError, match=r"leave out rate=.*maxOffsetsPerTrigger"):
            engine.stream("x:a", dataframe=frame, format="tsnt", rate=10)
        with pytest.raises(UsageError, match="idle_ms of <x:a> must be at least 1, not 0"):
            engine.stream("x:a", dataframe=frame, format="tsnt", idle_ms=0)


def test_silence_is_in_the_offset() -> None:
    time = [0.0]
    silence = Silence(3, 500, now=lambda: time[0])
    begin = silence.start()
    assert silence.latest(begin) == begin and silence.pieces(begin, begin) == []
    time[0] = 0.6
    first = silence.latest(begin)
    assert first == silence.latest(begin) == silence.latest(first)  # told once
    assert [(p.stream, p.idle, p.records) for p in silence.pieces(begin, first)] == [(3, True, 0)]
    silence.heard()
    assert silence.latest(first) == first
    time[0] = 1.2
    second = silence.latest(first)
    assert second["pieces"] == 2
    again = Silence(3, 500, now=lambda: time[0])  # after a restart
    assert again.latest(second) == second and again.pieces(first, second) == silence.pieces(first, second)
    time[0] = 1.8
    assert again.latest(second)["pieces"] == 3
