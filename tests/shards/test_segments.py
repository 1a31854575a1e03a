"""What a shard keeps: enough to stand up again anywhere, and not for ever."""

from __future__ import annotations

import json
import multiprocessing
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelda.engine.answer import Answer
from kelda.engine.nodes import Step
from kelda.engine.segments import Segment, pack_rows, pack_step, unpack_rows
from kelda.engine.stream_rows import StreamRows
from kelda.errors import WireError
from kelda.io.job import QuerySpec
from kelda.rdf.dictionary import Dictionary, Entries
from kelda.shards.catalog import Catalog, Drop, Pause
from kelda.shards.setup import Setup
from kelda.shards.shard import Shard
from kelda.store.changes import Changes
from tests.engine.random_queries import STREAMS
from tests.engine.test_batching import bag
from tests.hostile import Touch
from tests.shards.local import Kept, LocalShards
from tests.shards.worlds import PREFIX, event, local_shards, write_stored

STREAM, OVER = STREAMS


@st.composite
def stream_rows(draw: st.DrawFn) -> StreamRows:
    """Rows in time order, some there for their time alone."""
    size = draw(st.integers(1, 12))
    times = sorted(draw(st.lists(st.integers(0, 4), min_size=size, max_size=size)))
    spo = draw(
        st.lists(st.tuples(*[st.integers(1, 9)] * 3) | st.just((0, 0, 0)), min_size=size, max_size=size)
    )
    steps = draw(st.lists(st.integers(0, 1), min_size=size, max_size=size))
    event = 100 + np.cumsum([0, *steps[1:]])
    row = draw(st.integers(0, 1000))
    s, p, o = np.array(spo, np.int64).T
    return StreamRows(s, p, o, np.array(times), event, np.arange(row, row + size))


def same(one: StreamRows, two: StreamRows) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(two, name)) for name in one.__slots__)


@given(stream_rows())
def test_rows_come_out_as_they_went_in(rows: StreamRows) -> None:
    assert same(unpack_rows(pack_rows(rows)), rows)


def test_a_step_brings_its_terms_along() -> None:
    dictionary = Dictionary()
    triple = event(1, "somebody", "with-a-long-name", "somebody-else").quads[0]
    ids = [dictionary.encode(term) for term in (triple.subject, triple.predicate, triple.object)]
    s, p, o = np.array([ids, [0, 0, 0]], np.int64).T
    rows = StreamRows(s, p, o, np.array([5, 6]), np.array([0, 1]), np.array([0, 1]))
    nothing = StreamRows(*[np.zeros(0, np.int64)] * 6)
    found = Segment.unpack(pack_step(Step(3, 6, {STREAM: rows, OVER: nothing}), 4, dictionary))
    assert (found.since, found.until, list(found.rows)) == (4, 6, [STREAM])
    assert same(found.rows[STREAM], rows)
    other = Dictionary()
    assert found.entries is not None
    other.add_entries(found.entries)
    assert other.terms(ids) == [triple.subject, triple.predicate, triple.object]


# ------------------------------------------------------------------------------ how long they are kept

READING = [event(i, f"n{i % 3}", "p", i % 4) for i in range(1, 121)]


def one_shard(*texts: str) -> LocalShards:
    local = local_shards(1)
    local.apply([local.planner.plan(QuerySpec(f"q{i}", PREFIX + text)) for i, text in enumerate(texts)])
    local.push({}, ends=[OVER])
    return local


WINDOWS = {  # how many segments of one element each may stand at a time
    "[NOW]": 2,
    "[RANGE 5ms]": 7,
    "[RANGE 8ms SLIDE 4ms]": 14,
    "[TRIPLES 4]": 7,
    "[SESSION GAP 2ms]": 200,  # a session that goes on and on
}


@pytest.mark.parametrize(("window", "most"), WINDOWS.items(), ids=WINDOWS.keys())
def test_what_has_left_the_windows_is_let_go(window: str, most: int) -> None:
    local = one_shard(f"SELECT * {{ STREAM :a {window} {{ ?x :p ?y }} }}")
    kept = []
    for some in READING[:60]:
        local.push({STREAM: [some]})
        kept.append(len(local.kept[0].segments))
    assert 0 < max(kept[10:]) <= most
    assert len(local.shards[0]._spans) == kept[-1]
    numbers = sorted(local.kept[0].segments)
    assert numbers == list(range(numbers[0], numbers[-1] + 1)), "from the oldest that is needed on"


def test_the_longest_window_decides_until_its_query_is_dropped() -> None:
    short, long = (
        "SELECT * { STREAM :a [RANGE 3ms] { ?x :p ?y } }",
        "ASK { STREAM :a [RANGE 50ms] { ?x :p 9 } }",
    )
    local = one_shard(short, long)
    for some in READING[:60]:
        local.push({STREAM: [some]})
    assert len(local.kept[0].segments) >= 50
    local.apply([Drop("q1")])
    local.push({STREAM: [READING[60]]})
    assert len(local.kept[0].segments) <= 5


@pytest.mark.parametrize("others", [0, 2], ids=["alone", "sharing"])
def test_a_paused_query_goes_on_where_it_was(others: int) -> None:
    """What stood when it was paused is kept, to say later what has changed since; whatever crashed."""
    text = "SELECT * {{ STREAM :a [RANGE 4ms] {{ ?x :p {0} }} }}"
    texts = [text.format(i % 4) for i in range(1 + others)]
    paused = f"q{others}"
    expected: list[Answer] = []
    for crashing in (False, True):
        local = one_shard(*texts)
        found = local.push({STREAM: READING[:10]})
        local.apply([Pause(paused)])
        found += local.push({STREAM: READING[10:31]})
        if crashing:
            local.crash()
        found += local.push({STREAM: READING[31:41]})
        if crashing:
            local.crash()
        local.apply([Pause(paused, False)])
        found += local.push({STREAM: READING[41:60]}, ends=[STREAM])
        if not crashing:
            expected = found
    assert bag(found) == bag(expected)
    assert not [a for a in found if a.query == paused and 10 < a.time <= 40]
    assert [a for a in found if a.query == paused and a.time > 42]


# ------------------------------------------------------------------------------ another process

TEXTS = (
    "SELECT ?x ?z { STREAM :a [RANGE 9ms] { ?x :p ?y } STREAM :a [TRIPLES 5] { ?z :p ?y } }",
    "SELECT ?x (SUM(?y) AS ?n) { STREAM :a [RANGE 8ms SLIDE 3ms] { ?x :p ?y } } GROUP BY ?x",
    "SELECT ?x { STREAM :a [RANGE 5ms] { ?x :p ?y } FILTER NOT EXISTS { STREAM :a [NOW] { ?x :p 1 } } }",
    "DESCRIBE ?x { STREAM :a [RANGE 2ms] { ?x :p 1 } }",
)


def _goes_on(
    batch: int, catalog: Catalog, kept: list[Kept], stored: list[tuple[Changes, Entries | None]]
) -> list[str]:
    """In another process: the same shards, from what they kept."""
    local = LocalShards(Setup(shards=len(kept), fixed_graphs=True))
    local.apply(catalog.between(0, catalog.version))
    local.kept, local.batch, local.catalog, local.stored = kept, batch, catalog, stored
    local.crash()
    return _rest(local)


def _rest(local: LocalShards) -> list[str]:
    return sorted(answer.to_json() for answer in local.push({STREAM: READING[60:]}, ends=[STREAM]))


def test_shards_stand_up_in_another_process(tmp_path: Path) -> None:
    stored = write_stored(tmp_path)
    local = local_shards(3, stored)
    local.apply([local.planner.plan(QuerySpec(f"q{i}", PREFIX + text)) for i, text in enumerate(TEXTS)])
    assert "by the reference evaluator" in local.planner.explain("q3")
    local.push({STREAM: READING[:33]}, ends=[OVER])
    local.push({STREAM: READING[33:60]})
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.apply(_goes_on, (local.batch, local.catalog, local.kept, local.stored))
    assert found == _rest(local)
    assert {json.loads(line)["query"] for line in found} == {"q0", "q1", "q2", "q3"}


@pytest.mark.parametrize("window", WINDOWS)
def test_of_a_large_batch_and_a_small_window_the_end_is_kept(window: str) -> None:
    text = f"SELECT * {{ STREAM :a {window} {{ ?x :p ?y }} }}"
    found = {}
    for crashing in (False, True):
        local = one_shard(text, text.replace(":p", ":q"))
        answers = local.push({STREAM: READING[:100]})
        segments = [Segment.unpack(data) for _, data in local.kept[0].segments.values()]
        assert sum(len(rows) for segment in segments for rows in segment.rows.values()) <= (
            20 if "SESSION" not in window else 100
        )
        if crashing:
            local.crash()
        found[crashing] = bag(answers + local.push({STREAM: READING[100:]}, ends=[STREAM]))
    assert found[True] == found[False]


def test_what_lies_in_a_checkpoint_is_not_run(tmp_path: Path) -> None:
    shards = local_shards(1)
    text = PREFIX + "SELECT ?x ?y { STREAM :a [RANGE 5ms] { ?x :p ?y } }"
    shards.apply([shards.planner.plan(QuerySpec("q", text))])
    shards.push({STREAM: [event(i, "n", "p", i) for i in range(1, 9)]}, heartbeats={OVER: 8})
    (kept,) = shards.kept
    assert kept.memory is not None and kept.segments
    touched = tmp_path / "touched"
    hostile = pickle.dumps(Touch(touched))

    def stand_up(memory: bytes, segments: dict[int, tuple[int, bytes]]) -> Shard:
        return Shard.stand_up(0, shards.setup, shards.catalog, 0, memory, segments)

    assert stand_up(kept.memory, kept.segments).evaluator.now == shards.shards[0].evaluator.now
    with pytest.raises(WireError, match="what a shard keeps is not in Kelda's form"):
        stand_up(hostile, kept.segments)
    with pytest.raises(WireError, match="a segment of a window is not in Kelda's form"):
        stand_up(kept.memory, {n: (version, hostile) for n, (version, _) in kept.segments.items()})
    assert not touched.exists()


def test_columns_that_do_not_fit_together_do_not_reach_a_kernel() -> None:
    column = np.arange(1, 6)
    packed = pack_rows(StreamRows(column, column, column, column, column, column))
    with pytest.raises(WireError, match="do not fit together"):
        unpack_rows((*packed[:-1], column[:2]))
