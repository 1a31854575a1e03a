"""Kernel of rows that are set aside."""

# mypy: allow-untyped-defs
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kelda.rdf.keyset_kernels import has

UNIT, VALUES = 0, 1  # a row: what its window goes by; its values follow


class Rows(NamedTuple):
    """New rows: their three parts, and what their window goes by. Python hands over a plain tuple, whose
    types numba finds far sooner than those of a named one."""

    s: NDArray[np.int64]
    p: NDArray[np.int64]
    o: NDArray[np.int64]
    units: NDArray[np.int64]


@njit(cache=True)
def set_aside(which, rows, table, at, places, least, cells, end):
    """Those of the rows `which` whose part number `at` (0 to 2: s, p, o) is in the `table` of a set of ids.
    The others, but for those with a unit below `least`, are written to `cells` from row `end` on; gives where
    they end, too. `places` tells which parts are their values."""
    s, p, o, units = Rows(*rows)
    kept, n, mask = np.empty(len(which), np.int64), 0, len(table) - 1
    for i in range(len(which)):
        row = which[i]
        if has(table, 0, mask, s[row] if at == 0 else p[row] if at == 1 else o[row]):
            kept[n] = row
            n += 1
            continue
        if units[row] < least:
            continue
        cells[end, UNIT] = units[row]
        for c in range(len(places)):
            place = places[c]
            cells[end, VALUES + c] = s[row] if place == 0 else p[row] if place == 1 else o[row]
        end += 1
    return kept[:n], end
