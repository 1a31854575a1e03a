"""Stored sub-queries as tables of ids, to be joined with windows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from kelda.engine.deltas import Ids


@dataclass
class Relation:
    """A stored sub-query with all its rows; 0 where a row does not bind a column."""

    columns: tuple[str, ...]
    rows: Ids

    @property
    def bound(self) -> frozenset[str]:
        """The columns that all rows bind."""
        return frozenset(name for name, ids in zip(self.columns, self.rows, strict=True) if ids.all())


@dataclass
class Picked:
    """A stored sub-query of which only those rows are here that the constants of some query pick.

    `constants` are the columns that hold them; every row binds all columns. `pick` asks for the rows of some
    combinations of constants, one in each column of its argument."""

    columns: tuple[str, ...]
    constants: tuple[str, ...]
    pick: Callable[[Ids], Ids]
    _asked: set[tuple[int, ...]] = field(default_factory=set)

    @property
    def bound(self) -> frozenset[str]:
        return frozenset(self.columns)

    @property
    def rows(self) -> Ids:
        """Those from before the first query: none."""
        return np.zeros((len(self.columns), 0), np.int64)

    def more(self, constants: Ids) -> Ids:
        """The rows that come with more queries, whose constants (as `self.constants`) are these."""
        fresh = set(zip(*constants.tolist(), strict=True)) - self._asked
        if not fresh:
            return self.rows
        rows = self.pick(np.array(sorted(fresh), np.int64).T)
        self._asked |= fresh
        return rows
