"""Pairs of compatible rows, against the definition row by row."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from kelda.ask.matching import compatible_pairs, distinct
from kelda.ask.table import Ids


@st.composite
def two_tables(draw: DrawFn) -> tuple[Ids, Ids]:
    width = draw(st.integers(0, 3))
    most = draw(st.integers(1, 3))

    def table() -> Ids:
        many = draw(st.integers(0, 6))
        cells = [draw(st.integers(0, most)) for _ in range(width * many)]
        return np.array(cells, np.int64).reshape(width, many)

    return table(), table()


@given(two_tables(), st.booleans())
def test_pairs_are_those_of_the_definition(tables: tuple[Ids, Ids], sharing: bool) -> None:
    left, right = tables
    expected = [
        (i, j)
        for i, a in enumerate(left.T.tolist())
        for j, b in enumerate(right.T.tolist())
        if all(x == y or not x or not y for x, y in zip(a, b, strict=True))
        and (not sharing or any(x and y for x, y in zip(a, b, strict=True)))
    ]
    which, other = compatible_pairs(left, right, sharing=sharing)
    assert sorted(zip(which.tolist(), other.tolist(), strict=True)) == expected
    assert (np.diff(which) >= 0).all()


@given(two_tables())
def test_distinct_rows_are_where_they_first_come(tables: tuple[Ids, Ids]) -> None:
    rows, _ = tables
    seen: dict[tuple[int, ...], int] = {}
    for i, row in enumerate(rows.T.tolist()):
        seen.setdefault(tuple(row), i)
    assert distinct(rows).tolist() == list(seen.values())
