"""Solutions as columns of ids."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kelda.engine.deltas import Deltas
from kelda.lang import algebra as A
from kelda.store.changes import Ids
from kelda.store.view import View

Solutions = Callable[[A.Query, View], tuple[tuple[str, ...], Ids]]
"""Answers a SELECT whose pattern ends in Project: the variables, and their ids in an array of shape
(variables, solutions), 0 where unbound; a bag, in any order."""


@dataclass(frozen=True, slots=True)
class Table:
    """`values[i]` has the ids of variable `columns[i]`, one for each solution; 0 where it is unbound."""

    columns: tuple[str, ...]
    values: Ids

    def __len__(self) -> int:
        return int(self.values.shape[1])

    def column(self, name: str) -> Ids | None:
        """The ids of a variable, if there is such a column."""
        return self.values[self.columns.index(name)] if name in self.columns else None

    def with_column(self, name: str, ids: Ids) -> Table:
        """One column more."""
        return Table((*self.columns, name), np.concatenate([self.values, ids[None, :]]))

    def only(self, names: tuple[str, ...]) -> Table:
        """These columns, where there are such."""
        kept = [i for i, name in enumerate(self.columns) if name in names]
        return Table(tuple(self.columns[i] for i in kept), self.values[kept])

    def select(self, which: NDArray[np.bool_] | Ids) -> Table:
        """Some of the solutions, by a mask or by their places."""
        return Table(self.columns, self.values[:, which])

    def sorted(self) -> Table:
        """In the order of the ids: the same whatever order the solutions came in."""
        if not self.columns or len(self) < 2:
            return self
        by_name = sorted(range(len(self.columns)), key=lambda i: self.columns[i], reverse=True)
        return self.select(np.lexsort(self.values[by_name]))

    def rows(self) -> Deltas:
        """As expressions read them."""
        return Deltas(self.columns, np.zeros(len(self), np.int64), np.ones(len(self), np.int64), self.values)
