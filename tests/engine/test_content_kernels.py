"""What a query has at each instant: the kernels beside plain Python."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kelda.engine.content_kernels import numbered_rows, one_by_one, stays

row = st.tuples(st.integers(0, 3), st.integers(-1, 1))


@settings(deadline=None)
@given(st.lists(row, max_size=30), st.integers(0, 2))
def test_rows_are_numbered(some: list[tuple[int, int]], width: int) -> None:
    values = np.array([r[:width] for r in some], np.int64).reshape(len(some), width).T
    numbers, first = numbered_rows(np.ascontiguousarray(values))
    columns = [tuple(values[:, i].tolist()) for i in range(len(some))]
    assert [columns[first[n]] for n in numbers] == columns
    assert len(first) == len(set(columns))


@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.integers(0, 3), max_size=5, unique=True),
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 3), st.integers(0, 2)), max_size=20),
    st.lists(st.integers(0, 10), max_size=6, unique=True),
)
def test_stays(held: list[int], wanted: list[tuple[int, int, int]], instants: list[int]) -> None:
    """`wanted` says how often a row is to be there from a time on: deltas are the differences."""
    now = Counter(held)
    deltas = [(0, number, 1) for number in held]
    for time, number, often in sorted(wanted):
        deltas.append((time, number, often - now[number]))
        now[number] = often
    time, numbers, weight = (np.array([d[i] for d in deltas], np.int64) for i in range(3))
    at = np.array(sorted(instants), np.int64)
    rows, first, last, left, how_often = stays(time, weight, numbers, len(held), at)
    assert (first <= last).all()
    which, where = one_by_one(first, last, len(at))
    times = at[where]
    told = Counter(zip(times.tolist(), rows[which].tolist(), strict=True))
    expected: Counter[tuple[int, int]] = Counter()
    for instant in sorted(instants):
        there: Counter[int] = Counter()
        for i, (t, number, w) in enumerate(deltas):
            if i < len(held) or t <= instant:
                there[number] += w
        expected += Counter({(instant, number): n for number, n in there.items()})
    assert told == expected and times.tolist() == sorted(times.tolist())
    end = Counter(held)
    for t, number, w in deltas[len(held) :]:
        if len(at) and t <= at[-1]:
            end[number] += w
    assert dict(zip(left.tolist(), how_often.tolist(), strict=True)) == {k: v for k, v in end.items() if v}
