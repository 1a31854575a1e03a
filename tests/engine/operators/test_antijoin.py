"""Rows with and without a match against their definition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kelda.engine.deltas import Deltas
from kelda.engine.operators.antijoin import AntiJoin

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


def definition(on_x: bool, keep_matched: bool) -> Callable[[Relation, Relation], Relation]:
    def f(left: Relation, right: Relation) -> Relation:
        kept: Relation = Counter()
        for row, m in left.items():
            matches = sum(n for s, n in right.items() if not on_x or s[1] == row[0])
            if (matches > 0) == keep_matched:
                kept[row] = m
        return kept

    return f


@settings(deadline=None)
@given(histories(2), histories(2), cuts, st.booleans())
@example([(1, 2, (1, 5)), (2, -1, (1, 5))], [(1, 1, (6, 1)), (2, -1, (6, 1))], {1}, False)
@example([(1, 2, (1, 5))], [(2, 1, (6, 1)), (2, -1, (6, 1)), (3, 1, (6, 1)), (3, 1, (7, 1))], set(), True)
def test_law(a: list[Timed], b: list[Timed], ends: set[int], keep_matched: bool) -> None:
    operator = AntiJoin(A, B, ("x",), keep_matched)
    assert operator.columns == A
    changes = sent(operator, [deltas(A, a), deltas(B, b)], ends)
    assert changes == by_definition(definition(True, keep_matched), a, b)
    left: Relation = Counter()
    right: Relation = Counter()
    for _, weight, row in a:
        left[row] += weight
    for _, weight, row in b:
        right[row[1:]] += weight
    rows = [row for row, m in left.items() if m]
    keys = {row[:1] for row in rows} | {key for key, n in right.items() if n}
    assert len(operator) == len(rows) + len(keys), "only rows and keys that are there are held"


@settings(deadline=None, max_examples=50)
@given(histories(2), histories(2), cuts, st.booleans())
def test_one_key_for_all(a: list[Timed], b: list[Timed], ends: set[int], keep_matched: bool) -> None:
    operator = AntiJoin(A, B, (), keep_matched)
    changes = sent(operator, [deltas(A, a), deltas(B, b)], ends)
    assert changes == by_definition(definition(False, keep_matched), a, b)


@pytest.mark.parametrize("keep_matched", [False, True])
def test_long_run(keep_matched: bool) -> None:
    a, b = coming_and_going(1, A, 4000, 500), coming_and_going(2, B, 1000, 500)
    check_sums(AntiJoin(A, B, ("x",), keep_matched), definition(True, keep_matched), a, b)


@pytest.mark.parametrize("keep_matched", [False, True])
def test_a_match_that_comes_and_goes_within_an_instant_changes_nothing(keep_matched: bool) -> None:
    operator = AntiJoin(A, B, ("x",), keep_matched)
    operator.step(deltas(A, [(1, 2, (1, 5))]), deltas(B, []), until=1)
    assert len(operator.step(deltas(A, []), deltas(B, [(2, 1, (6, 1)), (2, -1, (6, 1))]), until=2)) == 0


def test_one_match_follows_another() -> None:
    """The last copy of one match leaves at the instant at which the next arrives: the key stays matched."""
    operator = AntiJoin(A, B, ("x",))
    operator.step(deltas(A, [(1, 1, (1, 5))]), deltas(B, [(1, 3, (6, 1))]), until=1)
    assert len(operator.step(deltas(A, []), deltas(B, [(2, -3, (6, 1)), (2, 1, (7, 1))]), until=2)) == 0


def test_memory_follows_the_live_rows() -> None:
    operator = AntiJoin(A, B, ("x",))
    sizes = []
    for step in range(60):
        x = np.arange(step * 1000, (step + 1) * 1000)
        time = np.concatenate([x, x + 100])
        order = np.argsort(time, kind="stable")
        weight = np.repeat([1, -1], 1000)[order]
        rows = np.concatenate([x, x])[order]
        a = Deltas(A, time[order] + step * 100, weight, np.stack([rows, rows]))
        b = Deltas(B, a.time + 50, weight, a.values)
        a_in, b_in = a.time < (step + 1) * 1100, b.time < (step + 1) * 1100
        out = operator.step(a.select(a_in), b.select(b_in), until=(step + 1) * 1100 - 1)
        assert len(out) == 2000, "in at its time, out when its match comes 50 later; as the match goes, gone"
        operator.step(a.select(~a_in), b.select(~b_in), until=(step + 1) * 1100 + 50)
        sizes.append(operator.nbytes)
    assert len(operator) == 0 and sizes[-1] == sizes[1]
    many = np.arange(100_000, dtype=np.int64)
    ones, none = np.ones_like(many), Deltas.empty(B)
    operator.step(Deltas(A, ones * 10**6, ones, np.stack([many, many])), none, until=10**6)
    burst = operator.nbytes
    gone = Deltas(A, ones * 10**6 + 1, -ones, np.stack([many, many])).select(many >= 10)
    operator.step(gone, none, until=10**6 + 1)
    operator.step(deltas(A, []), deltas(B, [(10**6 + 2, 1, (0, 4))]), until=10**6 + 2)
    assert len(operator) == 20 and operator.nbytes < burst / 100
    out = operator.step(deltas(A, []), deltas(B, [(10**6 + 3, -1, (0, 4))]), until=10**6 + 3)
    assert (out.weight.tolist(), out.values.tolist()) == ([1], [[4], [4]])
