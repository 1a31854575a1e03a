"""Sums of numbers whose digits have no place in arrays; few or none."""

from __future__ import annotations

from decimal import Decimal

import numpy as np

from kelda.engine.deltas import Ids
from kelda.engine.operators.aggregates.runs import Runs
from kelda.rdf.values import EXACTLY


class LargeSums:
    """The sums by group; a group without one has 0."""

    def __init__(self) -> None:
        self._sums: dict[int, Decimal] = {}

    def step(self, runs: Runs, run: Ids, value: list[Decimal], weight: Ids) -> dict[int, Decimal]:
        """Add members, in the order of their runs; the sum after each run of a group that has one, or had."""
        added: dict[int, Decimal] = {}
        for r, v, w in zip(run.tolist(), value, weight.tolist(), strict=True):
            added[r] = EXACTLY.add(added.get(r, Decimal(0)), EXACTLY.multiply(v, Decimal(w)))
        if not added and not self._sums:
            return {}
        after: dict[int, Decimal] = {}
        touched = {int(runs.group[r]) for r in added} | self._sums.keys()
        for r in np.flatnonzero(np.isin(runs.group, list(touched))).tolist():
            group = int(runs.group[r])
            after[r] = EXACTLY.add(self._sums.get(group, Decimal(0)), added.get(r, Decimal(0)))
            self._sums[group] = after[r]
        self._sums = {group: value for group, value in self._sums.items() if value}
        return after

    def resize(self, kept: Ids) -> None:
        """Group kept[i] is now group i."""
        if self._sums:
            number = {old: new for new, old in enumerate(kept.tolist())}
            self._sums = {number[group]: value for group, value in self._sums.items() if group in number}
