"""A streaming DataFrame as a stream, beside one from a file."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import kelda
from kelda.errors import UsageError
from kelda.io.sources.silence import Silence
from tests.spark.scene import MASTER, committed, until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

JOINED = "SELECT ?x ?y ?z { STREAM <x:a> [RANGE 5s] { ?x <x:p> ?y } STREAM <x:b> [RANGE 5s] { ?x <x:q> ?z } }"


def files(engine: kelda.Engine, folder: Path) -> DataFrame:
    """The lines of the files in a folder, also of those to come."""
    return engine.spark.readStream.text(str(folder))


@pytest.mark.spark
def test_dataframes_are_streams(tmp_path: Path) -> None:
    for name, predicate in (("a", "p"), ("b", "q")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.txt").write_text("".join(line(i, predicate) for i in range(1, 6)))
    with kelda.connect(MASTER, checkpoint=tmp_path / "checkpoint", shards=2) as engine:
        for name in "ab":
            engine.stream(f"x:{name}", dataframe=files(engine, tmp_path / name), format="tsnt")
        query = engine.register(JOINED, name="joined")
        static = engine.spark.read.text(str(tmp_path / "a"))
        with pytest.raises(UsageError, match="not a streaming one"):
            engine.stream("x:c", dataframe=static, format="tsnt")
        engine.start()
        until(lambda: engine.wait(0.2) or query.unread >= 4, "four answers")
        # A DataFrame never ends, so its newest instant stays open.
        assert answers(query) == [(1000 * i, f"x:n{i}") for i in range(1, 5)]
        with pytest.raises(UsageError, match=r"<x:late> is a DataFrame, .*: declare it before start\(\)"):
            engine.stream("x:late", dataframe=files(engine, tmp_path), format="tsnt")
        with pytest.raises(UsageError, match=r"<x:a> is a DataFrame, .*: it stays"):
            engine.stream("x:a").drop()
        until(lambda: committed(engine), "all is committed")

    # Started again, it is asked for them, in any order, and goes on behind what it has read.
    for name, predicate in (("a", "p"), ("b", "q")):
        (tmp_path / name / "2.txt").write_text(line(6, predicate))
    with kelda.connect(MASTER, checkpoint=tmp_path / "checkpoint", shards=2) as engine:
        with pytest.raises(UsageError, match="<x:a> was a DataFrame: declare it again, with dataframe="):
            engine.start()
        for name in "ba":
            engine.stream(f"x:{name}", dataframe=files(engine, tmp_path / name), format="tsnt")
        with pytest.raises(UsageError, match=r"<x:d> is a DataFrame, .* was begun without it"):
            engine.stream("x:d", dataframe=files(engine, tmp_path), format="tsnt")
        engine.stream("x:c").end()  # beside them, one that is pushed
        (query,) = engine.queries
        engine.start()
        until(lambda: engine.wait(0.2) or query.unread >= 1, "the next answer")
        assert answers(query) == [(5000, "x:n5")]
        assert (engine.figures.events, engine.figures.late) == (2, 0)


def line(second: int, predicate: str) -> str:
    return f"{second}000\t<x:n{second}> <x:{predicate}> <x:y> .\n"


def answers(query: kelda.Query) -> list[tuple[int, str]]:
    return [(a.time, a.bindings["x"].value) for a in query.results() if a.bindings]


@pytest.mark.spark
def test_a_dataframe_that_falls_silent_holds_back_nobody(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("".join(line(i, "p") for i in range(1, 4)))
    (tmp_path / "b.tsnt").write_text("".join(line(i, "q") for i in range(1, 9)))
    with kelda.connect(MASTER, shards=2) as engine:
        frame = engine.spark.readStream.text(str(tmp_path / "in"))
        engine.stream("x:a", dataframe=frame, format="tsnt", idle=400)
        engine.stream("x:b", str(tmp_path / "b.tsnt"))
        spoken = engine.register("SELECT ?x { STREAM <x:a> [NOW] { ?x <x:p> ?y } }", name="spoken")
        others = engine.register("SELECT ?x { STREAM <x:b> [NOW] { ?x <x:q> ?y } }", name="others")
        engine.start()
        until(lambda: engine.wait(0.1) or others.unread == 8, "the other stream is answered to its end")
        until(lambda: engine.wait(0.1) or spoken.unread == 3, "so is what was said before the silence")
        (tmp_path / "in" / "b.txt").write_text(line(9, "p"))
        until(lambda: engine.wait(0.1) or spoken.unread == 4, "it speaks again, and falls silent again")
        assert engine.figures.late == 0


def test_how_fast_a_dataframe_comes_is_for_spark_to_say() -> None:
    frame: Any = SimpleNamespace(isStreaming=True, columns=["value"])
    with kelda.connect(MASTER) as engine:
        with pytest.raises(UsageError, match=r"leave out rate=.*maxOffsetsPerTrigger"):
            engine.stream("x:a", dataframe=frame, format="tsnt", rate=10)
        with pytest.raises(UsageError, match="idle of <x:a> must be at least 1, not 0"):
            engine.stream("x:a", dataframe=frame, format="tsnt", idle=0)
        with pytest.raises(UsageError, match="say the format of <x:a>"):
            engine.stream("x:a", dataframe=frame)
        with pytest.raises(UsageError, match="an address or from a DataFrame, not from both"):
            engine.stream("x:a", "a.tsnt", dataframe=frame)
        assert engine.streams == []


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
