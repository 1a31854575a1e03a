"""Which rows of a window pattern are this shard's: the shard's place in the grid of its query.

See `kelda.plan.partition` for what the grid is. Ingest asks for the shards of each row, to know where to
send it; a shard asks again, for each query, because a row that one query sent here may be none of
another's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kelda.engine.deltas import Ids
from kelda.engine.ownership_kernels import owned, owners
from kelda.plan.partition import Spread

MOST_SHARDS = 63  # a set of shards is one int64


@dataclass(frozen=True, slots=True)
class Owner:
    """One shard of a spread query."""

    spread: Spread
    shard: int

    def mine(self, columns: Mapping[str, int], parts: tuple[Ids, Ids, Ids], which: Ids) -> NDArray[np.bool_]:
        """Which of the rows `which` belong here; `columns` tells the position of each variable."""
        if self.shard >= self.spread.shards:
            return np.zeros(len(which), np.bool_)
        keep = parts[0][which] != 0  # a row that was not sent here is there as zeros, for its time alone
        for name, (share, stride) in self.spread.strides().items():
            if name in columns:
                keep &= owned(parts[columns[name]][which], share, self.shard // stride % share)
        return keep


def shards_of(spread: Spread, columns: Mapping[str, int], parts: tuple[Ids, Ids, Ids], which: Ids) -> Ids:
    """The shards of each of the rows `which`, as a set of bits."""
    first = np.zeros(len(which), np.int64)
    copies = [0]
    for name, (share, stride) in spread.strides().items():
        if name in columns:
            first += owners(parts[columns[name]][which], share) * stride
        else:
            copies = [at + i * stride for at in copies for i in range(share)]
    return np.int64(sum(1 << at for at in copies)) << first
