"""Stored sub-queries as tables of ids, to be joined with windows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from kelda.engine.content_kernels import numbered_rows
from kelda.engine.deltas import Ids
from kelda.lang import algebra as A


@dataclass
class Relation:
    """A stored sub-query with all its rows; 0 where a row does not bind a column.

    `bound` are the columns that every row binds, whatever is stored; `ask` asks for the rows as they are
    now; `pattern` and `dataset` say what is asked."""

    columns: tuple[str, ...]
    rows: Ids
    bound: frozenset[str]
    ask: Callable[[], Ids]
    pattern: A.Pattern
    dataset: A.Dataset

    def again(self) -> Ids:
        """All rows, as they are now."""
        self.rows = self.ask()
        return self.rows


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

    def again(self) -> Ids:
        """The rows of all queries so far, as they are now."""
        return self.pick(np.array(sorted(self._asked), np.int64).T) if self._asked else self.rows


def compared(old: Ids, new: Ids) -> tuple[np.ndarray, Ids]:
    """Two bags of rows: which of the old ones (a mask; of equal ones, the first) are among the new, and the
    new ones that are not among the old."""
    both = np.concatenate([old, new], axis=1)
    numbers, first = numbered_rows(both)
    before, after = numbers[: old.shape[1]], numbers[old.shape[1] :]
    had, has = (np.bincount(n, minlength=len(first)) for n in (before, after))
    order = np.argsort(before, kind="stable")
    rank = np.empty(len(before), np.int64)  # among equal ones
    rank[order] = np.arange(len(before)) - (np.cumsum(had) - had)[before[order]]
    more = np.maximum(has - had, 0)
    return rank < has[before], both[:, first].repeat(more, axis=1)
