"""ORDER BY."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kelda.ask.formula import Formula
from kelda.ask.node import At, Node
from kelda.ask.operators import Unary
from kelda.ask.table import Ids, Table
from kelda.engine.term_order import Aspect, TermOrder
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.ids import Kind, kinds, numeric_values, time_values

_EXACT = (Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE, Kind.DOUBLE_E)


class Ordered(Unary):
    """The solutions in the order of some expressions, each upwards or downwards."""

    def __init__(self, source: Node, keys: Sequence[tuple[Formula, bool]], dictionary: Dictionary) -> None:
        super().__init__(source)
        self._keys, self._order = tuple(keys), TermOrder(dictionary)

    def run(self, at: At, only: Table | None = None) -> Ids:
        rows = self.source.run(at, only)
        if rows.shape[1] < 2:
            return rows
        keys = []
        for expression, down in self._keys:
            places = self._places(expression.ids(at, rows))
            keys.append(-places if down else places)
        return rows[:, np.lexsort(keys[::-1])]

    def _places(self, ids: Ids) -> Ids:
        """Numbers in the order of the terms; equal ones for ties."""
        distinct, which = np.unique(ids, return_inverse=True)
        return _ranks(self._values(distinct))[which]

    def _values(self, ids: Ids) -> np.ndarray:
        """Something that is in the order of the terms."""
        kind = kinds(ids)
        if np.isin(kind, _EXACT).all():
            numbers, valid = numeric_values(ids)
            if valid.all():
                return numbers
        if (kind == Kind.DATETIME).all():
            return time_values(ids)[0]
        self._order.learn(ids.tolist(), Aspect.TERM)
        return np.array([self._order.place(id) for id in ids.tolist()], object)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.source, *(node for key, _ in self._keys for node in key.inputs))

    def say(self) -> str:
        return "order"


def _ranks(values: np.ndarray) -> Ids:
    ranks: Ids = np.unique(values, return_inverse=True)[1]
    return ranks
