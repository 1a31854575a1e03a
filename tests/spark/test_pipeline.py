"""The whole pipeline in a real Spark: the same answers as without it, whatever the batches."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from pyoxigraph import Literal

from kelda.engine.answer import Answer
from kelda.errors import InputError, KeldaError, QueryError, UsageError
from kelda.rdf.event import Reject
from kelda.runner import reference_runner
from kelda.runner.job import Job, QuerySpec, StreamSource
from kelda.spark.pipeline import Batch, Ledger, run
from tests.spark import standin

spark = pytest.mark.spark
MASTER = "local[2]"

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


class Told:
    """A progress that keeps what it hears."""

    def __init__(self) -> None:
        self.events: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()
        self.lates: Counter[str] = Counter()
        self.rejects: list[Reject] = []
        self.finished = False

    def read(self, stream: str, events: int, bytes: int) -> None:
        self.events[stream] += events
        self.bytes[stream] += bytes

    def rejected(self, reject: Reject) -> None:
        self.rejects.append(reject)

    def late(self, stream: str, count: int) -> None:
        self.lates[stream] += count

    def done(self) -> None:
        self.finished = True


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
    return Job(
        queries=(QuerySpec("heat", HEAT), QuerySpec("how-many", HOW_MANY), QuerySpec("built", BUILT)),
        streams=tuple(
            StreamSource(f"http://ex/{name}", str(folder / f"{name}.tsnt"))
            for name in ("heat", "people", "silence")
        ),
        graphs=((None, str(folder / "building.ttl")),),
        batch_events=batch_events,
        strict=strict,
    )


def small_job(folder: Path, values: list[str], batch_events: int = 10) -> Job:
    """One stream for the stand-in evaluator: an element a second."""
    lines = [f'{1000 * i}\t<http://ex/s> <http://ex/p> "{value}" .\n' for i, value in enumerate(values)]
    (folder / "a.tsnt").write_text("".join(lines))
    return Job(
        queries=(), streams=(StreamSource("http://ex/a", str(folder / "a.tsnt")),), batch_events=batch_events
    )


def sorted_lines(answers: list[Answer]) -> list[str]:
    """Within an instant the order of solutions means nothing."""
    return [line for _, _, line in sorted((a.time, a.query, a.to_json()) for a in answers)]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    answers = sorted_lines(list(reference_runner.run(job_in(tmp_path_factory.mktemp("reference")))))
    assert len(answers) > 50
    return answers


@spark
@pytest.mark.parametrize("batch_events", [10_000, 13, 5])
def test_same_answers_as_the_reference(tmp_path: Path, expected: list[str], batch_events: int) -> None:
    told = Told()
    job = job_in(tmp_path, batch_events)
    answers = list(run(job, master=MASTER, progress=told))
    assert sorted_lines(answers) == expected
    assert [a.time for a in answers] == sorted(a.time for a in answers)
    assert told.finished
    assert told.events == {"http://ex/heat": 25, "http://ex/people": 17, "http://ex/silence": 0}
    assert told.bytes == {stream.iri: Path(stream.path).stat().st_size for stream in job.streams}
    assert told.lates == {"http://ex/heat": 1}


@spark
def test_rejects_are_counted_and_the_rest_goes_on(tmp_path: Path, expected: list[str]) -> None:
    told = Told()
    answers = list(run(job_in(tmp_path, 13, bad=True), master=MASTER, progress=told))
    assert sorted_lines(answers) == expected
    assert [(Path(r.source).name, r.line) for r in told.rejects] == [("heat.tsnt", 6), ("heat.tsnt", 27)]


@spark
def test_strict_stops_at_the_first_bad_record(tmp_path: Path) -> None:
    told = Told()
    with pytest.raises(InputError, match=r"heat\.tsnt, line 6: (.|\n)*without --strict"):
        list(run(job_in(tmp_path, strict=True, bad=True), master=MASTER, progress=told))
    assert not told.finished


@spark
def test_taken_up_again_where_it_was_left(tmp_path: Path) -> None:
    job = small_job(tmp_path, ["x"] * 40)
    checkpoint = str(tmp_path / "checkpoint")
    wanted = list(run(job, master=MASTER, prepare=standin.prepare))
    first = run(job, master=MASTER, checkpoint=checkpoint, prepare=standin.prepare)
    left_at = 14  # in the second batch
    found = [next(first) for _ in range(left_at)]
    first.close()  # type: ignore[attr-defined]
    found += run(job, master=MASTER, checkpoint=checkpoint, prepare=standin.prepare)
    assert found == wanted and len(wanted) == 40
    assert wanted[-1].bindings is not None and wanted[-1].bindings["total"] == Literal(40)
    assert list(run(job, master=MASTER, checkpoint=checkpoint, prepare=standin.prepare)) == [], (
        "all was taken"
    )


@spark
def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = {path.name for path in tmp_path.iterdir()}
    job = small_job(tmp_path, ["x"] * 3)
    assert len(list(run(job, master=MASTER, prepare=standin.prepare))) == 3
    left = {path.name for path in tmp_path.iterdir()} - before - {"a.tsnt"}
    assert not [name for name in left if name.startswith("kelda-checkpoint")]


@spark
def test_an_error_of_ours_in_a_worker_comes_back_as_it_was(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^told to fail$"):
        list(run(small_job(tmp_path, ["x", "fail"]), master=MASTER, prepare=standin.prepare))


@spark
def test_a_crash_in_a_worker_is_told_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(KeldaError, match="ZeroDivisionError: told to crash") as told:
        list(run(small_job(tmp_path, ["x", "crash"]), master=MASTER, prepare=standin.prepare))
    assert len(str(told.value).splitlines()) == 2


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


def test_a_checkpoint_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="folder"):
        run(job_in(tmp_path), checkpoint="s3://bucket/x")


# ------------------------------------------------------------------------------------- ledger


def some(batch: int, *times: int) -> Batch:
    return Batch(batch, [Answer("q", time, "+", bindings={}) for time in times], [])


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
    assert json.loads((tmp_path / "kelda.json").read_text())["batch"] == 2


def test_ledger_refuses_the_checkpoint_of_another_job(tmp_path: Path) -> None:
    Ledger(tmp_path, Job(queries=()))
    with pytest.raises(UsageError, match="another job"):
        Ledger(tmp_path, Job(queries=(), t0=1))


def test_ledger_refuses_a_folder_with_other_things(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(UsageError, match="not a checkpoint"):
        Ledger(tmp_path, Job(queries=()))
