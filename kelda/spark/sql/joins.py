"""Joins of solutions.

Two solutions are compatible if no variable has different values in both; an unbound one is compatible with
all. Where all shared variables are bound that is equality, which Spark joins by hashing or sorting. Of those
that may be unbound, one of three must hold: equal, unbound here, unbound there; Spark tries that on the pairs
that the others leave. Where there are no others it would have to try all pairs: so a side is split into the
solutions that bind a variable and those that do not, until there is one. Only the right side of OPTIONAL,
MINUS and EXISTS is not split, for what has no match must have none in any part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from kelda.spark.sql.rows import GRAPH, Rows, chosen, ids, name, text_name, texts, united

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_OTHER = "$other$"  # begins the names of the right side's columns


Keep = Callable[[Rows], Rows]
"""Holds on to rows that are read twice."""


def joined(left: Rows, right: Rows, keep: Keep) -> Rows:
    """All pairs of compatible solutions."""
    left, right = left.without_order(), right.without_order()
    split = _undecided(left, right)
    if split is not None:
        return united(*(joined(part, right, keep) for part in _by_bound(keep(left), split)))
    split = _undecided(right, left)
    if split is not None:
        return united(*(joined(left, part, keep) for part in _by_bound(keep(right), split)))
    return _pairs(left, right, "inner", left.bound | right.bound)


def left_joined(left: Rows, right: Rows, keep: Keep) -> Rows:
    """OPTIONAL: the pairs, and what of the left side is in none."""
    left, right = left.without_order(), right.without_order()
    split = _undecided(left, right)
    if split is not None:
        return united(*(left_joined(part, right, keep) for part in _by_bound(keep(left), split)))
    return _pairs(left, right, "left", left.bound)


def left_alone(left: Rows, pairs: Rows) -> Rows:
    """What of the left side is in none of the pairs that it was joined to. Equal solutions have equal fates,
    so they need no other name than their values."""
    known = pairs.project(left.columns).distinct()
    keys = reduce(and_, (ids(c) == _other(c) for c in left.columns), F.lit(True))
    frame = left.frame.join(_renamed(known), keys, "left_anti")
    return replace(left, frame=frame)


def matched(left: Rows, right: Rows, keep: Keep, *, wanted: bool) -> Rows:
    """EXISTS: the solutions of the left side with a compatible one on the right; or those without."""
    split = _undecided(left, right)
    if split is not None:
        parts = _by_bound(keep(left), split)
        return united(*(matched(part, right, keep, wanted=wanted) for part in parts))
    return _semi(left, right, wanted, need_shared=False)


def minus(left: Rows, right: Rows, keep: Keep) -> Rows:
    """MINUS: without those that have a compatible solution which binds a variable in common."""
    split = _undecided(left, right)
    if split is not None:
        return united(*(minus(part, right, keep) for part in _by_bound(keep(left), split)))
    return _semi(left, right, wanted=False, need_shared=True)


def shared(left: Rows, right: Rows) -> tuple[str, ...]:
    """The variables that both may bind."""
    return tuple(c for c in left.columns if c in right.columns)


def _undecided(rows: Rows, others: Rows) -> str | None:
    """A shared variable that these rows may leave unbound, if none is there that both sides bind."""
    common = shared(rows, others)
    if any(c in rows.bound and c in others.bound for c in common):
        return None
    return next((c for c in common if c not in rows.bound), None)


def _by_bound(rows: Rows, column: str) -> tuple[Rows, Rows]:
    """The rows that bind a variable, and those that do not, without its column."""
    bound = replace(rows.where(ids(column) != 0), bound=rows.bound | {column})
    unbound = rows.where(ids(column) == 0).project([c for c in rows.columns if c != column])
    return bound, unbound


def _pairs(left: Rows, right: Rows, how: str, bound: frozenset[str]) -> Rows:
    other = _renamed(right)
    frame = left.frame.join(_hinted(right, other), _compatible(left, right), how)
    columns: list[Column] = []
    made = left.made | right.made
    for c in dict.fromkeys((*left.columns, *right.columns)):
        columns.append(_value(c, left, right).alias(name(c)))
        if c in made:
            columns.append(_text(c, left, right).alias(text_name(c)))
    names = tuple(dict.fromkeys((*left.columns, *right.columns)))
    return Rows(chosen(frame, columns), names, bound, made)


def _value(c: str, left: Rows, right: Rows) -> Column:
    if c not in right.columns or c in left.bound:
        return ids(c)
    theirs = F.coalesce(_other(c), F.lit(0))
    return theirs if c not in left.columns else F.when(ids(c) != 0, ids(c)).otherwise(theirs)


def _text(c: str, left: Rows, right: Rows) -> Column:
    here = [texts(c)] if c in left.made else []
    there = [_other(c, text_name(c))] if c in right.made else []
    return F.coalesce(*here, *there)


def _semi(left: Rows, right: Rows, wanted: bool, need_shared: bool) -> Rows:
    common = shared(left, right)
    right = right.without_order().project(common).distinct()
    condition = _compatible(left, right)
    if need_shared:
        visible = [c for c in common if c != GRAPH]
        if not any(c in left.bound and c in right.bound for c in visible):
            both = ((ids(c) != 0) & (_other(c) != 0) for c in visible)
            condition &= reduce(or_, both, F.lit(False))
    other = _hinted(right, _renamed(right))
    return replace(left, frame=left.frame.join(other, condition, "left_semi" if wanted else "left_anti"))


def _compatible(left: Rows, right: Rows) -> Column:
    found = F.lit(True)
    for c in shared(left, right):
        same = ids(c) == _other(c)
        if c not in left.bound:
            same |= ids(c) == 0
        if c not in right.bound:
            same |= _other(c) == 0
        found &= same
    return found


def _other(c: str, column: str | None = None) -> Column:
    return F.col(f"`{_OTHER}{column or name(c)}`")


def _renamed(rows: Rows) -> DataFrame:
    columns = [ids(c).alias(_OTHER + name(c)) for c in rows.columns]
    columns += [texts(c).alias(_OTHER + text_name(c)) for c in rows.columns if c in rows.made]
    return chosen(rows.frame, columns)


def _hinted(rows: Rows, frame: DataFrame) -> DataFrame:
    return F.broadcast(frame) if rows.small else frame
