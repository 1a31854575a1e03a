"""Expressions over solutions, with what is no function of a row: EXISTS, and values that are new each time.

Those become columns that are computed first; the rest is an expression over ids
(`kelda.engine.expressions`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal

from kelda.ask.matching import classes, compatible_pairs, distinct
from kelda.ask.merge import Merge
from kelda.ask.node import At, Node, found
from kelda.ask.table import Ids
from kelda.engine.deltas import Deltas
from kelda.engine.expressions import Compiled
from kelda.rdf.ids import encode

_NO, _YES = encode(Literal(False)), encode(Literal(True))


class Hidden(ABC):
    """A column that an expression reads and that no solution has."""

    name: str

    @abstractmethod
    def ids(self, at: At, rows: Ids) -> Ids:
        """The column for these solutions."""

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The nodes that it reads."""
        return ()


class Formula:
    """An expression over solutions with these columns."""

    def __init__(self, compiled: Compiled, columns: tuple[str, ...], hidden: tuple[Hidden, ...]) -> None:
        self.columns = columns
        self._compiled, self._hidden = compiled, hidden
        self._all = (*columns, *(column.name for column in hidden))

    def ids(self, at: At, rows: Ids) -> Ids:
        """The value for each solution; 0 where it is an error or unbound."""
        return self._compiled.ids(self._deltas(at, rows))

    def holds(self, at: At, rows: Ids) -> NDArray[np.bool_]:
        """Whether it is true of each solution."""
        return self._compiled.holds(self._deltas(at, rows))

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The nodes that it reads."""
        return tuple(node for column in self._hidden for node in column.inputs)

    def _deltas(self, at: At, rows: Ids) -> Deltas:
        time = np.full(rows.shape[1], at.now)
        for column in self._hidden:
            rows = np.concatenate([rows, column.ids(at, rows[: len(self.columns)])[None, :]])
        return Deltas(self._all, time, time, rows)


class Existing(Hidden):
    """EXISTS: whether a solution has a compatible one in the group; together they may have to meet a
    condition."""

    def __init__(
        self, name: str, columns: tuple[str, ...], group: Node, merge: Merge, condition: Formula | None
    ) -> None:
        self.name, self._columns, self._group, self._merge = name, columns, group, merge
        self._condition = condition
        shared = [c for c in columns if c in group.columns]
        self._mine = [columns.index(c) for c in shared]
        self._theirs = [group.columns.index(c) for c in shared]

    def ids(self, at: At, rows: Ids) -> Ids:
        there = np.full(rows.shape[1], _NO)
        if not rows.shape[1]:
            return there
        for some, _ in classes(rows[self._mine] == 0):  # what is bound fills in the group
            there[some[self._matched(at, rows[:, some])]] = _YES
        return there

    def _matched(self, at: At, rows: Ids) -> Ids:
        """Which rows have a compatible solution; some of them more than once."""
        mine = rows[self._mine]
        others = self._group.run(at, found(self._columns, rows, self._group.columns))
        if self._condition is None:
            theirs = others[self._theirs]
            return compatible_pairs(mine, theirs[:, distinct(theirs)])[0]
        which, other = compatible_pairs(mine, others[self._theirs])
        return which[self._condition.holds(at, self._merge.rows(rows, others, which, other))]

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self._group,)


class New(Hidden):
    """A value that is new for each solution."""

    def __init__(self, name: str, function: str) -> None:
        self.name, self._function = name, function

    def ids(self, at: At, rows: Ids) -> Ids:
        return at.fresh.values(self._function, rows.shape[1])


class NewByText(Hidden):
    """BNODE(text)."""

    def __init__(self, name: str, scope: int, text: Formula) -> None:
        self.name, self._scope, self._text = name, scope, text

    def ids(self, at: At, rows: Ids) -> Ids:
        return at.fresh.blanks(self._scope, self._text.ids(at, rows))

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self._text.inputs
