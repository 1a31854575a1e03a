"""A streaming DataFrame as a stream, beside one from a file."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from kelda.errors import UsageError
from kelda.spark.engine import SparkEngine
from tests.spark.scene import MASTER

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
        until = time.monotonic() + 120
        while query.unread < 4 and time.monotonic() < until:
            engine.wait(0.2)
    finally:
        engine.stop()
    # The DataFrame never ends, so its newest instant stays open.
    assert [(a.time, a.bindings["x"].value) for a in query.results()] == [
        (1000 * i, f"x:n{i}") for i in range(1, 5)
    ]
