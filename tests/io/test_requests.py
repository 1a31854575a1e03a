"""Requests to a running engine: carried out once, in order, whoever is killed when."""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest
from pyoxigraph import Literal

from kelda.errors import KeldaError
from kelda.io import requests
from kelda.io.job import QuerySpec
from kelda.io.requests import FOLDER, Ask, Desk
from tests.io.fake_engine import FakeEngine

S = "http://ex/s"
TEXT = f"SELECT ?x {{ STREAM <{S}> [NOW] {{ ?x ?p $value }} }}"


def spec(name: str, text: str = TEXT) -> dict[str, object]:
    return asdict(QuerySpec(name, text, params={"value": '"1"'}))


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine(S)


@pytest.fixture
def running(tmp_path: Path, engine: FakeEngine) -> Iterator[Desk]:
    desk = Desk(tmp_path, engine).start()
    yield desk
    desk.stop()


def test_queries_come_and_go_while_it_runs(tmp_path: Path, engine: FakeEngine, running: Desk) -> None:
    def asked(what: str, **about: object) -> object:
        return Ask(tmp_path, what, **about).wait(10).result()

    assert asked("add", query=spec("a"), sink="a.ndjson") == "a"
    (query,) = engine.queries
    assert (query.text, query.sink, query.params) == (TEXT, "a.ndjson", {"value": Literal("1")})
    asked("pause", name="a")
    found = asked("list")
    assert found["queries"] == [{"name": "a", "state": "paused", "sink": "a.ndjson", "error": None}]
    assert found["streams"] == [{"iri": S, "source": "s.tsnt"}]
    assert found["figures"]["events"] == 0
    asked("resume", name="a")
    assert query.state == "running"
    asked("drop", name="a")
    assert engine.queries == []
    assert list((tmp_path / FOLDER).iterdir()) == []


@pytest.mark.parametrize(
    ("what", "about", "says"),
    [
        ("drop", {"name": "x"}, "there is no query named 'x'; there are: a"),
        ("pause", {"name": "x"}, "there is no query named 'x'"),
        ("add", {"query": spec("a"), "sink": None}, "registered already"),
        ("add", {"query": spec("b", "SELECT"), "sink": None}, "line 1"),
        ("add", {"query": spec("b", TEXT.replace(S, "http://ex/t")), "sink": None}, f"it has: <{S}>"),
        ("dance", {}, "does not know 'dance'"),
        ("drop", {}, "it failed: KeyError"),
    ],
)
def test_errors_come_back_as_text(
    tmp_path: Path, engine: FakeEngine, what: str, about: dict[str, object], says: str
) -> None:
    engine.register(TEXT, "a", {})
    ask = Ask(tmp_path, what, **about)
    Desk(tmp_path, engine).serve()
    with pytest.raises(KeldaError, match=says) as refused:
        ask.wait(0).result()
    assert refused.value.exit_code == (1 if "failed" in says else 2)
    assert [query.name for query in engine.queries] == ["a"]


def test_a_broken_request_is_no_reason_to_stop(tmp_path: Path, engine: FakeEngine) -> None:
    broken, fine = Ask(tmp_path, "list"), Ask(tmp_path, "add", query=spec("a"), sink=None)
    (tmp_path / FOLDER / f"{broken.id}.json").write_text("[")
    assert Desk(tmp_path, engine).serve() == 2
    assert "it failed" in str(broken.wait(0).error)
    assert fine.wait(0).result() == "a"


def test_requests_are_carried_out_in_order(tmp_path: Path, engine: FakeEngine) -> None:
    for what in ("add", "drop", "add"):
        Ask(tmp_path, what, query=spec("a"), sink=None, name="a")
    Desk(tmp_path, engine).serve()
    assert engine.done == ["add a", "drop a", "add a"]


def test_nobody_answers(tmp_path: Path, engine: FakeEngine) -> None:
    ask = Ask(tmp_path, "add", query=spec("a"), sink=None)
    with pytest.raises(KeldaError, match="nothing was done"):
        ask.wait(0.1)
    assert Desk(tmp_path, engine).serve() == 0
    taken = Ask(tmp_path, "list")
    (tmp_path / FOLDER / f"{taken.id}.json").rename(tmp_path / FOLDER / f"{taken.id}.taken.json")
    with pytest.raises(KeldaError, match="it may still be done"):
        taken.wait(0.1)


def test_nobody_else_can_read_or_write_them(tmp_path: Path, engine: FakeEngine) -> None:
    ask = Ask(tmp_path, "list")
    folder = tmp_path / FOLDER
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / f"{ask.id}.json").stat().st_mode) == 0o600
    Desk(tmp_path, engine).serve()
    assert stat.S_IMODE((folder / f"{ask.id}.reply.json").stat().st_mode) == 0o600


def test_replies_that_nobody_reads_do_not_pile_up(tmp_path: Path, engine: FakeEngine) -> None:
    old, new = Ask(tmp_path, "list"), Ask(tmp_path, "list")
    Desk(tmp_path, engine).serve()
    long_ago = time.time() - requests.FORGOTTEN - 1
    os.utime(tmp_path / FOLDER / f"{old.id}.reply.json", (long_ago, long_ago))
    Desk(tmp_path, engine)
    assert old.reply() is None and new.reply() is not None


def test_a_full_disk_does_not_end_the_serving(
    tmp_path: Path, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = Ask(tmp_path, "add", query=spec("a"), sink=None)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.warns(UserWarning, match="No space left"):
        patch.setattr(os, "fsync", full)
        desk = Desk(tmp_path, engine).start()
        time.sleep(3 * requests.POLL)
    assert ask.wait(10).result() == "a"
    desk.stop()
    assert engine.done == ["add a"]


# --------------------------------------------------------------------------------- killed anywhere


class Killed(BaseException):
    """The process ends here."""


def killing(patch: pytest.MonkeyPatch, engine: FakeEngine, at: int, done: bool) -> None:
    """Let the `at`-th step that changes something be the last, done or not."""
    left = iter(range(at, -1, -1))

    def step(real: object) -> object:
        def call(*args: object, **more: object) -> object:
            if next(left) > 0:
                return real(*args, **more)  # type: ignore[operator]
            if done:
                real(*args, **more)  # type: ignore[operator]
            raise Killed

        return call

    for name in ("rename", "fsync", "pwrite", "replace", "unlink"):
        patch.setattr(os, name, step(getattr(os, name)))
    patch.setattr(engine, "register", step(engine.register))


@pytest.mark.parametrize("what", ["add", "drop"])
@pytest.mark.parametrize("done", [True, False])
def test_an_engine_that_is_killed_leaves_each_request_to_be_done_once(
    tmp_path: Path, what: str, done: bool
) -> None:
    steps = 0
    for at in range(30):
        checkpoint = tmp_path / str(at)
        checkpoint.mkdir()
        engine = FakeEngine(S)
        if what == "drop":
            engine.register(TEXT, "a", {})
        first = Ask(checkpoint, what, query=spec("a"), sink=None, name="a")
        then = Ask(checkpoint, "list")
        with pytest.MonkeyPatch.context() as patch:
            killing(patch, engine, at, done)
            try:
                Desk(checkpoint, engine).serve()
                patch.undo()
                assert steps > 5
                return
            except Killed:
                steps += 1
        Desk(checkpoint, engine).serve()
        assert first.wait(0).result() == "a", at
        assert engine.done.count(f"{what} a") == 1, at
        assert len(then.wait(0).result()["queries"]) == (what == "add")
        assert [path for path in (checkpoint / FOLDER).iterdir() if not path.name.startswith(".")] == []
    raise AssertionError("it never came to its end")


def test_what_is_in_a_request_is_data(tmp_path: Path) -> None:
    ask = Ask(tmp_path, "add", query=spec("a"), sink=None)
    said = json.loads((tmp_path / FOLDER / f"{ask.id}.json").read_text())
    assert said["what"] == "add" and said["query"]["text"] == TEXT


def test_an_update_is_not_carried_out_twice(tmp_path: Path, engine: FakeEngine) -> None:
    ask = Ask(tmp_path, "update", text="CLEAR ALL", base="http://e/")
    path = ask.folder / f"{ask.id}.json"
    path.rename(ask.folder / f"{ask.id}.taken.json")  # taken, and then the engine was killed
    Desk(tmp_path, engine).serve()
    with pytest.raises(KeldaError, match="may have been carried out or not"):
        ask.wait(0).result()
    assert engine.done == []
