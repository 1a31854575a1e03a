"""The rows of a part: those that were sent, and the first of each run of times."""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def rows_of(size, heads, times, sent, s, p, o):
    """(s, p, o, time, how many elements each stands for) of `size` elements, of which the rows `sent` were
    sent, with runs of one time that begin at `heads`: of all rows in order, zeros where none was sent."""
    most = len(heads) + len(sent)
    columns = np.zeros((5, most), np.int64)
    found, i = 0, 0
    for k in range(len(heads)):
        end = heads[k + 1] if k + 1 < len(heads) else size
        if i == len(sent) or sent[i] != heads[k]:
            columns[3, found] = times[k]
            columns[4, found] = heads[k]
            found += 1
        while i < len(sent) and sent[i] < end:
            columns[0, found], columns[1, found], columns[2, found] = s[i], p[i], o[i]
            columns[3, found] = times[k]
            columns[4, found] = sent[i]
            found += 1
            i += 1
    for row in range(found):
        columns[4, row] = (columns[4, row + 1] if row + 1 < found else size) - columns[4, row]
    return columns[:, :found]
