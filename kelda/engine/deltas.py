"""Signed rows in time: what flows between the operators of the incremental engine.

A `Deltas` says: at `time` the multiplicity of a row changes by `weight`. The relation R at an
instant t is the sum of all deltas with time <= t. An operator is given the deltas of its inputs for
the instants (before, until], all complete, and answers with its own for the same instants:

    the law      for every t:  sum of its output up to t  =  f( sums of its inputs up to t )

What an operator sends is therefore a function of the input alone, however it is cut into steps.

Rows are columns of 64-bit term ids; 0, which is no term, is an unbound variable.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kelda.engine.deltas_kernels import net

Ids = NDArray[np.int64]
UNBOUND = 0


@dataclass(frozen=True, slots=True)
class Deltas:
    """`values[i]` is column i, named `columns[i]`; all arrays are int64, rows in time order."""

    columns: tuple[str, ...]
    time: Ids
    weight: Ids
    values: Ids  # shape (len(columns), rows)

    def __len__(self) -> int:
        return len(self.time)

    @staticmethod
    def empty(columns: tuple[str, ...]) -> Deltas:
        nothing = np.zeros(0, np.int64)
        return Deltas(columns, nothing, nothing, np.zeros((len(columns), 0), np.int64))

    @staticmethod
    def concat(parts: Iterable[Deltas], columns: tuple[str, ...]) -> Deltas:
        """All rows of all parts in time order; a column that a part lacks is unbound there."""
        some = [p.project(columns) for p in parts if len(p)]
        if not some:
            return Deltas.empty(columns)
        if len(some) == 1:
            return some[0]
        time = np.concatenate([p.time for p in some])
        order = np.argsort(time, kind="stable")
        weight = np.concatenate([p.weight for p in some])[order]
        values = np.concatenate([p.values for p in some], axis=1).take(order, axis=1)
        return Deltas(columns, time[order], weight, values)

    def column(self, name: str) -> Ids:
        """The ids of one column."""
        return self.values[self.columns.index(name)]

    def select(self, which: NDArray[np.bool_] | NDArray[np.int64]) -> Deltas:
        """The rows of a mask or of (ascending) positions."""
        rows = which.nonzero()[0] if which.dtype == np.bool_ else which
        return Deltas(self.columns, self.time[rows], self.weight[rows], self.values.take(rows, axis=1))

    def part(self, begin: int, end: int) -> Deltas:
        """The rows [begin, end)."""
        return Deltas(self.columns, self.time[begin:end], self.weight[begin:end], self.values[:, begin:end])

    def split(self, at: int) -> tuple[Deltas, Deltas]:
        """The first `at` rows, and the others."""
        if at == len(self):
            return self, Deltas.empty(self.columns)
        return self.part(0, at), self.part(at, len(self))

    def project(self, columns: Sequence[str]) -> Deltas:
        """These columns, in this order; what is not there is unbound."""
        if tuple(columns) == self.columns:
            return self
        values = np.zeros((len(columns), len(self)), np.int64)
        for i, name in enumerate(columns):
            if name in self.columns:
                values[i] = self.values[self.columns.index(name)]
        return Deltas(tuple(columns), self.time, self.weight, values)

    def with_column(self, name: str, ids: Ids) -> Deltas:
        """One column more."""
        values = np.concatenate([self.values, ids[None, :]])
        return Deltas((*self.columns, name), self.time, self.weight, values)

    def negated(self) -> Deltas:
        """The same rows, taken away."""
        return Deltas(self.columns, self.time, -self.weight, self.values)

    def consolidated(self) -> Deltas:
        """One delta per (time, row), none with weight 0."""
        if len(self) == 0:
            return self
        kept, total = np.empty(len(self), np.int64), np.empty(len(self), np.int64)
        found = net(self.time, self.weight, np.ascontiguousarray(self.values), kept, total)
        rows = kept[:found]
        return Deltas(self.columns, self.time[rows], total[:found], self.values.take(rows, axis=1))


class Operator(Protocol):
    """A node of the network."""

    columns: tuple[str, ...]

    def step(self, *inputs: Deltas, until: int) -> Deltas:
        """Take the inputs' deltas up to and including `until`; give the output's."""
        ...

    @property
    def nbytes(self) -> int:
        """Bytes of state held."""
        ...
