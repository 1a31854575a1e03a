"""`kelda ask`, and stored graphs that grow: by the streams of a job, by updates, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import kelda as package
from kelda.cli.app import app
from kelda.errors import KeldaError
from kelda.io.jobfile import read_job
from kelda.io.requests import Desk
from kelda.io.results import as_plain, from_plain
from kelda.shards.at_rest import at_rest

STREAM, GRAPH = "http://ex/s", "http://ex/g"
JOB = f"""
[engine]
runner = "inprocess"
checkpoint = "state"
keep = 10
batch_events = 2

[[stream]]
iri = "{STREAM}"
source = "s.tsnt"
absorb = "{GRAPH}"
predicates = ["http://ex/in"]

[[graph]]
file = "kinds.ttl"

[[query]]
name = "live"
text = "SELECT ?who {{ GRAPH <{GRAPH}> {{ ?who <http://ex/in> ?room }} }}"
sink = "live.ndjson"

[[query]]
name = "fed"
text = "CONSTRUCT {{ ?x <http://ex/now> ?y }} {{ STREAM <{STREAM}> [RANGE 1s] {{ ?x <http://ex/in> ?y }} }}"
output = "changes"
sink = "graph:http://ex/now"
"""
WHO = f"SELECT ?who {{ GRAPH <{GRAPH}> {{ ?who <http://ex/in> ?room }} }}"
KINDS = "SELECT * { ?s <http://ex/kind> ?kind }"


def kelda(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)])


def asked(*arguments: str | Path) -> list[dict[str, str]]:
    """The rows of an answer, as texts."""
    result = kelda("ask", *arguments, "--format", "ndjson")
    assert result.exit_code == 0, result.exception
    rows = [json.loads(line)["bindings"] for line in result.stdout.splitlines()]
    return [{name: term["value"] for name, term in row.items()} for row in rows]


def people(*arguments: str | Path) -> list[str]:
    return sorted(row["who"].removeprefix("http://ex/") for row in asked(*arguments, "-e", WHO))


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job that was run to its end."""
    folder = tmp_path_factory.mktemp("job")
    lines = [
        f"{i}000\t<http://ex/p{i}> <http://ex/{'in' if i != 3 else 'by'}> <http://ex/lab> ."
        for i in range(1, 6)
    ]
    (folder / "s.tsnt").write_text("\n".join(lines) + "\n")
    (folder / "kinds.ttl").write_text("<http://ex/p1> <http://ex/kind> 1 .\n")
    (folder / "job.toml").write_text(JOB)
    ran = kelda("run", folder / "job.toml")
    assert ran.exit_code == 0, ran.exception
    return folder / "job.toml"


def test_a_job_absorbs_and_its_live_query_tells(done: Path) -> None:
    lines = map(json.loads, (done.parent / "live.ndjson").read_text().splitlines())
    told = [(line["time"], line["bindings"]["who"]["value"]) for line in lines]
    assert told == [(i * 1000, f"http://ex/p{i}") for i in (1, 2, 4, 5)]


def test_what_a_job_has_stored(done: Path) -> None:
    assert people(done) == people(done.parent / "state") == ["p1", "p2", "p4", "p5"]
    assert asked(done, "-e", KINDS) == [{"s": "http://ex/p1", "kind": "1"}]


def test_a_graph_that_a_query_feeds(done: Path) -> None:
    now = "SELECT ?s { GRAPH <http://ex/now> { ?s ?p ?o } }"
    assert asked(done, "-e", now) == [{"s": "http://ex/p5"}]
    assert kelda("run", done).exit_code == 0
    assert asked(done, "-e", now) == [{"s": "http://ex/p5"}]


def test_a_query_in_a_file_with_parameters(done: Path, tmp_path: Path) -> None:
    (tmp_path / "q.rq").write_text("SELECT ?kind { $who <http://ex/kind> ?kind }")
    assert asked(done, tmp_path / "q.rq", "--param", "who=<http://ex/p1>") == [{"kind": "1"}]


def test_the_past(done: Path) -> None:
    stored = json.loads(kelda("store", done.parent / "state", "--json").stdout)
    numbers = [str(snapshot["number"]) for snapshot in stored["snapshots"]]
    seen = [people(done, "--at", number) for number in numbers]
    assert seen == sorted(seen) and seen[-1] == ["p1", "p2", "p4", "p5"] and ["p1"] in seen
    assert people(done, "--at", "1970-01-01T00:00:02Z") == ["p1", "p2"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--at", "77", "-e", WHO], "snapshot 77 is not kept; there are: 0 to"),
        (["--at", "1970-01-02T00:00:00Z", "-e", WHO], "the streams have not come so far yet"),
        (["--at", "noon", "-e", WHO], "'noon' is not a time"),
        ([], "say whom to ask what"),
        (["a.rq", "b.rq"], "say whom to ask what"),
        (["-e", f"SELECT * {{ STREAM <{STREAM}> [NOW] {{ ?s ?p ?o }} }}"], "`kelda add` it to a job"),
    ],
)
def test_what_cannot_be_asked(done: Path, arguments: list[str], says: str) -> None:
    result = kelda("ask", done, *arguments)
    assert isinstance(result.exception, KeldaError) and says in str(result.exception), result.exception


def test_where_nothing_is(tmp_path: Path) -> None:
    (tmp_path / "s.tsnt").touch()
    (tmp_path / "kinds.ttl").touch()
    (tmp_path / "job.toml").write_text(JOB)
    assert "has not been run yet" in str(kelda("ask", tmp_path / "job.toml", "-e", WHO).exception)
    assert "is no checkpoint of Kelda" in str(kelda("ask", tmp_path, "-e", WHO).exception)


def test_forms_and_formats(done: Path) -> None:
    table = kelda("ask", done, "-e", WHO).stdout
    assert "time" not in table and "<http://ex/p1>" in table
    assert "true" in kelda("ask", done, "-e", "ASK { ?s ?p ?o }").stdout
    triples = kelda("ask", done, "-e", "CONSTRUCT WHERE { ?s ?p ?o }", "--format", "json").stdout
    assert "<http://ex/kind>" in json.loads(triples)[0]["triples"]
    assert kelda("ask", done, "-e", WHO, "--format", "csv").stdout.startswith("query,time,sign,who\n")


def test_how_it_would_be_answered(done: Path) -> None:
    assert "look up" in kelda("ask", done, "-e", KINDS, "--explain").stdout
    assert "star of ?s" in kelda("ask", done, "-e", KINDS, "--explain", "--on", "spark").stdout


def test_files(done: Path) -> None:
    kinds = done.parent / "kinds.ttl"
    assert asked("--default-graph", kinds, "-e", KINDS) == [{"s": "http://ex/p1", "kind": "1"}]
    assert asked("--graph", f"{GRAPH}={kinds}", "-e", f"SELECT ?s {{ GRAPH <{GRAPH}> {{ ?s ?p ?o }} }}")
    refused = kelda("ask", "--default-graph", kinds, "-e", KINDS, "--at", "1")
    assert "not for files" in str(refused.exception)


# ------------------------------------------------------------------------------------- updates


def test_an_update_of_a_job_that_does_not_run_is_seen_at_once(tmp_path: Path) -> None:
    with package.connect(checkpoint=tmp_path) as engine:
        engine.update("INSERT DATA { <http://ex/a> <http://ex/kind> 1 }")
    assert kelda("update", tmp_path, "-e", "DELETE WHERE { ?s ?p 1 }").exit_code == 0
    assert kelda("update", tmp_path, "-e", "INSERT DATA { <http://ex/b> <http://ex/kind> 2 }").exit_code == 0
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    assert asked(tmp_path, "-e", KINDS) == [{"s": "http://ex/b", "kind": "2"}]
    files.pop(tmp_path / ".lock")
    assert all(path.stat().st_mtime_ns == at for path, at in files.items())
    with package.connect(checkpoint=tmp_path) as engine:
        assert len(engine.query(KINDS).rows) == len(at_rest(tmp_path).view()) == 1  # type: ignore[union-attr]


def test_an_engine_that_runs_is_asked_and_updated(tmp_path: Path) -> None:
    numbers = []
    with package.connect(checkpoint=tmp_path, keep=10) as engine:
        stream = engine.stream(STREAM, absorb=GRAPH)
        engine.start()
        desk = Desk(tmp_path, engine).start()
        try:
            for i in (1, 2):
                stream.push(f"<http://ex/p{i}> <http://ex/in> <http://ex/lab> .", time=1000 * i)
                stream.heartbeat(1000 * i)
                engine.flush()
                numbers.append(str(engine.snapshots()[-1].number))
            assert people(tmp_path) == ["p1", "p2"]
            assert people(tmp_path, "--at", numbers[0]) == ["p1"]
            assert people(tmp_path, "--at", "1970-01-01T00:00:02Z") == ["p1", "p2"]
            gone = f"DELETE WHERE {{ GRAPH <{GRAPH}> {{ <http://ex/p1> ?p ?o }} }}"
            assert kelda("update", tmp_path, "-e", gone).stdout == "updated, from the next batch on\n"
            assert people(tmp_path) == ["p2"]
            refused = kelda("ask", tmp_path, "-e", WHO, "--at", "99")
            assert "snapshot 99 is not kept" in str(refused.exception)
        finally:
            desk.stop()
    assert people(tmp_path) == ["p2"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ?s ?o ?x { ?s <http://ex/p> ?o OPTIONAL { ?s <http://ex/q> ?x } }",
        "CONSTRUCT { ?s <http://ex/p> ?o } { ?s <http://ex/p> ?o }",
        "CONSTRUCT { GRAPH <http://ex/g> { ?s <http://ex/p> ?o } } { ?s <http://ex/p> ?o }",
        "ASK { ?s ?p ?o }",
    ],
)
def test_results_travel(tmp_path: Path, text: str) -> None:
    facts = 'PREFIX : <http://ex/> :a :p 1, "x"@en, "\\n\\"" . _:b :p _:c ; :q <<( :a :b 1.50 )>> .'
    (tmp_path / "facts.ttl").write_text(facts)
    engine = package.connect()
    engine.load(tmp_path / "facts.ttl")
    result = engine.query(text)
    assert from_plain(json.loads(json.dumps(as_plain(result)))) == result


# ---------------------------------------------------------------------------------- `kelda query`


@pytest.fixture
def sightings(tmp_path: Path) -> Path:
    path = tmp_path / "s.tsnt"
    lines = (f"{i}000\t<http://ex/p{i}> <http://ex/in> <http://ex/lab> .\n" for i in range(1, 4))
    path.write_text("".join(lines))
    return path


def test_a_query_without_windows_is_live_where_a_stream_is_absorbed(sightings: Path) -> None:
    told = kelda(
        *("query", "-e", WHO, "--stream", f"{STREAM}={sightings}", "--absorb", f"{STREAM}={GRAPH}"),
        *("--format", "ndjson"),
    )
    assert told.exit_code == 0, told.exception
    lines = [json.loads(line) for line in told.stdout.splitlines()]
    assert [line["time"] for line in lines] == [1000, 2000, 3000]


def test_windows_and_what_was_absorbed(sightings: Path, tmp_path: Path) -> None:
    text = (
        f"SELECT ?who ?before {{ STREAM <{STREAM}> [NOW] {{ ?who <http://ex/in> ?room }} "
        "?before <http://ex/in> ?room FILTER (?before != ?who) }"
    )
    told = kelda(
        *("query", "-e", text, "--stream", f"{STREAM}={sightings}", "--absorb", f"{STREAM}=default"),
        *("--format", "ndjson", "--checkpoint", tmp_path / "state", "--keep", "1h"),
    )
    assert told.exit_code == 0, told.exception
    assert [json.loads(line)["time"] for line in told.stdout.splitlines()] == [2000, 3000, 3000]
    assert len(asked(tmp_path / "state", "-e", "SELECT * { ?s ?p ?o }")) == 3
    assert kelda("update", tmp_path / "state", "-e", "CLEAR ALL").exit_code == 0
    assert asked(tmp_path / "state", "-e", "SELECT * { ?s ?p ?o }") == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--absorb", GRAPH], f"the streams are: <{STREAM}>"),
        (["--absorb", f"{STREAM}=g"], "'g' is no graph"),
        (["--absorb", f"{STREAM}=default", "--absorb", f"{STREAM}={GRAPH}"], "given twice"),
        (["--keep", "0"], "there is always the last one"),
        (["--keep", "long"], "'long' is not a duration"),
    ],
)
def test_mistakes(sightings: Path, arguments: list[str], says: str) -> None:
    result = kelda("query", "-e", WHO, "--stream", f"{STREAM}={sightings}", *arguments)
    assert isinstance(result.exception, KeldaError) and says in str(result.exception), result.exception


# -------------------------------------------------------------------------------------- job files


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (f'absorb = "{GRAPH}"', 'absorb = "g"', "[[stream]] absorb: 'g' is no graph"),
        (f'absorb = "{GRAPH}"', "", "predicates: they tell what is absorbed: say into which graph"),
        ('["http://ex/in"]', '["in"]', "predicates: it is an absolute IRI"),
        ('["http://ex/in"]', '"http://ex/in"', "predicates: it is a list such as"),
        (
            "graph:http://ex/now",
            "graph:now",
            "'now' is not an absolute IRI: write graph:http://example.org/g",
        ),
        ("live.ndjson", "graph:http://ex/x", "query 'live' makes no triples"),
        ("keep = 10", "keep = 0", "[engine] keep: 0 snapshots cannot be kept"),
        ("keep = 10", 'keep = "soon"', "keep: 'soon' is not a duration"),
        ("keep = 10", "keep = true", "keep: it is a number of snapshots or a duration"),
    ],
)
def test_mistakes_in_job_files(done: Path, tmp_path: Path, old: str, new: str, says: str) -> None:
    for name in ("s.tsnt", "kinds.ttl"):
        (tmp_path / name).touch()
    (tmp_path / "job.toml").write_text(JOB.replace(old, new))
    with pytest.raises(KeldaError) as problem:
        read_job(tmp_path / "job.toml")
    assert says in str(problem.value)
