"""Kernels that look through all tables of a graph at once."""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np
from numba import njit

from kelda.store.tables_kernels import (
    BY_OBJECT,
    BY_SUBJECT,
    GRAPH,
    LIST,
    OBJECT,
    PREDICATE,
    ROWS,
    SINCE,
    SUBJECT,
    TABLES,
    UNTIL,
    before,
    newest,
    place,
)


@njit(cache=True)
def probe_all(cells, halves, graph, at, column, keys):
    """For each fact of a graph at a moment whose `column` is one of `keys`: which key, the predicate, and the
    other column. First comes the table of which the index by that column is missing, or 0."""
    index = BY_SUBJECT if column == SUBJECT else BY_OBJECT
    other = SUBJECT + OBJECT - column
    found = np.empty((3, len(keys) + 64), np.int64)
    n = 0
    for t in range(cells[TABLES]):
        table = cells[cells[LIST] + t]
        rows = cells[table + ROWS]
        if cells[table + GRAPH] != graph or rows == 0:
            continue
        block = cells[table + index]
        if block == 0:
            return table, found[:, :0]
        for i in range(len(keys)):
            row = newest(cells, halves, table, block, column, keys[i])
            while row >= 0:
                here = place(cells, table, row)
                if row < rows and cells[here + SINCE] <= at < cells[here + UNTIL]:
                    if n == found.shape[1]:
                        more = np.empty((3, 2 * n), np.int64)
                        more[:, :n] = found
                        found = more
                    found[0, n] = i
                    found[1, n] = cells[table + PREDICATE]
                    found[2, n] = cells[here + other]
                    n += 1
                row = before(halves, here, column)
    return 0, found[:, :n]
