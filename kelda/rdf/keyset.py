"""A growing set of ids."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kelda.rdf import keyset_kernels as kernels

Ids = NDArray[np.int64]


class KeySet:
    """Ids that somebody waits for."""

    def __init__(self) -> None:
        self._table = np.zeros(64, np.int64)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def nbytes(self) -> int:
        return self._table.nbytes

    @property
    def ids(self) -> Ids:
        """What is in the set, in no order."""
        return self._table[self._table != 0]

    @property
    def table(self) -> Ids:
        """What `keyset_kernels.has` looks in; another one after `add`."""
        return self._table

    def add(self, ids: Ids) -> None:
        """Add ids."""
        if 4 * (self._size + len(ids)) > len(self._table):
            old = self._table[self._table != 0]
            self._table = np.zeros(1 << (8 * (self._size + len(ids))).bit_length(), np.int64)
            kernels.insert(self._table, old)
        self._size += kernels.insert(self._table, ids)

    def holds(self, ids: Ids) -> NDArray[np.bool_]:
        """Which of these ids are in the set."""
        out = np.empty(len(ids), np.bool_)
        kernels.members(self._table, ids, out)
        return out
