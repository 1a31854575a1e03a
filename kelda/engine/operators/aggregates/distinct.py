"""AGG(DISTINCT ?x) = AGG over the set of the members: distinct terms, by id.

The aggregate is told only when a member comes that was not there, or when the last of its kind goes.
"""

from __future__ import annotations

import numpy as np

from kelda.engine.deltas import Ids
from kelda.engine.operators.aggregates.aggregate import Aggregate
from kelda.engine.operators.aggregates.members import MemberTable
from kelda.engine.operators.aggregates.runs import Members, Runs
from kelda.rdf.dictionary import Dictionary


class Distinct:
    """An aggregate over the set of its members."""

    def __init__(self, inner: Aggregate, dictionary: Dictionary) -> None:
        self._inner, self._table = inner, MemberTable(dictionary)

    @property
    def empty(self) -> int:
        return self._inner.empty

    def step(self, runs: Runs, members: Members) -> Ids:
        nothing = np.zeros(len(members.run), np.int64)
        changes, _, _ = self._table.step(runs, members, nothing, nothing)
        return self._inner.step(runs, Members.of(runs, changes[1], changes[2], changes[0]))

    def renumber(self, number: Ids) -> None:
        """Member v is now number[v]."""
        self._table.renumber(number)

    def resize(self, kept: Ids, room: int) -> None:
        self._table.resize(kept, room)
        self._inner.resize(kept, room)

    @property
    def nbytes(self) -> int:
        return self._table.nbytes + self._inner.nbytes
