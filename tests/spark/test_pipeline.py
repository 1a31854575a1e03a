"""A job in a real Spark: the same answers as without it, whatever the batches and shards."""

from __future__ import annotations

import json
import os
import re
import signal
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from kelda.engine.answer import Answer
from kelda.errors import InputError, KeldaError, QueryError, UsageError
from kelda.inprocess import by_reference
from kelda.io.job import Job, QuerySpec, StreamSource
from kelda.rdf.dictionary import Dictionary
from kelda.shards.merge import Merged
from kelda.spark.host import AtHost, Run
from kelda.spark.pipeline import Batch, Figures, Pipeline
from kelda.spark.run import Ledger, run
from kelda.spark.session import scratch
from kelda.spark.width import width_in
from tests.spark.scene import MASTER, PATIENCE, Told, hosts, until

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


def job_in(folder: Path, batch_events: int = 10_000, strict: bool = False, bad: bool = False) -> Job:
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
    texts = {"heat": HEAT, "how-many": HOW_MANY, "built": BUILT, "described": DESCRIBED}
    return Job(
        queries=tuple(QuerySpec(name, text) for name, text in texts.items()),
        streams=tuple(
            StreamSource(f"http://ex/{name}", str(folder / f"{name}.tsnt"))
            for name in ("heat", "people", "silence")
        ),
        graphs=((None, str(folder / "building.ttl")),),
        batch_events=batch_events,
        strict=strict,
    )


def small_job(folder: Path, events: int, batch_events: int = 10) -> Job:
    """One stream, an element a second, and how many there were in the last five."""
    lines = [f"{1000 * i}\t<http://ex/s> <http://ex/p> <http://ex/o{i % 3}> .\n" for i in range(events)]
    (folder / "a.tsnt").write_text("".join(lines))
    text = "SELECT ?o (COUNT(*) AS ?n) { STREAM <http://ex/a> [RANGE 5s] { ?s ?p ?o } } GROUP BY ?o"
    return Job(
        queries=(QuerySpec("q", text),),
        streams=(StreamSource("http://ex/a", str(folder / "a.tsnt")),),
        batch_events=batch_events,
    )


def sorted_lines(answers: list[Answer]) -> list[str]:
    """Within an instant the order of solutions means nothing, nor do the labels of blank nodes anywhere."""
    written = [re.sub(r"_:\w+", "_:b", a.to_json()) for a in answers]
    return [
        line for _, _, line in sorted((a.time, a.query, w) for a, w in zip(answers, written, strict=True))
    ]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    answers = sorted_lines(list(by_reference.run(job_in(tmp_path_factory.mktemp("reference")))))
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
        monkeypatch.setattr(Pipeline, "_in_one_stage", lambda self: False)
    told = Told()
    scratch()  # of Spark: stays where it is
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    job = job_in(tmp_path, batch_events, bad=bad)
    answers = list(run(job, master=MASTER, progress=told, shards=shards))
    assert sorted_lines(answers) == expected
    assert [a.time for a in answers] == sorted(a.time for a in answers)

    assert told.finished
    assert told.events == {"http://ex/heat": 25, "http://ex/people": 17, "http://ex/silence": 0}
    assert told.bytes == {stream.iri: Path(stream.path).stat().st_size for stream in job.streams}
    assert told.lates == {"http://ex/heat": 1}
    rejects = [(Path(r.source).name, r.line) for r in told.rejects]
    assert rejects == ([("heat.tsnt", 6), ("heat.tsnt", 27)] if bad else [])

    assert not list((tmp_path / "tmp").glob("kelda-checkpoint-*"))
    until(lambda: not hosts(), "hosts end with their run", 3.0)


@spark
def test_a_host_that_dies_before_it_was_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state store has its batch already; the answers went with the host."""
    job = small_job(tmp_path, 60)
    fetch, killed = AtHost.fetch, []

    def kill_and_fetch(at: AtHost, run: Run) -> bytes:
        if at.stamp[0] in (1, 3) and at.stamp[0] not in killed:
            killed.append(at.stamp[0])
            for process in hosts():
                os.kill(process, signal.SIGKILL)
        return fetch(at, run)

    monkeypatch.setattr(AtHost, "fetch", kill_and_fetch)
    answers = list(run(job, master=MASTER, shards=2))
    assert killed == [1, 3]
    assert sorted_lines(answers) == sorted_lines(list(by_reference.run(job)))


@spark
def test_a_checkpoint_keeps_its_way_through_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was begun with an exchange, and goes on so; whoever opens it afterwards sees which it is."""
    job = small_job(tmp_path, 40)
    checkpoint = tmp_path / "checkpoint"
    with monkeypatch.context() as patch:
        patch.setattr(Pipeline, "_in_one_stage", lambda self: False)
        answers = run(job, master=MASTER, checkpoint=str(checkpoint), shards=2)
        found = [next(answers)]
        answers.close()  # type: ignore[attr-defined]
    assert not Pipeline(job.streams, checkpoint, graphs=job.graphs, shards=2)._in_one_stage()
    found += run(job, master=MASTER, checkpoint=str(checkpoint), shards=2)
    assert sorted_lines(found) == sorted_lines(list(by_reference.run(job)))
    fresh = Pipeline(job.streams, tmp_path / "another", shards=2)
    assert fresh._in_one_stage()


@spark
def test_taken_up_again_where_it_was_left(tmp_path: Path) -> None:
    job = small_job(tmp_path, 40)
    checkpoint = str(tmp_path / "checkpoint")
    wanted = list(by_reference.run(job))
    first = run(job, master=MASTER, checkpoint=checkpoint, shards=2)
    found = [next(first) for _ in range(len(wanted) // 3)]  # to the middle of a batch
    first.close()  # type: ignore[attr-defined]
    until(lambda: not hosts(), "hosts end when nobody takes answers any more", 3.0)

    other = Job((QuerySpec("q", job.queries[0].text.replace("5s", "6s")),), job.streams, batch_events=10)
    with pytest.raises(UsageError, match="another job"):
        run(other, checkpoint=checkpoint, shards=2)
    with pytest.raises(UsageError, match="another job"):
        run(job, checkpoint=checkpoint, shards=3)

    found += run(job, master=MASTER, checkpoint=checkpoint, shards=2)
    assert sorted_lines(found) == sorted_lines(wanted)
    assert list(run(job, master=MASTER, checkpoint=checkpoint, shards=2)) == [], "all was taken"


@spark
def test_errors_are_told_as_what_they_are(tmp_path: Path) -> None:
    told = Told()
    with pytest.raises(InputError, match=r"heat\.tsnt, line 6: (.|\n)*without --strict"):
        list(run(job_in(tmp_path, strict=True, bad=True), master=MASTER, progress=told))
    assert not told.finished

    # Of ours, in a host: it loads the stored graphs, and they are not what they were a moment ago.
    answers = run(job_in(tmp_path), master=MASTER, shards=2)
    (tmp_path / "building.ttl").write_text("this is no Turtle")
    with pytest.raises(InputError, match=r"building\.ttl"):
        next(answers)

    # Of ours, in the process that opens the streams.
    answers = run(job_in(tmp_path), master=MASTER)
    (tmp_path / "people.tsnt").unlink()
    with pytest.raises(KeldaError, match=r"people\.tsnt"):
        next(answers)

    # Not ours, where answers are taken: one sentence, and where to look.
    def take(batch: Batch) -> None:
        raise ZeroDivisionError("told to crash")

    job = small_job(tmp_path, 3)
    pipeline = Pipeline(job.streams, tmp_path / "checkpoint", take=take)
    pipeline.register_all(job.queries)
    pipeline.start(MASTER)
    try:
        with pytest.raises(KeldaError, match="ZeroDivisionError: told to crash") as crash:
            pipeline.wait(PATIENCE)
    finally:
        pipeline.stop()
    assert len(str(crash.value).splitlines()) == 2
    until(lambda: not hosts(), "hosts end with their run, however it ended", 3.0)


# ------------------------------------------------------------- what needs no Spark to be refused


def test_a_bad_query_is_refused_at_once(tmp_path: Path) -> None:
    job = Job(queries=(QuerySpec("q", "SELECT ?x WHERE {"),), streams=job_in(tmp_path).streams)
    with pytest.raises(QueryError):
        run(job)


def test_a_missing_file_is_named_at_once(tmp_path: Path) -> None:
    job = job_in(tmp_path)
    (tmp_path / "building.ttl").unlink()
    with pytest.raises(InputError, match=r"building\.ttl"):
        run(job)
    (tmp_path / "heat.tsnt").unlink()
    with pytest.raises(InputError, match=r"heat\.tsnt"):
        run(job)


def test_a_refused_job_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with pytest.raises(UsageError, match="no balancing strategy"):
        run(job_in(tmp_path), balance="luck")
    with pytest.raises(UsageError, match="1 to 63"):
        run(job_in(tmp_path), shards=64)
    assert list(temporary.iterdir()) == []


def test_a_checkpoint_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="folder"):
        run(job_in(tmp_path), checkpoint="s3://bucket/x")
    (tmp_path / "letter").mkdir()
    (tmp_path / "letter" / "letter.txt").write_text("dear")
    with pytest.raises(UsageError, match="not a checkpoint"):
        run(job_in(tmp_path), checkpoint=str(tmp_path / "letter"))


def test_a_query_that_was_refused_can_be_registered_when_it_is_mended(tmp_path: Path) -> None:
    job = small_job(tmp_path, 3)
    pipeline = Pipeline(job.streams, tmp_path / "checkpoint", shards=2)
    (query,) = job.queries
    with pytest.raises(UsageError, match="what kind of sink"):
        pipeline.register(query, sink="answers.nonsense")
    with pytest.raises(QueryError):
        pipeline.register_all([query, QuerySpec("r", "SELECT")])
    assert pipeline.queries == []
    pipeline.register(query, sink=str(tmp_path / "answers.ndjson"))
    assert pipeline.queries == ["q"] and "over 2 shards by ?o" in pipeline.explain("q")
    with pytest.raises(UsageError, match="registered already"):
        pipeline.register(query)
    for call in (pipeline.drop, pipeline.pause, pipeline.explain):
        with pytest.raises(UsageError, match="no query named 'r' is registered; there are: q"):
            call("r")
    with pytest.raises(UsageError, match="cannot move"):
        pipeline.move("q", 1)
    pipeline.close()

    again = Pipeline(job.streams, tmp_path / "checkpoint", shards=2)
    assert again.queries == ["q"] and "over 2 shards by ?o" in again.explain("q")
    again.drop("q")
    again.close()
    assert Pipeline(job.streams, tmp_path / "checkpoint", shards=2).queries == []


class Results:
    """A batch without rows, from a cluster of so many cores."""

    def __init__(self, cores: int) -> None:
        self.sparkSession = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=cores))

    def toArrow(self) -> pa.Table:
        return pa.table({"told": pa.array([], pa.binary())})


def test_the_source_learns_how_wide_the_cluster_is(tmp_path: Path) -> None:
    pipeline = Pipeline([StreamSource("http://ex/s", "push:", format="tsnt")], tmp_path)
    offsets = tmp_path / "spark" / "offsets"
    offsets.mkdir(parents=True)
    for batch, cores in enumerate((2, 2, 6, 4)):  # executors join and leave
        (offsets / str(batch)).write_text("v1\n{}\n{}")  # as Spark does before
        pipeline._batch(Results(cores), batch)  # type: ignore[arg-type]
        assert width_in(tmp_path, 1) == cores


def test_figures_for_machines() -> None:
    figures = Figures(batch=3, events=10, shard_seconds=[0.5, 0.25])
    told = json.loads(figures.json())
    assert told["batch"] == 3 and told["shard_seconds"] == [0.5, 0.25] and told["lag_seconds"] is None
    assert set(told) == set(Figures.__slots__)


# ------------------------------------------------------------------------------------- ledger


def some(batch: int, *times: int) -> Batch:
    answers = [Answer("q", time, "+", bindings={}) for time in times]
    return Batch(batch, Merged([], Dictionary(), answers), [])


def test_ledger_remembers_what_was_taken(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, Job(queries=()))
    assert [a.time for a in ledger.hand_out(some(0, 1, 2))] == [1, 2]
    part = ledger.hand_out(some(1, 3, 4, 5))
    assert next(part).time == 3
    part.close()  # type: ignore[attr-defined]
    again = Ledger(tmp_path, Job(queries=()))
    assert list(again.hand_out(some(0, 1, 2))) == []
    assert [a.time for a in again.hand_out(some(1, 3, 4, 5))] == [4, 5]
    assert [a.time for a in again.hand_out(some(2, 6))] == [6]
    assert json.loads((tmp_path / "taken.json").read_text())["batch"] == 2


def test_ledger_refuses_the_checkpoint_of_another_job(tmp_path: Path) -> None:
    Ledger(tmp_path, Job(queries=()))
    with pytest.raises(UsageError, match="another job"):
        Ledger(tmp_path, Job(queries=(), t0=1))
