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
import time
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode, Triple
from typer.testing import CliRunner

from kelda.cli import values
from kelda.cli.app import app
from kelda.cli.output import short, short_iri
from kelda.cli.progress import RunProgress
from kelda.doctor import find_java
from kelda.engine.answer import Answer
from kelda.errors import KeldaError, UsageError
from kelda.rdf.event import Reject

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
STREAM = f"http://example.org/sightings={EXAMPLES / 'sightings.tsnt'}"
FLOOR = f"http://example.org/floor={EXAMPLES / 'floor.ttl'}"


def query(*arguments: str | Path, runner: str = "reference"):
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
        env={**os.environ, "JAVA_HOME": "/nowhere"},
    )
    assert code == 5 and "JDK" in said


def test_debug_shows_the_traceback():
    done = kelda("query", "missing.rq", env={**os.environ, "KELDA_DEBUG": "1"})
    assert done.returncode == 2 and "Traceback" in done.stderr


def test_interrupt_is_130(tmp_path):
    pipe = tmp_path / "s.tsnt"
    os.mkfifo(pipe)
    command = [
        *(
            sys.executable,
            "-c",
            "from kelda.cli import main; main()",
            "query",
            str(EXAMPLES / "in-the-lab.rq"),
        ),
        *("--runner", "reference", "--stream", f"http://example.org/sightings={pipe}"),
    ]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    writer = os.open(pipe, os.O_WRONLY)  # waits until the command has opened it, then says nothing
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    os.close(writer)
    assert process.returncode == 130 and "Traceback" not in said


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
        (["--stream", STREAM, "--checkpoint", "c"], "--runner spark"),
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
    for command in ("query", "explain", "demo", "doctor", "version"):
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
    assert values.duration(text) == ms


@pytest.mark.parametrize("text", ["", "5", "s", "P", "PT", "-5s", "5 parsecs", "0.5ms", "P1Y"])
def test_what_is_no_duration(text):
    with pytest.raises(UsageError):
        values.duration(text)


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
    assert values.term_text(text) == term


@pytest.mark.parametrize("text", ["_:b", "<a b>", '"open', '"a" . <urn:x> <urn:y> <urn:z>'])
def test_what_is_no_parameter_value(text):
    with pytest.raises(UsageError):
        values.term_text(text)


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
    shown = RunProgress(1000, io.StringIO(), show=True, clock=lambda: now[0])
    now[0] = 20.0  # the start took a while; that is not reading
    shown.read("http://s", 0, 0)
    now[0] = 30.0
    shown.read("http://s", 50, 250)
    assert shown.stderr.getvalue() == " 25%  50 events  5/s  0:30 left\n"
    shown.rejected(Reject("f", 3, "broken", "…"))
    shown.late("http://s", 2)
    expected = "1 answer, 50 events, 1 reject (first: f, line 3: broken), 2 late (2 on <http://s>"
    assert shown.summary(1).startswith(expected)


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
