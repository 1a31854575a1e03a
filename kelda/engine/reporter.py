"""From the deltas of a query's solutions to what it sends, at the instants at which it reports."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kelda.engine import intervals_kernels as kernels
from kelda.engine.budget import NO_LIMIT
from kelda.engine.clock import FOREVER, NEVER
from kelda.engine.content_kernels import numbered_rows, stays
from kelda.engine.deltas import Deltas, Ids
from kelda.engine.deltas_kernels import net, next_of, told
from kelda.engine.first_report import EARLY
from kelda.engine.report import Report, When
from kelda.engine.sent import Sent
from kelda.engine.track import WindowTrack
from kelda.lang.algebra import Output
from kelda.plan.shape import QUERY
from kelda.rdf import wire


@wire.plain
@dataclass(frozen=True, slots=True)
class KeptReport:
    """What must be kept of a reporter beside the rows in the windows."""

    at: int  # its last report
    was_empty: bool
    answer: int | None = None  # of an ASK


class Reporter:
    """Holds back what is not to be reported yet, and for RSTREAM the content at the last report."""

    def __init__(
        self, columns: tuple[str, ...], output: Output, report: Report, t0: int, tracks: list[WindowTrack]
    ) -> None:
        self.columns, self.output, self.report, self.t0, self.tracks = columns, output, report, t0, tracks
        self._held = Deltas.empty(columns)  # not reported yet
        self._content = Deltas.empty(columns)  # at the last report, for RSTREAM
        self._visited = NEVER
        self._reported: int | None = None  # when, for the last time
        self._was_empty = True
        self._has_begun = False  # if it is of a live query
        self.paused = False
        self.budget = NO_LIMIT  # of the step

    def apart(self) -> Reporter:
        """Another one in the same state, which goes its own way."""
        return copy(self)

    def shared(self) -> Reporter:
        """The one for an equal query: itself, where nothing is remembered by query."""
        return self

    def snapshot(self) -> KeptReport | None:
        """What must be kept beside the rows in the windows; None: nothing."""
        return None if self._reported is None else KeptReport(self._reported, self._was_empty)

    def restore(self, kept: KeptReport) -> None:
        """Go on from what was kept, when all steps have been taken again."""
        self._reported, self._was_empty, self._has_begun = kept.at, kept.was_empty, True

    def again(self, deltas: Deltas, until: int) -> None:
        """Take a step that was taken before; `retell` says what of it was told."""
        for track in self.tracks:
            track.passed(until)
        self._visited = until
        self._held = Deltas.concat([self._held, deltas], self.columns)

    def retell(self, instant: int) -> None:
        """All up to an instant was told, at that one for the last time."""
        self._told_at(np.array([instant], np.int64), self._held)

    def _pausing(self, deltas: Deltas, until: int) -> Sent:
        """Nothing is told; what changes meanwhile is told, netted, at the first report after the pause."""
        for track in self.tracks:
            track.passed(until)
        self._visited = until
        both = Deltas.concat([self._held, deltas], self.columns)
        now = np.full(len(both), until)
        self._held = Deltas(self.columns, now, both.weight, both.values).consolidated()
        return Sent.nothing(self.columns)

    def starts_after(self, now: int) -> None:
        """The query was registered when the clock stood at `now`."""
        self._visited = now

    def step(self, deltas: Deltas, until: int) -> Sent:
        """What is sent at the instants up to `until`, given the solutions' deltas up to there."""
        if self.paused:
            return self._pausing(deltas, until)
        pending = Deltas.concat([self._held, deltas], self.columns)
        instants = self._instants(pending, until) if self.tracks else self._as_it_changes(pending)
        for track in self.tracks:
            track.passed(until)
        self._visited = until
        return self._told_at(instants, pending)

    def _as_it_changes(self, pending: Deltas) -> Ids:
        """The instants of a live query: the first that it sees, and those at which its answer changes."""
        first = self._visited + 1
        instants = np.unique(np.maximum(pending.time, first))
        if self._has_begun or (len(instants) and instants[0] == first):
            self._has_begun = self._has_begun or bool(len(instants))
            return instants
        self._has_begun = True
        return np.concatenate([[first], instants])

    def _told_at(self, instants: Ids, pending: Deltas) -> Sent:
        if not len(instants):
            self._held = pending
            return Sent.nothing(self.columns)
        self._reported = int(instants[-1])
        # A delta is told at the first report at or after its time.
        cut = int(pending.time.searchsorted(instants[-1], "right"))
        due, self._held = pending.split(cut)
        if cut and len(instants) == 1:
            due = Deltas(self.columns, np.full(cut, instants[0]), due.weight, due.values)
        elif cut:
            due = Deltas(self.columns, next_of(instants, due.time), due.weight, due.values)
        return self._tell(due, instants)

    def _tell(self, moved: Deltas, instants: Ids) -> Sent:
        if self.output is Output.RSTREAM:
            return self._whole(moved.consolidated(), instants)
        return self._differences(moved)

    # -------------------------------------------------------------------- when

    def _instants(self, pending: Deltas, until: int) -> Ids:
        changes = [track.changes(until) for track in self.tracks]
        moments = changes[0] if changes else _NONE
        for more in changes[1:]:
            moments = kernels.merged(moments, more, until)
        match self.report.when:
            case When.CONTENT_CHANGE:
                found = moments
            case When.WINDOW_CLOSE if self._changes_on_close and _are_all_among(pending.time, moments):
                # What is new came with a change of a window: where one closes without, nothing is to be told.
                found = moments
            case When.WINDOW_CLOSE:
                slides = {track.intervals.slide for track in self.tracks}
                parts = [self._grid(moments, until, slide) for slide in slides if slide is not None]
                moved = zip(changes, self.tracks, strict=True)
                parts += [change for change, track in moved if track.intervals.slide is None]
                found = parts[0] if len(parts) == 1 else np.unique(np.concatenate(parts))
            case When.PERIODIC:
                assert self.report.every is not None
                found = self._grid(moments, until, self.report.every)
        if self.report.non_empty and len(found):
            found = self._not_idle(found)
        return found

    @property
    def _changes_on_close(self) -> bool:
        """Whether it sends differences, and its windows change only where they close."""
        return self.output is not Output.RSTREAM and all(
            track.intervals.changes_on_close for track in self.tracks
        )

    def _grid(self, moments: Ids, until: int, every: int) -> Ids:
        """The instants t0 + k*every up to `until` at which a report may be due: while something is in a
        window, or has just been."""
        # Between two changes the windows stay as they are: after each, while anything is inside, all
        # instants of the grid; else only the first one.
        if self.report.non_empty:
            inside = self._inside(np.concatenate([[self._visited], moments]))
        else:
            inside = np.ones(len(moments) + 1, np.bool_)
        return kernels.grid(moments, inside, self._visited, NEVER, until, self.t0, every)

    def _inside(self, instants: Ids) -> NDArray[np.bool_]:
        inside = np.zeros(len(instants), np.bool_)
        for track in self.tracks:
            inside |= track.holds(instants) > 0
        return inside

    def _not_idle(self, instants: Ids) -> Ids:
        inside = self._inside(instants)
        if self.output is Output.RSTREAM:
            return instants[inside]
        before = np.concatenate([[not self._was_empty], inside[:-1]])
        due = inside | before
        self._was_empty = not inside[-1]
        return instants[due]

    # -------------------------------------------------------------------- what

    def _differences(self, moved: Deltas) -> Sent:
        """What is gone and what is new at each instant: in this order, each row as often as it is."""
        if not len(moved):
            return Sent.nothing(self.columns)
        values = np.ascontiguousarray(moved.values)
        kept, total = np.empty(len(moved), np.int64), np.empty(len(moved), np.int64)
        found = net(moved.time, moved.weight, values, kept, total)
        kept, total = kept[:found], total[:found]
        self.budget.check(8 * int(np.abs(total).sum()) * (len(self.columns) + 2))
        gone, new = self.output is not Output.ISTREAM, self.output is not Output.DSTREAM
        return Sent(self.columns, *told(moved.time, values, kept, total, gone, new))

    def _whole(self, deltas: Deltas, instants: Ids) -> Sent:
        held = len(self._content)
        self.budget.check(24 * (held + len(deltas)) * (len(self.columns) + 2))
        time = np.concatenate([self._content.time, deltas.time])
        weight = np.concatenate([self._content.weight, deltas.weight])
        values = np.concatenate([self._content.values, deltas.values], axis=1)
        numbers, first = numbered_rows(values)
        rows, since, last, left, how_often = stays(time, weight, numbers, held, instants)
        nowhen = np.zeros(len(left), np.int64)
        self._content = Deltas(self.columns, nowhen, how_often, values.take(first[left], axis=1))
        ones, values = np.ones(len(rows), np.int64), values.take(first[rows], axis=1)
        return Sent(self.columns, instants[since], ones, values, instants[last], instants)


class SharedReporter(Reporter):
    """For many queries at once, which differ in the sizes of their windows: only differences, told
    when they happen.

    Deltas come for classes of equal queries; `told_to` gives the queries of each row (see
    `Parameters.told_to`). `first` tells for some queries, by number, when they report first after an instant
    at which they were resumed; FOREVER if not in this step."""

    def __init__(
        self,
        columns: tuple[str, ...],
        output: Output,
        report: Report,
        first: Callable[[Ids, Ids], Ids],
        told_to: Callable[[Ids], tuple[Ids, Ids] | None],
    ) -> None:
        super().__init__(columns, output, report, 0, [])
        self._first, self._told_to = first, told_to
        self._query = columns.index(QUERY)
        self._quiet: dict[int, int] = {}  # queries that tell nothing, and since when they may again
        self.stored_changed = False  # in this step: queries may not report when their solutions change

    def pause(self, query: int) -> None:
        """The query of this number tells nothing from now on."""
        self._quiet[query] = FOREVER
        self.paused = True

    def resume(self, query: int, now: int) -> None:
        """It does again, from its first report after `now` on."""
        if query in self._quiet:
            self._quiet[query] = now

    def forget(self, query: int) -> None:
        """It was dropped."""
        if self._quiet.pop(query, None) is not None:
            self._held = self._held.select(self._held.column(QUERY) != query)
            self.paused = bool(self._quiet)

    def snapshot(self) -> KeptReport | None:
        return None

    def step(self, deltas: Deltas, until: int) -> Sent:
        if not self._quiet and not self.stored_changed and not len(self._held):
            return self._each(self._differences(deltas))
        deltas = deltas.consolidated()
        each = self._each(Sent(self.columns, deltas.time, deltas.weight, deltas.values))
        deltas = Deltas(self.columns, each.time, each.sign, each.values)
        numbers = np.fromiter(self._quiet, np.int64, len(self._quiet))
        since = np.fromiter(self._quiet.values(), np.int64, len(self._quiet))
        first = np.full(len(numbers), FOREVER)
        resumed = since < FOREVER
        first[resumed] = self._first(numbers[resumed], since[resumed])
        pending = Deltas.concat([self._held, deltas], self.columns)
        whose = pending.column(QUERY)
        told_at = self._held_until(whose, numbers, first)
        # What comes of a stored fact is told when the query reports next.
        loud = np.flatnonzero(told_at == NEVER)
        told_at[loud] = self._first(whose[loud], np.maximum(pending.time[loud], EARLY) - 1)
        told = told_at < FOREVER
        held = pending.select(~told)
        self._held = Deltas(self.columns, np.full(len(held), until), held.weight, held.values).consolidated()
        for query in numbers[first < FOREVER].tolist():
            del self._quiet[query]
        self.paused = bool(self._quiet)
        time = np.maximum(pending.time[told], told_at[told])
        order = np.argsort(time, kind="stable")
        moved = Deltas(self.columns, time, pending.weight[told], pending.values[:, told]).select(order)
        return self._differences(moved)

    def _each(self, sent: Sent) -> Sent:
        """Each row once for every query that is told it."""
        told = self._told_to(sent.values[self._query])
        if told is None:
            return sent
        rows, queries = told
        each = sent.select(rows)
        each.values[self._query] = queries
        return each

    def _held_until(self, whose: Ids, quiet: Ids, first: Ids) -> Ids:
        """For each row, the instant before which it may not be told."""
        if not len(quiet):
            return np.full(len(whose), NEVER)
        order = np.argsort(quiet)
        quiet, first = quiet[order], first[order]
        at = np.minimum(np.searchsorted(quiet, whose), len(quiet) - 1)
        return np.where(quiet[at] == whose, first[at], NEVER)


class SharedContentReporter(SharedReporter):
    """For many queries at once that tell all they have, RSTREAM, at instants that they have in common: every
    so many milliseconds, for each of the periods `every`.

    A query without solutions tells nothing, so nobody has to know whether its windows are empty."""

    def __init__(
        self,
        columns: tuple[str, ...],
        report: Report,
        t0: int,
        every: frozenset[int],
        told_to: Callable[[Ids], tuple[Ids, Ids] | None],
    ) -> None:
        super().__init__(columns, Output.RSTREAM, report, _no_first, told_to)
        self.t0, self.every = t0, every

    def forget(self, query: int) -> None:
        self._quiet.pop(query, None)
        self.paused = bool(self._quiet)

    def step(self, deltas: Deltas, until: int) -> Sent:
        pending = Deltas.concat([self._held, deltas], self.columns)
        instants = self._due(pending, until)
        self._visited = until
        sent = self._each(self._told_at(instants, pending))
        if not self._quiet:
            return sent
        sent = sent.one_by_one()
        numbers = np.fromiter(self._quiet, np.int64, len(self._quiet))
        since = np.fromiter(self._quiet.values(), np.int64, len(self._quiet))
        heard = sent.time > self._held_until(sent.values[self._query], numbers, since)
        for query in numbers[since < FOREVER].tolist():
            del self._quiet[query]
        self.paused = bool(self._quiet)
        return sent.select(heard)

    def _due(self, pending: Deltas, until: int) -> Ids:
        """The instants up to `until` at which anybody has something to tell, or has just lost it."""
        moments, first = np.unique(pending.time, return_index=True)
        there = int(self._content.weight.sum())
        after = there + np.append(np.cumsum(pending.weight)[first[1:] - 1], pending.weight.sum())
        before = int(moments.searchsorted(self._visited, "right"))
        inside = np.concatenate([[after[before - 1] if before else there], after[before : len(moments)]]) > 0
        grids = [
            kernels.grid(moments[before:], inside, self._visited, NEVER, until, self.t0, every)
            for every in self.every
        ]
        return grids[0] if len(grids) == 1 else np.unique(np.concatenate(grids))


def _no_first(queries: Ids, since: Ids) -> Ids:
    raise AssertionError("who tells all tells it at the next instant")


class Asker(Reporter):
    """ASK: whether there is any solution, told at each report or (differences) when it changes."""

    def __init__(
        self, columns: tuple[str, ...], output: Output, report: Report, t0: int, tracks: list[WindowTrack]
    ) -> None:
        super().__init__(columns, output, report, t0, tracks)
        self._count = 0
        self._last: int | None = None  # the answer before, 1 or 0

    def shared(self) -> Reporter:
        return self.apart()

    def snapshot(self) -> KeptReport | None:
        kept = super().snapshot()
        return None if kept is None else replace(kept, answer=self._last)

    def restore(self, kept: KeptReport) -> None:
        super().restore(kept)
        self._last = kept.answer

    def _tell(self, moved: Deltas, instants: Ids) -> Sent:
        counts = self._count + np.concatenate([[0], np.cumsum(moved.weight)])
        answers = (counts[np.searchsorted(moved.time, instants, "right")] > 0).astype(np.int64)
        self._count = int(counts[-1])
        before = np.concatenate([[-1 if self._last is None else self._last], answers[:-1]])
        self._last = int(answers[-1])
        if self.output is Output.RSTREAM:
            return Sent(("yes",), instants, np.ones(len(instants), np.int64), answers[None, :])
        time, sign, values = [], [], []
        changed = answers != before
        if self.output is not Output.ISTREAM:
            gone = changed & (before >= 0)
            time.append(instants[gone])
            sign.append(np.full(gone.sum(), -1))
            values.append(before[gone])
        if self.output is not Output.DSTREAM:
            time.append(instants[changed])
            sign.append(np.ones(changed.sum(), np.int64))
            values.append(answers[changed])
        times = np.concatenate(time)
        order = np.argsort(times, kind="stable")
        return Sent(
            ("yes",), times[order], np.concatenate(sign)[order], np.concatenate(values)[order][None, :]
        )


def _are_all_among(times: Ids, instants: Ids) -> bool:
    """Whether all of some times are among instants, which ascend."""
    if not len(instants):
        return not len(times)
    at = np.minimum(instants.searchsorted(times), len(instants) - 1)
    return bool((instants[at] == times).all())


def repeated(columns: tuple[str, ...], time: Ids, weight: Ids, values: Ids) -> Sent:
    """Each row as often as its weight says."""
    times = np.abs(weight)
    if (times == 1).all():
        return Sent(columns, time, weight, values)
    return Sent(columns, time.repeat(times), np.sign(weight).repeat(times), values.repeat(times, axis=1))


_NONE = np.zeros(0, np.int64)
