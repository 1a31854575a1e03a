"""A stream in lanes: what is late, and what is delivered, whatever way they are interleaved."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kelda.engine.budget import Budget
from kelda.engine.clock import FOREVER, NEVER, Clock
from kelda.engine.input import Input
from kelda.rdf import wire
from kelda.rdf.dictionary import Dictionary

S = "http://ex/s"


def taken(lanes: list[list[int]], lateness: int, seed: int, silent: int | None = None) -> tuple[list, int]:
    """(time, which element) in the order of their delivery, and how many were late."""
    draw = random.Random(seed)
    streams = Input(Dictionary())
    streams.add_stream(S, lateness, True)
    for lane in range(len(lanes)):
        streams.open_lane(S, lane)
    if silent is not None:
        streams.silence(S, silent)
    left = [list(enumerate(times)) for times in lanes]
    found: list[tuple[int, int]] = []

    def deliver() -> None:
        while (step := streams.release(Budget())) is not None:
            rows = step.rows[S]
            found.extend(zip(rows.time.tolist(), rows.s.tolist(), strict=True))
            streams.stand_at(step.until)

    while any(left):
        lane = draw.choice([i for i, rest in enumerate(left) if rest])
        some, left[lane] = left[lane][: (n := draw.randint(1, 4))], left[lane][n:]
        s = np.array([lane * 1000 + i for i, _ in some], np.int64)
        time = np.array([t for _, t in some], np.int64)
        streams.take(S, s, s, s, time, lane=lane)
        if draw.random() < 0.5:
            kept = wire.decode(wire.encode(streams.snapshot()), "input")
            assert kept.clock == streams.clock
            deliver()
    streams.end(S)
    deliver()
    return found, streams.late[S]


@given(
    st.lists(st.lists(st.integers(0, 30), max_size=12), min_size=1, max_size=4),
    st.integers(0, 5),
    st.integers(0, 2**30),
)
def test_interleaving_does_not_matter(lanes: list[list[int]], lateness: int, seed: int) -> None:
    assert taken(lanes, lateness, seed) == taken(lanes, lateness, seed + 1)


@given(
    st.lists(st.lists(st.integers(0, 30), max_size=12).map(sorted), min_size=1, max_size=4), st.integers(0, 9)
)
def test_lanes_in_order_are_never_late(lanes: list[list[int]], seed: int) -> None:
    found, late = taken(lanes, 0, seed)
    assert late == 0
    assert found == sorted(
        (t, lane * 1000 + i) for lane, times in enumerate(lanes) for i, t in enumerate(times)
    )


def test_a_lane_holds_the_clock_back_until_it_is_idle() -> None:
    clock = Clock()
    clock.add(S, 0, True)
    stream = clock.of(S)
    stream.lane(0).newest = 10
    assert clock.closed == NEVER or stream.closed == 9
    second = stream.lane(1)
    assert stream.closed == NEVER
    second.idle = True
    assert stream.closed == 9
    stream.lane(0).idle = True
    assert not stream.takes_part
    stream.ended = True
    assert stream.closed == FOREVER
