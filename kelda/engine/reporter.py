"""From the deltas of a query's solutions to what it sends, at the instants at which it reports."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kelda.engine.clock import NEVER
from kelda.engine.deltas import Deltas, Ids
from kelda.engine.report import Report, When
from kelda.engine.track import WindowTrack
from kelda.lang.algebra import Output


@dataclass(frozen=True, slots=True)
class Sent:
    """Solutions that a query sends: `values[:, i]` at `time[i]`, new (sign 1) or gone (sign -1)."""

    columns: tuple[str, ...]
    time: Ids
    sign: Ids
    values: Ids

    def __len__(self) -> int:
        return len(self.time)


class Reporter:
    """Holds back what is not to be reported yet, and for RSTREAM the content at the last report."""

    def __init__(
        self, columns: tuple[str, ...], output: Output, report: Report, t0: int, tracks: list[WindowTrack]
    ) -> None:
        self.columns, self.output, self.report, self.t0, self.tracks = columns, output, report, t0, tracks
        self._held = Deltas.empty(columns)  # not reported yet
        self._content = Deltas.empty(columns)  # at the last report, for RSTREAM
        self._visited = NEVER
        self._was_empty = True
        self.paused = False

    def _pausing(self, deltas: Deltas, until: int) -> Sent:
        """Nothing is told; what changes meanwhile is told, netted, at the first report after the pause."""
        for track in self.tracks:
            track.passed(until)
        self._visited = until
        both = Deltas.concat([self._held, deltas], self.columns)
        now = np.full(len(both), until)
        self._held = Deltas(self.columns, now, both.weight, both.values).consolidated()
        return _nothing(self.columns)

    def starts_after(self, now: int) -> None:
        """The query was registered when the clock stood at `now`."""
        self._visited = now

    def step(self, deltas: Deltas, until: int) -> Sent:
        """What is sent at the instants up to `until`, given the solutions' deltas up to there."""
        if self.paused:
            return self._pausing(deltas, until)
        instants = self._instants(until)
        for track in self.tracks:
            track.passed(until)
        self._visited = until
        pending = Deltas.concat([self._held, deltas], self.columns)
        if not len(instants):
            self._held = pending
            return _nothing(self.columns)
        # A delta is told at the first report at or after its time.
        at = np.searchsorted(instants, pending.time)
        told = at < len(instants)
        self._held = pending.select(~told)
        moved = Deltas(self.columns, instants[at[told]], pending.weight[told], pending.values[:, told])
        return self._tell(moved, instants)

    def _tell(self, moved: Deltas, instants: Ids) -> Sent:
        if self.output is Output.RSTREAM:
            return self._whole(moved.consolidated(), instants)
        return self._differences(moved.consolidated())

    # -------------------------------------------------------------------- when

    def _instants(self, until: int) -> Ids:
        changes = [track.changes(until) for track in self.tracks]
        moments = np.unique(np.concatenate(changes)) if changes else np.zeros(0, np.int64)
        match self.report.when:
            case When.CONTENT_CHANGE:
                found = moments
            case When.WINDOW_CLOSE if self.output is not Output.RSTREAM and all(
                track.changes_on_close for track in self.tracks
            ):
                # Windows change only where they close: between, there is nothing new to tell.
                found = moments
            case When.WINDOW_CLOSE:
                slides = [track.slide for track in self.tracks]
                found = np.unique(
                    np.concatenate(
                        [
                            c if slide is None else self._grid(moments, until, slide)
                            for c, slide in zip(changes, slides, strict=True)
                        ]
                    )
                )
            case When.PERIODIC:
                assert self.report.every is not None
                found = self._grid(moments, until, self.report.every)
        if self.report.non_empty and len(found):
            found = self._not_idle(found)
        return found

    def _grid(self, moments: Ids, until: int, every: int) -> Ids:
        """The instants t0 + k*every up to `until` at which a report may be due: while something is in a
        window, or has just been."""
        starts = np.concatenate([[self._visited], moments]) if self._visited > NEVER else moments
        if not len(starts):
            return starts
        ends = np.append(starts[1:], until)
        # Between two changes the windows stay as they are: after each, while anything is inside, all
        # instants of the grid; else only the first one.
        inside = self._inside(starts)
        first = starts + (self.t0 - starts) % every
        if not self.report.non_empty:
            inside = np.ones(len(starts), np.bool_)
        last = np.where(inside, ends, np.minimum(first, ends))
        counts = np.maximum((last - first) // every + 1, 0)
        offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        grid = np.unique(np.repeat(first, counts) + offsets * every)
        grid = grid[(grid <= until) & (grid > self._visited)]
        if self._visited == NEVER and len(moments):
            grid = grid[grid >= moments[0]]
        return grid

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

    def _differences(self, deltas: Deltas) -> Sent:
        wanted = {
            Output.ISTREAM: deltas.weight > 0,
            Output.DSTREAM: deltas.weight < 0,
            Output.CHANGES: np.ones(len(deltas), np.bool_),
        }[self.output]
        some = deltas.select(wanted)
        # What is gone comes before what is new, within one instant.
        order = np.lexsort((some.weight > 0, some.time))
        return _repeated(self.columns, some.time[order], some.weight[order], some.values[:, order])

    def _whole(self, deltas: Deltas, instants: Ids) -> Sent:
        cuts = np.searchsorted(deltas.time, instants, "right")
        parts, begin, content = [], 0, self._content
        for instant, cut in zip(instants, cuts, strict=True):
            if cut > begin:
                new = deltas.select(np.arange(begin, cut))
                joined = Deltas.concat([content, new], self.columns)
                content = Deltas(
                    self.columns, np.zeros(len(joined), np.int64), joined.weight, joined.values
                ).consolidated()
                begin = int(cut)
            if len(content):
                time = np.full(len(content), instant)
                parts.append(_repeated(self.columns, time, content.weight, content.values))
        self._content = content
        if not parts:
            return _nothing(self.columns)
        return Sent(
            self.columns,
            np.concatenate([p.time for p in parts]),
            np.concatenate([p.sign for p in parts]),
            np.concatenate([p.values for p in parts], axis=1),
        )


class SharedReporter(Reporter):
    """For many queries at once, which differ in the sizes of their windows: only differences, told
    when they happen."""

    def __init__(self, columns: tuple[str, ...], output: Output, report: Report) -> None:
        super().__init__(columns, output, report, 0, [])

    def step(self, deltas: Deltas, until: int) -> Sent:
        return self._differences(deltas.consolidated())


class Asker(Reporter):
    """ASK: whether there is any solution, told at each report or (differences) when it changes."""

    def __init__(
        self, columns: tuple[str, ...], output: Output, report: Report, t0: int, tracks: list[WindowTrack]
    ) -> None:
        super().__init__(columns, output, report, t0, tracks)
        self._count = 0
        self._last: int | None = None  # the answer before, 1 or 0

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


def _repeated(columns: tuple[str, ...], time: Ids, weight: Ids, values: Ids) -> Sent:
    """Each row as often as its weight says."""
    times = np.abs(weight)
    if (times == 1).all():
        return Sent(columns, time, np.sign(weight), values)
    return Sent(columns, time.repeat(times), np.sign(weight).repeat(times), values.repeat(times, axis=1))


def _nothing(columns: tuple[str, ...]) -> Sent:
    nothing = np.zeros(0, np.int64)
    return Sent(columns, nothing, nothing, np.zeros((len(columns), 0), np.int64))
