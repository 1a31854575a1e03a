"""Integers in the order of terms, given by their ids.

Numbers, or dateTimes, whose ids hold their values have labels that are made of these, as long as nothing else
comes. Else a term is looked at once: terms that are new are put between those that are known, and get labels
from the gap there. Where a gap is too small, all get new ones, which are far apart.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from itertools import groupby

import numpy as np

from kelda.engine.deltas import UNBOUND, Ids
from kelda.engine.term_order import Aspect, Place, TermOrder
from kelda.rdf.ids import Kind, kinds, numeric_values, time_values

_LEAST = -(2**63)
_END = 2**62  # labels made from places are on this side of it
_STEP = 2**40  # from the last place to a new one behind it
_MOST_KNOWN = 1 << 16
_FEW = 8  # new places that are put in one by one


class Labels:
    """Labels of one aspect of terms. What was said of some ids holds until `epoch` changes."""

    def __init__(self, order: TermOrder, aspect: Aspect) -> None:
        self.epoch = 0
        self._order, self._aspect = order, aspect
        # The ways that serve all ids that have come so far, the quick ones first.
        self._ways: list[Callable[[Ids], Ids | None]] = [self._by_places]
        if aspect is Aspect.TERM:
            self._ways = [_numbers, _moments, self._by_places]
        self._most = _MOST_KNOWN
        self._forget()

    def _forget(self) -> None:
        none = np.zeros(0, np.int64)
        self._ids, self._labels = none, none  # of terms that were looked at, ascending by id
        self._places: list[Place] = []  # ascending
        self._of_place: dict[Place, int] = {}

    def of(self, ids: Ids) -> Ids:
        """A label for each id: in the order of the terms, equal ones for ties."""
        while True:
            found = self._ways[0](ids)
            if found is not None:
                return found
            del self._ways[0]
            self.epoch += 1

    @property
    def are_many(self) -> bool:
        """Whether so many terms are known that it is time to forget some."""
        return len(self._ids) > self._most

    def keep(self, ids: Ids) -> None:
        """Forget all terms but these."""
        self._forget()
        self._learn(np.unique(ids))
        self._most = max(_MOST_KNOWN, 2 * len(self._ids))
        self.epoch += 1

    # -------------------------------------------------------------------- by looking at terms

    def _by_places(self, ids: Ids) -> Ids:
        distinct, which = np.unique(ids, return_inverse=True)
        if not len(distinct):
            return distinct
        at = self._ids.searchsorted(distinct)
        unknown = at == len(self._ids)
        unknown[~unknown] = self._ids[at[~unknown]] != distinct[~unknown]
        if unknown.any():
            self._learn(distinct[unknown])
            at = self._ids.searchsorted(distinct)
        return self._labels[at][which]

    def _learn(self, ids: Ids) -> None:
        """Look at terms that are not known yet; `ids` ascend."""
        places = self._order.places(ids, self._aspect)
        new = sorted({place for place in places if place not in self._of_place})
        if new and not self._fit_in(new):
            self._spread(new)
        labels = np.array([self._of_place[place] for place in places], np.int64)
        at = self._ids.searchsorted(ids)
        self._ids, self._labels = np.insert(self._ids, at, ids), np.insert(self._labels, at, labels)

    def _fit_in(self, new: list[Place]) -> bool:
        """Give new places labels between those of their neighbours; whether there was room."""
        known = self._places
        found: dict[Place, int] = {}
        for at, group in groupby(new, lambda place: bisect_left(known, place)):
            some = list(group)
            low = self._of_place[known[at - 1]] if at else -_END
            high = self._of_place[known[at]] if at < len(known) else _END
            step = (high - low) // (len(some) + 1)
            if step == 0:
                return False
            if known and at == len(known):
                step = min(step, _STEP)
            elif known and at == 0:
                low = max(low, high - _STEP * (len(some) + 1))
                step = (high - low) // (len(some) + 1)
            found |= {place: low + (i + 1) * step for i, place in enumerate(some)}
        self._of_place |= found
        if len(new) <= _FEW:
            for place in new:
                insort(known, place)
        else:
            self._places = sorted(known + new)  # two runs, which are merged
        return True

    def _spread(self, new: list[Place]) -> None:
        """Give all places new labels, with equal gaps."""
        before = np.array([self._of_place[place] for place in self._places], np.int64)
        which = before.searchsorted(self._labels)
        old = self._places
        self._places = sorted(old + new)
        step = 2 * _END // (len(self._places) + 1)
        self._of_place = {place: -_END + (i + 1) * step for i, place in enumerate(self._places)}
        after = np.array([self._of_place[place] for place in old], np.int64)
        self._labels = after[which]
        self.epoch += 1


def _numbers(ids: Ids) -> Ids | None:
    """Labels of numbers, and of no term; None if there are other terms."""
    values, valid = numeric_values(ids)
    kind = kinds(ids)
    single = (kind == Kind.FLOAT) | (kind == Kind.FLOAT_E)
    if not ((valid & ~single) | (ids == UNBOUND)).all():
        return None
    bits = (values + 0.0).view(np.int64)  # 0 and -0 are one
    return np.where(ids == UNBOUND, _LEAST, bits ^ (bits >> 63 & np.int64(2**63 - 1)))


def _moments(ids: Ids) -> Ids | None:
    """Labels of dateTimes, and of no term; None if there are other terms."""
    times, valid, _ = time_values(ids)
    if not (valid | (ids == UNBOUND)).all():
        return None
    return np.where(ids == UNBOUND, _LEAST, times)
