"""A growing set of ids against Python's."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kelda.rdf.keyset import KeySet

IDS = st.lists(st.integers(-(2**63), 2**63 - 1).filter(bool), max_size=80)


@given(st.lists(IDS, max_size=5), IDS)
def test_members(batches: list[list[int]], asked: list[int]) -> None:
    keys, twin = KeySet(), set[int]()
    for batch in batches:
        keys.add(np.array(batch, np.int64))
        twin.update(batch)
    asked += [id for batch in batches for id in batch]
    assert keys.holds(np.array(asked, np.int64)).tolist() == [id in twin for id in asked]
    assert len(keys) == len(twin)


def test_nothing_is_in_an_empty_set() -> None:
    assert not KeySet().holds(np.array([1, -1, 0], np.int64))[:2].any()
