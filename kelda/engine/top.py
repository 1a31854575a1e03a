"""ORDER BY, LIMIT and OFFSET at the top of a query.

What is below them is kept up to date from the changes, in order; at each report the wanted part of
it is read off, and sent as it is or as the difference to the report before.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np

from kelda.engine.deltas import Deltas, Ids
from kelda.engine.ranked import By, Ranked
from kelda.engine.ranked_kernels import GONE, NEW, WHOLE
from kelda.engine.report import Report
from kelda.engine.reporter import Reporter
from kelda.engine.sent import Sent
from kelda.engine.term_order import Aspect, TermOrder
from kelda.engine.track import WindowTrack
from kelda.lang import algebra as A
from kelda.lang.algebra import Output
from kelda.lang.walk import mentioned


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
        self.top = top
        self._shown = columns[: len(top.variables)]
        self._by = top.by
        end = None if top.limit is None else top.offset + top.limit
        self._ranked = Ranked(
            len(columns), self._by, order,
            shown=len(self._shown), offset=top.offset, end=end, distinct=top.distinct,
        )  # fmt: skip

    def apart(self) -> TopReporter:
        other = copy(self)
        other._ranked = self._ranked.apart()
        return other

    def _tell(self, moved: Deltas, instants: Ids) -> Sent:
        if self.top.sorts_only:
            return self._in_order(super()._tell(moved, instants))
        sent = self._ranked.step(moved.consolidated(), instants, _WANTED[self.output], self.budget)
        time, sign, *values = np.ascontiguousarray(sent.T)
        return Sent(self._shown, time, sign, np.array(values).reshape(len(self._shown), len(sent)))

    def _in_order(self, sent: Sent) -> Sent:
        """The same answers, those of each instant and sign in the order of their keys."""
        sent = sent.one_by_one()
        rank = _ranks(sent.time, sent.sign)
        for (at, _, down), labels in zip(self._by, self._ranked.labels, strict=True):
            counts = np.bincount(rank)
            tied = np.flatnonzero(counts[rank] > 1)
            if not len(tied):
                break
            if labels.are_many:
                labels.keep(np.zeros(0, np.int64))
            label = np.zeros(len(rank), np.int64)
            label[tied] = labels.of(sent.values[at, tied])
            rank = _ranks(rank, ~label if down else label)
        order = np.argsort(rank, kind="stable")
        return Sent(self._shown, sent.time[order], sent.sign[order], sent.values[: len(self._shown), order])


def _ranks(first: Ids, then: Ids) -> Ids:
    """The places of pairs among all that are different."""
    order = np.lexsort((then, first))
    first, then = first[order], then[order]
    steps = (first[1:] != first[:-1]) | (then[1:] != then[:-1])
    ranks = np.zeros(len(order), np.int64)
    ranks[order[1:]] = np.cumsum(steps)
    return ranks


_WANTED = {Output.RSTREAM: WHOLE, Output.ISTREAM: NEW, Output.DSTREAM: GONE, Output.CHANGES: GONE | NEW}
