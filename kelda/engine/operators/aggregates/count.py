"""COUNT(?x) = Σ weight of the members that are bound."""

from __future__ import annotations

import numpy as np

from kelda.engine.deltas import UNBOUND, Ids
from kelda.engine.operators.aggregates.integers import ZERO, integer_ids
from kelda.engine.operators.aggregates.runs import Members, Runs, running
from kelda.engine.operators.group_table import LEAST_ROOM, resized


class Count:
    """The aggregate."""

    empty = ZERO

    def __init__(self) -> None:
        self._state = np.zeros(LEAST_ROOM, np.int64)

    def step(self, runs: Runs, members: Members) -> Ids:
        bound = np.where(members.value != UNBOUND, members.weight, 0)
        return integer_ids(running(runs, members, bound, self._state))

    def resize(self, kept: Ids, room: int) -> None:
        self._state = resized(self._state, kept, room)

    @property
    def nbytes(self) -> int:
        return self._state.nbytes
