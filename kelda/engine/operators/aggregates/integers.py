"""The ids of small integers, which hold their values."""

from __future__ import annotations

import numpy as np

from kelda.engine.deltas import Ids
from kelda.rdf.ids import Kind

_ZERO, _VALUE = np.int64(-(2**63)) | np.int64(Kind.INTEGER << 58), np.int64((1 << 58) - 1)
ZERO = int(_ZERO)


def integer_ids(values: Ids) -> Ids:
    """The ids of integers below 2^57."""
    return _ZERO | (values & _VALUE)
