"""Signed rows: adding up, putting together."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kelda.engine.deltas import Deltas
from kelda.engine.deltas_kernels import net, next_of, told

ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(-2, 2), st.integers(0, 2), st.integers(0, 1)), max_size=60
)


def deltas(rows: list[tuple[int, int, int, int]]) -> Deltas:
    time, weight, *values = np.array(sorted(rows, key=lambda r: r[0]), np.int64).reshape(-1, 4).T
    return Deltas(("x", "y"), time, weight, np.ascontiguousarray(values))


@settings(deadline=None)  # the kernel may have to be compiled
@given(ROWS)
def test_consolidated(rows: list[tuple[int, int, int, int]]) -> None:
    wanted: Counter[tuple[int, int, int]] = Counter()
    for time, weight, x, y in rows:
        wanted[time, x, y] += weight
    found = deltas(rows).consolidated()
    assert (np.diff(found.time) >= 0).all()
    got = [((t, x, y), w) for t, w, (x, y) in zip(found.time, found.weight, found.values.T, strict=True)]
    assert len(got) == len(dict(got))
    assert {k: int(w) for k, w in got} == {k: w for k, w in wanted.items() if w}


@given(ROWS, ROWS)
def test_concat_is_in_time_order(
    a: list[tuple[int, int, int, int]], b: list[tuple[int, int, int, int]]
) -> None:
    both = Deltas.concat([deltas(a), deltas(b).project(("y",))], ("x", "y"))
    assert len(both) == len(a) + len(b)
    assert (np.diff(both.time) >= 0).all()


@settings(deadline=None)
@given(ROWS, st.booleans(), st.booleans())
def test_what_is_gone_comes_first(rows: list[tuple[int, int, int, int]], gone: bool, new: bool) -> None:
    some = deltas(rows)
    kept, total = np.empty(len(some), np.int64), np.empty(len(some), np.int64)
    found = net(some.time, some.weight, some.values, kept, total)
    kept, total = kept[:found], total[:found]
    wanted = []
    for i in sorted(range(found), key=lambda i: (some.time[kept[i]], total[i] > 0)):
        row = (some.time[kept[i]], np.sign(total[i]), *some.values[:, kept[i]])
        wanted += [row] * abs(total[i]) if (gone if total[i] < 0 else new) else []
    times, signs, columns = told(some.time, some.values, kept, total, gone, new)
    assert list(zip(times, signs, *columns, strict=True)) == wanted


@settings(deadline=None)
@given(st.lists(st.integers(0, 30)), st.sets(st.integers(0, 29)))
def test_the_next_of_some_instants(times: list[int], instants: set[int]) -> None:
    known, ascending = np.array(sorted(instants | {30})), np.array(sorted(times), np.int64)
    assert next_of(known, ascending).tolist() == known[known.searchsorted(ascending)].tolist()
