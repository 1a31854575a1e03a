"""Streams, graphs and queries in a real Spark: the same answers as without it, whatever the batches and
shards; every answer once in a sink, whatever happens."""

from __future__ import annotations

import json
import os
import re
import signal
import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import kelda
from kelda.cli.driving import drive
from kelda.engine.answer import Answer
from kelda.errors import InputError, KeldaError
from kelda.io.job import QuerySpec, StreamSource
from kelda.shards.deployment import Batch
from kelda.shards.figures import Figures
from kelda.shards.setup import Setup
from kelda.spark.client import AtHost
from kelda.spark.driver import SparkDriver
from kelda.spark.run import Run
from kelda.spark.session import scratch
from kelda.spark.width import width_in
from tests.spark.scene import MASTER, PATIENCE, driver_of, hosts, until

spark = pytest.mark.spark

HEAT = """
PREFIX : <http://ex/>
SELECT ?room ?t ?name WHERE {
  STREAM :heat [RANGE 3s] { ?s :value ?t }
  STREAM :people [RANGE 5s] { ?who :in ?room }
  ?s :room ?room . ?room :name ?name
}"""
HOW_MANY = """
PREFIX : <http://ex/>
SELECT (COUNT(?t) AS ?n) WHERE { STREAM :heat [RANGE 4s SLIDE 2s] { ?s :value ?t } }"""
BUILT = """
PREFIX : <http://ex/>
CONSTRUCT { ?who :was _:there . _:there :in ?room } WHERE { STREAM :people [NOW] { ?who :in ?room } }"""
DESCRIBED = """
PREFIX : <http://ex/>
DESCRIBE ?room WHERE { STREAM :people [RANGE 2s] { ?who :in ?room } }"""
QUERIES = {"heat": HEAT, "how-many": HOW_MANY, "built": BUILT, "described": DESCRIBED}
STREAMS = ("heat", "people", "silence")


def write_house(folder: Path, bad: bool = False) -> None:
    """Sensors that report heat, people who walk about, a stream on which nothing happens, a building."""

    def reading(time: int, sensor: int, value: int) -> str:
        integer = "<http://www.w3.org/2001/XMLSchema#integer>"
        return f'{time}\t<http://ex/s{sensor}> <http://ex/value> "{value}"^^{integer} .\n'

    heat = [reading(1000 * i + 7 * (i % 3), i % 4, 20 + i % 5) for i in range(1, 25)]
    heat.insert(10, reading(2000, 1, 99))  # too late
    if bad:
        heat.insert(5, "3000\tno triple\n")
        heat.append("no time at all\n")
    people = [
        f"{1500 * i}\t<http://ex/p{i % 3}> <http://ex/in> <http://ex/r{i % 2}> .\n" for i in range(1, 18)
    ]
    (folder / "heat.tsnt").write_text("".join(heat))
    (folder / "people.tsnt").write_text("".join(people))
    (folder / "silence.tsnt").write_text("")
    (folder / "building.ttl").write_text(
        "@prefix : <http://ex/> .\n"
        + "".join(f":s{i} :room :r{i % 2} .\n" for i in range(4))
        + '\n:r0 :name "Küche" . :r1 :name "hall"@en .\n'
    )


def house(folder: Path, master: str | None = MASTER, **how: Any) -> kelda.Engine:
    """An engine that is to read the files of a house."""
    engine = kelda.connect(master, **how)
    engine.load(folder / "building.ttl")
    for name in STREAMS:
        engine.stream(f"http://ex/{name}", str(folder / f"{name}.tsnt"))
    for name, text in QUERIES.items():
        engine.register(text, name=name)
    return engine


def to_the_end(engine: kelda.Engine) -> list[Answer]:
    """All answers, by query."""
    with engine:
        engine.start()
        assert engine.wait(PATIENCE)
        return [answer for query in engine.queries for answer in query.results()]


def sorted_lines(answers: Iterable[Answer]) -> list[str]:
    """Within an instant the order of solutions means nothing, nor do the labels of blank nodes anywhere."""
    written = ((a.time, a.query, re.sub(r"_:\w+", "_:b", a.to_json())) for a in answers)
    return [line for _, _, line in sorted(written)]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("reference")
    write_house(folder)
    answers = sorted_lines(to_the_end(house(folder, None, reference=True)))
    assert len(answers) > 50
    return answers


@spark
@pytest.mark.parametrize(
    ("shards", "batch_events", "bad", "exchange"),
    [(1, 13, True, False), (2, 10_000, False, False), (2, 20, False, True), (5, 5, False, False)],
)
def test_same_answers_as_the_reference(
    tmp_path: Path,
    expected: list[str],
    monkeypatch: pytest.MonkeyPatch,
    shards: int,
    batch_events: int,
    bad: bool,
    exchange: bool,
) -> None:
    if exchange:  # as on a cluster: parcels go through Spark
        monkeypatch.setattr(SparkDriver, "_may_hand_over", lambda self: False)
    scratch()  # of Spark: stays where it is
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    write_house(tmp_path, bad)
    # With graphs that are fixed, elements that cannot join with them are left out where they are read.
    engine = house(tmp_path, shards=shards, batch_events=batch_events, fixed_graphs=exchange)
    answers = to_the_end(engine)
    assert sorted_lines(answers) == expected
    for name in QUERIES:
        times = [a.time for a in answers if a.query == name]
        assert times == sorted(times)

    assert engine.figures.events == 25 + 17 and engine.figures.answers == len(answers)
    assert engine.late == {"http://ex/heat": 1, "http://ex/people": 0, "http://ex/silence": 0}
    rejects = [(Path(r.source).name, r.line) for r in engine.rejects]
    assert rejects == ([("heat.tsnt", 6), ("heat.tsnt", 27)] if bad else [])
    assert engine.figures.rejected == len(rejects)

    assert not list((tmp_path / "tmp").glob("kelda-checkpoint-*"))
    until(lambda: not hosts(), "hosts end with their run", 3.0)


# ---------------------------------------------------------------- every answer once, in a sink

EACH = "SELECT ?o (COUNT(*) AS ?n) { STREAM <http://ex/a> [RANGE 5s] { ?s ?p ?o } } GROUP BY ?o"


def write_seconds(folder: Path, events: int) -> list[str]:
    """An element a second; returns how many there were in the last five, by definition."""
    lines = [f"{1000 * i}\t<http://ex/s> <http://ex/p> <http://ex/o{i % 3}> .\n" for i in range(events)]
    (folder / "a.tsnt").write_text("".join(lines))
    reference = kelda.connect(reference=True)
    reference.stream("http://ex/a", str(folder / "a.tsnt"))
    reference.register(EACH, name="q")
    return sorted_lines(to_the_end(reference))


def seconds(folder: Path, **how: Any) -> kelda.Engine:
    """An engine over these, whose answers go to a file."""
    engine = kelda.connect(MASTER, checkpoint=folder / "checkpoint", shards=2, **how)
    if not engine.queries:
        engine.stream("http://ex/a", str(folder / "a.tsnt"))
        engine.register(EACH, name="q", sink=str(folder / "q.ndjson"))
    return engine


def in_sink(folder: Path) -> list[str]:
    """What is there, in the order of `sorted_lines`."""
    lines = (folder / "q.ndjson").read_text().splitlines()
    return sorted(lines, key=lambda line: (json.loads(line)["time"], line))


@spark
def test_a_host_that_dies_before_it_was_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state store has its batch already; the answers went with the host."""
    wanted = write_seconds(tmp_path, 60)
    fetch, killed = AtHost.fetch, []

    def kill_and_fetch(at: AtHost, run: Run) -> bytes:
        if at.stamp[0] in (1, 3) and at.stamp[0] not in killed:
            killed.append(at.stamp[0])
            for process in hosts():
                os.kill(process, signal.SIGKILL)
        return fetch(at, run)

    monkeypatch.setattr(AtHost, "fetch", kill_and_fetch)
    to_the_end(seconds(tmp_path, batch_events=10))
    assert killed == [1, 3]
    assert in_sink(tmp_path) == wanted


@spark
@pytest.mark.parametrize("exchange", [False, True])
def test_taken_up_again_where_it_was_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchange: bool
) -> None:
    """With the way through Spark that it was begun with, which whoever opens it afterwards can see."""
    wanted = write_seconds(tmp_path, 400)
    with monkeypatch.context() as patch:
        if exchange:
            patch.setattr(SparkDriver, "_may_hand_over", lambda self: False)
        with seconds(tmp_path, batch_events=10) as engine:
            engine.start()
            until(lambda: engine.wait(0.01) or engine.figures.batches >= 2, "two batches")
    until(lambda: not hosts(), "hosts end when nobody takes answers any more", 3.0)
    assert 0 < len(in_sink(tmp_path)) < len(wanted)

    again = seconds(tmp_path, batch_events=1000)
    assert driver_of(again)._may_hand_over() is not exchange
    to_the_end(again)
    assert in_sink(tmp_path) == wanted


# ------------------------------------------------------------------------- what goes wrong


@spark
def test_errors_are_told_as_what_they_are(tmp_path: Path) -> None:
    write_house(tmp_path, bad=True)
    with pytest.raises(InputError, match=r"heat\.tsnt, line 6: (.|\n)*without --strict"):
        drive(house(tmp_path), strict=True)

    # Of ours, in a host: it loads the stored graphs, and the copy is not what it was a moment ago.
    with house(tmp_path, shards=2, checkpoint=tmp_path / "broken") as engine:
        (copy,) = (tmp_path / "broken" / "graphs").iterdir()
        copy.write_bytes(b"this is no Turtle".ljust(copy.stat().st_size))
        engine.start()
        with pytest.raises(InputError, match=r"building\.ttl"):
            engine.wait(PATIENCE)

    # Of ours, in the process that opens the streams.
    with house(tmp_path, checkpoint=tmp_path / "lacking") as engine:
        (tmp_path / "people.tsnt").unlink()
        engine.start()
        with pytest.raises(KeldaError, match=r"people\.tsnt"):
            engine.wait(PATIENCE)

    # Not ours, where answers are taken: one sentence, and where to look.
    def take(batch: Batch) -> None:
        raise ZeroDivisionError("told to crash")

    driver = SparkDriver(Setup(), tmp_path / "checkpoint", master=MASTER, take=take)
    driver.add_stream(StreamSource("http://ex/heat", str(tmp_path / "heat.tsnt")))
    driver.deployment.register(QuerySpec("q", HOW_MANY))
    try:
        driver.start()
        with pytest.raises(KeldaError, match="ZeroDivisionError: told to crash") as crash:
            driver.wait(PATIENCE)
    finally:
        driver.stop()
    assert len(str(crash.value).splitlines()) == 2
    until(lambda: not hosts(), "hosts end with their run, however it ended", 3.0)


# ------------------------------------------------------------------------- without Spark


class Results:
    """A batch without rows, from a cluster of so many cores."""

    def __init__(self, cores: int) -> None:
        self.sparkSession = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=cores))

    def toArrow(self) -> pa.Table:
        return pa.table({"told": pa.array([], pa.binary())})


def test_the_source_learns_how_wide_the_cluster_is(tmp_path: Path) -> None:
    driver = SparkDriver(Setup(), tmp_path)
    offsets = tmp_path / "spark" / "offsets"
    offsets.mkdir(parents=True)
    for batch, cores in enumerate((2, 2, 6, 4)):  # executors join and leave
        (offsets / str(batch)).write_text("v1\n{}\n{}")  # as Spark does before
        driver._batch(Results(cores), batch)  # type: ignore[arg-type]
        assert width_in(tmp_path, 1) == cores
    driver.close()


def test_figures_for_machines() -> None:
    figures = Figures(batch=3, events=10, shard_seconds=[0.5, 0.25])
    told = json.loads(figures.json())
    assert told["batch"] == 3 and told["shard_seconds"] == [0.5, 0.25] and told["lag_seconds"] is None
    assert set(told) == set(Figures.__slots__)
