"""A CONSTRUCT query feeds a stream that another query reads, in one pipeline."""

from __future__ import annotations

from pathlib import Path

import pytest

import kelda
from kelda.errors import UsageError
from tests.spark.scene import MASTER, PATIENCE

HOT = """PREFIX : <http://ex/>
CONSTRUCT { ?room :hot ?t } WHERE { STREAM :heat [NOW] { ?room :value ?t FILTER(?t > 25) } }"""
TWICE = """PREFIX : <http://ex/>
SELECT ?room (COUNT(*) AS ?n) WHERE { STREAM :alarms [RANGE 3s] { ?room :hot ?t } } GROUP BY ?room"""


def fed(folder: Path, **how: int) -> kelda.Engine:
    """An engine with a stream from a file, and one that the query `hot` feeds."""
    path = folder / "heat.tsnt"
    integer = "<http://www.w3.org/2001/XMLSchema#integer>"
    values = [20, 30, 26, 10, 40, 12, 13, 14, 50]
    lines = [
        f'{1000 * i}\t<http://ex/r{i % 2}> <http://ex/value> "{v}"^^{integer} .\n'
        for i, v in enumerate(values, 1)
    ]
    path.write_text("".join(lines))
    engine = kelda.connect(MASTER, checkpoint=folder / "checkpoint", **how)
    engine.stream("http://ex/heat", str(path))
    engine.stream("http://ex/alarms", "query:hot")
    return engine


@pytest.mark.spark
def test_a_query_feeds_a_query(tmp_path: Path) -> None:
    with fed(tmp_path, shards=2, batch_events=2) as engine:
        engine.register(HOT, name="hot")
        twice = engine.register(TWICE, name="twice")
        engine.start()
        assert engine.wait(PATIENCE)
        found = [
            f"{a.time} {a.bindings['room'].value[-2:]} {a.bindings['n'].value}"
            for a in twice.results()
            if a.bindings is not None
        ]
    # Hot at 2 (r0), 3 (r1), 5 (r1), 9 (r1); a window of 3 s holds (t - 3, t].
    assert found == ["2000 r0 1", "3000 r1 1", "5000 r1 2", "6000 r1 1", "9000 r1 1"]


def test_a_feeder_comes_first_and_constructs(tmp_path: Path) -> None:
    with fed(tmp_path) as engine:
        with pytest.raises(UsageError, match="first"):
            engine.register(TWICE, name="twice")
        with pytest.raises(UsageError, match="CONSTRUCT"):
            engine.register("SELECT ?s { STREAM <http://ex/heat> [NOW] { ?s ?p ?o } }", name="hot")
