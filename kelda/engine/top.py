"""ORDER BY, LIMIT and OFFSET at the top of a query.

What is below them is kept up to date from the changes, in order; at each report the wanted part of
it is read off, and sent as it is or as the difference to the report before.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import cmp_to_key
from itertools import islice

import numpy as np

from kelda.engine.deltas import Deltas, Ids
from kelda.engine.report import Report
from kelda.engine.reporter import Reporter
from kelda.engine.sent import Sent
from kelda.engine.term_order import Aspect, TermOrder
from kelda.engine.track import WindowTrack
from kelda.lang import algebra as A
from kelda.lang.algebra import Output
from kelda.lang.walk import mentioned

Row = tuple[int, ...]  # a solution, then the keys that are not aspects of it
By = tuple[int, Aspect, bool]  # a place in the row, what of it is compared, whether downwards


@dataclass(frozen=True, slots=True)
class Top:
    """The modifiers at the top of a query, and the pattern below them."""

    pattern: A.Pattern
    variables: tuple[A.Var, ...]
    keys: tuple[tuple[A.Expr, bool], ...]
    distinct: bool
    offset: int
    limit: int | None

    @property
    def computed(self) -> tuple[A.Expr, ...]:
        """The keys that need a column: those that are no aspects of what is shown."""
        return tuple(expr for expr, _ in self.keys if self._shown(expr) is None)

    @property
    def by(self) -> tuple[By, ...]:
        """The keys in rows of what is shown, with the computed ones behind."""
        found, next_computed = [], len(self.variables)
        for expr, down in self.keys:
            shown = self._shown(expr)
            found.append((*(shown or (next_computed, Aspect.TERM)), down))
            next_computed += shown is None
        return tuple(found)

    def _shown(self, expr: A.Expr) -> tuple[int, Aspect] | None:
        match expr:
            case A.VarRef(A.Var() as var):
                aspect = Aspect.TERM
            case A.Call("STR", (A.VarRef(A.Var() as var),)):
                aspect = Aspect.TEXT
            case A.Call("STR", (A.Call("DATATYPE", (A.VarRef(A.Var() as var),)),)):
                aspect = Aspect.DATATYPE
            case A.Call("LANG", (A.VarRef(A.Var() as var),)):
                aspect = Aspect.LANGUAGE
            case _:
                return None
        return (self.variables.index(var), aspect) if var in self.variables else None

    @property
    def by_what_is_shown(self) -> bool:
        """Whether equal solutions have equal keys."""
        return mentioned(self.keys) <= {*self.variables}

    @property
    def sorts_only(self) -> bool:
        """Whether it says nothing but in which order the answers of one report come."""
        return self.by_what_is_shown and self.offset == 0 and self.limit is None


def top_of(pattern: A.Pattern) -> Top | None:
    """The modifiers of a query that ends in a projection; None if it has neither an order nor a slice."""
    whole, distinct = pattern, False
    offset, limit = (whole.offset, whole.limit) if isinstance(whole, A.Slice) else (0, None)
    if isinstance(pattern, A.Slice):
        pattern = pattern.pattern
    if isinstance(pattern, A.Distinct):
        pattern, distinct = pattern.pattern, True
    if not isinstance(pattern, A.Project):  # REDUCED, which has no incremental form
        return None
    variables, pattern = pattern.vars, pattern.pattern
    keys: tuple[tuple[A.Expr, bool], ...] = ()
    if isinstance(pattern, A.OrderBy):
        keys, pattern = pattern.keys, pattern.pattern
    if not keys and not isinstance(whole, A.Slice):
        return None
    return Top(pattern, variables, keys, distinct, offset, limit)


class Ranking:
    """The order of rows. Of most pairs the first key decides, so the others are not looked at before."""

    def __init__(self, order: TermOrder, by: tuple[By, ...]) -> None:
        self._order, self._by = order, by

    def learn(self, columns: Ids) -> None:
        """Rows with these values are about to be compared."""
        for at, aspect, _ in self._by[:1]:
            self._order.learn(columns[at].tolist(), aspect)

    def compared(self, a: Row, b: Row) -> int:
        """-1 before, 0 tied, 1 after."""
        place = self._order.place
        for at, aspect, down in self._by:
            if a[at] != b[at]:
                mine, other = place(a[at], aspect), place(b[at], aspect)
                if mine != other:
                    return -1 if (mine < other) is not down else 1
        return 0


class Entry:
    """A row in its place."""

    __slots__ = ("ranking", "row")

    def __init__(self, ranking: Ranking, row: Row) -> None:
        self.ranking, self.row = ranking, row

    def __lt__(self, other: Entry) -> bool:
        found = self.ranking.compared(self.row, other.row)
        return found < 0 or (found == 0 and self.row < other.row)


class TopReporter(Reporter):
    """Its columns are those of the solutions, then one for each computed key of the order."""

    def __init__(
        self,
        columns: tuple[str, ...],
        output: Output,
        report: Report,
        t0: int,
        tracks: list[WindowTrack],
        *,
        top: Top,
        order: TermOrder,
    ) -> None:
        super().__init__(columns, output, report, t0, tracks)
        self.top, self._ranking = top, Ranking(order, top.by)
        self._width = len(top.variables)
        self._counts: Counter[Row] = Counter()  # of solutions with their keys
        self._entries: list[Entry] = []  # each of them once, in order
        self._last: list[Row] = []  # shown at the last report; a list, whose ids are seen to be held

    def apart(self) -> TopReporter:
        other = copy(self)
        other._counts, other._entries = self._counts.copy(), self._entries.copy()
        return other

    def _tell(self, moved: Deltas, instants: Ids) -> Sent:
        if self.top.sorts_only:
            return self._in_order(super()._tell(moved, instants))
        moved = moved.consolidated()
        cuts = np.searchsorted(moved.time, instants, "right").tolist()
        self._ranking.learn(moved.values)
        rows, weights = moved.values.T.tolist(), moved.weight.tolist()
        told: list[tuple[int, int, Row]] = []
        begin = 0
        for instant, end in zip(instants.tolist(), cuts, strict=True):
            if end == begin and self.output is not Output.RSTREAM:
                continue
            for row, weight in zip(rows[begin:end], weights[begin:end], strict=True):
                self._change(tuple(row), weight)
            begin = end
            told += [(instant, sign, row) for sign, row in self._sends(list(self._shown()))]
        values = np.array([row for _, _, row in told], np.int64).reshape(len(told), self._width).T
        return Sent(
            self.columns[: self._width],
            np.array([time for time, _, _ in told], np.int64),
            np.array([sign for _, sign, _ in told], np.int64),
            values,
        )

    def _in_order(self, sent: Sent) -> Sent:
        """The same answers, those of each instant and sign in the order of their keys."""
        sent = sent.one_by_one()
        rows = [tuple(row) for row in sent.values.T.tolist()]

        def compared(i: int, j: int) -> int:
            return self._ranking.compared(rows[i], rows[j])

        times, signs = sent.time.tolist(), sent.sign.tolist()
        ranked = sorted(range(len(sent)), key=cmp_to_key(compared))
        order = sorted(ranked, key=lambda i: (times[i], signs[i]))
        columns, values = self.columns[: self._width], sent.values[: self._width, order]
        return Sent(columns, sent.time[order], sent.sign[order], values)

    def _change(self, row: Row, weight: int) -> None:
        before = self._counts[row]
        self._counts[row] = before + weight
        if before and before + weight:
            return
        entry = Entry(self._ranking, row)
        if not before:
            insort(self._entries, entry)
            return
        del self._counts[row]
        del self._entries[bisect_left(self._entries, entry)]

    def _shown(self) -> Iterator[Row]:
        """The solutions of the slice, in order."""
        every = self._solutions()
        if self.top.distinct:
            every = iter(_distinct(every))
        limit = self.top.limit
        return islice(every, self.top.offset, None if limit is None else self.top.offset + limit)

    def _solutions(self) -> Iterator[Row]:
        for entry in self._entries:
            for _ in range(self._counts[entry.row]):
                yield entry.row[: self._width]

    def _sends(self, shown: list[Row]) -> list[tuple[int, Row]]:
        if self.output is Output.RSTREAM:
            return [(1, row) for row in shown]
        before, now = Counter(self._last), Counter(shown)
        self._last = shown
        gone = [(-1, row) for row in (before - now).elements()]
        new = [(1, row) for row in _in_order(now - before, shown)]
        return {Output.ISTREAM: new, Output.DSTREAM: gone, Output.CHANGES: gone + new}[self.output]


def _distinct(rows: Iterable[Row]) -> Iterator[Row]:
    seen: set[Row] = set()
    for row in rows:
        if row not in seen:
            seen.add(row)
            yield row


def _in_order(wanted: Counter[Row], rows: list[Row]) -> list[Row]:
    """The wanted rows in the order of `rows`; of a repeated one, the last."""
    out = []
    for row in reversed(rows):
        if wanted[row] > 0:
            wanted[row] -= 1
            out.append(row)
    return out[::-1]
