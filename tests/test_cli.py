"""The command line: what it accepts, what it writes, how it fails."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode, Triple
from typer.testing import CliRunner

from kelda import __version__
from kelda.cli import values
from kelda.cli.app import app
from kelda.cli.query import how_to_go_on
from kelda.cli.watch import Watch
from kelda.doctor import find_java
from kelda.engine.answer import Answer
from kelda.errors import InputError, KeldaError, UsageError
from kelda.io.job import StreamSource
from kelda.io.tables import short, short_iri
from kelda.io.values import duration, term_text
from kelda.rdf.event import Reject
from kelda.shards.shard import News
from tests.io.fake_engine import FakeBatch, FakeEngine

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
STREAM = f"http://example.org/sightings={EXAMPLES / 'sightings.tsnt'}"
FLOOR = f"http://example.org/floor={EXAMPLES / 'floor.ttl'}"


def query(*arguments: str | Path, runner: str = "inprocess"):
    """`kelda query … --runner reference`, in this process."""
    return CliRunner().invoke(app, ["query", *map(str, arguments), "--runner", runner])


def kelda(*arguments: str | Path, **more) -> subprocess.CompletedProcess[str]:
    """The real command, in a process of its own."""
    command = [sys.executable, "-c", "from kelda.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120, **more)


# ------------------------------------------------------------------------------ formats


def test_ndjson_is_one_answer_a_line():
    result = query(EXAMPLES / "in-the-lab.rq", "--stream", STREAM, "--format", "ndjson")
    assert result.exit_code == 0, result.output
    expected = [
        Answer("in-the-lab", time, "+", bindings={"who": NamedNode(f"http://example.org/{who}")}).to_json()
        for time, who in [(1000, "ann"), (3000, "cem")]
    ]
    assert result.stdout.splitlines() == expected


def test_csv_has_a_header_and_a_column_for_every_variable():
    arguments = [EXAMPLES / "in-the-lab.rq", EXAMPLES / "busy-rooms.rq", "--param", "least=1"]
    result = query(*arguments, "--stream", STREAM, "--graph", FLOOR, "--format", "csv")
    assert result.exit_code == 0, result.output
    rows = list(csv.reader(io.StringIO(result.stdout)))
    assert rows[0] == ["query", "time", "sign", "who", "room", "people"]
    assert ["in-the-lab", "1000", "+", "http://example.org/ann", "", ""] in rows
    assert ["busy-rooms", "2000", "+", "", "Laboratory", "1"] in rows


def test_json_is_one_array():
    result = query(EXAMPLES / "in-the-lab.rq", "--stream", STREAM, "--format", "json")
    assert [a["time"] for a in json.loads(result.stdout)] == [1000, 3000]


def test_json_without_answers_is_an_empty_array(tmp_path):
    empty = tmp_path / "empty.tsnt"
    empty.write_text("")
    result = query(
        EXAMPLES / "in-the-lab.rq", "--stream", f"http://example.org/sightings={empty}", "--format", "json"
    )
    assert json.loads(result.stdout) == []


def test_table_shows_iso_times_and_short_names():
    result = query(EXAMPLES / "in-the-lab.rq", "--stream", STREAM)
    assert "in-the-lab" in result.stdout
    assert re.search(r"1970-01-01T00:00:03Z +\+ +:cem", result.stdout)


def test_construct_answers_are_triples():
    arguments = [EXAMPLES / "floor-changes.rq", "--stream", STREAM, "--graph", FLOOR, "--format", "ndjson"]
    result = query(*arguments)
    assert result.exit_code == 0, result.output
    first = json.loads(result.stdout.splitlines()[0])
    assert first["triples"].startswith("<http://example.org/ann> <http://example.org/onFloor>")


def test_summary_goes_to_stderr():
    result = query(EXAMPLES / "in-the-lab.rq", "--stream", STREAM)
    assert result.stderr.startswith("2 answers, 3 events, 0 rejects, 0 late")
    assert "answers," not in result.stdout


def test_out_takes_the_answers(tmp_path):
    out = tmp_path / "answers.ndjson"
    result = query(EXAMPLES / "in-the-lab.rq", "--stream", STREAM, "--format", "ndjson", "--out", out)
    assert result.stdout == ""
    assert len(out.read_text().splitlines()) == 2


def test_out_never_overwrites_an_input(tmp_path):
    stream = tmp_path / "s.tsnt"
    stream.write_text("1\t<http://a> <http://b> <http://c> .\n")
    result = query(
        EXAMPLES / "in-the-lab.rq", "--stream", f"http://example.org/sightings={stream}", "--out", stream
    )
    assert isinstance(result.exception, UsageError)
    assert stream.read_text()


# ------------------------------------------------------------------------------- running


def test_a_query_without_windows_is_asked_once():
    result = query(EXAMPLES / "rooms.rq", "--graph", FLOOR, "--format", "csv")
    assert result.exit_code == 0, result.output
    assert [row.split(",")[3:] for row in result.stdout.splitlines()] == [
        ["room", "floor"],
        ["Entrance hall", "0"],
        ["Laboratory", "1"],
    ]


def test_relative_iris_stand_against_the_query_file_or_the_base(tmp_path):
    (tmp_path / "s.tsnt").write_text("1000\t<http://ex/a> <http://ex/p> <http://ex/b> .\n")
    text = (
        "SELECT ?s ?x (IRI('made') AS ?y) { STREAM ?s [NOW] { ?x ?p ?o } STREAM <seen> [NOW] { ?x ?p ?o } }"
    )
    (tmp_path / "q.rq").write_text(text)
    for base, name, made in [
        (None, "seen", f"{tmp_path.as_uri()}/"),
        (None, f"{tmp_path.as_uri()}/seen", f"{tmp_path.as_uri()}/"),
        ("http://e/x", "http://e/seen", "http://e/"),
        ("http://e/x", "seen", "http://e/"),
    ]:
        options = ["--base", base] if base else []
        given = ["--stream", f"{name}={tmp_path / 's.tsnt'}", "--format", "ndjson", *options]
        for runner in ("reference", "inprocess"):
            found = query(tmp_path / "q.rq", *given, runner=runner)
            assert found.exit_code == 0, found.output
            (bindings,) = [json.loads(line)["bindings"] for line in found.stdout.splitlines()]
            assert bindings["s"]["value"] == made + "seen"
            assert bindings["y"]["value"] == made + "made"
    explained = CliRunner().invoke(app, ["explain", str(tmp_path / "q.rq"), "--base", "http://e/"])
    assert "http://e/seen" in explained.stdout
    refused = query(tmp_path / "q.rq", "--stream", f"seen={tmp_path / 's.tsnt'}", "--base", "no base")
    assert "the base 'no base' is not an absolute IRI" in str(refused.exception)


def test_runners_agree():
    lines = [
        query(EXAMPLES / "in-the-lab.rq", "--stream", STREAM, "--format", "ndjson", runner=runner).stdout
        for runner in ("reference", "inprocess")
    ]
    assert lines[0] == lines[1] != ""


def test_answers_do_not_depend_on_the_batch():
    for size in ("1", "2", "1000"):
        result = query(
            EXAMPLES / "in-the-lab.rq", "--stream", STREAM, "--format", "ndjson", "--batch-events", size
        )
        assert len(result.stdout.splitlines()) == 2


def test_output_overrides_what_the_query_says():
    arguments = [EXAMPLES / "in-the-lab.rq", "--stream", STREAM, "--output", "rstream", "--format", "ndjson"]
    # The whole answer at each of the three instants: ann, ann, ann and cem.
    assert len(query(*arguments).stdout.splitlines()) == 4


def test_lateness_lets_late_elements_in(tmp_path):
    stream = tmp_path / "s.tsnt"
    line = "{}\t<http://example.org/{}> <http://example.org/seenIn> <http://example.org/lab> .\n"
    stream.write_text(line.format(3000, "ann") + line.format(1000, "bob"))
    given = ["--stream", f"http://example.org/sightings={stream}", "--format", "ndjson"]
    refused = query(EXAMPLES / "in-the-lab.rq", *given)
    assert "1 late (1 on <http://example.org/sightings>" in refused.stderr
    taken = query(EXAMPLES / "in-the-lab.rq", *given, "--lateness", "PT5S")
    assert [json.loads(line)["time"] for line in taken.stdout.splitlines()] == [1000, 3000]
    assert "0 late" in taken.stderr


def test_rejects_are_counted_and_kept(tmp_path):
    stream, rejects = tmp_path / "s.tsnt", tmp_path / "rejects.ndjson"
    stream.write_text(
        "nonsense\n1000\t<http://example.org/a> <http://example.org/seenIn> <http://example.org/lab> .\n"
    )
    given = [EXAMPLES / "in-the-lab.rq", "--stream", f"http://example.org/sightings={stream}"]
    result = query(*given, "--rejects", rejects)
    assert result.exit_code == 0
    assert f"1 reject (first: {stream}, line 1: " in result.stderr
    kept = json.loads(rejects.read_text())
    assert (kept["line"], kept["record"]) == (1, "nonsense")


def test_stream_format_for_all_and_for_one(tmp_path):
    stream = tmp_path / "stream.txt"
    stream.write_text((EXAMPLES / "sightings.tsnt").read_text())
    given = [EXAMPLES / "in-the-lab.rq", "--stream", f"http://example.org/sightings={stream}"]
    assert query(*given, "--stream-format", "tsnt").exit_code == 0
    assert query(*given, "--stream-format", "http://example.org/sightings=tsnt").exit_code == 0
    assert isinstance(query(*given, "--stream-format", "morse").exception, UsageError)


# -------------------------------------------------------------------- errors and exit codes


def failure(*arguments: str | Path, **more) -> tuple[int, str]:
    done = kelda(*arguments, **more)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


def test_exit_codes(tmp_path):
    bad = tmp_path / "bad.rq"
    bad.write_text("SELECT ?x WHERE { ?x ?y }")
    code, said = failure("query", bad, "--runner", "reference")
    assert code == 2 and f"error: {bad}: line 1" in said and "^" in said
    lab = EXAMPLES / "in-the-lab.rq"
    code, said = failure(
        "query", lab, "--runner", "reference", "--stream", "http://example.org/sightings=missing.nt"
    )
    assert code == 3 and "missing.nt" in said
    code, said = failure("query", lab, "--runner", "reference")
    assert code == 2 and "--stream http://example.org/sightings=FILE" in said
    code, said = failure("query", "--no-such-option")
    assert code == 2
    stream = tmp_path / "s.tsnt"
    stream.write_text("nonsense\n")
    given = ["--stream", f"http://example.org/sightings={stream}", "--runner", "reference", "--strict"]
    code, said = failure("query", lab, *given)
    assert code == 3 and "nonsense" in said


def test_no_java_says_what_to_install():
    code, said = failure(
        "query",
        EXAMPLES / "in-the-lab.rq",
        "--stream",
        STREAM,
        "--runner",
        "spark",
        env={**os.environ, "JAVA_HOME": "/nowhere"},
    )
    assert code == 5 and "JDK" in said


def test_debug_shows_the_traceback():
    done = kelda("query", "missing.rq", env={**os.environ, "KELDA_DEBUG": "1"})
    assert done.returncode == 2 and "Traceback" in done.stderr


@pytest.mark.parametrize("runner", ["reference", "inprocess"])
def test_interrupt_is_130_and_says_what_was_done(tmp_path, runner):
    pipe = tmp_path / "s.ndjsonld"
    os.mkfifo(pipe)
    command = [sys.executable, "-c", "from kelda.cli import main; main()", "query", "--runner", runner]
    command += [str(EXAMPLES / "in-the-lab.rq"), "--stream", f"http://example.org/sightings={pipe}"]
    command += ["--batch-events", "1", "--format", "ndjson", "--progress"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with pipe.open("w") as writer:  # waits until the command has opened it
        for who, time_ in (("ann", 1), ("cem", 3)):
            seen = {"@type": "@id", "@id": "http://example.org/seenIn"}
            record = {
                "@context": {"seenIn": seen, "at": "http://www.w3.org/ns/prov#generatedAtTime"},
                "@id": f"http://example.org/{who}",
                "seenIn": "http://example.org/lab",
                "at": f"1970-01-01T00:00:0{time_}Z",
            }
            writer.write(json.dumps(record) + "\n")
            writer.flush()
        assert process.stdout is not None
        assert "example.org/ann" in process.stdout.readline()  # and then nothing comes any more
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 130, said
    assert "Traceback" not in said
    done, way = said.splitlines()[-2:]
    assert done.startswith("1 answer, 2 events, 0 rejects, 0 late")
    assert way.startswith("stopped by Ctrl-C; the same command begins anew")


def test_who_stops_a_run_is_told_how_to_go_on():
    assert how_to_go_on(Path("state")).endswith("goes on from there, with what state keeps")
    assert "with --checkpoint DIR it would" in how_to_go_on(None)


def test_a_closed_pipe_is_no_tragedy():
    command = f"'{sys.executable}' -c 'from kelda.cli import main; main()' query {EXAMPLES / 'in-the-lab.rq'}"
    command += f" --runner reference --format ndjson --stream {STREAM} | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--stream", "gps.nt"], "IRI=FILE"),
        (["--stream", "gps=gps.nt"], "not an absolute IRI"),
        (["--stream", STREAM, "--stream", STREAM], "given twice"),
        (["--stream", STREAM, "--lateness", "soon"], "not a duration"),
        (["--stream", STREAM, "--param", "x=1"], "no query has the parameter $x"),
        (["--stream", STREAM, "--shards", "2"], "--shards is for --runner spark"),
        (["--stream", STREAM, "--master", "local[2]"], "--master is for --runner spark"),
        (["--stream", STREAM, "--sink", "foo"], "cannot tell what kind of sink"),
        (["--stream", STREAM, "--sink", "a.nq"], "write a CONSTRUCT query"),
        (["--stream", STREAM, "--sink", "a.csv", "--sink", "b.csv"], "given twice"),
        (["--stream", STREAM, "--checkpoint", "c", "--format", "json"], "ndjson"),
        (["--stream", STREAM, "--t0", "noon"], "not a time"),
        (["--stream", STREAM, "--graph", "http://example.org/g=missing.ttl"], "missing.ttl"),
        (["--stream", STREAM, "--out", "/no/such/folder/x"], "cannot write"),
    ],
)
def test_messages_say_what_to_do(arguments, says):
    error = query(EXAMPLES / "in-the-lab.rq", *arguments).exception
    assert isinstance(error, KeldaError) and says in str(error)


# -------------------------------------------------------------------------- other commands


def test_explain_and_version():
    explained = CliRunner().invoke(app, ["explain", str(EXAMPLES / "in-the-lab.rq")])
    assert explained.exit_code == 0 and "http://example.org/sightings" in explained.stdout
    assert re.fullmatch(r"kelda \d+\.\d+\S*\n", CliRunner().invoke(app, ["version"]).stdout)


def test_doctor_lists_its_checks():
    done = CliRunner().invoke(app, ["doctor"])
    assert done.exit_code in (0, 5)
    assert "Python" in done.stdout and "pyoxigraph" in done.stdout


def test_help_is_quick_and_names_every_command():
    started = time.monotonic()
    done = kelda("--help")
    assert time.monotonic() - started < 5
    for command in (
        "query",
        "explain",
        "demo",
        "init",
        "run",
        "add",
        "list",
        "drop",
        "pause",
        "update",
        "doctor",
    ):
        assert command in done.stdout
    loaded = kelda("--help", env={**os.environ, "PYTHONPROFILEIMPORTTIME": "1"}).stderr
    assert not re.search(r"\| +(pyspark|numba|pandas)\n", loaded)


def test_the_readme_tells_the_truth():
    code, shown = re.search(
        r"```python\n(.*?)```\n\n```\n(.*?)```", (ROOT / "README.md").read_text(), re.S
    ).groups()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert done.stdout == shown, done.stderr


# -------------------------------------------------------------------------------- the parts


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("5s", 5000),
        ("500ms", 500),
        ("PT5S", 5000),
        ("P1DT1H", 90_000_000),
        ("1.5h", 5_400_000),
        ("0", 0),
        ("2m", 120_000),
    ],
)
def test_durations(text, ms):
    assert duration(text) == ms


@pytest.mark.parametrize("text", ["", "5", "s", "P", "PT", "-5s", "5 parsecs", "0.5ms", "P1Y"])
def test_what_is_no_duration(text):
    with pytest.raises(UsageError):
        duration(text)


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("<http://a/b>", "<http://a/b>"),
        ('"x"@en', '"x"@en'),
        ('"1"^^<http://t>', '"1"^^<http://t>'),
        ("12", '"12"^^<http://www.w3.org/2001/XMLSchema#integer>'),
        ("1.5", '"1.5"^^<http://www.w3.org/2001/XMLSchema#decimal>'),
        ("1e3", '"1e3"^^<http://www.w3.org/2001/XMLSchema#double>'),
        ("true", '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>'),
        ('it\'s "so"', '"it\'s \\"so\\""'),
        ("http://a/b", '"http://a/b"'),
        ("", '""'),
    ],
)
def test_parameter_values(text, term):
    assert term_text(text) == term


@pytest.mark.parametrize("text", ["_:b", "<a b>", '"open', '"a" . <urn:x> <urn:y> <urn:z>'])
def test_what_is_no_parameter_value(text):
    with pytest.raises(UsageError):
        term_text(text)


def test_iris_and_files_with_equals_signs(tmp_path):
    file = tmp_path / "year=2026.nt"
    file.write_text("")
    assert values.iri_and_file(f"http://ex/s?a=b={file}", "--stream") == ("http://ex/s?a=b", str(file))
    assert values.iri_and_file("http://ex/s=a=b.nt", "--stream") == ("http://ex/s", "a=b.nt")


def test_short_terms():
    prefixes = [("ex", "http://ex/"), ("room", "http://ex/room/")]
    assert short_iri("http://ex/room/1", prefixes) == "room:1"
    assert short_iri("http://ex/other/1", prefixes) == "<http://ex/other/1>"
    assert short(Literal(21.5), prefixes) == "21.5"
    assert short(Literal("x", datatype=NamedNode("http://ex/t")), prefixes) == '"x"^^ex:t'
    triple = Triple(NamedNode("http://ex/a"), NamedNode("http://ex/b"), Literal(1))
    assert short((triple,), prefixes) == "ex:a ex:b 1 ."


def test_progress_shows_part_rate_and_time_left():
    now = [0.0]
    watch = Watch(io.StringIO(), show=True, clock=lambda: now[0])
    engine = FakeEngine()
    watch.begin(engine, [StreamSource("http://s", str(EXAMPLES / "sightings.tsnt"))])
    size = (EXAMPLES / "sightings.tsnt").stat().st_size
    now[0] = 20.0  # the start took a while; that is not reading
    (told,) = engine.watchers
    told(FakeBatch([News({"http://s": (0, 0)})]))
    watch.look()
    now[0] = 30.0
    rejects = (Reject("f", 3, "broken", "…"),)
    told(FakeBatch([News({"http://s": (50, size // 4)}, {"http://s": 2}, rejects)]))
    watch.look()
    assert watch.stderr.getvalue() == " 25%  50 events  5/s  0:30 left  batch 0 ms  state 0.0 MB\n"
    expected = "1 answer, 50 events, 1 reject (first: f, line 3: broken), 2 late (2 on <http://s>"
    assert watch.summary(1).startswith(expected)


# ------------------------------------------------------------------- in this process, and to the end


SEEN = "<http://example.org/{}> <http://example.org/seenIn> <http://example.org/lab> ."


@pytest.fixture
def sightings(tmp_path):
    path = tmp_path / "s.tsnt"
    path.write_text("".join(f"{1000 * i}\t{SEEN.format(i)}\n" for i in range(40)))
    return path


def asked(sightings, *arguments):
    """`kelda query` as it is without a runner."""
    given = ["query", EXAMPLES / "in-the-lab.rq", "--stream", f"http://example.org/sightings={sightings}"]
    return CliRunner().invoke(app, [*map(str, given), "--format", "ndjson", *map(str, arguments)])


def test_it_runs_in_this_process_unless_spark_is_asked_for(sightings, monkeypatch):
    monkeypatch.setattr("kelda.cli.driving.require_java", lambda: pytest.fail("Spark is wanted"))
    assert len(asked(sightings).stdout.splitlines()) == 40
    for on_spark in (["--runner", "spark"], ["--master", "local[2]"], ["--shards", "2"]):
        with pytest.raises(pytest.fail.Exception, match="Spark is wanted"):
            raise asked(sightings, *on_spark).exception


@pytest.mark.parametrize("kind", ["{}", "replay:{}?speed=1000", "folder:{}"])
def test_any_address_is_read_in_this_process(sightings, kind):
    path = sightings.parent if "folder" in kind else sightings
    found = asked(kind.format(path), "--stream-format", "tsnt")
    assert found.exit_code == 0, (found.output, found.exception)
    assert len(found.stdout.splitlines()) == 40


def test_a_run_goes_on_from_its_checkpoint(sightings, tmp_path):
    out, state = tmp_path / "answers.ndjson", tmp_path / "state"
    slow = [f"replay:{sightings}?speed=8", "--checkpoint", state, "--out", out]

    def press() -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until and not (out.exists() and out.stat().st_size):
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    stopped = asked(*slow)
    assert stopped.exit_code == 130, (stopped.output, stopped.exception)
    answers = int(stopped.stderr.splitlines()[-2].partition(" ")[0])
    assert 0 < answers == len(out.read_text().splitlines()) < 40
    assert asked(*slow).exit_code == 0
    assert [json.loads(line)["time"] for line in out.read_text().splitlines()] == list(range(0, 40_000, 1000))
    assert asked(*slow).exit_code == 0
    assert len(out.read_text().splitlines()) == 40, "there was nothing more to answer"
    text = (EXAMPLES / "in-the-lab.rq").read_text()
    other = CliRunner().invoke(app, ["query", "-e", text, "--stream", STREAM, "--checkpoint", str(state)])
    assert "belongs to another job" in str(other.exception)


def test_answers_can_go_to_a_sink(sightings, tmp_path):
    sink = tmp_path / "answers.csv"
    for _ in range(2):
        found = asked(sightings, "--sink", sink, "--checkpoint", tmp_path / "state")
        assert found.exit_code == 0, (found.output, found.exception)
        assert found.stdout == ""
        assert len(sink.read_text().splitlines()) == 41
    both = ["-e", (EXAMPLES / "in-the-lab.rq").read_text(), "--sink"]
    assert "--sink NAME=SINK" in str(asked(sightings, *both, "x.csv").exception)
    found = asked(sightings, *both, f"in-the-lab={tmp_path / 'some.ndjson'}")
    assert len(found.stdout.splitlines()) == 40
    assert found.stderr.startswith("80 answers, 40 events")
    assert len((tmp_path / "some.ndjson").read_text().splitlines()) == 40


# ---------------------------------------------------------------------------------- on Spark


@pytest.mark.spark
@pytest.mark.skipif(find_java() is None, reason="no JDK")
def test_spark_answers_as_the_reference_does(tmp_path):
    arguments = [*(EXAMPLES / f"{name}.rq" for name in ("in-the-lab", "busy-rooms", "floor-changes"))]
    arguments += ["--stream", STREAM, "--graph", FLOOR, "--param", "least=1", "--format", "ndjson"]
    by_definition = query(*arguments)
    on_spark = query(*arguments, "--master", "local[2]", "--batch-events", "2", runner="spark")
    assert on_spark.exit_code == 0, (on_spark.output, on_spark.exception)
    # Within an instant the order of solutions means nothing.
    assert sorted(on_spark.stdout.splitlines()) == sorted(by_definition.stdout.splitlines()) != []


@pytest.mark.spark
@pytest.mark.skipif(find_java() is None, reason="no JDK")
def test_a_finished_run_taken_up_again_adds_nothing(tmp_path):
    out = tmp_path / "answers.csv"
    arguments = [EXAMPLES / "in-the-lab.rq", "--stream", STREAM, "--format", "csv", "--out", out]
    arguments += ["--checkpoint", tmp_path / "checkpoint", "--master", "local[2]"]
    assert query(*arguments, runner="spark").exit_code == 0
    first = out.read_text()
    assert len(first.splitlines()) == 3
    assert query(*arguments, runner="spark").exit_code == 0
    assert out.read_text() == first


@pytest.mark.spark
@pytest.mark.skipif(find_java() is None, reason="no JDK")
def test_a_run_on_spark_that_was_interrupted_goes_on_with_the_same_command(tmp_path):
    out, stream = tmp_path / "answers.ndjson", tmp_path / "s.tsnt"
    seen = "<http://example.org/{}> <http://example.org/seenIn> <http://example.org/lab> ."
    stream.write_text("".join(f"{1000 * i}\t{seen.format(i)}\n" for i in range(40)))
    arguments = [EXAMPLES / "in-the-lab.rq", "--format", "ndjson", "--out", out, "--master", "local[2]"]
    arguments += ["--stream", f"http://example.org/sightings=replay:{stream}?speed=8"]
    arguments += ["--checkpoint", tmp_path / "state"]

    def press() -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until and not (out.exists() and out.stat().st_size):
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    stopped = query(*arguments, runner="spark")
    assert stopped.exit_code == 130, (stopped.output, stopped.exception)
    done, way = stopped.stderr.splitlines()[-2:]
    answers = int(done.partition(" ")[0])
    assert 0 < answers < 40
    assert way == f"stopped by Ctrl-C; the same command goes on from there, with what {tmp_path}/state keeps"
    assert len(out.read_text().splitlines()) == answers
    assert query(*arguments, runner="spark").exit_code == 0
    assert [json.loads(line)["time"] for line in out.read_text().splitlines()] == list(range(0, 40_000, 1000))


# ------------------------------------------------------------------------------- at first sight


def test_version_is_that_of_the_package():
    for arguments in (["--version"], ["version"]):
        result = CliRunner().invoke(app, arguments)
        assert (result.exit_code, result.stdout) == (0, f"kelda {__version__}\n")


def test_a_query_on_the_command_line():
    text = (EXAMPLES / "in-the-lab.rq").read_text()
    result = query("-e", text, "--stream", STREAM, "--format", "ndjson")
    assert result.exit_code == 0, result.output
    assert [json.loads(line)["query"] for line in result.stdout.splitlines()] == ["query", "query"]
    two = query("-e", text, "-e", text, "--stream", STREAM, "--format", "ndjson")
    assert {json.loads(line)["query"] for line in two.stdout.splitlines()} == {"query1", "query2"}
    explained = CliRunner().invoke(app, ["explain", "-e", text])
    assert "the last 5000 ms" in explained.stdout


def test_a_query_from_standard_input():
    text = (EXAMPLES / "in-the-lab.rq").read_text()
    arguments = ["query", "-", "--runner", "reference", "--stream", STREAM, "--format", "ndjson"]
    result = CliRunner().invoke(app, arguments, input=text)
    assert result.exit_code == 0, result.output
    assert [json.loads(line)["query"] for line in result.stdout.splitlines()] == ["stdin", "stdin"]
    broken = CliRunner().invoke(app, arguments, input="SELECT")
    assert str(broken.exception).startswith("standard input: line 1")


@pytest.mark.parametrize("runner", ["reference", "inprocess"])
def test_a_stream_from_standard_input(runner):
    arguments = ["query", EXAMPLES / "in-the-lab.rq", "--runner", runner, "--format", "ndjson"]
    stream = ["--stream", "http://example.org/sightings=-"]
    with (EXAMPLES / "sightings.tsnt").open() as file:
        piped = kelda(*arguments, *stream, "--stream-format", "tsnt", input=file.read())
    assert piped.returncode == 0, piped.stderr
    assert len(piped.stdout.splitlines()) == 2
    assert piped.stderr.startswith("2 answers, 3 events")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "no query is given"),
        (["-", "--stream", "http://ex/s=-", "--stream-format", "tsnt"], "standard input (-) is one thing"),
        (["-e", "ASK {}", "--stream", "http://ex/s=-"], "say it, --stream-format http://ex/s=tsnt"),
    ],
)
def test_what_standard_input_cannot_be(arguments, says):
    result = CliRunner().invoke(app, ["query", *arguments, "--runner", "reference"], input="ASK {}")
    assert says in str(result.exception)


def test_shells_can_complete():
    said = kelda(
        env={**os.environ, "_KELDA_COMPLETE": "complete_bash", "COMP_WORDS": "kelda que", "COMP_CWORD": "1"}
    )
    assert said.stdout.split() == ["query"]
    assert "--install-completion" in kelda("--help").stdout


@pytest.mark.parametrize("command", [None, "query", "explain", "run", "add", "list", "doctor", "bench"])
def test_help_at_80_columns_cuts_no_word(command, monkeypatch):
    """The words are those that are shown where there is room for everything."""

    def shown(columns: int) -> str:
        monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", columns)
        return CliRunner().invoke(app, [command, "--help"] if command else ["--help"]).stdout

    def words(text: str) -> set[str]:
        return set(re.sub("[│╭╰─╮╯]", " ", text).split())

    narrow, wide = shown(80), shown(400)
    assert max(map(len, narrow.splitlines())) <= 80 < max(map(len, wide.splitlines()))
    assert words(narrow) == words(wide)


def test_a_query_that_forgets_the_named_graph_gets_a_note():
    everything = "SELECT * { ?s ?p ?o }"
    result = query("-e", everything, "--graph", FLOOR)
    assert "note: 'query' looks for stored data in the default graph, which is empty" in result.stderr
    assert "GRAPH <http://example.org/floor> { … }" in result.stderr
    for fine in (
        query("-e", "SELECT * { GRAPH ?g { ?s ?p ?o } }", "--graph", FLOOR),
        query("-e", "SELECT * FROM <http://example.org/floor> { ?s ?p ?o }", "--graph", FLOOR),
        query("-e", everything, "--default-graph", EXAMPLES / "floor.ttl"),
        query("-e", everything, "--graph", FLOOR, "--default-graph", EXAMPLES / "floor.ttl"),
        query(EXAMPLES / "in-the-lab.rq", "--stream", STREAM, "--graph", FLOOR),
    ):
        assert fine.exit_code == 0, fine.output
        assert "note:" not in fine.stderr


@pytest.mark.parametrize(
    ("stream", "says"),
    [
        ("kafka://host:9092", "write kafka://host:port/topic"),
        ("nats://host/subject", "unknown kind of stream 'nats:'"),
        (f"replay:{EXAMPLES / 'sightings.tsnt'}?pace=2", "there is no option 'pace'"),
        (f"replay:{EXAMPLES / 'sightings.tsnt'}?speed=fast", "'fast' is no value"),
        ("folder:/no/such/folder", "there is no folder"),
        ("tcp://localhost", "tcp://host:port"),
    ],
)
def test_everything_is_checked_before_spark_starts(stream, says, monkeypatch):
    def start(*_: object, **__: object) -> None:
        pytest.fail("Spark was started")

    monkeypatch.setattr("kelda.spark.driver.session", start)
    monkeypatch.setattr("kelda.doctor.require_java", lambda: None)
    given = f"http://example.org/sightings={stream}"
    result = query(EXAMPLES / "in-the-lab.rq", "--stream", given, "--stream-format", "tsnt", runner="spark")
    assert isinstance(result.exception, KeldaError), result.exception
    assert says in str(result.exception)


def test_a_mapping_that_is_wrong_is_refused_before_spark_starts(tmp_path, monkeypatch):
    monkeypatch.setattr("kelda.spark.driver.session", lambda *_: pytest.fail("Spark was started"))
    monkeypatch.setattr("kelda.doctor.require_java", lambda: None)
    (tmp_path / "s.csv").write_text("a,b\n1,2\n")
    (tmp_path / "m.yaml").write_text("sujet: x\n")
    given = f"http://example.org/sightings={tmp_path / 's.csv'}"
    for mapping in (tmp_path / "m.yaml", tmp_path / "missing.yaml"):
        arguments = [EXAMPLES / "in-the-lab.rq", "--stream", given, "--mapping", mapping]
        result = query(*arguments, runner="spark")
        assert isinstance(result.exception, UsageError), result.exception
        assert "mapping" in str(result.exception)


def test_a_stream_of_which_all_was_rejected_is_no_success(tmp_path):
    bad = tmp_path / "bad.tsnt"
    bad.write_text("1000 <http://ex/a> <http://ex/p> <http://ex/o> .\nnonsense\n")
    given = [EXAMPLES / "in-the-lab.rq", "--stream", f"http://example.org/sightings={bad}"]
    for runner in ("inprocess", "reference"):
        result = query(*given, runner=runner)
        assert isinstance(result.exception, InputError) and result.exception.exit_code == 3
        assert "0 events, 2 rejects" in result.stderr  # the summary, before the error
        said = str(result.exception)
        assert "nothing of <http://example.org/sightings> could be read" in said
        assert (
            "line 1" in said
            and "a TAB" in said
            and "1000 <http://ex/a>" in said
            and "--stream-format" in said
        )
    bad.write_text("nonsense\n1000\t<http://ex/a> <http://ex/p> <http://ex/o> .\n")
    assert query(*given).exit_code == 0
    bad.write_text("")
    assert query(*given).exit_code == 0


def test_the_length_of_records_can_be_limited(tmp_path):
    stream = tmp_path / "s.tsnt"
    stream.write_text(
        f'1000\t<http://ex/a> <http://ex/p> "{"x" * 300}" .\n2000\t<http://ex/a> <http://ex/p> 1 .\n'
    )
    given = [EXAMPLES / "in-the-lab.rq", "--stream", f"http://example.org/sightings={stream}"]
    assert "300" not in query(*given).stderr
    result = query(*given, "--max-record", "0.2kB")
    assert "at most 200 are read" in result.stderr
    assert "can be 16,000,000 bytes at most" in str(query(*given, "--max-record", "1GB").exception)
    assert "is not a size" in str(query(*given, "--max-record", "big").exception)
