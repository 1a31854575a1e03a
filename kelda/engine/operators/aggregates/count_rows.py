"""COUNT(*) = Σ weight of the rows.

Every group has one, whether a query asks for it or not: it is there while it has rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kelda.engine.deltas import Ids
from kelda.engine.operators.aggregates.integers import ZERO, integer_ids
from kelda.engine.operators.aggregates.runs import Members, Runs, running
from kelda.engine.operators.group_table import LEAST_ROOM, resized


class CountRows:
    """The aggregate."""

    empty = ZERO

    def __init__(self) -> None:
        self._state = np.zeros(LEAST_ROOM, np.int64)

    def has_rows(self, groups: Ids) -> NDArray[np.bool_]:
        """Whether each group is there."""
        return self._state[groups] > 0

    def step(self, runs: Runs, members: Members) -> Ids:
        return integer_ids(running(runs, members, members.weight, self._state))

    def resize(self, kept: Ids, room: int) -> None:
        self._state = resized(self._state, kept, room)

    @property
    def nbytes(self) -> int:
        return self._state.nbytes
