"""The files of the truth: what is written is read back, and what is lost or broken is named."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from kelda.errors import CheckpointError
from kelda.rdf.dictionary import Dictionary
from kelda.store.changes import Changes
from kelda.store.truth import Run, Truth
from tests.store.histories import History, records, same, texts

SEEDS = range(4)


def _written(folder: Path, seed: int = 0) -> tuple[Truth, History]:
    history = History(seed)
    history.write(truth := Truth(folder))
    return truth, history


@pytest.mark.parametrize("seed", SEEDS)
def test_batches_are_read_back_in_order(tmp_path: Path, seed: int) -> None:
    truth, history = _written(tmp_path / "store", seed)
    written = [batch for batch in history.made if len(batch.changes)]
    for again in (truth, Truth(tmp_path / "store")):
        found = list(again.read())
        assert [(stored.first, stored.last) for stored in found] == [(b.number, b.number) for b in written]
        for stored, batch in zip(found, written, strict=True):
            assert records(stored.changes) == records(batch.changes)
            assert stored.about == {batch.number: batch.about}
            assert all(
                column.dtype == np.int64 and column.flags.writeable for column in stored.changes.columns
            )
        assert again.last == written[-1].number


@pytest.mark.parametrize("seed", SEEDS)
def test_terms_make_the_dictionary_again(tmp_path: Path, seed: int) -> None:
    truth, history = _written(tmp_path, seed)
    dictionary, again = Dictionary(), Dictionary()
    for batch in history.made:
        dictionary.add_entries(batch.entries)
    for stored in truth.read():
        again.add_entries(stored.entries)
    assert all(map(np.array_equal, again.entries(), dictionary.entries()))
    assert len(texts(truth)) == len(dictionary)


def test_reading_ends_at_a_batch(tmp_path: Path) -> None:
    truth, history = _written(tmp_path)
    until = history.made[5].number
    assert [stored.last for stored in truth.read(until)] == [b.number for b in history.made[:6]]


def test_a_batch_without_changes_is_written_only_on_request(tmp_path: Path) -> None:
    truth = Truth(tmp_path)
    truth.write(3, Changes.none(), None, about={"instant": 1})
    assert truth.last == -1 and not list(tmp_path.iterdir())
    truth.write(4, Changes.none(), None, about={"instant": 2}, always=True)
    (stored,) = truth.read()
    assert (stored.first, len(stored.changes), stored.about) == (4, 0, {4: {"instant": 2}})
    assert not list(truth.terms.iterdir())


def test_a_batch_that_comes_again_replaces_itself_and_what_is_behind_it(tmp_path: Path) -> None:
    truth, history = _written(tmp_path)
    for since in (len(history.made) - 2, 4):
        for writer in (truth, Truth(tmp_path)):
            history.write(writer, since=history.made[since].number)
            assert same(Truth(tmp_path), history, -1)
    batch = history.made[4]
    truth.write(batch.number, batch.changes, batch.entries, about={"instant": 77})
    assert [stored.last for stored in Truth(tmp_path).read()] == [b.number for b in history.made[:5]]
    assert list(Truth(tmp_path).read())[-1].about == {batch.number: {"instant": 77}}


def test_what_was_not_committed_is_forgotten(tmp_path: Path) -> None:
    truth, history = _written(tmp_path)
    committed = history.made[6].number
    (truth.terms / f".{Run(99, 99, False).name}.new").write_bytes(b"half")
    (truth.terms / Run(99, 99, False).name).write_bytes(b"its quads were never written")
    (truth.folder / "notes.txt").write_text("not ours")
    (truth.terms / "notes.txt").write_text("not ours")
    truth = Truth(tmp_path)
    truth.forget_after(committed)
    for folder in (truth.folder, truth.terms):
        (folder / "notes.txt").unlink()
    assert truth.last == Truth(tmp_path).last == committed
    assert same(truth, history, -1, committed)
    names = {path.name for path in truth.quads.iterdir()}
    assert {path.name for path in truth.terms.iterdir()} <= names and len(names) == 7
    history.write(truth, since=committed)
    assert same(truth, history, -1)


def test_types_on_disk(tmp_path: Path) -> None:
    truth, history = _written(tmp_path)
    name = Run(history.made[0].number, history.made[0].number, False).name
    quads, terms = (pq.read_schema(folder / name) for folder in (truth.quads, truth.terms))
    assert [f"{f.name} {f.type}" for f in quads] == [
        *(f"{name} int64" for name in ("graph", "s", "p", "o", "moment")),
        "sign int8",
    ]
    assert [f"{f.name} {f.type}" for f in terms] == ["id int64", "text binary"]


@pytest.mark.parametrize("folder", ["quads", "terms"])
@pytest.mark.parametrize("damage", ["gone", "empty", "cut", "other"])
def test_a_file_that_is_lost_or_broken_is_named(tmp_path: Path, folder: str, damage: str) -> None:
    _written(tmp_path)
    files = sorted((tmp_path / folder).iterdir())
    path = files[1]
    if damage in ("gone", "empty", "cut"):
        data = path.read_bytes()
        os.unlink(path)
        if damage != "gone":
            path.write_bytes(data[: len(data) // 2] if damage == "cut" else b"")
    else:
        path.write_bytes(files[0].read_bytes())
    with pytest.raises(CheckpointError, match=path.stem if damage != "gone" else "No such|are missing"):
        list(Truth(tmp_path).read())


def test_a_flipped_bit_is_noticed(tmp_path: Path) -> None:
    truth, _ = _written(tmp_path)
    path = sorted(truth.quads.iterdir())[0]
    data = bytearray(path.read_bytes())
    data[40] ^= 1
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match=path.stem):
        list(truth.read())
