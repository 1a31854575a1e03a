"""AVG(?x) = SUM(?x) / COUNT(?x), and 0 of no members.

Of integers and decimals it is a decimal, cut off after 18 places; of floats alone it is reckoned as a float.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal

from kelda.engine.deltas import Ids
from kelda.engine.operators.aggregates.totals import Totals
from kelda.engine.operators.aggregates.totals_kernels import quotients
from kelda.rdf.aggregates import average_of
from kelda.rdf.values import Sort


class Average(Totals):
    """The aggregate."""

    def _is_integer(self, decimals: Ids, count: Ids) -> NDArray[np.bool_]:
        return count == 0

    def _of_decimals(self, whole: Ids, fraction: Ids, count: Ids) -> tuple[Ids, Ids]:
        return quotients(whole, fraction, count)

    def _of_large(self, sort: Sort, total: Decimal, count: int) -> Literal:
        return average_of(sort, total, 0.0, count)

    def _of_floats(
        self, total: NDArray[np.float64], double: NDArray[np.bool_], count: Ids
    ) -> NDArray[np.float64]:
        single = total.astype(np.float32) / count.astype(np.float32)
        return np.where(double, total / count, single)
