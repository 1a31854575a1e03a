"""Kernel of the check: the ids that texts should have."""

from __future__ import annotations

import numpy as np
from numba import njit

from kelda.rdf.hash_kernels import PADDING
from kelda.rdf.ntriples_kernels import term_id


@njit(cache=True, nogil=True)
def term_ids(texts, offsets, seed):  # type: ignore[no-untyped-def]
    """(ids, checks) of canonical texts that lie one after another, with the padding behind the last. A text
    that is empty has the id 0."""
    size = len(offsets) - 1
    ids, checks = np.zeros(size, np.int64), np.zeros(size, np.int64)
    for i in range(size):
        if offsets[i] < offsets[i + 1]:
            ids[i], checks[i] = term_id(texts[offsets[i] : offsets[i + 1] + PADDING], seed)
    return ids, checks
