"""The passes over the columns of a step, against the same in NumPy or plain Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kelda.engine import intervals_kernels as kernels
from kelda.engine.clock import FOREVER, NEVER
from kelda.engine.intervals import TimeIntervals

TIMES = st.lists(st.integers(-30, 60), max_size=30)
WINDOW = st.builds(
    TimeIntervals,
    st.none() | st.integers(1, 20),
    st.none() | st.integers(1, 9),
    st.integers(0, 5),
    st.integers(-7, 7),
)


def column(values: list[int]) -> np.ndarray:
    return np.array(values, np.int64)


def stay(window: TimeIntervals, time: int) -> tuple[int, int]:
    """By the definition: up to the next instant at which the window moves."""
    enter = time + window.until
    leave = FOREVER if window.range is None else enter + window.range
    if window.slide is not None:
        enter += (window.t0 - enter) % window.slide
        leave += 0 if window.range is None else (window.t0 - leave) % window.slide
    return enter, leave


@settings(deadline=None)  # the kernels may have to be compiled
@given(TIMES, WINDOW)
def test_stays(times: list[int], window: TimeIntervals) -> None:
    wanted = [stay(window, t) for t in times]
    enter, leave, seen = kernels.stays(column(times), *window.numbers)
    assert list(zip(enter.tolist(), leave.tolist(), strict=True)) == wanted
    assert seen == all(a < b for a, b in wanted)


@settings(deadline=None)
@given(TIMES, WINDOW)
def test_distinct_stays(times: list[int], window: TimeIntervals) -> None:
    enter, leave = kernels.distinct_stays(column(sorted(times)), *window.numbers)
    found = list(zip(enter.tolist(), leave.tolist(), strict=True))
    assert found == sorted({s for s in (stay(window, t) for t in times) if s[0] < s[1]})


@settings(deadline=None)
@given(TIMES)
def test_order_and_numbers(times: list[int]) -> None:
    assert kernels.falls(column(times)) == (times != sorted(times))
    heads = [i == 0 or times[i] != times[i - 1] for i in range(len(times))]
    assert kernels.numbered(column(times), 5).tolist() == (4 + np.cumsum(heads)).tolist()


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3)), max_size=40),
    st.tuples(*[st.none() | st.integers(1, 3)] * 3),
)
def test_matching(triples: list[tuple[int, int, int]], wanted: tuple[int | None, ...]) -> None:
    s, p, o = np.array(triples, np.int64).reshape(-1, 3).T.copy()
    ids, given_ = column([w or 0 for w in wanted]), np.array([w is not None for w in wanted])
    found = kernels.matching(s, p, o, ids, given_).tolist()
    assert found == [
        i for i, t in enumerate(triples) if all(w in (None, x) for w, x in zip(wanted, t, strict=True))
    ]


@settings(deadline=None)
@given(TIMES, TIMES, st.integers(-30, 60))
def test_merged(enters: list[int], leaves: list[int], until: int) -> None:
    found = kernels.merged(column(sorted(enters)), column(sorted(leaves)), until)
    assert found.tolist() == sorted({t for t in enters + leaves if t <= until})


@settings(deadline=None)
@given(
    st.sets(st.integers(1, 40), max_size=6),
    st.lists(st.booleans(), min_size=7, max_size=7),
    st.just(NEVER) | st.integers(-5, 0),
    st.integers(0, 20),
    st.integers(-4, 4),
    st.integers(1, 9),
)
def test_grid(moments: set[int], inside: list[bool], visited: int, more: int, t0: int, every: int) -> None:
    changes = sorted(moments)
    until = max([*changes, 0]) + more
    found = kernels.grid(column(changes), np.array(inside), visited, NEVER, until, t0, every)
    starts = [(visited, inside[0])] if visited > NEVER else []
    starts += list(zip(changes, inside[1:], strict=False))
    wanted: set[int] = set()
    for i, (start, something) in enumerate(starts):
        end = starts[i + 1][0] if i + 1 < len(starts) else until
        due = [t for t in range(start, end + 1) if (t - t0) % every == 0]
        wanted |= set(due if something else due[:1])
    assert found.tolist() == sorted(t for t in wanted if t > visited)
