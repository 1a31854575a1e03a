"""The process dies at a step on the disk, whichever: started again, it gives each answer once."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from kelda.inprocess import log
from kelda.shards import storing
from kelda.store import compaction
from kelda.store.check import check
from tests.inprocess import scene

STRIDE = 1 if "KELDA_CASES" in os.environ else 29  # steps from one death to the next


@pytest.fixture(autouse=True)
def few_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log and the store are put together every few batches, and an engine that stops leaves an image."""
    monkeypatch.setattr(log, "MOST_FILES", 3)
    monkeypatch.setattr(compaction, "MOST_FILES", 3)
    monkeypatch.setattr(storing, "LEAST", 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scene")
    scene.write(folder)
    return folder


@pytest.fixture(scope="module")
def wanted(folder: Path) -> dict[str, list[str]]:
    """The answers of an engine without a checkpoint."""
    (folder / "undisturbed").mkdir()
    scene.go_on(folder, folder / "undisturbed", checkpoint=False)
    return scene.answers(folder / "undisturbed")


@pytest.mark.slow
def test_any_step_may_be_the_last(folder: Path, wanted: dict[str, list[str]], memory_path: Path) -> None:
    assert all(wanted.values())
    step, out = 1, memory_path / "out"
    while True:
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        if not scene.until_step(folder, out, step, seed=step):
            break
        assert _findings(out) == [], f"killed at step {step}"
        scene.until_step(folder, out, 40, seed=step)  # and once more, soon after
        assert _findings(out) == [], f"killed at step {step}, then at 40"
        scene.go_on(folder, out)
        assert scene.answers(out) == wanted, f"killed at step {step}"
        assert _findings(out) == [], f"after it was killed at step {step}"
        step += STRIDE
    assert step > 200, "so many steps there are, at the least"


def test_dying_while_old_files_are_removed(
    folder: Path, wanted: dict[str, list[str]], tmp_path: Path
) -> None:
    """Of the files that one with everything stands for, the first was removed and the others were not."""

    def remove_one(self: log.BatchLog, files: list[Path]) -> None:
        if files:
            files[0].unlink()
            os._exit(0)

    child = os.fork()
    if child == 0:
        log.BatchLog._forget = remove_one  # type: ignore[method-assign]
        try:
            scene.go_on(folder, tmp_path)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    left = sorted((tmp_path / "checkpoint" / "state").glob("*.kept"))
    assert [int(path.stem) for path in left] == [1, 2, 3]
    scene.go_on(folder, tmp_path)
    assert scene.answers(tmp_path) == wanted


@pytest.mark.slow
@pytest.mark.parametrize("step", [150, 230])
def test_files_that_are_lost_or_cut_are_named(
    folder: Path, wanted: dict[str, list[str]], memory_path: Path, step: int
) -> None:
    """As a power failure leaves them: the answers are right, or a line says which file is not."""
    out, kept = memory_path / "out", memory_path / "kept"
    out.mkdir()
    assert scene.until_step(folder, out, step)
    shutil.copytree(out, kept)
    files = [path.relative_to(kept) for path in sorted((kept / "checkpoint").rglob("*")) if path.is_file()]
    refused = 0
    for file in files:
        for damage in ("gone", "empty", "cut"):
            shutil.rmtree(out)
            shutil.copytree(kept, out)
            _damage(out / file, damage)
            if (said := scene.said_by(folder, out)) is not None:
                assert str(out) in said and len(said.splitlines()) == 1, f"{file} {damage}: {said}"
                refused += 1
            else:
                assert scene.answers(out) == wanted, f"{file} {damage}"
    assert refused


def _findings(out: Path) -> list[str]:
    """What is wrong with the store, if there is one yet."""
    store = out / "checkpoint" / "store"
    return check(store) if (store / "quads").is_dir() and (store / "terms").is_dir() else []


def _damage(path: Path, damage: str) -> None:
    data = path.read_bytes()
    path.unlink()
    if damage != "gone":
        path.write_bytes(b"" if damage == "empty" else data[: len(data) // 2])
