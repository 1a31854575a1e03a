"""Measurements with absorbing: each runs on little, and counts what it says."""

from __future__ import annotations

import pytest

from bench import absorb, streaming
from bench.harness import absorbing


def test_from_text_to_a_durable_batch():
    text = absorb.text_of(3_000, 50)
    found = absorb.absorbed(text, 50, 1_000)
    assert found["triples"] == text.count(b"\n") - text.count(b"\n") // 5
    assert absorb.parts(text, 50, 1_000).keys() == {"batch", *absorb.PARTS}
    assert 40 < absorb.memory(text, 50)["bytes_allocated"] < 1_000


def test_what_is_loaded_is_there_when_it_is_opened_again():
    found = absorb.loading(5_000, 50)
    assert found["triples"] == found["stored_triples"] > 4_000


def test_one_shot_queries_beside_streams():
    found = streaming.measure(["S1", "S5"], users=50, triples=2_000, rate=2_000, seconds=0.2)
    assert found["absorbed"] > 0 and [row["query"] for row in found["queries"]] == ["S1", "S5"]
    assert all(row["off_ms"] > 0 and row["on_ms"] > 0 for row in found["queries"])


def test_two_processes_ask_one_store():
    assert streaming.points(users=50, triples=2_000, seconds=0.2, processes=2)["queries_per_s"] > 0


def test_absorbing_changes_no_answers_of_queries_on_windows():
    some = {"query": "L4", "rate": 5_000, "steps": 5, "users": 100}
    without, beside = (absorbing.step_latency(absorbs=absorbs, **some) for absorbs in (False, True))
    assert without["answers"] == beside["answers"]
    assert beside["stored_triples"] > without["stored_triples"]


def test_the_first_minute_and_the_last():
    found = absorbing.over_time("L3", rate=20, minutes=2, users=50)
    assert found["minutes"] >= 1 and found["ratio"] > 0


@pytest.mark.parametrize("stream", ["postlike", "gps"])
def test_taking_a_stream_in(stream: str):
    found = absorbing.injection(stream, 5_000, 5)
    assert (found["absorb_ms"] is None) == (stream == "gps")
    kept = absorbing.memory(stream, 5_000, 1)
    assert 0 < kept["facts"] <= kept["triples"]  # a like comes ten times, and is one fact


@pytest.mark.parametrize("checkpoint", [False, True])
def test_as_many_answers_with_a_checkpoint_as_without(checkpoint: bool):
    found = absorbing.made_to_last(["L1", "L3"], 20, 2_000, 2, 50, checkpoint, 500)
    assert found["queries"] == 20 and found["answers"] > 0 and found["batches"] > 4


def test_many_queries_of_all_classes():
    found = absorbing.mixed(["L1", "L2", "L3", "L4", "L5", "L6"], 60, 5_000, 5, 100, 6)
    assert 55 <= found["queries"] <= 65 and found["one_shots_per_cpu_s"] > 0


def test_a_query_over_what_is_stored():
    assert absorbing.registration(20_000, "L6")["stored_triples"] > 20_000
