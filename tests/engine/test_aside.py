"""Rows that are set aside come back in their order; those that have left are forgotten."""

from __future__ import annotations

import numpy as np
import pytest

from kelda.engine.aside import LEAST, Aside
from kelda.rdf.keyset import KeySet


def step(aside: Aside, number: int, size: int, keys: KeySet, since: int) -> np.ndarray:
    """A step of so many rows at time `number`: subject and object are numbers from 1 on."""
    s = np.arange(1, size + 1) + number
    parts = (s, np.full(size, 7), s * 2)
    time = np.full(size, number)
    every = np.arange(size)
    return aside.split(every, keys, 0, parts, time, np.array([0, 2]), number, since + 1)


@pytest.mark.parametrize("size", [1, 5, 700, 3000])
def test_what_has_no_partner_comes_back(size: int) -> None:
    keys, aside = KeySet(), Aside(2)
    keys.add(np.arange(3, 10**6, 10))
    kept = [step(aside, number, size, keys, since=-1) for number in range(20)]
    subjects = [np.arange(1, size + 1) + number for number in range(20)]
    for some, subject in zip(kept, subjects, strict=True):
        assert (some == np.flatnonzero(subject % 10 == 3)).all()
    expected = [(n, n, s, 2 * s) for n, some in enumerate(subjects) for s in some.tolist() if s % 10 != 3]
    steps, units, values = aside.all()
    assert list(zip(steps.tolist(), units.tolist(), *values.tolist(), strict=True)) == expected
    back = aside.back(lambda units, values: values[0] % 10 == 4)
    assert back[2][0].tolist() == [s for _, _, s, _ in expected if s % 10 == 4]
    assert aside.all()[2][0].tolist() == [s for _, _, s, _ in expected if s % 10 != 4]
    assert (aside.all()[0] == aside.all()[1]).all()


def test_blocks_are_used_again() -> None:
    keys, aside = KeySet(), Aside(2)
    for number in range(1000):
        step(aside, number, 50, keys, since=number - 30)
    assert 30 * 50 <= len(aside) <= 30 * 50 + 2 * LEAST
    assert sum(len(block.cells) for block in aside._blocks) <= 30 * 50 + 3 * LEAST


def test_no_more_room_than_needed() -> None:
    keys, aside = KeySet(), Aside(2)
    keys.add(np.arange(50, 10**5))
    for number in range(40):  # 49 rows of 20,000 have no partner, then 48, and so on
        step(aside, number, 20_000, keys, since=-1)
    assert sum(len(block.cells) for block in aside._blocks) <= 40_000
