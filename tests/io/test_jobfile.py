"""Job files: what is read from them, and that every mistake is told, with its line."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kelda.cli.app import app
from kelda.cli.starter import BESIDE, write_starter
from kelda.errors import UsageError
from kelda.io.job import StreamSource
from kelda.io.jobfile import EngineSettings, JobGraph, read_job

LAB = "SELECT ?who { STREAM <http://ex/s> [RANGE 5s] { ?who <http://ex/in> <http://ex/lab> } }"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "s.tsnt").write_text("1000\t<http://ex/a> <http://ex/in> <http://ex/lab> .\n")
    (tmp_path / "g.ttl").write_text("<http://ex/a> <http://ex/b> 1 .\n")
    (tmp_path / "lab.rq").write_text(LAB)
    return tmp_path


STREAM = '[[stream]]\niri = "http://ex/s"\nsource = "s.tsnt"\n'
QUERY = '[[query]]\nfile = "lab.rq"\n'


def mistakes(folder: Path, text: str) -> list[str]:
    (folder / "job.toml").write_text(text)
    with pytest.raises(UsageError) as refused:
        read_job(folder / "job.toml")
    return [line.strip() for line in str(refused.value).splitlines()[1:]]


def test_all_that_can_be_said(folder: Path) -> None:
    (folder / "job.toml").write_text(
        """
[engine]
runner = "spark"
master = "local[2]"
shards = 3
balance = "least-latency"
checkpoint = "state"
batch_events = 500
t0 = 1970-01-01T00:00:01.500Z
memory_limit = "1GiB"
strict = true
rejects = "out/rejects.ndjson"

[[stream]]
iri = "http://ex/s"
source = "replay:s.tsnt?speed=60"
format = "tsnt"
time_predicate = "http://ex/at"
lateness = "5s"
idle = "PT2S"
rate = 100
max_record = "64kB"

[[stream]]
iri = "http://ex/fed"
source = "query:b"

[[graph]]
file = "g.ttl"

[[graph]]
file = "g.ttl"
graph = "http://ex/g"
format = "turtle"

[[query]]
file = "lab.rq"

[[query]]
name = "b"
text = '''CONSTRUCT { ?x <p> $one, $two, $three, $four }
WHERE { STREAM <http://ex/s> [NOW] { ?x <p> ?y } }'''
dialect = "cqels"
output = "istream"
sink = "csv:out/b"
base = "http://base/"
[query.params]
one = 1
two = 1.5
three = "<http://ex/x>"
four = "12"
"""
    )
    job = read_job(folder / "job.toml")
    assert job.engine == EngineSettings(
        "spark",
        "local[2]",
        3,
        "least-latency",
        folder / "state",
        500,
        1500,
        1024**3,
        True,
        folder / "out" / "rejects.ndjson",
    )
    assert job.streams == (
        StreamSource(
            "http://ex/s",
            f"replay:{folder}/s.tsnt?speed=60",
            "tsnt",
            "http://ex/at",
            None,
            5000,
            2000,
            100,
            64_000,
        ),
        StreamSource("http://ex/fed", "query:b"),
    )
    assert job.graphs == (
        JobGraph(str(folder / "g.ttl")),
        JobGraph(str(folder / "g.ttl"), "http://ex/g", "turtle"),
    )
    lab, b = job.queries
    assert (lab.spec.name, lab.spec.text, lab.sink) == ("lab", LAB, "console")
    assert (b.spec.name, b.spec.base, b.sink) == ("b", "http://base/", f"csv:{folder}/out/b")
    xsd = "http://www.w3.org/2001/XMLSchema#"
    assert b.spec.params == {
        "one": f'"1"^^<{xsd}integer>',
        "two": f'"1.5"^^<{xsd}decimal>',
        "three": "<http://ex/x>",
        "four": '"12"',
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (STREAM + QUERY + "[engine]\nshard = 2", "line 7, [engine] shard: there is no such key; did you"),
        (STREAM + QUERY + "[engine]\ncolour = 1", "there is no such key; there are: runner, master"),
        (
            STREAM + QUERY + "[streams]\nx = 1",
            "line 6, [streams]: there is no such table; did you",
        ),
        (STREAM + QUERY + '[engine]\nshards = "two"', "it is a whole number from 1 to 63, not 'two'"),
        (STREAM + QUERY + "[engine]\nstrict = 1", "it is true or false, not 1"),
        (STREAM + QUERY + '[engine]\nrunner = "sparkle"', "not 'sparkle'; did you mean 'spark'?"),
        (STREAM + QUERY + '[engine]\nrunner = "inprocess"\nshards = 2', 'it is for runner = "spark"'),
        (STREAM + QUERY + '[engine]\nt0 = "noon"', "'noon' is not a time"),
        (STREAM + QUERY + "[[engine]]\nshards = 2", "it is one table, written [engine]"),
        ("[stream]\n" + QUERY, "there may be several, so write [[stream]]"),
        (STREAM + "lateness = 5\n" + QUERY, 'line 4, [[stream]] lateness: it is a duration such as "5s"'),
        (STREAM + 'lateness = "soon"\n' + QUERY, "'soon' is not a duration; write 500ms"),
        (STREAM + 'max_record = "1GB"\nformat = "tsnt"\n' + QUERY, "16,000,000 bytes at most"),
        (STREAM + 'format = "morse"\n' + QUERY, "morse"),
        (STREAM + STREAM + QUERY, "<http://ex/s> is declared twice"),
        ('[[stream]]\niri = "http://ex/s"\n' + QUERY, "line 1, [[stream]]: it needs the key 'source'"),
        (
            '[[stream]]\niri = "s"\nsource = "s.tsnt"\n' + QUERY,
            "line 2, [[stream]] iri: it is an",
        ),
        ('[[stream]]\niri = "http://ex/s"\nsource = "t.tsnt"\n' + QUERY, "t.tsnt"),
        ('[[stream]]\niri = "http://ex/s"\nsource = "push:"\nformat = "tsnt"\n' + QUERY, "by a program"),
        ('[[stream]]\niri = "http://ex/s"\nsource = "query:x"\n' + QUERY, "the job has no query named 'x'"),
        (QUERY, 'it reads <http://ex/s>, and there is no [[stream]] with iri = "http://ex/s"'),
        (STREAM, "there is no [[query]]"),
        (STREAM + "[[query]]\nname = 'x'", "say one of the two"),
        (STREAM + QUERY + "text = 'SELECT'", "say one of the two"),
        (STREAM + '[[query]]\nfile = "nothing.rq"', "there is no file"),
        (STREAM + f"[[query]]\ntext = '{LAB}'", "the query has no name: say one"),
        (STREAM + QUERY + QUERY, "there is a query named 'lab' already"),
        (
            STREAM + QUERY + 'sink = "a.csv"\n' + QUERY + 'name = "b"\nsink = "a.csv"',
            "another query",
        ),
        (STREAM + QUERY + 'sink = "answers"', "line 6, [[query]] sink: cannot tell what kind of sink"),
        (STREAM + QUERY + 'sink = "csv:"', "say where to: csv:PATH"),
        (STREAM + QUERY + 'sink = "console:morse"', "the console shows answers as table or ndjson"),
        (STREAM + QUERY + 'sink = "stream:x"', "write a CONSTRUCT query"),
        (STREAM + QUERY + "params = { x = 1 }", "no such parameter: $x"),
        (STREAM + QUERY + "params = 1", "it is a table such as"),
        (STREAM + QUERY + '[[graph]]\nfile = "nothing.ttl"', "there is no file"),
        (STREAM + QUERY + '[[graph]]\nfile = "lab.rq"', "cannot tell the RDF format"),
    ],
)
def test_mistakes_are_told_with_the_way_out(folder: Path, text: str, says: str) -> None:
    assert any(says in line for line in mistakes(folder, text)), mistakes(folder, text)


def test_all_mistakes_are_told_at_once_in_their_order(folder: Path) -> None:
    broken = (
        STREAM
        + 'lateness = "x"\n[[query]]\nname = "a"\ntext = """\nSELECT ?x {\n  ?x }\n"""\n[engine]\nshard = 1\n'
    )
    assert mistakes(folder, broken) == [
        "line 4, [[stream]] lateness: 'x' is not a duration; write 500ms, 5s, 2m, 1h or PT5S",
        "line 7, [[query]] text: in the query, line 2, column 6: unexpected '}'",
        "?x }",
        "^",
        "expected: a predicate",
        "line 12, [engine] shard: there is no such key; did you mean 'shards'?",
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [("[engine\n", "line 1, column 8"), ("[engine]\nx = \n", "line 2, column 5"), ("x = '''", "at its end")],
)
def test_what_is_no_toml_is_shown(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "job.toml").write_text(text)
    with pytest.raises(UsageError, match="is not TOML") as refused:
        read_job(tmp_path / "job.toml")
    assert says in str(refused.value)


def test_no_file_at_all(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_job(tmp_path / "job.toml")


# ------------------------------------------------------------------------------------ kelda init


def test_init_writes_a_job_that_is_right(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["init", str(tmp_path / "new" / "town.toml")])
    assert done.exit_code == 0, done.output
    assert f"run it: kelda run {tmp_path}/new/town.toml" in done.stdout
    job = read_job(tmp_path / "new" / "town.toml")
    assert [query.spec.name for query in job.queries] == ["in-the-lab", "busy-rooms"]
    assert job.engine == replace(EngineSettings(), checkpoint=tmp_path / "new" / "state")
    text = (tmp_path / "new" / "town.toml").read_text()
    assert "kelda run town.toml" in text
    # What is commented out is right, too.
    (tmp_path / "new" / "town.toml").write_text(re.sub(r"(?m)^# (\w+ = )", r"\1", text))
    assert read_job(tmp_path / "new" / "town.toml").streams[0].lateness == 5000


@pytest.mark.parametrize("name", ["job.toml", *BESIDE])
def test_init_never_writes_over_anything(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(UsageError, match=f"{name} is there already"):
        write_starter(tmp_path / "job.toml")
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"
