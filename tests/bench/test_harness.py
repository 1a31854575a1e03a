"""The benchmark harness: data cut into steps, loads, checks, reports, comparisons, the command."""

from __future__ import annotations

import importlib
import inspect
import json
import time
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from pyoxigraph import BlankNode, NamedNode, Triple
from rich.console import Console
from typer.testing import CliRunner

import kelda.cli.bench as command
from bench.experiments import EXPERIMENTS, QUICK, find
from bench.experiments.base import WORKLOAD, Case, Experiment, Plot, shown
from bench.harness import check, compare, data, families, html, main, plot, report, tables, tiny, workload
from bench.harness.child import MeasurementFailed, run_in_child
from bench.harness.run import OUT_OF_TIME, run
from kelda.cli.app import app
from kelda.engine.answer import Answer
from kelda.errors import EnvironmentProblem, InputError, UsageError

QUIET = Console(quiet=True)
SMALL = {"family": "tiny", "triples": 2_000, "repeats": 1, "prefix": 300}


# ------------------------------------------------------------------------------ data


def blocks():
    return list(tiny.stream(triples=2_500, rate=1_000))


@pytest.mark.parametrize(
    "steps",
    [
        data.whole(blocks(), [tiny.STREAM]),
        data.by_time(blocks(), [tiny.STREAM], 100),
        data.by_count(blocks(), [tiny.STREAM], 70),
    ],
)
def test_every_line_is_in_one_step_and_in_order(steps):
    text = b"".join(piece.text for step in steps for piece in step)
    assert text == b"".join(block.text for block in blocks())
    assert data.count(steps) == 2_500


def test_a_step_of_time_holds_that_time():
    """A reading every ms from 1,000 on: the first is the last instant of its step."""
    steps = data.by_time(blocks(), [tiny.STREAM], 100)
    assert [piece.until for step in steps for piece in step] == [*range(1000, 3500, 100), 3499]


def test_other_streams_are_left_out():
    assert data.whole(blocks(), ["http://example.org/other"]) == []


def test_a_prefix_comes_in_small_pieces():
    pieces = list(data.prefix(data.whole(blocks(), [tiny.STREAM]), 250))
    assert [piece.triples for piece in pieces] == [100, 100, 100]


# ------------------------------------------------------------------------------ loads


def test_a_closed_loop_counts_and_checks():
    found = workload.measure(**SMALL)
    assert found["triples"] == 2_000 and found["queries"] == 3
    assert found["answers"] > 0 and found["triples_per_cpu_s"] > 0
    assert found["checked_equal"] and found["checked_answers"] > 0


def test_an_open_loop_takes_the_time_of_the_stream():
    begin = time.perf_counter()
    found = workload.measure(**SMALL | {"queries": ["hot"], "loop": "open", "rate": 4_000})
    assert time.perf_counter() - begin > 0.4  # half a second of stream, the last step due at its end
    assert found["p50_ms"] > 0 and found["answers"] > 0


def test_latency_is_counted_from_the_scheduled_time():
    """Steps of 10 ms that take 30 ms each: the n-th is (about) n * 20 ms late."""
    steps = [[data.Piece("s", b"", 1, 10 * i)] for i in range(10)]

    def slow(engine, piece):
        time.sleep(0.03)
        return 0

    found = workload._open(workload.IncrementalEvaluator(), steps, slow, 10)
    assert found["max_ms"] > 150
    assert found["p50_ms"] > 60


def test_a_report_belongs_to_the_step_that_ends_with_it():
    """RSP-QL windows of 1 s, closing at 2000, 3000, …: the answers are there when that step is done."""
    ready = workload.made(workload.Load("tiny", ("hot",), "rspql", triples=2_001, loop="open"))
    engine, _ = workload._engine(ready, workload.store_of([]))
    came = []
    for number, step in enumerate(ready.steps):
        for piece in step:
            assert not workload._push_columns(engine, piece)
        if workload._beat(engine, 1_000 + 100 * number):
            came.append(1_000 + 100 * number)
    assert came == [2_000, 3_000]


def test_many_queries_with_other_constants_and_windows():
    room = ["<http://example.org/room/7>", "<http://example.org/room/{i}>"]
    constants = workload.measure(**SMALL | {"queries": ["one"], "copies": 50, "vary": room})
    assert constants["queries"] == 50 and constants["checked_equal"] and constants["answers"] > 0
    windows = workload.measure(**SMALL | {"queries": ["hot"], "copies": 20, "window": "[TRIPLES 50 {i}]"})
    assert windows["queries"] == 20 and windows["checked_equal"]


def test_a_constant_may_come_from_a_function():
    load = workload.Load("tiny", copies=3, vary=("x", "bench.harness.plot:short"))
    assert workload._constant(load.vary[1], 2) == "2"


def test_what_cannot_vary_is_refused():
    with pytest.raises(UsageError, match="could vary"):
        workload.measure(**SMALL | {"queries": ["one"], "copies": 2, "vary": ["nothing", "{i}"]})


def test_a_dialect_that_a_query_lacks_is_refused():
    with pytest.raises(UsageError, match="not written in csparql"):
        workload.measure(**SMALL | {"queries": ["one"], "dialect": "csparql"})


def test_wrong_answers_are_noticed():
    one, other = Answer("q", 1, "+", boolean=True), Answer("q", 2, "+", boolean=True)
    assert check.fingerprint([one, other]) == check.fingerprint([other, one])
    verdict = check.verdict(check.fingerprint([one]), check.fingerprint([one, one]), 10)
    assert not verdict["checked_equal"] and str(verdict["checked"]).startswith("DIFFERS")
    p = NamedNode("http://ex/p")
    built = [Answer("q", 1, "+", triples=(Triple(BlankNode(label), p, p),)) for label in ("b1", "x7")]
    assert check.fingerprint(built[:1]) == check.fingerprint(built[1:]), "labels are nobody's promise"


def test_families_are_loaded_by_name():
    assert families.load("tiny") is tiny.FAMILY
    with pytest.raises(UsageError, match="there is no family 'nosuch'; there are lsbench"):
        families.load("nosuch")


# ------------------------------------------------------------------------------ children and runs


def test_a_child_that_fails_gives_its_last_words():
    with pytest.raises(MeasurementFailed, match="there is no family 'nosuch'"):
        run_in_child(WORKLOAD, {"family": "nosuch"})


def tiny_experiment(**more) -> Experiment:
    cases = [Case({"query": q}, SMALL | {"queries": [q]}, paper={"theirs": 7}) for q in ("hot", "one")]
    plots = (Plot("query", "triples_per_cpu_s"), Plot("queries", "cpu_us", "query"))
    made = Experiment("tiny", "Tiny", ("triples_per_cpu_s", "checked"), lambda full: cases, plots=plots)
    return replace(made, **more)


@pytest.fixture(scope="module")
def finished() -> report.Report:
    made = report.begin("kelda bench tiny", {"names": ["tiny"], "full": False})
    gone = tiny_experiment(name="gone", missing=lambda: "not written yet")
    run([tiny_experiment(), gone], made, full=False, console=QUIET)
    return made


def test_a_run_has_a_row_for_each_case(finished):
    rows = finished.results[0].rows
    assert [row["label"]["query"] for row in rows] == ["hot", "one"]
    assert all(row["figures"]["checked_equal"] and row["figures"]["peak_mb"] > 10 for row in rows)
    assert finished.results[1].missing == "not written yet"
    heads, cells = tables.grid(finished.results[0])
    assert heads == ["query", "triples/CPU-s", "by definition: answers on triples", "theirs"]
    assert cells[0][0] == "hot" and cells[0][3] == "7"
    assert "2 of 2 cases measured; 2 of 2 checked" in tables.summary(finished)


def test_when_the_time_is_up_rows_say_so():
    made = report.begin("", {})
    run([tiny_experiment()], made, full=False, seconds=-1, console=QUIET)
    assert [row["problem"] for row in made.results[0].rows] == [OUT_OF_TIME, OUT_OF_TIME]


def test_at_most_some_cases():
    made = report.begin("", {})
    run([tiny_experiment()], made, full=False, seconds=-1, most=1, console=QUIET)
    assert len(made.results[0].rows) == 1 and "1 of 2 cases" in made.results[0].differs


def test_a_report_survives_its_file(finished, tmp_path):
    path = tmp_path / "out" / "report.json"
    finished.save(path)
    assert report.load(path) == finished
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(InputError, match="not a report"):
        report.load(tmp_path / "bad.json")


def test_the_page_needs_nothing_else(finished):
    page = html.page(finished)
    assert "not written yet" in page and "kelda bench tiny" in page and "<svg" in page
    assert "http://" not in page and "https://" not in page and "<script" not in page


# ------------------------------------------------------------------------------ comparing


def slower(old: report.Report, factor: float) -> report.Report:
    new = report.Report(**json.loads(json.dumps(vars(old), default=vars)))
    new.results = [report.Result(**result) for result in new.results]
    for row in new.results[0].rows:
        row["figures"]["cpu_us"] *= factor
    return new


def test_a_slower_run_is_flagged(finished):
    assert compare.show(compare.compare(finished, finished), 0.2, QUIET)
    compared = compare.compare(finished, slower(finished, 1.5))
    assert [round(case.ratio, 3) for case in compared.cases] == [1.5, 1.5]
    assert not compare.show(compared, 0.2, QUIET)
    assert compare.show(compared, 0.6, QUIET)


def test_ratios_are_in_units_of_the_machine(finished):
    new = slower(finished, 2.0)
    for row in new.results[0].rows:
        row["figures"]["calibration_s"] *= 2.0
    assert [round(c.ratio, 3) for c in compare.compare(finished, new).cases] == [1.0, 1.0]


def test_other_answers_are_never_fine(finished):
    new = slower(finished, 1.0)
    new.results[0].rows[0]["figures"]["answers"] += 1
    assert not compare.show(compare.compare(finished, new), 10.0, QUIET)


def test_two_files_are_compared_by_the_command(finished, tmp_path):
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    finished.save(old)
    slower(finished, 1.5).save(new)
    arguments = ["bench", "--compare", str(old), str(new)]
    assert CliRunner().invoke(app, arguments).exit_code == 1
    assert CliRunner().invoke(app, [*arguments, "--tolerance", "0.6"]).exit_code == 0


# ------------------------------------------------------------------------------ drawings


def test_drawings_are_well_formed():
    for drawing in (
        plot.lines({"a<b": [(1, 10), (1000, 3)], "c": [(10, 0.5)]}, x="x", y="y & z", log=True),
        plot.lines({"": [(0, 0), (5, 5)]}, x="x", y="y", log=True),
        plot.lines({"": [(1, 7)]}, x="x", y="y", log=True),
        plot.bars(["a", "b"], {"s": [1.0, None], "t": [1000.0, 2.0]}, y="y", log=True),
        plot.bars(["a"], {"s": [0.0]}, y="y", log=False),
    ):
        assert ElementTree.fromstring(drawing).tag == "svg"
    assert plot.lines({}, x="", y="", log=False) == ""


def test_values_as_a_table_has_them():
    assert shown("triples_per_s", 1234567.8) == "1,234,568"
    assert shown("anything", 0.25) == "0.25" and shown("anything", True) == "yes" and shown("x", None) == ""


# ------------------------------------------------------------------------------ the experiments


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.parametrize("full", [False, True])
def test_every_case_can_be_called(name, full):
    """The function is there and takes these parameters, which go through JSON; labels tell cases apart."""
    experiment = EXPERIMENTS[name]
    assert experiment.missing() or experiment.columns
    if experiment.missing():
        return
    cases = experiment.cases(full)
    assert cases
    labels = [json.dumps(case.label) for case in cases]
    assert len(set(labels)) == len(labels)
    for case in cases:
        params = json.loads(json.dumps(case.params))
        module, _, function = case.call.partition(":")
        called = getattr(importlib.import_module(module), function)
        inspect.signature(called).bind(**params)
        if case.call == WORKLOAD:
            load = workload.Load(**params)
            family = families.load(load.family)
            for query in load.queries:
                assert load.dialect in {"", *family.query(query).texts}


def test_names_and_groups():
    assert [e.name for e in find(["cqels"])] == ["cqels.exp1", "cqels.exp2", "cqels.exp3"]
    assert {"cqels", "cloud", "plus", "wukong", "operators"} <= {
        name.partition(".")[0] for name in EXPERIMENTS
    }
    assert set(QUICK) <= set(EXPERIMENTS) and set(families.NAMES) <= set(QUICK)
    with pytest.raises(UsageError, match="--list"):
        find(["nosuch"])


def test_every_paper_names_its_hardware():
    for experiment in EXPERIMENTS.values():
        if experiment.paper:
            assert experiment.paper.hardware and experiment.setup
            assert experiment.differs or experiment.missing()


# ------------------------------------------------------------------------------ the command


def test_list_shows_every_benchmark():
    shown_list = CliRunner().invoke(app, ["bench", "--list"])
    assert shown_list.exit_code == 0
    assert all(name in shown_list.output for name in EXPERIMENTS)


def test_a_call_without_a_name_says_what_to_say():
    with pytest.raises(UsageError, match="--quick or --full"):
        main.bench([])
    with pytest.raises(UsageError, match="not both"):
        main.bench([], quick=True, full=True)


def test_a_run_writes_its_files(tmp_path, monkeypatch):
    monkeypatch.setitem(EXPERIMENTS, "tiny", tiny_experiment())
    monkeypatch.setattr("bench.harness.run.run_in_child", lambda *_, **__: {"cpu_us": 1.0, "answers": 2})
    figures, page = tmp_path / "a.json", tmp_path / "a.html"
    arguments = ["bench", "tiny", "--json", str(figures), "--html", str(page)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert report.load(figures).names == ["tiny"] and page.read_text().startswith("<!doctype html>")


def test_a_run_that_was_cut_off_is_gone_on_with(tmp_path, monkeypatch):
    monkeypatch.setitem(EXPERIMENTS, "tiny", tiny_experiment())
    figures, asked = tmp_path / "a.json", []

    def measure(call, params, timeout):
        asked.append(params["queries"])
        if len(asked) == 2:
            raise KeyboardInterrupt
        return {"cpu_us": float(len(asked)), "answers": 2}

    monkeypatch.setattr("bench.harness.run.run_in_child", measure)
    arguments = ["bench", "tiny", "--json", str(figures)]
    assert CliRunner().invoke(app, arguments).exit_code != 0
    done = CliRunner().invoke(app, [*arguments, "--resume"])
    assert done.exit_code == 0 and "1 cases of" in done.output, done.output
    assert asked == [["hot"], ["one"], ["one"]]
    (tiny,) = report.load(figures).results
    assert [row["figures"]["cpu_us"] for row in tiny.rows] == [1.0, 3.0]
    with pytest.raises(UsageError, match="--json too"):
        main.bench(["tiny"], resume=True)


def test_outside_a_clone_it_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "MARK", Path("nowhere", "main.py"))
    with pytest.raises(EnvironmentProblem, match="clone the repository"):
        command.clone()
