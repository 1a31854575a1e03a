"""What shards tell of queries that have failed, as it is seen by their readers."""

from __future__ import annotations

from pathlib import Path

import pytest

import kelda
from kelda.engine.answer import Answer
from kelda.errors import QueryStopped
from kelda.lang.algebra import Output
from kelda.shards.merge import Merged
from kelda.shards.planner import Standing
from kelda.shards.shard import News
from tests.spark.scene import MASTER

TEXT = "SELECT ?x { STREAM <http://ex/s> [NOW] { ?x ?p ?y } }"


def told(engine: kelda.Engine, answers: list[Answer], *news: News) -> None:
    """A batch, as if Spark had brought it."""
    deployment = engine._deployment
    merged = Merged([], [], answers, {query.name: _standing(query) for query in engine.queries})
    deployment.hand_out(0, merged, list(news), None)


def _standing(query: kelda.Query) -> Standing:
    return Standing(query.name, query.algebra, Output.CHANGES, None)


def test_readers_hear_of_it(tmp_path: Path) -> None:
    with kelda.connect(MASTER, checkpoint=tmp_path, shards=2) as engine:
        bad, good = engine.register(TEXT, name="bad"), engine.register(TEXT, name="good")
        told(engine, [], News(), News(stopped={"bad": (1000, "MemoryError")}))
        assert "bad" in engine.figures.stopped and "MemoryError" in engine.figures.json()
        assert (bad.state, good.state) == ("stopped", "running")
        assert bad.explain().endswith("stopped after 1970-01-01T00:00:01Z: MemoryError")
        with pytest.raises(QueryStopped, match=r"'bad' is stopped after .*: MemoryError"):
            list(bad.results())
        assert good.error is None and list(good.results()) == []


def test_a_callback_that_raises_is_its_querys_trouble(tmp_path: Path) -> None:
    with kelda.connect(MASTER, checkpoint=tmp_path) as engine:
        queries = {name: engine.register(TEXT, name=name) for name in ("bad", "good")}
        heard: list[int] = []

        def badly(answer: Answer) -> None:
            heard.append(answer.time)
            raise ValueError("no more")

        queries["bad"].subscribe(badly)
        told(engine, [Answer(name, t, "+", bindings={}) for t in (1, 2, 3) for name in queries])
        assert heard == [1] and "its callback raised ValueError: no more" in str(queries["bad"].error)
        assert [a.time for a in queries["good"].results()] == [1, 2, 3]
