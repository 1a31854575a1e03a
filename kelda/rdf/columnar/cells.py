"""Cells: the values of one column of a table, as spans of bytes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MISSING = -1


class Cells(NamedTuple):
    """Row i is `text[start[i]:end[i]]`, in UTF-8 without escapes or quotes; `start[i]` is MISSING where
    it has no value. Behind the texts there is padding, so that words of bytes may be read at once."""

    text: NDArray[np.uint8]
    start: NDArray[np.int64]
    end: NDArray[np.int64]


def addressed(cells: Cells) -> tuple[np.uint64, NDArray[np.int64], NDArray[np.int64]]:
    """Cells as kernels take them, as long as somebody holds the text."""
    return np.uint64(cells.text.ctypes.data), cells.start, cells.end
