"""`kelda store` and `kelda store check`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kelda.cli.app import app
from kelda.errors import UsageError
from kelda.store.changes import Changes
from kelda.store.compaction import Compaction
from kelda.store.moments import NEVER
from kelda.store.truth import Truth
from tests.store.histories import History

HISTORY = History(1)
GRAPH = "http://example.org/g"


def kelda(*arguments: str | Path):
    """The command, in this process."""
    return CliRunner().invoke(app, ["store", *map(str, arguments)])


@pytest.fixture(params=[False, True])
def truth(tmp_path: Path, request: pytest.FixtureRequest) -> Truth:
    truth = Truth(tmp_path / "state" / "store")
    HISTORY.write(truth)
    if request.param:
        Compaction(truth).run(HISTORY.made[8].number, whole=True)
    return truth


def test_a_table_for_people(truth: Truth) -> None:
    shown = kelda(truth.folder)
    assert shown.exit_code == 0, shown.output
    lines = [line.split() for line in shown.stdout.splitlines()]
    now = HISTORY.at(HISTORY.moments[-1])
    assert ["(default", "graph)", str(sum(fact[0] == 0 for fact in now))] in lines
    assert [GRAPH, str(sum(fact[0] != 0 for fact in now))] in lines
    last = HISTORY.made[-1]
    assert [str(last.number), f"1970-01-01T00:00:00.{last.about['instant']:03d}".rstrip("0") + "Z"] in lines
    assert f"{len(now)} facts" in shown.stdout


def test_json_for_programs(truth: Truth) -> None:
    for path in (truth.folder, truth.folder.parent):
        told = json.loads(kelda(path, "--json").stdout)
        now = HISTORY.at(HISTORY.moments[-1])
        assert told["facts"] == len(now)
        assert {g["graph"]: g["facts"] for g in told["graphs"]} == {
            None: sum(fact[0] == 0 for fact in now),
            GRAPH: sum(fact[0] != 0 for fact in now),
        }
        assert told["snapshots"] == [{"number": b.number, **b.about} for b in HISTORY.made]
        assert told["batches"] == {"first": HISTORY.made[0].number, "last": HISTORY.made[-1].number}
        assert told["bytes"] == sum(p.stat().st_size for p in truth.folder.rglob("*.parquet"))
        assert told["store"] == str(truth.folder)


def test_a_sound_store_is_ok(truth: Truth) -> None:
    checked = kelda("check", truth.folder.parent)
    assert checked.exit_code == 0
    assert checked.stdout.startswith("OK: ") and " 2 graphs, " in checked.stdout
    assert json.loads(kelda("check", truth.folder, "--json").stdout)["findings"] == []


def test_what_is_wrong_is_printed_with_exit_code_1(truth: Truth) -> None:
    path = sorted(truth.quads.iterdir())[0]
    path.write_bytes(path.read_bytes()[:200])
    checked = kelda("check", truth.folder)
    assert checked.exit_code == 1 and str(path) in checked.stdout and "OK" not in checked.stdout
    told = kelda("check", truth.folder, "--json")
    assert told.exit_code == 1 and len(json.loads(told.stdout)["findings"]) == len(
        checked.stdout.splitlines()
    )


def test_a_store_of_nothing(tmp_path: Path) -> None:
    Truth(tmp_path).write(0, Changes.none(), about={"instant": NEVER}, always=True)
    assert "0 facts" in kelda(tmp_path).stdout
    Truth(tmp_path).forget_after(-1)
    assert "no batches" in kelda(tmp_path).stdout
    assert kelda("check", tmp_path).stdout.startswith("OK: 0 facts")


@pytest.mark.parametrize("words", [("nowhere",), ("check", "nowhere"), ("check", "a", "b")])
def test_where_there_is_no_store(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    problem = kelda(*words).exception
    assert isinstance(problem, UsageError) and ("nowhere" in str(problem) or "kelda store" in str(problem))
