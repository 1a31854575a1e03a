"""ORDER BY, LIMIT and OFFSET at the top of a query.

What is below them is kept up to date from the changes, in order; at each report the wanted part of
it is read off, and sent as it is or as the difference to the report before.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from kelda.engine.deltas import Deltas, Ids
from kelda.engine.report import Report
from kelda.engine.reporter import Reporter, Sent
from kelda.engine.term_order import Down, Place, TermOrder
from kelda.engine.track import WindowTrack
from kelda.lang import algebra as A
from kelda.lang.algebra import Output
from kelda.lang.to_sparql import visible_vars
from kelda.lang.walk import nodes

Row = tuple[int, ...]
Entry = tuple[tuple[Place | Down, ...], Row, Row]  # where it stands, the solution, its keys


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
    def by_what_is_shown(self) -> bool:
        """Whether equal solutions have equal keys."""
        return {n for expr, _ in self.keys for n in nodes(expr) if isinstance(n, A.Var)} <= {*self.variables}

    @property
    def sorts_only(self) -> bool:
        """Whether it says nothing but in which order the answers of one report come."""
        return self.by_what_is_shown and self.offset == 0 and self.limit is None


def top_of(pattern: A.Pattern) -> Top | None:
    """The modifiers of a query; None if it has neither an order nor a slice."""
    whole, distinct = pattern, False
    offset, limit = (whole.offset, whole.limit) if isinstance(whole, A.Slice) else (0, None)
    if isinstance(pattern, A.Slice):
        pattern = pattern.pattern
    if isinstance(pattern, A.Distinct):
        pattern, distinct = pattern.pattern, True
    if isinstance(pattern, A.Project):
        variables, pattern = pattern.vars, pattern.pattern
    else:
        variables = tuple(sorted(visible_vars(pattern), key=lambda v: v.name))
    keys: tuple[tuple[A.Expr, bool], ...] = ()
    if isinstance(pattern, A.OrderBy):
        keys, pattern = pattern.keys, pattern.pattern
    if not keys and not isinstance(whole, A.Slice):
        return None
    return Top(pattern, variables, keys, distinct, offset, limit)


class TopReporter(Reporter):
    """Its columns are those of the solutions, then one for the value of each key of the order."""

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
        self.top, self.order = top, order
        self._width = len(top.variables)
        self._counts: Counter[Row] = Counter()  # of solutions with their keys
        self._entries: list[Entry] = []  # each of them once, in order
        self._last: list[Row] = []  # shown at the last report; a list, whose ids are seen to be held

    def _tell(self, moved: Deltas, instants: Ids) -> Sent:
        if self.top.sorts_only:
            return self._in_order(super()._tell(moved, instants))
        moved = moved.consolidated()
        cuts = np.searchsorted(moved.time, instants, "right").tolist()
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
        places = [self._places(keys) for keys in sent.values[self._width :].T.tolist()]
        times, signs = sent.time.tolist(), sent.sign.tolist()
        order = sorted(range(len(sent)), key=lambda i: (times[i], signs[i], places[i]))
        columns, values = self.columns[: self._width], sent.values[: self._width, order]
        return Sent(columns, sent.time[order], sent.sign[order], values)

    def _places(self, keys: Iterable[int]) -> tuple[Place | Down, ...]:
        found = ((self.order.place(id), down) for id, (_, down) in zip(keys, self.top.keys, strict=True))
        return tuple(Down(place) if down else place for place, down in found)

    def _change(self, row: Row, weight: int) -> None:
        before = self._counts[row]
        self._counts[row] = before + weight
        if before and before + weight:
            return
        solution, keys = row[: self._width], row[self._width :]
        entry = (self._places(keys), solution, keys)
        if not before:
            insort(self._entries, entry)
            return
        del self._counts[row]
        at = bisect_left(self._entries, entry)
        if at == len(self._entries) or self._entries[at][1:] != entry[1:]:
            # Literals of mixed kinds have no consistent order: look for it one by one.
            at = next(i for i, other in enumerate(self._entries) if other[1:] == entry[1:])
        del self._entries[at]

    def _shown(self) -> Iterator[Row]:
        """The solutions of the slice, in order."""
        every = self._solutions()
        if self.top.distinct:
            every = iter(_distinct(every))
        limit = self.top.limit
        return islice(every, self.top.offset, None if limit is None else self.top.offset + limit)

    def _solutions(self) -> Iterator[Row]:
        for _, solution, keys in self._entries:
            for _ in range(self._counts[solution + keys]):
                yield solution

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
