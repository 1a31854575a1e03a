"""Join of two relations that both change.

    J(t)[a, b] = A(t)[a] * B(t)[b]    where a and b agree on the columns `on`

The product is linear on either side: a pair of deltas, of a at ta and of b at tb, changes J at max(ta, tb)
by the product of their weights. At one instant all of them are added up: a pair of rows is sent once, with
A*B after the instant minus A*B before it.
"""

from __future__ import annotations

from kelda.engine.budget import Limited
from kelda.engine.deltas import Deltas
from kelda.engine.operators import rows_kernels as kernels
from kelda.engine.operators.rows import RowTable, are_sparse, plain, positions
from kelda.errors import UsageError


class DeltaJoin(Limited):
    """Holds the rows of both sides, in lists by key. `on=()` is the cross product.

    The columns are the left ones, then those that only the right side has. A column that both sides have
    must be one of `on`: which of two values to keep is not for the join to say.
    """

    def __init__(
        self, left_columns: tuple[str, ...], right_columns: tuple[str, ...], on: tuple[str, ...]
    ) -> None:
        self._left_on, self._right_on = positions(on, left_columns), positions(on, right_columns)
        ambiguous = [c for c in left_columns if c in right_columns and c not in on]
        if ambiguous:
            raise UsageError(
                f"both sides of a join have {', '.join(ambiguous)}: join on it, or rename it on one side"
            )
        right_only = tuple(c for c in right_columns if c not in left_columns)
        self.columns = left_columns + right_only
        self._left_columns, self._right_columns = left_columns, right_columns
        self._right_only = positions(right_only, right_columns)
        self._start()

    def _start(self) -> None:
        self._left = RowTable(len(self._left_columns))
        self._right = RowTable(len(self._right_columns))
        self._keys = RowTable(len(self._left_on))

    def _reserve(self, left: int, right: int) -> None:
        self._left.reserve(left)
        self._right.reserve(right)
        self._keys.reserve(left + right)

    def step(self, *inputs: Deltas, until: int) -> Deltas:
        a, b = inputs
        if len(a) == 0 and len(b) == 0:
            return Deltas.empty(self.columns)
        self._reserve(len(a), len(b))
        left, right, keys = self._left, self._right, self._keys
        most = self.budget.rows(len(self.columns) + 2)
        out, fits = kernels.join(
            tuple(left.table),
            tuple(right.table),
            tuple(keys.table),
            plain(a, self._left_columns),
            plain(b, self._right_columns),
            self._left_on,
            self._right_on,
            self._right_only,
            most,
        )
        if not fits:
            raise self.budget.error(8 * most * (len(self.columns) + 2))
        if are_sparse(left, right, keys, batch=len(a) + len(b)):
            self._shrink()
        return Deltas(self.columns, *out)

    def _shrink(self) -> None:
        a_weight, a_values = self._left.rows()
        b_weight, b_values = self._right.rows()
        self._start()
        self._reserve(len(a_weight), len(b_weight))
        left, right, keys = (tuple(rows.table) for rows in (self._left, self._right, self._keys))
        kernels.load(left, keys, a_weight, a_values, self._left_on, kernels.LEFT)
        kernels.load(right, keys, b_weight, b_values, self._right_on, kernels.RIGHT)

    def __len__(self) -> int:
        """Rows held, on both sides."""
        return len(self._left) + len(self._right)

    @property
    def nbytes(self) -> int:
        return self._left.nbytes + self._right.nbytes + self._keys.nbytes
