"""A shard's answers do not depend on which process runs which batch, or how often. No JVM here."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from pyoxigraph import Literal, NamedNode, Quad
from pyspark.sql import Row

from kelda.engine.answer import Answer
from kelda.errors import UsageError
from kelda.rdf.event import Event
from kelda.runner.job import Job, StreamSource
from kelda.spark import shard
from kelda.spark.ingest import Part
from kelda.spark.packing import pack_events, unpack_answers
from tests.spark.standin import prepare

JOB = Job(queries=(), streams=(StreamSource("http://ex/a", "a.tsnt"), StreamSource("http://ex/b", "b.tsnt")))


class Store:
    """Spark's state for one key: `commit` keeps a batch's writes, `abort` drops them."""

    def __init__(self) -> None:
        self.kept: dict[Any, Any] = {}
        self.now: dict[Any, Any] = {}

    def commit(self) -> None:
        self.kept = dict(self.now)

    def abort(self) -> None:
        self.now = dict(self.kept)

    # the handle, and both kinds of state at once
    def getValueState(self, *_: Any) -> Store:
        return self

    getMapState = getValueState

    def get(self) -> Any:
        return self.now.get("value")

    def update(self, value: Any) -> None:
        self.now["value"] = value

    def getValue(self, key: Any) -> Any:
        return self.now[key]

    def updateValue(self, key: Any, value: Any) -> None:
        self.now[key] = value

    def removeKey(self, key: Any) -> None:
        del self.now[key]


def parcel(stream: int, number: int, times: range, *, text: str = "x", ends: bool = False) -> bytes:
    quad = Quad(NamedNode("http://ex/s"), NamedNode("http://ex/p"), Literal(text))
    events = [Event(time, (quad,)) for time in times]
    return pickle.dumps([Part(stream, number, pack_events(events), len(events), (), 10, ends)])


BATCHES = [
    [parcel(1, 0, range(10)), parcel(0, 1, range(5, 9)), parcel(0, 0, range(5))],
    [parcel(0, 2, range(9, 20))],
    [parcel(1, 1, range(8, 25), ends=True), parcel(0, 3, range(20, 20), ends=True)],
]


def run(processor: shard.Shard, store: Store, batch: list[bytes]) -> tuple[list[Answer], shard.News]:
    processor.init(store)  # type: ignore[arg-type]
    rows = list(processor.handleInputRows((0,), iter([Row(parcel=data) for data in batch]), None))
    answers = [answer for row in rows if row.kind == shard.ANSWERS for answer in unpack_answers(row.body)]
    return answers, pickle.loads(rows[-1].body)


@pytest.fixture
def processor(monkeypatch: pytest.MonkeyPatch) -> shard.Shard:
    monkeypatch.setattr(shard, "_cached", None)
    return shard.Shard(JOB, prepare)


def undisturbed(processor: shard.Shard) -> list[list[Answer]]:
    store = Store()
    found = [run(processor, store, batch)[0] for batch in BATCHES]
    shard._cached = None
    return found


def test_parts_are_put_in_order_and_the_end_arrives(processor: shard.Shard) -> None:
    answers = [answer for batch in undisturbed(processor) for answer in batch]
    assert [answer.time for answer in answers] == list(range(25))


def test_news(processor: shard.Shard) -> None:
    store = Store()
    assert run(processor, store, BATCHES[0])[1].read == {"http://ex/a": (9, 20), "http://ex/b": (10, 10)}
    run(processor, store, BATCHES[1])
    assert run(processor, store, BATCHES[2])[1].late == {"http://ex/b": 1}


@pytest.mark.parametrize("lost_before", [0, 1, 2])
def test_another_process_takes_over(processor: shard.Shard, lost_before: int) -> None:
    wanted, store, found = undisturbed(processor), Store(), []
    for i, batch in enumerate(BATCHES):
        if i == lost_before:
            shard._cached = None
        found.append(run(processor, store, batch)[0])
    assert found == wanted


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_an_attempt_that_was_not_committed_leaves_no_trace(processor: shard.Shard, failing: int) -> None:
    wanted, store, found = undisturbed(processor), Store(), []
    for i, batch in enumerate(BATCHES):
        if i == failing:
            run(processor, store, batch)
            store.abort()
        found.append(run(processor, store, batch)[0])
        store.commit()
    assert found == wanted


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_an_attempt_that_fails_half_way_leaves_no_trace(processor: shard.Shard, failing: int) -> None:
    wanted, store, found = undisturbed(processor), Store(), []
    for i, batch in enumerate(BATCHES):
        if i == failing:
            with pytest.raises(UsageError):
                run(processor, store, [*batch, parcel(1, -1, range(1000, 1001), text="fail")])
            store.abort()
        found.append(run(processor, store, batch)[0])
        store.commit()
    assert found == wanted


def test_a_long_snapshot_is_kept_in_pieces(processor: shard.Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = undisturbed(processor)
    monkeypatch.setattr(shard, "PIECE", 16)
    store, found, sizes = Store(), [], []
    for batch in BATCHES:
        shard._cached = None
        found.append(run(processor, store, batch)[0])
        sizes.append(len(store.now) - 1)
        assert store.now["value"][1] == sizes[-1], "pieces that are no longer needed are removed"
    assert found == wanted and max(sizes) > 3
