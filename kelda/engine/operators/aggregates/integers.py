"""The ids of small integers, which hold their values."""

from __future__ import annotations

import numpy as np

from kelda.engine.deltas import Ids
from kelda.rdf.ids import Kind

ZERO = int(np.int64(-(2**63)) | np.int64(Kind.INTEGER << 58))


def integer_ids(values: Ids) -> Ids:
    """The ids of integers below 2^57."""
    return np.int64(ZERO) | (values & (1 << 58) - 1)
