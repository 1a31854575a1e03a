"""Kernel of rows that are set aside."""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np
from numba import njit

from kelda.rdf.keyset_kernels import has

UNIT, VALUES = 0, 1  # a row: what its window goes by; its values follow


@njit(cache=True)
def set_aside(which, table, at, s, p, o, units, places, least, cells, end):
    """Those of the rows `which` whose part number `at` (0 to 2: s, p, o) is in the `table` of a set of ids.
    The others, but for those with a unit below `least`, are written to `cells` from row `end` on; gives where
    they end, too. `places` tells which parts are their values."""
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
