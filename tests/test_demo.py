"""The demo: the same town every time, and something to see in it."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kelda.cli.app import app
from kelda.cli.request import read_request
from kelda.demo.show import demo_command, demo_request, run_town, write_demo
from kelda.doctor import find_java
from kelda.engine.answer import Answer


def answers(folder: Path) -> dict[str, list[dict[str, str]]]:
    """The demo's answers by query, as plain values."""
    write_demo(folder)
    found: dict[str, list[dict[str, str]]] = {}

    def take(answer: Answer) -> None:
        assert answer.bindings is not None
        found.setdefault(answer.query, []).append({k: v.value for k, v in answer.bindings.items()})

    run_town(read_request(demo_request(folder)), take, runner="reference")
    return found


def test_the_town_is_the_same_every_time(tmp_path):
    write_demo(tmp_path / "one")
    write_demo(tmp_path / "two")
    for file in (tmp_path / "one").iterdir():
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()


def test_every_query_has_something_to_say(tmp_path):
    found = answers(tmp_path)
    together, warmest, jam = found.values()
    assert all(row["person"] != row["other"] for row in together) and len(together) >= 5
    # Somebody bakes: the kitchen becomes the warmest room, and later no longer is.
    leaders = [row["room"] for row in warmest[::2]]
    assert "Kitchen" in leaders and leaders[0] != "Kitchen"
    # A lorry stands on Bridge Street.
    assert {row["street"] for row in jam} == {"Bridge Street"}


def test_the_demo_ends_by_itself_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    done = CliRunner().invoke(app, ["demo", "--runner", "reference", "--seconds", "30"])
    assert done.exit_code == 0, done.output
    assert "Bridge Street" in done.stdout and "kelda demo --keep" in done.stdout
    assert not list(tmp_path.iterdir())


def test_the_command_that_the_demo_prints_works(tmp_path):
    done = CliRunner().invoke(app, ["demo", "--runner", "reference", "--keep", str(tmp_path / "a town")])
    assert done.exit_code == 0, done.output
    command = demo_command(tmp_path / "a town").replace("\\\n", " ")
    again = CliRunner().invoke(app, [*shlex.split(command)[1:], "--runner", "reference"])
    assert again.exit_code == 0, again.output
    assert "Kitchen" in again.stdout


@pytest.mark.spark
@pytest.mark.skipif(find_java() is None, reason="no JDK: the demo runs on Spark")
def test_the_demo_on_spark():
    done = CliRunner().invoke(app, ["demo"])
    assert done.exit_code == 0, done.output
    assert "Kitchen" in done.stdout and "Bridge Street" in done.stdout
