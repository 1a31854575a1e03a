"""Rows of one relation that have no match in another, or that have one.

    N(t)[a] = A(t)[a]   where the sum of B(t)[b] over the b that agree with a on `on` is 0
                        (keep_matched: where it is greater than 0)

NOT EXISTS and MINUS; with `keep_matched`, EXISTS. A's multiplicities stay as they are.
"""

from __future__ import annotations

from kelda.engine.budget import Limited
from kelda.engine.deltas import Deltas
from kelda.engine.operators import rows_kernels as kernels
from kelda.engine.operators.rows import RowTable, are_sparse, plain, positions


class AntiJoin(Limited):
    """Holds the left rows in lists by key, and of the right side only each key's multiplicity.

    `on=()` is one key for all: any right row is a match for every left row."""

    def __init__(
        self,
        left_columns: tuple[str, ...],
        right_columns: tuple[str, ...],
        on: tuple[str, ...],
        keep_matched: bool = False,
    ) -> None:
        self.columns = left_columns
        self.keep_matched = keep_matched
        self._right_columns = right_columns
        self._left_on, self._right_on = positions(on, left_columns), positions(on, right_columns)
        self._start()

    def _start(self) -> None:
        self._left = RowTable(len(self.columns))
        self._keys = RowTable(len(self._left_on))

    def step(self, *inputs: Deltas, until: int) -> Deltas:
        a, b = inputs
        if len(a) == 0 and len(b) == 0:
            return Deltas.empty(self.columns)
        self._left.reserve(len(a))
        self._keys.reserve(len(a) + len(b))
        most = self.budget.rows(len(self.columns) + 2)
        out, fits = kernels.antijoin(
            tuple(self._left.table),
            tuple(self._keys.table),
            plain(a, self.columns),
            plain(b, self._right_columns),
            self._left_on,
            self._right_on,
            self.keep_matched,
            most,
        )
        if not fits:
            raise self.budget.error(8 * most * (len(self.columns) + 2))
        if are_sparse(self._left, self._keys, batch=len(a) + len(b)):
            self._shrink()
        return Deltas(self.columns, *out)

    def _shrink(self) -> None:
        weight, values = self._left.rows()
        key_weight, key_values = self._keys.rows()
        self._start()
        self._left.reserve(len(weight))
        self._keys.reserve(len(key_weight))
        left, keys = tuple(self._left.table), tuple(self._keys.table)
        kernels.load_weights(keys, key_weight, key_values)
        kernels.load(left, keys, weight, values, self._left_on, kernels.LEFT)

    def __len__(self) -> int:
        """Left rows and keys held."""
        return len(self._left) + len(self._keys)

    @property
    def nbytes(self) -> int:
        return self._left.nbytes + self._keys.nbytes
