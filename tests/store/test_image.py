"""The image of a store: whatever becomes of it, the store that is opened is that of the truth."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

import kelda
from kelda.rdf.dictionary import Dictionary
from kelda.shards import storing
from kelda.shards.snapshots import Snapshots
from kelda.shards.storing import Storing, opened
from kelda.store import compaction
from kelda.store.check import check
from kelda.store.image import Images
from kelda.store.store import Store
from kelda.store.truth import Truth
from tests.crash.last_step import die_at
from tests.store.histories import History

SEED = int.from_bytes(os.urandom(3), "big") if "KELDA_RANDOM" in os.environ else 5
CASES = 40 if "KELDA_CASES" in os.environ else 8
COUNT = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Images and compactions of few facts."""
    monkeypatch.setattr(storing, "LEAST", 1)
    monkeypatch.setattr(compaction, "MOST_FILES", 2)


def contents(store: Store, moment: int) -> list[tuple[str, ...]]:
    """All facts at a moment, as texts."""
    view, found = store.view(moment), []
    for graph in view.graphs():
        for table in view.tables(graph):
            for s, o in zip(*(column.tolist() for column in table.scan()), strict=True):
                terms = store.dictionary.terms([graph, s, table.predicate, o])
                found.append(tuple(map(str, terms)))
    return sorted(found)


def by_truth(folder: Path, until: int | None = None) -> Store:
    """Made again from the first file on."""
    store = Store()
    for stored in Truth(folder / storing.FOLDER).read(until):
        store.dictionary.add_entries(stored.entries)
        store.apply(stored.changes)
    return store


def known(history: History) -> Dictionary:
    dictionary = Dictionary()
    for batch in history.made:
        dictionary.add_entries(batch.entries)
    return dictionary


def go_on(folder: Path, history: History, committed: int, until: int) -> None:
    """As an engine that takes up behind `committed`, and stops behind `until`."""
    writes = Storing(folder)
    store, terms, snapshots = writes.take_up(committed), known(history), Snapshots(2)
    for batch in history.made:
        if committed < batch.number <= until:
            store.know(terms, batch.changes)
            made = store.apply(batch.changes)
            writes.write(batch.number, made, store.dictionary, dict(batch.about))
            snapshots.take(batch.number, batch.about["instant"], {}, batch.about["moment"])
            writes.committed(batch.number, snapshots)
    writes.close()
    writes.keep_image(store)


def same(folder: Path, history: History, until: int) -> None:
    """What is opened is what the truth tells, at the last moments, and can be gone on with."""
    found, wanted = opened(folder, until)[0], by_truth(folder, until)
    for back in range(2):
        assert contents(found, wanted.latest - back) == contents(wanted, wanted.latest - back)


@pytest.mark.parametrize("case", range(CASES))
def test_a_store_is_opened_as_the_truth_tells_it(case: int, tmp_path: Path) -> None:
    seed = SEED * 1000 + case
    print(f"seed {SEED}")
    draw, history = random.Random(seed), History(seed, batches=20)
    numbers = [batch.number for batch in history.made]
    committed = -1
    while committed < numbers[-1]:
        last = draw.choice([n for n in numbers if n > committed])
        go_on(tmp_path, history, committed, last)
        committed = last
        same(tmp_path, history, committed)
        if draw.random() < 0.3:  # an image that is older than what is there
            go_on(tmp_path, history, committed, committed)
        elif draw.random() < 0.3:
            shutil.rmtree(tmp_path / storing.FOLDER / "working", ignore_errors=True)
    assert check(tmp_path / storing.FOLDER) == []


def test_what_is_damaged_is_passed_over(tmp_path: Path) -> None:
    history = History(SEED, batches=12)
    go_on(tmp_path, history, -1, history.made[-1].number)
    folder, last = tmp_path / storing.FOLDER, history.made[-1].number
    (image,) = (folder / "working").glob("*.image")
    whole, draw = image.read_bytes(), random.Random(SEED)
    assert Images(Truth(folder)).latest(last) is not None
    assert Images(Truth(folder)).latest(int(image.stem) - 1) is None
    header = whole.index(b"\0" * 64)
    for case in range(60):
        damaged = bytearray(whole)
        if case % 3 == 0:
            del damaged[draw.randrange(len(whole)) :]
        else:
            damaged[draw.randrange(header if case % 3 == 1 else len(whole))] ^= 1 << draw.randrange(8)
        image.unlink()
        image.write_bytes(damaged)
        same(tmp_path, history, last)
    image.unlink()
    image.write_bytes(whole)
    assert Images(Truth(folder)).latest(last) is not None


def test_an_image_of_another_truth_is_passed_over(tmp_path: Path) -> None:
    mine, other = History(SEED, batches=12), History(SEED + 1, batches=12)
    go_on(tmp_path / "mine", mine, -1, mine.made[5].number)
    go_on(tmp_path / "other", other, -1, other.made[5].number)
    for folder in ("mine", "other"):
        assert list((tmp_path / folder / storing.FOLDER / "working").iterdir())
    images = [tmp_path / folder / storing.FOLDER / "working" for folder in ("mine", "other")]
    shutil.rmtree(images[0])
    shutil.copytree(images[1], images[0])
    (image,) = images[0].iterdir()
    image.rename(images[0] / f"{mine.made[5].number:012d}.image")
    same(tmp_path / "mine", mine, mine.made[5].number)


@pytest.mark.parametrize("step", range(1, 14))
def test_dying_while_an_image_is_written(step: int, tmp_path: Path) -> None:
    history = History(SEED, batches=12)
    middle, last = history.made[5].number, history.made[-1].number
    go_on(tmp_path, history, -1, middle)
    writes = Storing(tmp_path)
    child = os.fork()
    if child == 0:
        try:
            writes.take_up(middle)
            store = by_truth(tmp_path, middle)
            die_at(step, random.Random(step))
            about = Truth(tmp_path / storing.FOLDER).about(middle)
            writes._images.write(store, middle, about or {}, writes._written)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or step > 10
    same(tmp_path, history, middle)
    go_on(tmp_path, history, middle, last)
    same(tmp_path, history, last)
    left = [path.name for path in (tmp_path / storing.FOLDER / "working").iterdir()]
    assert len(left) == 1, left


def test_what_was_loaded_is_not_read_again(tmp_path: Path) -> None:
    (tmp_path / "facts.nt").write_text("".join(f"<x:s{i}> <x:p> <x:o{i % 7}> .\n" for i in range(500)))
    state = tmp_path / "state"
    with kelda.connect(checkpoint=state) as engine:
        engine.load(tmp_path / "facts.nt")
        engine.update("DELETE WHERE { ?s <x:p> <x:o3> }")
        wanted = engine.query(COUNT).rows  # type: ignore[union-attr]
    assert check(state / storing.FOLDER) == []
    assert list((state / storing.FOLDER / "working").glob("*.image"))
    shutil.rmtree(state / "graphs")  # the copy that would have to be read
    for _ in range(2):
        with kelda.connect(checkpoint=state) as engine:
            assert engine.query(COUNT).rows == wanted  # type: ignore[union-attr]
            stream = engine.stream("x:s", absorb="default")
            engine.start()
            assert engine.flush(60)
            assert stream.pushed == 0
    with kelda.connect(checkpoint=state) as engine:
        engine.start()
        engine.stream("x:s").push("<x:new> <x:p> <x:o1> .", time=100)
        engine.stream("x:s").heartbeat(100)
        assert engine.flush(60)
    with kelda.connect(checkpoint=state) as engine:
        assert engine.query("ASK { <x:new> <x:p> <x:o1> }")
        assert engine.query("ASK { <x:s1> <x:p> <x:o1> }")
