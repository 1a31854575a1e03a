"""SUM(?x) = Σ member · weight.

An integer if all members are, else a decimal, a float or a double: the largest sort among them.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal

from kelda.engine.deltas import Ids
from kelda.engine.operators.aggregates.totals import Totals
from kelda.rdf.aggregates import sum_of
from kelda.rdf.values import Sort


class Sum(Totals):
    """The aggregate."""

    def _is_integer(self, decimals: Ids, count: Ids) -> NDArray[np.bool_]:
        return decimals == 0

    def _of_decimals(self, whole: Ids, fraction: Ids, count: Ids) -> tuple[Ids, Ids]:
        return whole, fraction

    def _of_large(self, sort: Sort, total: Decimal, count: int) -> Literal:
        return sum_of(sort, total, 0.0)

    def _of_floats(
        self, total: NDArray[np.float64], double: NDArray[np.bool_], count: Ids
    ) -> NDArray[np.float64]:
        return total
