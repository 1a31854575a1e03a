"""DISTINCT: every row once.

    D(t) = { row : 1   where A(t)[row] > 0 }

Sends +1 at an instant after which a row is there and before which it was not, -1 the other way round.
"""

from __future__ import annotations

from kelda.engine.deltas import Deltas
from kelda.engine.operators import rows_kernels as kernels
from kelda.engine.operators.rows import RowTable, are_sparse, plain


class Distinct:
    """Holds one slot per row that is there."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        self.columns = columns
        self._rows = RowTable(len(columns))

    def step(self, *inputs: Deltas, until: int) -> Deltas:
        (a,) = inputs
        if len(a) == 0:
            return Deltas.empty(self.columns)
        self._rows.reserve(len(a))
        out = kernels.distinct(tuple(self._rows.table), plain(a, self.columns))
        if are_sparse(self._rows, batch=len(a)):
            self._shrink()
        return Deltas(self.columns, *out)

    def _shrink(self) -> None:
        weight, values = self._rows.rows()
        self._rows = RowTable(len(self.columns))
        self._rows.reserve(len(weight))
        kernels.load_weights(tuple(self._rows.table), weight, values)

    def __len__(self) -> int:
        """Rows held."""
        return len(self._rows)

    @property
    def nbytes(self) -> int:
        return self._rows.nbytes
