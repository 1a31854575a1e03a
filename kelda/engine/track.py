"""When a window changes and whether it is empty: what report policies ask, whatever the query reads."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kelda.engine import intervals_kernels as kernels
from kelda.engine.clock import FOREVER
from kelda.engine.deltas import Ids
from kelda.engine.intervals import Intervals
from kelda.engine.stream_rows import StreamRows
from kelda.engine.waiting import Waiting


class WindowTrack:
    """Follows the elements of a window's stream, those that come and go together as one. The window at
    t holds (how many have entered) - (how many have left) of them."""

    def __init__(self, intervals: Intervals) -> None:
        self.intervals = intervals
        self._waiting = Waiting(intervals, 0)
        self._open = np.zeros(0, np.int64)  # units inside whose end is not known yet
        self._enters = np.zeros(0, np.int64)  # instants not passed yet, ascending
        self._leaves = np.zeros(0, np.int64)
        self._inside = 0  # elements inside at the last instant passed

    def take(self, rows: StreamRows) -> None:
        """The elements of a step (`intervals.observe` was called)."""
        at_once = self.intervals.distinct(rows)
        if at_once is not None:
            enter, leave = at_once
            if len(enter):
                self._enters = np.concatenate([self._enters, enter])
            if len(leave):
                self._leaves = np.concatenate([self._leaves, leave])
            return
        if len(self._open):
            _, leave = self.intervals.of(self._open)
            known = leave < FOREVER
            self._leaves = np.concatenate([self._leaves, leave[known]])
            self._open = self._open[~known]
        units = self.intervals.units(rows)
        units = units[_changes_in(units)]  # one of several that come and go together will do
        _, enter, leave, units = self._waiting.step(units, np.zeros((0, len(units)), np.int64))
        if self.intervals.slide is not None:
            distinct = _changes_in(enter) | _changes_in(leave)
            enter, leave, units = enter[distinct], leave[distinct], units[distinct]
        known = leave < FOREVER
        self._enters = _ascending(np.concatenate([self._enters, enter]))
        self._leaves = _ascending(np.concatenate([self._leaves, leave[known]]))
        if self.intervals.ends_later:
            self._open = np.concatenate([self._open, units[~known]])

    def changes(self, until: int) -> Ids:
        """The instants up to `until` at which elements enter or leave."""
        return kernels.merged(self._enters, self._leaves, until)

    def holds(self, instants: Ids) -> Ids:
        """How many elements are inside at each of these instants."""
        entered = self._enters.searchsorted(instants, "right")
        return self._inside + entered - self._leaves.searchsorted(instants, "right")

    def passed(self, until: int) -> None:
        """Forget what lies behind."""
        entered, left = (int(a.searchsorted(until, "right")) for a in (self._enters, self._leaves))
        self._inside += entered - left
        self._enters, self._leaves = self._enters[entered:], self._leaves[left:]


def _changes_in(values: Ids) -> NDArray[np.bool_]:
    """Where a value differs from the one before it."""
    out = np.ones(len(values), np.bool_)
    out[1:] = values[1:] != values[:-1]
    return out


def _ascending(times: Ids) -> Ids:
    """In order, as they nearly always are already."""
    return np.sort(times) if len(times) > 1 and (times[1:] < times[:-1]).any() else times
