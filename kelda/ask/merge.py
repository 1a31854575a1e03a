"""Two compatible solutions as one."""

from __future__ import annotations

import numpy as np

from kelda.ask.table import Ids


class Merge:
    """Of solutions with the columns `left` and `right`: the left columns, then those of the right alone. A
    value that the left side may lack (it is not in `bound`) comes from the right."""

    def __init__(self, left: tuple[str, ...], right: tuple[str, ...], bound: frozenset[str]) -> None:
        alone = [name for name in right if name not in left]
        self.columns = (*left, *alone)
        self._alone = [right.index(name) for name in alone]
        self._filled = [
            (i, right.index(name)) for i, name in enumerate(left) if name in right and name not in bound
        ]

    def rows(self, left: Ids, right: Ids, which: Ids, other: Ids) -> Ids:
        """The pairs at these positions."""
        merged = left[:, which]
        for mine, theirs in self._filled:
            merged[mine] = np.where(merged[mine] == 0, right[theirs, other], merged[mine])
        return np.concatenate([merged, right[self._alone][:, other]]) if self._alone else merged

    def alone(self, left: Ids) -> Ids:
        """Left solutions without another."""
        nothing = np.zeros((len(self._alone), left.shape[1]), np.int64)
        return np.concatenate([left, nothing])
