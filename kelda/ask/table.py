"""Solutions as columns of ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Table:
    """A bag of solutions, in order: `ids[i]` is the column `columns[i]`; 0 is unbound."""

    columns: tuple[str, ...]
    ids: Ids  # shape (len(columns), rows)

    def __len__(self) -> int:
        return self.ids.shape[1]

    def column(self, name: str) -> Ids:
        """The ids of one column."""
        return self.ids[self.columns.index(name)]


def rows_of(ids: Ids, columns: tuple[str, ...], wanted: Sequence[str]) -> Ids:
    """These columns, in this order; what is not there is unbound."""
    if tuple(wanted) == columns:
        return ids
    places = [columns.index(name) if name in columns else -1 for name in wanted]
    if -1 not in places:
        return ids[places]
    found = np.zeros((len(wanted), ids.shape[1]), np.int64)
    for i, place in enumerate(places):
        if place >= 0:
            found[i] = ids[place]
    return found


def no_rows(width: int) -> Ids:
    """A table of no solutions."""
    return np.zeros((width, 0), np.int64)
