"""Deltas by group and instant, the order in which aggregates take them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kelda.engine.deltas import Ids


@dataclass(frozen=True)
class Runs:
    """The (group, instant) pairs of a batch. `start[r]` is the first run of the group of run r."""

    group: Ids
    time: Ids
    instant: Ids  # the number of that time in the batch
    start: Ids
    last: NDArray[np.bool_]  # the last run of its group

    def __len__(self) -> int:
        return len(self.group)


@dataclass(frozen=True)
class Members:
    """Deltas of members in the order of their runs. `value` is an id for each, or of `*` a column of ids."""

    value: Ids
    weight: Ids
    run: Ids
    bounds: Ids  # those of run r are bounds[r] .. bounds[r + 1]

    @staticmethod
    def of(runs: Runs, value: Ids, weight: Ids, run: Ids) -> Members:
        """The members whose runs are known."""
        bounds = np.zeros(len(runs) + 1, np.int64)
        np.cumsum(np.bincount(run, minlength=len(runs)), out=bounds[1:])
        return Members(value, weight, run, bounds)


def runs_of(group: Ids, time: Ids, order: Ids) -> tuple[Runs, Ids]:
    """The runs of deltas (`group` is in `order`, `time` as they came), and the run of each delta."""
    later = np.zeros(len(time), np.int64)
    later[1:] = time[1:] != time[:-1]
    instant = np.cumsum(later)[order]
    new_group = np.ones(len(group), np.bool_)
    new_group[1:] = group[1:] != group[:-1]
    new = new_group.copy()
    new[1:] |= instant[1:] != instant[:-1]
    heads = np.flatnonzero(new)
    first = new_group[heads]
    start = np.maximum.accumulate(np.where(first, np.arange(len(heads)), 0))
    runs = Runs(group[heads], time[order[heads]], instant[heads], start, np.append(first[1:], True))
    return runs, np.cumsum(new) - 1


def running(runs: Runs, members: Members, change: Ids, state: Ids) -> Ids:
    """The state of each run's group after it: a sum of changes on top of `state`, which moves on.

    Sums wrap around at 64 bits on the way, which does no harm to what fits in the end."""
    total = np.zeros(len(change) + 1, np.int64)
    np.cumsum(change, out=total[1:])
    at_end = total[members.bounds]
    after = state[runs.group] + at_end[1:] - at_end[runs.start]
    state[runs.group[runs.last]] = after[runs.last]
    return after
