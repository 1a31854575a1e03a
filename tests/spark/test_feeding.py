"""A CONSTRUCT query feeds a stream that another query reads, in one pipeline."""

from __future__ import annotations

from pathlib import Path

import pytest

from kelda.errors import UsageError
from kelda.io.job import QuerySpec, StreamSource
from kelda.spark.pipeline import Batch, Pipeline

HOT = """PREFIX : <http://ex/>
CONSTRUCT { ?room :hot ?t } WHERE { STREAM :heat [NOW] { ?room :value ?t FILTER(?t > 25) } }"""
TWICE = """PREFIX : <http://ex/>
SELECT ?room (COUNT(*) AS ?n) WHERE { STREAM :alarms [RANGE 3s] { ?room :hot ?t } } GROUP BY ?room"""


def streams(folder: Path) -> list[StreamSource]:
    path = folder / "heat.tsnt"
    integer = "<http://www.w3.org/2001/XMLSchema#integer>"
    values = [20, 30, 26, 10, 40, 12, 13, 14, 50]
    lines = [
        f'{1000 * i}\t<http://ex/r{i % 2}> <http://ex/value> "{v}"^^{integer} .\n'
        for i, v in enumerate(values, 1)
    ]
    path.write_text("".join(lines))
    return [StreamSource("http://ex/heat", str(path)), StreamSource("http://ex/alarms", "query:hot")]


@pytest.mark.spark
def test_a_query_feeds_a_query(tmp_path: Path) -> None:
    found: list[str] = []

    def take(batch: Batch) -> None:
        for a in batch.answers:
            if a.query == "twice" and a.bindings is not None:
                found.append(f"{a.time} {a.bindings['room'].value[-2:]} {a.bindings['n'].value}")

    pipeline = Pipeline(streams(tmp_path), tmp_path / "checkpoint", shards=2, batch_events=2, take=take)
    pipeline.register(QuerySpec("hot", HOT))
    pipeline.register(QuerySpec("twice", TWICE))
    pipeline.start("local[2]")
    try:
        assert pipeline.wait(240)
    finally:
        pipeline.stop()
    # Hot at 2 (r0), 3 (r1), 5 (r1), 9 (r1); a window of 3 s holds (t - 3, t].
    assert found == ["2000 r0 1", "3000 r1 1", "5000 r1 2", "6000 r1 1", "9000 r1 1"]


def test_a_feeder_comes_first_and_constructs(tmp_path: Path) -> None:
    pipeline = Pipeline(streams(tmp_path), tmp_path / "checkpoint")
    with pytest.raises(UsageError, match="first"):
        pipeline.register(QuerySpec("twice", TWICE))
    with pytest.raises(UsageError, match="CONSTRUCT"):
        pipeline.register(QuerySpec("hot", "SELECT ?s { STREAM <http://ex/heat> [NOW] { ?s ?p ?o } }"))
