"""Compaction: fewer files that say the same, whoever reads or writes meanwhile."""

from __future__ import annotations

import json
import math
import random
import threading
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from kelda.errors import CheckpointError
from kelda.store import compaction
from kelda.store.changes import Changes
from kelda.store.compaction import Compaction, due
from kelda.store.moments import NEVER, of_instant
from kelda.store.parquet import BUCKETS, bucket_of
from kelda.store.store import Store
from kelda.store.truth import Run, Truth
from kelda.store.view import View
from tests.store.histories import Fact, History, facts_at, records, same, texts


@pytest.fixture(autouse=True)
def few_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "MOST_FILES", 3)
    monkeypatch.setattr(compaction, "GROWTH", 2)


@pytest.mark.parametrize("seed", range(30))
def test_all_moments_that_can_be_asked_for_are_the_same(tmp_path: Path, seed: int) -> None:
    draw, history = random.Random(seed), History(seed, batches=20)
    truth, keep_from, done = Truth(tmp_path), NEVER, 0
    compact = Compaction(truth)
    for batch in history.made:
        truth.write(batch.number, batch.changes, batch.entries, about=batch.about)
        if draw.random() < 0.7:
            keep_from = max(keep_from, draw.choice([NEVER, int(batch.changes.moment[-1]) - 3]))
            done += compact.run(batch.number, keep_from, whole=draw.random() < 0.1)
            assert same(truth, history, keep_from, batch.number), f"seed {seed}, batch {batch.number}"
    assert done
    assert len(texts(truth)) == sum(len(batch.entries.ids) for batch in history.made)
    assert same(Truth(tmp_path), history, keep_from)
    assert len(list(truth.quads.iterdir())) == len(truth.runs())


@pytest.mark.parametrize("seed", range(5))
def test_what_nobody_can_see_goes(tmp_path: Path, seed: int) -> None:
    history = History(seed)
    history.write(truth := Truth(tmp_path))
    last = history.moments[-1]
    Compaction(truth).run(truth.last, last, whole=True)
    (stored,) = truth.read()
    assert {fact for _, fact, _ in records(stored.changes)} == history.at(last)
    assert len(stored.changes) == len(history.at(last))
    since = {fact: moment for moment, fact, _ in records(stored.changes)}
    for moment in history.moments:  # each is there since it was added last, and not before
        assert all(
            since[fact] <= moment or fact not in history.at(moment) or _went(history, fact, moment)
            for fact in since
        )


def _went(history: History, fact: tuple[int, int, int, int], moment: int) -> bool:
    """Whether a fact is removed behind a moment."""
    return any(
        when > moment and sign < 0 and what == fact
        for batch in history.made
        for when, what, sign in records(batch.changes)
    )


def test_changes_come_by_moment_with_removals_first(tmp_path: Path) -> None:
    history = History(3)
    history.write(truth := Truth(tmp_path))
    Compaction(truth).run(truth.last, whole=True)
    (stored,) = truth.read()
    order = list(zip(stored.changes.moment.tolist(), stored.changes.sign.tolist(), strict=True))
    assert order == sorted(order) and -1 in stored.changes.sign


def test_a_row_group_for_each_bucket(tmp_path: Path) -> None:
    history = History(1, batches=30, size=30)
    history.write(truth := Truth(tmp_path))
    Compaction(truth).run(truth.last, whole=True)
    (run,) = truth.runs()
    file = pq.ParquetFile(truth.quads / run.name)
    label = json.loads(file.metadata.metadata[b"kelda"])
    assert label["buckets"] == sorted(set(label["buckets"])) and len(label["buckets"]) == file.num_row_groups
    assert len(label["buckets"]) > 5
    for number, bucket in enumerate(label["buckets"]):
        group = file.read_row_group(number).to_pydict()
        assert {s % BUCKETS for s in group["s"]} == {bucket}
        places = list(zip(group["p"], group["s"], strict=True))
        assert places == sorted(places)


def test_bucket_of_a_subject_is_by_its_unsigned_value() -> None:
    ids = np.array([0, 5, 64, -1, -(2**63), 2**63 - 1])
    assert bucket_of(ids).tolist() == [int(id) % 2**64 % BUCKETS for id in ids.tolist()]


def test_snapshots_are_known_as_far_as_they_are_kept(tmp_path: Path) -> None:
    history = History(2)
    history.write(truth := Truth(tmp_path))
    about = {batch.number: batch.about for batch in history.made}
    Compaction(truth).run(truth.last, whole=True)
    assert next(iter(truth.read())).about == about
    keep_from = history.made[-3].about["moment"]
    Compaction(truth).run(truth.last, keep_from, whole=True)
    kept = next(iter(truth.read())).about
    assert kept == {n: told for n, told in about.items() if told["moment"] >= keep_from}
    assert 2 <= len(kept) < len(about)


def test_the_instant_says_when_a_snapshot_was_if_no_moment_does(tmp_path: Path) -> None:
    truth = Truth(tmp_path)
    for batch in range(4):
        truth.write(batch, Changes.none(), about={"instant": batch}, always=True)
    Compaction(truth).run(3, of_instant(1) + 5, whole=True)
    assert list(next(iter(truth.read())).about) == [1, 2, 3]


def test_what_may_come_again_is_left_alone(tmp_path: Path) -> None:
    history = History(2)
    history.write(truth := Truth(tmp_path))
    committed = history.made[7].number
    Compaction(truth).run(committed, whole=True)
    assert [run.compacted for run in truth.runs()] == [True] + [False] * 4
    truth.forget_after(committed)
    history.write(truth, since=committed)
    assert same(truth, history, NEVER)
    with pytest.raises(CheckpointError, match=f"batch {history.made[3].number} comes again"):
        history.write(truth, since=history.made[2].number)
    with pytest.raises(CheckpointError, match="has batches behind"):
        truth.forget_after(history.made[3].number)


def test_one_large_batch_gets_its_buckets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "MOST_BYTES", 1000)
    history = History(5, batches=1, size=200)
    history.write(truth := Truth(tmp_path))
    compact = Compaction(truth)
    assert compact.run(truth.last) and not compact.run(truth.last)
    assert [run.name for run in truth.runs()] == [f"{truth.last:012d}-{truth.last:012d}.parquet"]
    assert same(Truth(tmp_path), history, NEVER)


@pytest.mark.parametrize("growth", [2, 4])
@pytest.mark.parametrize("sizes", [(1000, 1001), (1, 2000)])
def test_sizes_are_geometric(monkeypatch: pytest.MonkeyPatch, growth: int, sizes: tuple[int, int]) -> None:
    """Files are few, and a byte is written again a few times."""
    monkeypatch.setattr(compaction, "GROWTH", growth)
    monkeypatch.setattr(compaction, "MOST_FILES", 32)
    draw, runs, written, total = random.Random(1), [], 0, 0
    for batch in range(20_000):
        runs.append(Run(batch, batch, False, draw.randrange(*sizes)))
        total += runs[-1].size
        if some := due(runs):
            size = sum(run.size for run in some)
            runs[-len(some) :] = [Run(some[0].first, batch, True, size)]
            written += size
    levels = math.log(20_000 / 32, growth)
    assert written <= total * (levels + 2)
    assert len(runs) <= 33 + (growth - 1) * (levels + 2) * 2


# ------------------------------------------------------------------------------ beside others


def test_readers_and_a_writer_go_on(tmp_path: Path) -> None:
    history = History(11, batches=150)
    writer = Truth(tmp_path)
    compact = Compaction(writer)
    problems: list[str] = []
    done = threading.Event()
    last = history.moments[-1]

    def read() -> None:
        reader, seen = Truth(tmp_path), -1
        while not done.is_set():
            found = list(reader.read())
            until = found[-1].last if found else -1
            if facts_at((stored.changes for stored in found), last) != history.at(last, until):
                problems.append(f"wrong at batch {until}")
            if until < seen:
                problems.append(f"batch {until} behind {seen}")
            seen = until

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for batch in history.made:
        writer.write(batch.number, batch.changes, batch.entries, about=batch.about)
        compact.start(batch.number)
    done.set()
    for reader in readers:
        reader.join()
    compact.close()
    assert not problems
    assert len(writer.runs()) < 100 and same(Truth(tmp_path), history, NEVER)


def test_files_that_were_opened_can_be_read_to_the_end(tmp_path: Path) -> None:
    history = History(4)
    history.write(truth := Truth(tmp_path))
    reading = truth.read()
    parts = [next(reading).changes]
    Compaction(truth).run(truth.last, whole=True)
    parts += [stored.changes for stored in reading]
    last = history.moments[-1]
    assert len(parts) > 5 and facts_at(parts, last) == history.at(last)


def test_trouble_in_the_background_is_told(tmp_path: Path) -> None:
    history = History(4)
    history.write(truth := Truth(tmp_path))
    path = sorted(truth.quads.iterdir())[0]
    path.write_bytes(path.read_bytes()[:100])
    compact = Compaction(truth)
    compact.start(truth.last)
    with pytest.raises(CheckpointError, match=path.stem):
        compact.close()
    assert len(truth.runs()) == len(history.made), "nothing was lost by it"


def test_who_stops_leaves_all_as_it_was(tmp_path: Path) -> None:
    history = History(4)
    history.write(truth := Truth(tmp_path))
    before = sorted(path.name for path in tmp_path.rglob("*"))
    compact = Compaction(truth)
    compact.close()
    assert not compact.run(truth.last)
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


def test_a_broken_file_is_not_put_together(tmp_path: Path) -> None:
    history = History(6, batches=20)
    truth = Truth(tmp_path)
    history.write(truth, until=history.made[9].number)
    Compaction(truth).run(truth.last, whole=True)
    history.write(truth, since=history.made[9].number)
    path = truth.quads / truth.runs()[0].name
    data = bytearray(path.read_bytes())
    data[60] ^= 255
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match=path.stem):
        Compaction(truth).run(truth.last, whole=True)


def test_nothing_at_all(tmp_path: Path) -> None:
    truth = Truth(tmp_path / "store")
    assert not Compaction(truth).run(5, whole=True) and not list(truth.read())
    truth.write(1, Changes.none(), about={}, always=True)
    Compaction(truth).run(5, whole=True)
    (stored,) = truth.read()
    assert not len(stored.changes) and not len(stored.entries.ids)


@pytest.mark.parametrize("seed", range(5))
def test_a_store_is_made_again_from_it(tmp_path: Path, seed: int) -> None:
    history, truth = History(seed), Truth(tmp_path)
    history.write(truth, until=history.made[7].number)
    Compaction(truth).run(truth.last, keep_from := 8, whole=True)
    history.write(truth, since=history.made[7].number)
    store = Store()
    for stored in truth.read():
        assert len(store.apply(stored.changes)) == len(stored.changes), "each makes a difference"
    for moment in history.moments:
        if moment >= keep_from:
            assert facts_of(store.view(moment)) == history.at(moment), f"seed {seed}, moment {moment}"


def facts_of(view: View) -> set[Fact]:
    return {
        (table.graph, s, table.predicate, o)
        for graph in view.graphs()
        for table in view.tables(graph)
        for s, o in zip(*(column.tolist() for column in table.scan()), strict=True)
    }
