"""Pipelines on the command line: a job that runs, stops, goes on, and whose queries come and go."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kelda.cli.app import app
from kelda.cli.run import run
from kelda.engine.answer import Answer
from kelda.errors import InputError, KeldaError, QueryStopped, UsageError
from kelda.io.requests import Ask
from kelda.rdf.event import Reject
from kelda.shards.shard import News
from tests.io.fake_engine import FakeBatch, FakeEngine, FakeWorld

STREAM = "http://ex/s"
TEXT = f"SELECT ?who {{ STREAM <{STREAM}> [RANGE 5s] {{ ?who <http://ex/in> <http://ex/%s> }} }}"
JOB = f"""
[engine]
runner = "inprocess"
checkpoint = "state"
batch_events = 7

[[stream]]
iri = "{STREAM}"
source = "s.tsnt"

[[graph]]
file = "g.ttl"

[[query]]
file = "lab.rq"
sink = "lab.ndjson"
"""


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> FakeWorld:
    world = FakeWorld()
    monkeypatch.setattr("kelda.connect", world.connect)
    return world


@pytest.fixture
def job(tmp_path: Path) -> Path:
    (tmp_path / "s.tsnt").write_text("1000\t<http://ex/a> <http://ex/in> <http://ex/lab> .\n")
    (tmp_path / "g.ttl").write_text("<http://ex/a> <http://ex/b> 1 .\n")
    for room in ("lab", "hall"):
        (tmp_path / f"{room}.rq").write_text(TEXT % room)
    (tmp_path / "job.toml").write_text(JOB)
    return tmp_path / "job.toml"


def kelda(*arguments: str | Path):
    return CliRunner().invoke(app, [*map(str, arguments)])


@contextmanager
def running(world: FakeWorld, job: Path) -> Iterator[FakeEngine]:
    """The job in a thread; it ends with the block."""
    problems: list[BaseException] = []

    def run_it() -> None:
        try:
            run(job)
        except BaseException as problem:  # noqa: BLE001 - raised below
            problems.append(problem)

    for known in world.engines.values():
        known.started.clear()
    thread = threading.Thread(target=run_it)
    thread.start()
    engine = _engine_of(world, job, thread)
    if engine is None:
        raise problems[0]
    try:
        yield engine
    finally:
        engine.ends.set()
        thread.join()
    for problem in problems:
        raise problem


def _engine_of(world: FakeWorld, job: Path, thread: threading.Thread) -> FakeEngine | None:
    """The engine of a job that is being started; None if that has failed."""
    while (engine := world.engines.get(job.parent / "state")) is None or not engine.started.wait(0.01):
        if not thread.is_alive() and (engine is None or not engine.started.is_set()):
            return None
        time.sleep(0.01)
    return engine


def ran(world: FakeWorld, job: Path) -> tuple[FakeEngine, list[str]]:
    """What was done in one run of the job, to its end."""
    before = world.engines.get(job.parent / "state", FakeEngine())
    at = len(before.done)
    with running(world, job) as engine:
        pass
    return engine, engine.done[at:]


# ------------------------------------------------------------------------------------- kelda run


def test_a_job_is_brought_to_the_engine_and_ends_with_its_streams(world: FakeWorld, job: Path) -> None:
    engine, done = ran(world, job)
    assert done == [f"stream {STREAM}", "load g.ttl", "add lab", "start", "stop"]
    assert engine.queries[0].sink == str(job.parent / "lab.ndjson")
    assert world.asked == {
        "master": None,
        "checkpoint": job.parent / "state",
        "batch_events": 7,
        "shards": 1,
        "balance": "rotation",
        "t0": 0,
        "memory_limit": None,
        "fixed_graphs": False,
    }


def test_a_job_that_is_started_again_goes_on(world: FakeWorld, job: Path) -> None:
    ran(world, job)
    assert ran(world, job)[1] == ["start", "stop"]


def test_what_is_new_in_the_file_is_added(world: FakeWorld, job: Path) -> None:
    ran(world, job)
    (job.parent / "h.ttl").write_text("")
    job.write_text(JOB + '[[query]]\nfile = "hall.rq"\n[[graph]]\nfile = "h.ttl"\n')
    assert ran(world, job)[1] == ["load h.ttl", "add hall", "start", "stop"]


def test_what_is_gone_from_the_file_goes_on_and_is_said(world: FakeWorld, job: Path) -> None:
    engine, _ = ran(world, job)
    job.write_text(JOB.replace("lab.rq", "hall.rq").replace("lab.ndjson", "hall.ndjson"))
    engine.ends.wait = lambda timeout=None: True  # type: ignore[method-assign]
    result = kelda("run", job)
    assert result.exit_code == 0, result.output
    assert (
        f"note: query 'lab' is not in job.toml and goes on; to end it: kelda drop {job} lab" in result.stderr
    )
    assert [query.name for query in engine.queries] == ["lab", "hall"]


@pytest.mark.parametrize("change", [("lab.rq", "hall.rq"), ("lab.ndjson", "other.ndjson")])
def test_a_query_that_is_another_now_is_refused(world: FakeWorld, job: Path, change: tuple[str, str]) -> None:
    ran(world, job)
    job.write_text(JOB.replace(*change) + 'name = "lab"\n')
    result = kelda("run", job)
    assert isinstance(result.exception, UsageError)
    assert f"'lab' in {job.parent}/state is another query" in str(result.exception)
    assert f"kelda drop {job} lab" in str(result.exception)


def test_a_job_that_is_wrong_starts_nothing(world: FakeWorld, job: Path) -> None:
    job.write_text(JOB + "[[query]]\n")
    assert isinstance(kelda("run", job).exception, UsageError)
    assert world.engines == {}


def test_a_job_can_be_checked_only(world: FakeWorld, job: Path) -> None:
    result = kelda("run", job, "--check")
    assert result.stdout == f"{job} is right: 1 stream, 1 graph, 1 query\n"
    assert world.engines == {}


def test_ctrl_c_stops_it_and_says_how_to_go_on(world: FakeWorld, job: Path) -> None:
    def press() -> None:
        _engine_of(world, job, threading.main_thread())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    result = kelda("run", job)
    assert result.exit_code == 130, (result.output, result.exception)
    keeps = f"with what {job.parent}/state keeps"
    assert (
        result.stderr.splitlines()[-1] == f"stopped by Ctrl-C; `kelda run {job}` goes on from there, {keeps}"
    )
    assert world.engines[job.parent / "state"].done[-1] == "stop"


def ended(world: FakeWorld, job: Path, *batches: FakeBatch, **more: object) -> tuple[FakeEngine, Any]:
    """A run of a job whose engine brings these batches, and ends."""
    engine = world.engines[job.parent / "state"] = FakeEngine()
    engine.ends.wait = lambda timeout=None: True  # type: ignore[method-assign]
    engine.batches = list(batches)
    for name, value in more.items():
        setattr(engine, name, value)
    return engine, kelda("run", job)


BROKEN = (Reject("s.tsnt", 3, "broken", "nonsense"),)


def test_the_summary_and_the_rejects(world: FakeWorld, job: Path) -> None:
    job.write_text(JOB.replace("batch_events", 'rejects = "out/rejects.ndjson"\nbatch_events'))
    answers = [Answer("lab", 1, "+", boolean=True)] * 5
    _, result = ended(
        world,
        job,
        FakeBatch([News({STREAM: (400, 10)}, {STREAM: 2}, BROKEN)], answers),
        FakeBatch([News({STREAM: (600, 10)}, {"http://ex/t": 0})]),
    )
    assert result.exit_code == 0, (result.output, result.exception)
    said = result.stderr.splitlines()[-1]
    assert said.startswith(
        f"5 answers, 1,000 events, 1 reject (first: s.tsnt, line 3: broken), 2 late (2 on <{STREAM}>; "
    )
    assert json.loads((job.parent / "out" / "rejects.ndjson").read_text())["line"] == 3


def test_strict_ends_at_a_record_that_cannot_be_read(world: FakeWorld, job: Path) -> None:
    job.write_text(JOB.replace("batch_events", "strict = true\nbatch_events"))
    _, result = ended(world, job, FakeBatch([News(rejects=BROKEN)]))
    assert isinstance(result.exception, InputError)
    assert "s.tsnt, line 3: broken\n  nonsense" in str(result.exception)


def test_an_engine_that_fails(world: FakeWorld, job: Path) -> None:
    engine, result = ended(world, job, fails_with=InputError("the file is gone"))
    assert str(result.exception) == "the file is gone"
    assert engine.done[-1] == "stop"


def test_a_query_that_has_failed_is_told_at_the_end(world: FakeWorld, job: Path) -> None:
    with pytest.raises(QueryStopped, match="query 'lab' is stopped"), running(world, job) as engine:
        engine.queries[0].error = QueryStopped("query 'lab' is stopped")


# ------------------------------------------------------------- kelda add, list, drop, pause, resume


def test_queries_of_a_job_that_runs(world: FakeWorld, job: Path) -> None:
    with running(world, job) as engine:
        added = kelda("add", job, job.parent / "hall.rq", "--sink", "console:ndjson")
        assert added.exit_code == 0, (added.output, added.exception)
        assert added.stdout.startswith("added 'hall', from the next batch on")
        assert [query.name for query in engine.queries] == ["lab", "hall"]
        assert kelda("pause", job, "hall").stdout == "paused 'hall', from the next batch on\n"
        shown = kelda("list", job)
        assert "hall  (not in job.toml)" in shown.stdout and "paused" in shown.stdout
        assert "job.toml is running" in shown.stdout
        assert kelda("resume", job, "hall").stdout == "resumed 'hall', from the next batch on\n"
        machine = json.loads(kelda("list", job, "--json").stdout)
        assert machine["running"] is True
        assert [query["state"] for query in machine["queries"]] == ["running", "running"]
        assert kelda("drop", job, "hall").stdout == "dropped 'hall', from the next batch on\n"
        assert "still in" in kelda("drop", job, "lab").stdout
        assert engine.queries == []
        refused = kelda("drop", job, "lab")
        assert isinstance(refused.exception, KeldaError) and refused.exception.exit_code == 2
        assert "there is no query named 'lab'" in str(refused.exception)


def test_queries_of_a_job_that_is_stopped(
    world: FakeWorld, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, _ = ran(world, job)
    monkeypatch.chdir(job.parent)
    added = kelda("add", job, "-e", TEXT % "hall", "--name", "hall", "--sink", "hall.csv")
    assert added.stdout.startswith("added 'hall', for when the job runs again"), added.exception
    assert engine.queries[1].sink == str(job.parent / "hall.csv")
    assert engine.done[-2:] == ["add hall", "stop"]
    shown = kelda("list", job)
    assert "ready" in shown.stdout and "job.toml is not running" in shown.stdout
    assert kelda("pause", job, "hall").exit_code == 0
    assert kelda("drop", job, "hall").exit_code == 0
    assert ran(world, job)[1] == ["start", "stop"]


def test_an_update(world: FakeWorld, job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = job.parent
    monkeypatch.chdir(here)
    (here / "all.ru").write_text("CLEAR ALL")
    with running(world, job) as engine:
        assert kelda("update", job, "-e", "LOAD <a.ttl>").stdout == "updated, from the next batch on\n"
        assert kelda("update", job, "all.ru").exit_code == 0
        read = CliRunner().invoke(app, ["update", str(here / "state"), "-"], input="DROP ALL")
        assert read.exit_code == 0, read.exception
        kelda("update", job, "-e", "CLEAR NAMED", "--base", "http://e/")
    assert [done for done in engine.done if done.startswith("update")] == [
        f"update LOAD <a.ttl> at {here.as_uri()}/",
        f"update CLEAR ALL at {(here / 'all.ru').resolve().as_uri()}",
        f"update DROP ALL at {here.as_uri()}/",
        "update CLEAR NAMED at http://e/",
    ]
    assert kelda("update", job, "all.ru").stdout == "updated, for when the job runs again\n"


def test_what_was_asked_of_a_job_that_was_killed_is_done_when_it_runs_again(
    world: FakeWorld, job: Path
) -> None:
    ran(world, job)
    ask = Ask(job.parent / "state", "drop", name="lab")
    assert ran(world, job)[1] == ["drop lab", "add lab", "start", "stop"]
    assert ask.wait(0).result() == "lab"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["add"], "say one query"),
        (["add", "-e", "SELECT", "hall.rq"], "say one query"),
        (["add", "-e", "SELECT ?x {", "--name", "x"], "-e: line 1"),
        (["add", "-e", TEXT % "x"], "the query has no name"),
        (["add", "hall.rq", "--sink", "foo"], "cannot tell what kind of sink"),
        (["add", "hall.rq", "--param", "x=1"], "no such parameter: $x"),
        (["add", "lab.rq"], "registered already"),
        (["add", "-e", TEXT.replace("/s>", "/t>") % "x", "--name", "x"], f"it has: <{STREAM}>"),
        (["pause", "x"], "there is no query named 'x'; there are: lab"),
        (["resume", "x"], "there is no query named 'x'"),
        (["update"], "say one update"),
        (["update", "lab.rq"], "SELECT is a query, not an update"),
        (["update", "-e", "INSERT DATA {"], "-e: line 1"),
        (["update", "none.ru"], "cannot read the query none.ru"),
    ],
)
def test_mistakes_are_told(
    world: FakeWorld, job: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    ran(world, job)
    monkeypatch.chdir(job.parent)
    result = kelda(arguments[0], job, *arguments[1:])
    assert isinstance(result.exception, KeldaError), (result.output, result.exception)
    assert says in str(result.exception)
    assert [query.name for query in world.engines[job.parent / "state"].queries] == ["lab"]


def test_a_job_that_has_not_been_run(world: FakeWorld, job: Path) -> None:
    assert f"begin with `kelda run {job}`" in str(kelda("list", job).exception)
    job.write_text(JOB.replace('checkpoint = "state"', ""))
    assert 'write checkpoint = "state"' in str(kelda("list", job).exception)
    assert world.engines == {} and not (job.parent / "state").exists()


def test_a_job_that_does_not_answer(world: FakeWorld, job: Path) -> None:
    ran(world, job)
    engine = world.connect(checkpoint=job.parent / "state")  # somebody has it, and serves nobody
    result = kelda("pause", job, "lab", "--timeout", "0.2")
    assert "did not answer within" in str(result.exception) and "nothing was done" in str(result.exception)
    engine.stop()
    assert engine.queries[0].state == "running"
    assert kelda("list", job).exit_code == 0 and engine.queries[0].state == "running"


# ------------------------------------------------------------------------- with an engine that is one


SLOW = """
[engine]
runner = "inprocess"
checkpoint = "state"

[[stream]]
iri = "http://ex/s"
source = "replay:s.tsnt?speed=20"

[[query]]
file = "lab.rq"
sink = "lab.ndjson"
"""


@pytest.fixture
def slow(job: Path) -> Path:
    """A job that takes five seconds: an element of the lab or the hall every fifty milliseconds."""
    lines = [
        f"{1000 * i}\t<http://ex/{i}> <http://ex/in> <http://ex/{'hall' if i % 2 else 'lab'}> .\n"
        for i in range(100)
    ]
    (job.parent / "s.tsnt").write_text("".join(lines))
    job.write_text(SLOW)
    return job


def process(job: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", "from kelda.cli import main; main()", "run", str(job)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parent.parent)


def lines_of(path: Path, least: int = 0) -> list[str]:
    """What a sink holds, when it holds so much."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        lines = path.read_text().splitlines() if path.exists() else []
        if len(lines) >= least:
            return lines
        time.sleep(0.02)
    raise AssertionError(f"{path} has not so much")


@pytest.mark.slow
def test_a_job_that_is_killed_has_each_answer_once(slow: Path) -> None:
    sink, hall = slow.parent / "lab.ndjson", slow.parent / "hall.ndjson"
    for rounds in (5, 15, 25):
        running = process(slow)
        lines_of(sink, rounds)
        if rounds == 5:
            added = kelda("add", slow, slow.parent / "hall.rq", "--sink", hall)
            assert added.exit_code == 0, (added.output, added.exception)
            assert "from the next batch on" in added.stdout
            assert json.loads(kelda("list", slow, "--json").stdout)["running"] is True
        running.kill()
        running.communicate()
    assert kelda("pause", slow, "hall").stdout == "paused 'hall', for when the job runs again\n"
    heard = len(lines_of(hall))
    running = process(slow)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 0, said
    assert [json.loads(line)["time"] for line in lines_of(sink)] == list(range(0, 100_000, 2000))
    times = [json.loads(line)["time"] for line in lines_of(hall)]
    assert heard == len(times) and times == list(range(times[0], times[-1] + 1, 2000))


def test_a_job_that_is_stopped_by_ctrl_c_goes_on(slow: Path) -> None:
    running = process(slow)
    lines_of(slow.parent / "lab.ndjson", 5)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 130, said
    assert "goes on from there" in said and "Traceback" not in said
    done = kelda("run", slow)
    assert done.exit_code == 0, (done.output, done.exception)
    assert len(lines_of(slow.parent / "lab.ndjson")) == 50
    job_with_other_stream = SLOW.replace("speed=20", "speed=30")
    slow.write_text(job_with_other_stream)
    assert "stays as it was declared" in str(kelda("run", slow).exception)


def test_the_job_that_init_writes_runs(tmp_path: Path) -> None:
    assert kelda("init", tmp_path / "job.toml").exit_code == 0
    text = (tmp_path / "job.toml").read_text()
    (tmp_path / "job.toml").write_text(text.replace('runner = "spark"', 'runner = "inprocess"'))
    done = kelda("run", tmp_path / "job.toml")
    assert done.exit_code == 0, (done.output, done.exception)
    assert "Laboratory" in done.stdout
    assert len((tmp_path / "in-the-lab.ndjson").read_text().splitlines()) == 6
