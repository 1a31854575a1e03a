"""Joins of changing relations against their definition."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given, settings

from kelda.engine.deltas import Deltas
from kelda.engine.operators.join import DeltaJoin
from kelda.errors import UsageError

from .test_distinct import (
    Relation,
    Timed,
    by_definition,
    check_sums,
    coming_and_going,
    cuts,
    deltas,
    histories,
    sent,
)

A, B = ("x", "y"), ("z", "x")


def join_on_x(a: Relation, b: Relation) -> Relation:
    pairs: Relation = Counter()
    for (x, y), m in a.items():
        for (z, x2), n in b.items():
            if x == x2:
                pairs[x, y, z] += m * n
    return pairs


def cross(a: Relation, b: Relation) -> Relation:
    return Counter({r + s: m * n for r, m in a.items() for s, n in b.items()})


def both(a: Relation, b: Relation) -> Relation:
    return Counter({(x, y): m * b[y, x] for (x, y), m in a.items()})


@settings(deadline=None)
@given(histories(2), histories(2), cuts)
@example([(1, 1, (1, 5)), (2, -1, (1, 5))], [(1, 2, (6, 1)), (2, -2, (6, 1)), (2, 1, (7, 1))], {1})
def test_law(a: list[Timed], b: list[Timed], ends: set[int]) -> None:
    operator = DeltaJoin(A, B, ("x",))
    assert operator.columns == ("x", "y", "z")
    assert sent(operator, [deltas(A, a), deltas(B, b)], ends) == by_definition(join_on_x, a, b)
    live = 0
    for side in (a, b):
        sums: Relation = Counter()
        for _, weight, row in side:
            sums[row] += weight
        live += sum(m != 0 for m in sums.values())
    assert len(operator) == live, "only rows that are there are held"


@settings(deadline=None, max_examples=50)
@given(histories(2), histories(1), cuts)
def test_cross_product(a: list[Timed], b: list[Timed], ends: set[int]) -> None:
    operator = DeltaJoin(A, ("z",), ())
    assert sent(operator, [deltas(A, a), deltas(("z",), b)], ends) == by_definition(cross, a, b)


@settings(deadline=None, max_examples=50)
@given(histories(2), histories(2), cuts)
def test_on_all_columns(a: list[Timed], b: list[Timed], ends: set[int]) -> None:
    operator = DeltaJoin(A, ("y", "x"), ("x", "y"))
    assert sent(operator, [deltas(A, a), deltas(("y", "x"), b)], ends) == by_definition(both, a, b)


@settings(deadline=None, max_examples=20)
@given(histories(2), histories(0), cuts)
def test_with_a_side_without_columns(a: list[Timed], b: list[Timed], ends: set[int]) -> None:
    operator = DeltaJoin(A, (), ())
    assert sent(operator, [deltas(A, a), deltas((), b)], ends) == by_definition(cross, a, b)


def test_long_run() -> None:
    a, b = coming_and_going(1, A, 4000, 60), coming_and_going(2, B, 2000, 60)
    check_sums(DeltaJoin(A, B, ("x",)), join_on_x, a, b)


def test_a_match_that_comes_as_its_partner_goes_is_never_sent() -> None:
    operator = DeltaJoin(A, B, ("x",))
    operator.step(deltas(A, []), deltas(B, [(1, 1, (6, 1))]), until=1)
    assert len(operator.step(deltas(A, [(2, 1, (1, 5))]), deltas(B, [(2, -1, (6, 1))]), until=2)) == 0


def test_much_output_from_little_input() -> None:
    """1000 rows meet 500 of one key: the output grows far beyond the input."""
    a = Deltas(
        A, np.arange(1000), np.ones(1000, np.int64), np.stack([np.ones(1000, np.int64), np.arange(1000)])
    )
    b = Deltas(B, np.full(500, 2000), np.full(500, 3), np.stack([np.arange(500), np.ones(500, np.int64)]))
    out = DeltaJoin(A, B, ("x",)).step(a, b, until=2000)
    assert len(out) == 500_000 and (out.weight == 3).all() and (out.time == 2000).all()
    assert len(np.unique(out.column("y") * 500 + out.column("z"))) == 500_000


def test_memory_follows_the_live_rows() -> None:
    """A window of 100 rows over 60 000 on both sides, every key new; then a burst, its room given back."""
    operator = DeltaJoin(A, B, ("x",))
    sizes, answers = [], 0
    for step in range(60):
        x = np.arange(step * 1000, (step + 1) * 1000)
        time = np.concatenate([x, x + 100])
        order = np.argsort(time, kind="stable")
        weight = np.repeat([1, -1], 1000)[order]
        rows = np.concatenate([x, x])[order]
        out = operator.step(
            Deltas(A, time[order] + step * 100, weight, np.stack([rows, rows])),
            Deltas(B, time[order] + step * 100, weight, np.stack([rows, rows])),
            until=(step + 1) * 1100,
        )
        answers += len(out)
        sizes.append(operator.nbytes)
    assert answers == 2 * 60_000 and len(operator) == 0 and sizes[-1] == sizes[1]
    many = np.arange(100_000, dtype=np.int64)
    ones, none = np.ones_like(many), Deltas.empty(B)
    operator.step(Deltas(A, ones * 10**6, ones, np.stack([many, many])), none, until=10**6)
    burst = operator.nbytes
    gone = Deltas(A, ones * 10**6 + 1, -ones, np.stack([many, many])).select(many >= 10)
    operator.step(gone, none, until=10**6 + 1)
    out = operator.step(deltas(A, []), deltas(B, [(10**6 + 2, 1, (9, 4))]), until=10**6 + 2)
    assert len(operator) == 11 and operator.nbytes < burst / 100
    out = operator.step(deltas(A, [(10**6 + 3, -1, (4, 4))]), none, until=10**6 + 3)
    assert (out.weight.tolist(), out.values.tolist()) == ([-1], [[4], [4], [9]])


def test_columns_that_do_not_fit_are_refused() -> None:
    with pytest.raises(UsageError, match="join on it, or rename"):
        DeltaJoin(("x", "y"), ("x", "y"), ("x",))
    with pytest.raises(UsageError, match="no column z"):
        DeltaJoin(("x", "y"), ("x",), ("z",))
