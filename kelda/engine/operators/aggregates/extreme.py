"""MIN(?x), MAX(?x) = the first, or last, member in the order of ORDER BY; SAMPLE is MIN.

Of equal members: an inline id before a text, then the least one. With a member that is unbound it is unbound.

Members of one kind (numbers, times, strings, IRIs, …) are compared in place. Of a group that has others, or
several kinds, all terms are looked up at each instant at which it changes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import DefaultGraph

from kelda.engine.deltas import UNBOUND, Ids
from kelda.engine.operators.aggregates import members_kernels as kernels
from kelda.engine.operators.aggregates.members import MemberTable, texts_of
from kelda.engine.operators.aggregates.numbers import EXACT, INEXACT, HashedNumbers
from kelda.engine.operators.aggregates.runs import Members, Runs
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.ids import Kind, Term, kinds, numeric_values, text, time_values
from kelda.rdf.sort_text import sort_text
from kelda.rdf.values import Sort

_CLASSES = [
    kernels.MISSING, kernels.FLOAT, kernels.NUMBER, kernels.MOMENT,
    kernels.LOCAL_MOMENT, kernels.STRING,
    kernels.BOOLEAN,
]  # fmt: skip


class Extreme:
    """The aggregate: the least member if `sign` is -1, the greatest if it is 1."""

    empty = UNBOUND

    def __init__(self, sign: int, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._table, self._hashed = MemberTable(dictionary, sign), HashedNumbers(dictionary)

    def step(self, runs: Runs, members: Members) -> Ids:
        key, kind = _sort_keys(members.value, self._dictionary)
        self._number_keys(members.value, key, kind)
        _, extreme, snapshot = self._table.step(runs, members, key, kind)
        if snapshot.shape[1]:
            self._look_up(extreme, snapshot)
        return extreme

    def resize(self, kept: Ids, room: int) -> None:
        self._table.resize(kept, room)

    @property
    def nbytes(self) -> int:
        return self._table.nbytes

    def _number_keys(self, ids: Ids, key: Ids, kind: Ids) -> None:
        """Fill in class and key of hashed numbers that float64 has exactly, so far of no class."""
        others = np.flatnonzero((kind == kernels.OTHER) & (ids > 0))
        if not others.size:
            return
        distinct, places = np.unique(ids[others], return_inverse=True)
        values, kinds = np.zeros(len(distinct)), np.full(len(distinct), kernels.OTHER)
        for i, (sort, value) in enumerate(self._hashed.of(distinct)):
            if sort in INEXACT and value == value:  # not NaN
                values[i], kinds[i] = value, kernels.NUMBER if sort is Sort.DOUBLE else kernels.FLOAT
            elif sort in EXACT and len(value.as_tuple().digits) <= 15 and abs(value.adjusted()) <= 15:
                values[i], kinds[i] = float(value), kernels.NUMBER
        key[others], kind[others] = _float_keys(values)[places], kinds[places]

    def _look_up(self, extreme: Ids, snapshot: Ids) -> None:
        """Fill in the runs of the snapshot."""
        distinct, places = np.unique(snapshot[1], return_inverse=True)
        texts = [sort_text(term) for term in self._dictionary.terms(distinct)]
        _, rank = np.unique(np.array(texts, object), return_inverse=True)
        rank = -self._table.sign * rank
        order = np.lexsort((self._ties(distinct)[places], rank[places], snapshot[0]))
        runs, first = np.unique(snapshot[0, order], return_index=True)
        extreme[runs] = snapshot[1, order[first]]

    def _ties(self, ids: Ids) -> Ids:
        """The order of equal members: inline ids, then texts."""
        known = ids.tolist()
        keys = [
            (id > 0, min(id, 0), _written(id, term))
            for id, term in zip(known, self._dictionary.terms(ids), strict=True)
        ]
        ties = np.empty(len(keys), np.int64)
        ties[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
        return ties


def _float_keys(numbers: NDArray[np.float64]) -> Ids:
    """Integers in the order of the numbers; 0 and -0 are one."""
    bits = (numbers + 0.0).view(np.int64)
    return bits ^ (bits >> 63 & np.int64(2**63 - 1))


def _sort_keys(ids: Ids, dictionary: Dictionary) -> tuple[Ids, Ids]:
    """(key, class) of each id: within a class, keys are ordered as the terms are (but see `STRING`)."""
    kind = kinds(ids)
    numbers, valid = numeric_values(ids)
    single = (kind == Kind.FLOAT) | (kind == Kind.FLOAT_E)  # compared with a float, a decimal is rounded
    moment, is_time, zoned = time_values(ids)
    inline = ids & (1 << 58) - 1
    choices = [
        ids == UNBOUND,
        single,
        valid,
        is_time & zoned,
        is_time,
        kind == Kind.STRING,
        kind == Kind.BOOLEAN,
    ]
    number_key = _float_keys(numbers)
    keys = [np.zeros_like(ids), number_key, number_key, moment, moment, inline, inline]
    key, kind_of = np.select(choices, keys, 0), np.select(choices, _CLASSES, kernels.OTHER)
    kernels.text_classes(texts_of(dictionary), ids, key, kind_of)
    return key, kind_of


def _written(id: int, term: Term | DefaultGraph) -> str:
    return text(term) if id > 0 else ""  # type: ignore[arg-type]
