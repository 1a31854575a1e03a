"""The process dies at a step on the disk, whichever, while batches are written and files put together: the
store holds what the committed batches changed, and goes on."""

from __future__ import annotations

import os
import random
import shutil
import signal
from pathlib import Path

import pytest

from kelda.durable import replace_file
from kelda.store import compaction
from kelda.store.compaction import Compaction
from kelda.store.truth import Truth
from tests.crash.last_step import die_at
from tests.store.histories import History, same, texts

HISTORY = History(7, batches=9)
STRIDE = 1 if "KELDA_CASES" in os.environ else 5  # steps from one death to the next


@pytest.fixture(autouse=True)
def few_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "MOST_FILES", 2)
    monkeypatch.setattr(compaction, "GROWTH", 2)


def _committed(folder: Path) -> int:
    path = folder / "committed"
    return int(path.read_text()) if path.exists() else -1


def _go_on(folder: Path) -> None:
    """Take the batches that were not committed, from whatever is there."""
    committed = _committed(folder)
    truth = Truth(folder / "store")
    truth.forget_after(committed)
    compact = Compaction(truth)
    for batch in HISTORY.made:
        if batch.number > committed:
            compact.run(committed, _keep_from(committed))
            truth.write(batch.number, batch.changes, batch.entries, about=batch.about)
            replace_file(folder / "committed", str(batch.number).encode())
            committed = batch.number


def _keep_from(committed: int) -> int:
    moments = [int(batch.changes.moment[0]) for batch in HISTORY.made if batch.number <= committed]
    return moments[-1] if moments else 0


def _dies(folder: Path, step: int) -> bool:
    """Whether the process was killed at this step, and had not come to the end."""
    child = os.fork()
    if child == 0:
        done = 1
        try:
            die_at(step, random.Random(step))
            _go_on(folder)
            done = 0
        finally:
            os._exit(done)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, f"it failed before step {step}"
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def _holds(folder: Path) -> None:
    """What the committed batches have, and nothing else, also before anything is tidied up."""
    committed = _committed(folder)
    truth = Truth(folder / "store")
    parts = list(truth.read(committed))
    assert all(stored.last <= committed for stored in parts)
    truth.forget_after(committed)
    assert same(truth, HISTORY, _keep_from(committed), committed)
    known = {id for batch in HISTORY.made if batch.number <= committed for id in batch.entries.ids.tolist()}
    assert texts(truth).keys() == known
    names = {run.name for run in truth.runs()}
    assert {path.name for path in (folder / "store").rglob("*") if path.is_file()} == names


def test_any_step_may_be_the_last(tmp_path: Path) -> None:
    step = 1
    while True:
        folder = tmp_path / "crash"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        if not _dies(folder, step):
            break
        _holds(folder)
        _dies(folder, 1 + step % 11)  # and once more, soon after
        _holds(folder)
        _go_on(folder)
        assert _committed(folder) == HISTORY.made[-1].number
        _holds(folder)
        step += STRIDE
    assert step > 120, "so many steps there are, at the least"
