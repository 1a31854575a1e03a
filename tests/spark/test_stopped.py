"""What shards tell of queries that have failed, as it is seen by their readers."""

from __future__ import annotations

from pathlib import Path

import pytest

from kelda.engine.answer import Answer
from kelda.errors import QueryStopped
from kelda.shards.merge import Merged
from kelda.shards.shard import News
from kelda.spark.engine import SparkEngine
from kelda.spark.pipeline import Batch

TEXT = "SELECT ?x { STREAM <http://ex/s> [NOW] { ?x ?p ?y } }"


def test_readers_hear_of_it(tmp_path: Path) -> None:
    engine = SparkEngine(checkpoint=tmp_path / "checkpoint")
    engine.stream("http://ex/s")
    bad, good = engine.register(TEXT, name="bad"), engine.register(TEXT, name="good")
    engine.pipeline._note_stopped([News(), News(stopped={"bad": (1000, "MemoryError")})])
    assert "bad" in engine.figures.stopped and "MemoryError" in engine.figures.json()
    assert bad.explain().endswith("stopped after 1970-01-01T00:00:01Z: MemoryError")
    with pytest.raises(QueryStopped, match=r"'bad' is stopped after .*: MemoryError"):
        list(bad.results())
    assert good.error is None and list(good.results()) == []


def test_a_callback_that_raises_is_its_querys_trouble(tmp_path: Path) -> None:
    engine = SparkEngine(checkpoint=tmp_path / "checkpoint")
    engine.stream("http://ex/s")
    queries = {name: engine.register(TEXT, name=name) for name in ("bad", "good")}
    heard: list[int] = []

    def badly(answer: Answer) -> None:
        heard.append(answer.time)
        raise ValueError("no more")

    queries["bad"].subscribe(badly)
    answers = [Answer(name, t, "+", bindings={}) for t in (1, 2, 3) for name in queries]
    engine._deliver(Batch(0, Merged([], [], answers), []))
    assert heard == [1] and "its callback raised ValueError: no more" in str(queries["bad"].error)
    assert [a.time for a in queries["good"].results()] == [1, 2, 3]
