"""The check of a store: silent about a sound one, and it finds each thing that can be wrong."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kelda.rdf.dictionary import Dictionary, Entries
from kelda.store import compaction
from kelda.store.changes import Changes
from kelda.store.check import check
from kelda.store.compaction import Compaction
from kelda.store.truth import Truth
from tests.store.histories import PREDICATES, History, columns


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("compacted", [0, 6, 12])
def test_a_sound_store(tmp_path: Path, seed: int, compacted: int) -> None:
    history, truth = History(seed), Truth(tmp_path)
    until = history.made[compacted - 1].number if compacted else -1
    history.write(truth, until=until)
    Compaction(truth).run(truth.last, 8, whole=True)
    history.write(truth, since=until)
    assert check(tmp_path) == []


def test_leftovers_are_nothing_wrong(tmp_path: Path) -> None:
    truth, _ = _written(tmp_path)
    (truth.quads / ".000000000099.parquet.new").write_bytes(b"half")
    (truth.terms / "000000000099.parquet").write_bytes(b"its quads were never written")
    assert check(tmp_path) == []


def test_an_empty_folder_is_told(tmp_path: Path) -> None:
    assert check(tmp_path) == [f"{tmp_path / 'quads'} is missing", f"{tmp_path / 'terms'} is missing"]


def test_another_seed(tmp_path: Path) -> None:
    dictionary = Dictionary(seed=5)
    fact = (0, *map(dictionary.encode, PREDICATES))
    Truth(tmp_path).write(1, columns([(1, fact, 1)]), dictionary.entries(), about={})
    assert check(tmp_path, seed=5) == []
    (found,) = check(tmp_path)
    assert "3 texts with an id that is not theirs" in found


def _written(folder: Path, seed: int = 1) -> tuple[Truth, History]:
    history = History(seed)
    history.write(truth := Truth(folder))
    return truth, history


def _next(history: History) -> int:
    return history.made[-1].number + 1


# ------------------------------------------------------------------------------ what can be wrong


def _gone(truth: Truth, history: History) -> None:
    sorted(truth.quads.iterdir())[3].unlink()


def _terms_gone(truth: Truth, history: History) -> None:
    sorted(truth.terms.iterdir())[0].unlink()


def _cut(truth: Truth, history: History) -> None:
    path = sorted(truth.quads.iterdir())[3]
    path.write_bytes(path.read_bytes()[:-20])


def _flipped(truth: Truth, history: History) -> None:
    path = sorted(truth.terms.iterdir())[0]
    data = bytearray(path.read_bytes())
    data[60] ^= 4
    path.write_bytes(data)


def _another_type(truth: Truth, history: History) -> None:
    path = sorted(truth.quads.iterdir())[3]
    table = pq.read_table(path)
    place = table.schema.get_field_index("sign")
    pq.write_table(table.set_column(place, "sign", table.column("sign").cast(pa.int64())), path)


def _no_label(truth: Truth, history: History) -> None:
    path = sorted(truth.quads.iterdir())[3]
    pq.write_table(pq.read_table(path).replace_schema_metadata(None), path)


def _another_name(truth: Truth, history: History) -> None:
    path = sorted(truth.quads.iterdir())[-1]
    path.rename(path.with_name(f"{_next(history):012d}.parquet"))


def _stranger(truth: Truth, history: History) -> None:
    (truth.quads / "notes.txt").write_text("a store is no place for notes")


def _overlap(truth: Truth, history: History) -> None:
    first, second = sorted(truth.quads.iterdir())[:2]
    (truth.quads / f"{int(first.stem):012d}-{int(second.stem):012d}.parquet").write_bytes(first.read_bytes())
    third = history.made[2].number
    (truth.quads / f"{int(second.stem):012d}-{third:012d}.parquet").write_bytes(first.read_bytes())


def _time_falls(truth: Truth, history: History) -> None:
    last = history.made[-1].changes.select(np.array([len(history.made[-1].changes) - 1]))
    back = replace(last, moment=last.moment - 5, sign=-last.sign)
    truth.write(_next(history), back, about={})


def _time_falls_within(truth: Truth, history: History) -> None:
    there = sorted(fact for fact in history.at(1000) if fact[0] == 0)[:2]
    truth.write(_next(history), columns([(102, there[0], -1), (101, there[1], -1)]), about={})


def _added_again(truth: Truth, history: History) -> None:
    truth.write(_next(history), columns([(1000, min(history.at(1000)), 1)]), about={})


def _removed_again(truth: Truth, history: History) -> None:
    fact = min(history.at(1000))
    truth.write(_next(history), columns([(1000, fact, -1), (1001, fact, -1)]), about={})


def _odd_sign(truth: Truth, history: History) -> None:
    truth.write(_next(history), columns([(1000, min(history.at(1000)), 2)]), about={})


def _no_term(truth: Truth, history: History) -> None:
    graph, s, p, _ = min(history.at(1000))
    truth.write(_next(history), columns([(1000, (graph, s, p, 0), 1)]), about={})


def _no_text(truth: Truth, history: History) -> None:
    graph, s, p, _ = min(history.at(1000))
    truth.write(_next(history), columns([(1000, (graph, s, p, 12345), 1)]), about={})


def _wrong_text(truth: Truth, history: History) -> None:
    text = np.frombuffer(b"<http://example.org/other>" + bytes(8), np.uint8).copy()
    entries = Entries(np.array([12345]), text, np.array([0, 26]))
    truth.write(_next(history), Changes.none(), entries, about={})


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (_gone, "comes after batch"),
        (_terms_gone, "cannot read .*/terms/"),
        (_cut, "is broken"),
        (_flipped, "/terms/.* is broken|cannot read .*/terms/"),
        (_another_type, "its columns are .*sign int64"),
        (_no_label, "is broken .KeyError"),
        (_another_name, "has batches"),
        (_stranger, "notes.txt does not belong there"),
        (_overlap, "overlaps"),
        (_time_falls, "moments fall in 1 place"),
        (_time_falls_within, "moments fall in 1 place"),
        (_added_again, "1 fact added that was there already"),
        (_removed_again, "1 fact removed that was not there"),
        (_odd_sign, "signs that are not 1 or -1"),
        (_no_term, "without a subject, predicate or object"),
        (_no_text, "1 id without a text, the first 12345"),
        (_wrong_text, "1 text with an id that is not theirs, the first <http://example.org/other>"),
    ],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_wrong_is_found(
    tmp_path: Path, damage: Callable[[Truth, History], None], says: str, seed: int
) -> None:
    truth, history = _written(tmp_path, seed)
    assert check(tmp_path) == []
    damage(truth, history)
    found = check(tmp_path)
    assert found and all("\n" not in line and str(tmp_path) in line for line in found)
    assert any(re.search(says, line) for line in found), found


def test_one_id_with_two_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if 77 were the hash of both."""
    monkeypatch.setattr("kelda.store.check.term_ids", lambda texts, offsets, _: ([77], texts[:1].astype(int)))
    truth = Truth(tmp_path)
    for batch, text in enumerate((b"_:one", b"<two>", b"_:one")):
        padded = np.frombuffer(text + bytes(8), np.uint8).copy()
        truth.write(batch, Changes.none(), Entries(np.array([77]), padded, np.array([0, 5])), about={})
    assert check(tmp_path) == [f"{truth.terms} has 1 id with two texts, the first 77"]


def test_rows_out_of_their_bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    truth, _ = _written(tmp_path)
    monkeypatch.setattr(compaction, "settled", lambda changes, _: changes.select(np.argsort(-changes.p)))
    Compaction(truth).run(truth.last, whole=True)
    found = check(tmp_path)
    assert len(found) == 1 and "out of its bucket or order" in found[0]


def test_while_others_write_and_put_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "MOST_FILES", 3)
    history, truth = History(4, batches=80), Truth(tmp_path)
    history.write(truth, until=history.made[3].number)
    found: list[str] = []
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            found.extend(check(tmp_path))

    looking = threading.Thread(target=look)
    looking.start()
    compact = Compaction(truth)
    for batch in history.made[4:]:
        truth.write(batch.number, batch.changes, batch.entries, about=batch.about)
        compact.start(batch.number)
    done.set()
    looking.join()
    compact.close()
    assert found == []
