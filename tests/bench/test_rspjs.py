"""rsp-js beside us: the text that both read, what is said where it is missing, and that the answers agree."""

from __future__ import annotations

import subprocess

import pytest

from bench.comparisons import rspjs
from bench.experiments import EXPERIMENTS
from bench.harness.families import NAMES, load
from kelda.errors import EnvironmentProblem
from kelda.lang import parse

SAID = [(name, q.name) for name in NAMES for q in load(name).queries if rspjs.can_say(q)]
PACKAGE = rspjs.folder() / "node_modules" / rspjs.PACKAGE


def test_it_can_say_what_the_experiment_asks():
    asked = {(c.params["family"], *c.params["queries"]) for c in EXPERIMENTS["vs.rspjs"].cases(True)}
    assert asked <= set(SAID)


@pytest.mark.parametrize(("family", "name"), SAID)
def test_its_spelling_means_the_same_to_us(family, name):
    text = load(family).query(name).texts["rspql"]
    spelled = rspjs.spelled(text)
    assert parse(spelled, dialect="rspql") == parse(text, dialect="rspql")
    assert "ON STREAM" in spelled and rspjs.spelled(spelled) == spelled
    assert all(
        line.lstrip().startswith(("WINDOW", "FROM NAMED"))
        for line in spelled.splitlines()
        if "WINDOW" in line
    )


def test_without_node_it_says_so(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert rspjs.missing() == "rsp-js needs node and npm on the PATH; install Node 20 or later"
    assert EXPERIMENTS["vs.rspjs"].missing() == rspjs.missing()
    with pytest.raises(EnvironmentProblem, match="needs node"):
        rspjs.install()


def test_without_a_registry_it_says_so_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(rspjs, "missing", lambda: "")
    failed = subprocess.CompletedProcess(
        [], 1, "", "npm warn old\nnpm error code ENOTFOUND\nnpm error more\n"
    )
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(EnvironmentProblem) as caught:
        rspjs.install()
    assert "npm error code ENOTFOUND" in str(caught.value) and "\n" not in str(caught.value)
    assert list(tmp_path.rglob("rsp-js*")) == []


@pytest.mark.skipif(bool(rspjs.missing()), reason=rspjs.missing())
@pytest.mark.skipif(not PACKAGE.is_dir(), reason=f"not fetched yet (kelda bench vs.rspjs does it): {PACKAGE}")
def test_every_window_has_the_same_answers():
    found = rspjs.measure(family="lsbench", queries=["Q4"], triples=1_500, rate=70)
    assert found["same_answers"] and found["answers"] == found["theirs_answers"] > 0
    assert found["reports"] > 1 and found["ratio"] > 1
