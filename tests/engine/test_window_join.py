"""The window join against its definition: all combinations of rows, by their intervals."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kelda.engine.clock import FOREVER, NEVER
from kelda.engine.deltas import Deltas
from kelda.engine.window_join import Leaf, NewRows, WindowJoin

Row = tuple[tuple[int, ...], int, int]  # values, enter, leave


def twin(leaves: list[Leaf], rows: list[list[Row]], until: int) -> list[tuple[int, int, tuple[int, ...]]]:
    """Every delta up to `until`, by the definition."""
    names = list(dict.fromkeys(n for leaf in leaves for n in leaf.columns))
    out = []
    for combination in product(*rows):
        values: dict[str, int] = {}
        agree = all(
            values.setdefault(name, value) == value
            for leaf, (row, _, _) in zip(leaves, combination, strict=True)
            for name, value in zip(leaf.columns, row, strict=True)
        )
        start, end = max(r[1] for r in combination), min(r[2] for r in combination)
        if agree and start < end:
            row = tuple(values[n] for n in names)
            out += [(t, w, row) for t, w in ((start, 1), (end, -1)) if t <= until]
    return sorted(out)


def as_list(deltas: Deltas) -> list[tuple[int, int, tuple[int, ...]]]:
    return [
        (int(t), int(w), tuple(int(v) for v in row))
        for t, w, row in zip(deltas.time, deltas.weight, deltas.values.T, strict=True)
    ]


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 4))
def test_join(seed: int, width: int) -> None:
    rng = np.random.default_rng(seed)
    leaves = []
    for i in range(width):
        columns = tuple(sorted(rng.choice(list("abcd"), size=rng.integers(1, 4), replace=False)))
        stored = rng.integers(0, 3, (len(columns), rng.integers(0, 4))) if i and rng.random() < 0.3 else None
        leaves.append(Leaf(columns, stored))
    ranges = rng.integers(1, 7, width)
    join = WindowJoin(leaves)
    rows: list[list[Row]] = [
        [] if leaf.stored is None else [(tuple(row), NEVER, FOREVER) for row in leaf.stored.T]
        for leaf in leaves
    ]
    found, now = [], 0
    for _ in range(int(rng.integers(1, 6))):
        until, batches = now + int(rng.integers(1, 8)), []
        for i, leaf in enumerate(leaves):
            if leaf.stored is None:
                time = np.sort(rng.integers(now + 1, until + 1, rng.integers(0, 6)))
                values = rng.integers(0, 3, (len(leaf.columns), len(time)))
                batches.append(NewRows(i, values, time, time + ranges[i]))
                rows[i] += [
                    (tuple(v), int(t), int(t + ranges[i])) for v, t in zip(values.T, time, strict=True)
                ]
        join.add(batches)
        found += as_list(join.results(until))
        now = until
    found += as_list(join.results(now + 99))
    assert sorted(found) == twin(leaves, rows, now + 99)
    assert join.standing == 0


def test_a_copy_in_a_graph_takes_the_place_of_the_one_before() -> None:
    #  a copy at 1 and at 3, windows of 5: one row from 1 to 8, told as -1 +1 at 3
    join = WindowJoin([Leaf(("x",), graph=True)])
    time = np.array([1, 3])
    join.add([NewRows(0, np.array([[7, 7]]), time, time + 5)])
    assert as_list(join.results(10).consolidated()) == [(1, 1, (7,)), (8, -1, (7,))]


def test_rows_that_have_left_make_room() -> None:
    join = WindowJoin([Leaf(("x", "y")), Leaf(("y", "z"))])
    held = []
    for step in range(200):
        time = np.arange(step * 100, step * 100 + 100)
        values = np.array([time, time % 10])
        join.add(
            [
                NewRows(0, values, time, time + 50),
                NewRows(1, values[::-1].copy(), time, time + 50),
            ]
        )
        join.results(int(time[-1]))
        held.append(join.nbytes)
    assert held[-1] == held[20]


def test_stored_rows_may_come_later_and_indexes_may_grow() -> None:
    #  window rows (x, y) for ever; stored rows (y, z) come in three lots: only later window rows meet them
    join = WindowJoin([Leaf(("x", "y")), Leaf(("y", "z"), stored=np.zeros((2, 0), np.int64))])
    found = 0
    for lot in range(3):
        many = 50 * 10**lot
        join.add_stored(1, np.array([np.arange(many) % 100, np.full(many, lot)]))
        time = np.full(200, lot + 1)
        join.add([NewRows(0, np.array([np.arange(200), np.arange(200)]), time, np.full(200, FOREVER))])
        found += len(join.results(lot + 1))
    assert found == 50 + (50 + 500) + (50 + 500 + 5000)
    assert join.cell(1, 1, np.array([0, 50, 550])).tolist() == [0, 1, 2]
    assert join.entered(0, np.array([0, 200, 400])).tolist() == [1, 2, 3]
    assert join.next_rows.tolist() == [600, 5550]


def test_one_leaf_with_more_rows_than_there_is_room_for_results() -> None:
    """It stops when it is full, goes on when conditions have thrown out or room was made, and misses none."""
    for keeps in (2, 100):  # every second row, which fills the room; or few, which never do
        join = WindowJoin([Leaf(("x",))])
        join.conditions = [lambda deltas, keeps=keeps: deltas.values[0] % keeps == 0]
        for first in (0, 1000):
            numbers = np.arange(first, first + 1000)
            join.add([NewRows(0, numbers[None, :], numbers, numbers + 5000)])
        came = as_list(join.results(2000))
        assert came == [(x, 1, (x,)) for x in range(0, 2000, keeps)]
        assert as_list(join.results(7000)) == [(x + 5000, -1, (x,)) for x in range(0, 2000, keeps)]
