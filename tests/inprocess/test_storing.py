"""Stored graphs of an engine with a checkpoint: files are put together, snapshots and updates outlive it."""

from __future__ import annotations

from pathlib import Path

import pytest

import kelda
from kelda.engine.oneshot import Solutions
from kelda.io.formats import plain
from kelda.store import compaction
from kelda.store.check import check

COUNT = "SELECT (COUNT(*) AS ?n) { GRAPH <x:g> { ?s ?p ?o } }"
FEEDING = "CONSTRUCT { ?x <x:last> ?v } { STREAM <x:s> [TRIPLES 3] { ?x <x:p> ?v } }"


def count(engine: kelda.Engine, at: int | None = None) -> int:
    found = engine.query(COUNT, at=at)
    assert isinstance(found, Solutions)
    return int(plain(found.rows[0]["n"]))


def push(engine: kelda.Engine, stream: kelda.Stream, *times: int) -> None:
    """Each as a batch of its own, or several."""
    for time in times:
        stream.push(f"<x:n{time}> <x:p> <x:o{time % 3}> .", time=time)
        stream.heartbeat(time)
        assert engine.flush(60)


def test_files_are_put_together_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "MOST_FILES", 4)
    with kelda.connect(checkpoint=tmp_path, keep=3) as engine:
        stream = engine.stream("x:s", absorb="x:g")
        engine.start()
        push(engine, stream, *range(100, 3000, 100))
        asked = {snapshot.number: count(engine, snapshot.number) for snapshot in engine.snapshots()}
        files = sorted(path.name for path in (tmp_path / "store" / "quads").glob("*.parquet"))
    assert any("-" in name for name in files) and len(files) < 20
    assert check(tmp_path / "store") == []
    with kelda.connect(checkpoint=tmp_path, keep=3) as engine:
        assert count(engine) == 29
        kept = {snapshot.number: count(engine, snapshot.number) for snapshot in engine.snapshots()}
    assert kept and kept.items() <= asked.items()


def test_snapshots_outlive_the_process(tmp_path: Path) -> None:
    with kelda.connect(checkpoint=tmp_path, keep=100) as engine:
        stream = engine.stream("x:s", absorb="x:g")
        engine.start()
        push(engine, stream, 100, 200, 300)
        before = engine.snapshots()
    with kelda.connect(checkpoint=tmp_path, keep=100) as engine:
        after = engine.snapshots()
        assert after[-1] == before[-1]
        assert {snapshot.number for snapshot in after} <= {snapshot.number for snapshot in before}
        assert {count(engine, snapshot.number) for snapshot in after} >= {1, 2, 3}
        engine.start()
        push(engine, engine.stream("x:s"), 400)
        assert engine.snapshots()[-1].number > before[-1].number
        assert count(engine) == 4


def test_an_update_is_seen_when_it_returns_also_beside_queries_that_feed_graphs(tmp_path: Path) -> None:
    with kelda.connect(checkpoint=tmp_path, batch_events=1) as engine:
        stream = engine.stream("x:s", absorb="x:g")
        engine.register(FEEDING, "feeding", output="changes", sink="graph:x:made")
        engine.start()
        for i in range(1, 40):
            stream.push(f"<x:n{i % 4}> <x:p> <x:v{i}> .", time=i * 100)
            engine.update(f"INSERT DATA {{ <x:u{i}> <x:count> {i} }}")
            assert engine.query(f"ASK {{ <x:u{i}> <x:count> {i} }}"), i


def test_a_live_query_that_was_waiting_for_its_first_instant_tells_all(tmp_path: Path) -> None:
    with kelda.connect(checkpoint=tmp_path) as engine:
        streams = [engine.stream(iri) for iri in ("x:s", "x:t")]
        engine.register("SELECT ?s { ?s <x:p> ?o }", "live")
        engine.update("INSERT DATA { <x:a> <x:p> 1 }")
        engine.start()
        push(engine, streams[0], 100)  # there is no instant before <x:t> has come so far
    with kelda.connect(checkpoint=tmp_path) as engine:
        (live,) = engine.queries
        engine.start()
        push(engine, engine.stream("x:t"), 100)
        assert [(answer.time, answer.sign) for answer in live.results()] == [(100, "+")]


@pytest.mark.parametrize("reference", [False, True])
def test_a_query_keeps_a_graph_current_by_definition_too(reference: bool) -> None:
    with kelda.connect(reference=reference) as engine:
        stream = engine.stream("x:s")
        engine.register(FEEDING, "feeding", output="changes", sink="graph:x:g")
        engine.start()
        push(engine, stream, 100, 200, 300, 400)
        assert count(engine) == 3
