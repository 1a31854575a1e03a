"""COUNT(DISTINCT *) = the number of different rows.

Rows are numbered, from 1, and their numbers are counted as the members of COUNT(DISTINCT ?x) are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kelda.engine.deltas import Ids
from kelda.engine.operators.aggregates.count import Count
from kelda.engine.operators.aggregates.distinct import Distinct
from kelda.engine.operators.aggregates.integers import ZERO
from kelda.engine.operators.aggregates.runs import Members, Runs
from kelda.engine.operators.group_table import LEAST_ROOM, GroupTable, resized
from kelda.rdf.dictionary import Dictionary


class CountDistinctRows:
    """The aggregate, of rows that have `width` columns."""

    empty = ZERO

    def __init__(self, width: int, dictionary: Dictionary) -> None:
        self._rows, self._counts = GroupTable(width), np.zeros(LEAST_ROOM, np.int64)
        self._distinct = Distinct(Count(), dictionary)

    def step(self, runs: Runs, members: Members) -> Ids:
        numbers = self._rows.find(members.value)
        if self._rows.room > len(self._counts):
            self._counts = resized(self._counts, slice(None), self._rows.room)
        np.add.at(self._counts, numbers, members.weight)
        ids = self._distinct.step(runs, replace(members, value=numbers + 1))
        touched = np.unique(numbers)
        self._rows.drop(touched[self._counts[touched] == 0])
        if self._rows.sparse:
            self._compact()
        return ids

    def _compact(self) -> None:
        kept = self._rows.compact()
        number = np.zeros(len(self._counts) + 1, np.int64)
        number[kept + 1] = np.arange(1, len(kept) + 1)
        self._counts = resized(self._counts, kept, self._rows.room)
        self._distinct.renumber(number)

    def resize(self, kept: Ids, room: int) -> None:
        self._distinct.resize(kept, room)

    @property
    def nbytes(self) -> int:
        return self._rows.nbytes + self._counts.nbytes + self._distinct.nbytes
