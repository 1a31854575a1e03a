"""GROUP BY, kept up to date.

    out(t) = { (k, agg(G_k)) }      G_k the rows of the input at t whose keys are k

A change of a group at an instant sends its old row with weight -1 and its new one with +1. With keys, a
group is there while it has rows; without, there is one group, always: `initial` is its row before any input.

Every aggregate is a function of the bag of its members, so that what it says depends neither on their order
nor on how they came:

    COUNT          bound members; of *, rows
    SUM, AVG       integers and decimals exactly, of any size; doubles and floats as the exact sum, rounded
                   once (not as the sum of roundings in some order), so that a member that leaves leaves
                   nothing behind. A member that is unbound or no number: unbound
    MIN, MAX       in the order of ORDER BY; equal members: an inline id before a text, then the least one.
                   A member that is unbound: unbound
    SAMPLE         MIN
    GROUP_CONCAT   the members' STR, ordered by STR, then DATATYPE, then LANG. No STR: unbound
    DISTINCT       distinct terms, by id

Numbers, times, booleans, strings and IRIs are aggregated as ids, in arrays; numbers that are too large for
these are added up beside them (`_LargeSums`). Members of MIN and MAX that arrays cannot compare are looked
up, with all members of their group; see `_Extreme`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import BlankNode, DefaultGraph, Literal, Triple

from kelda.engine.deltas import UNBOUND, Deltas, Ids
from kelda.engine.operators import aggregate_kernels as kernels
from kelda.errors import UsageError
from kelda.rdf.aggregates import average_of, sum_of
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.hash_kernels import PADDING
from kelda.rdf.ids import Kind, Term, kinds, numeric_values, text, time_values
from kelda.rdf.sort_text import sort_text
from kelda.rdf.values import EXACTLY, Meaning, Sort, meaning

OPERATIONS = ("COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT")

_XSD = "http://www.w3.org/2001/XMLSchema#"
_LEAST_ROOM = 64
_PADDING = bytes(PADDING)


@dataclass(frozen=True)
class AggregateSpec:
    """One aggregate: `op` over a column; no column is COUNT(*). `separator` is GROUP_CONCAT's."""

    op: str
    column: str | None = None
    distinct: bool = False
    separator: str | None = None


@dataclass(frozen=True)
class _Runs:
    """The (group, instant) pairs of a batch. `start[r]` is the first run of the group of run r."""

    group: Ids
    time: Ids
    instant: Ids  # the number of that time in the batch
    start: Ids
    last: NDArray[np.bool_]  # the last run of its group

    def __len__(self) -> int:
        return len(self.group)


@dataclass(frozen=True)
class _Members:
    """Deltas of members in the order of their runs."""

    value: Ids
    weight: Ids
    run: Ids
    bounds: Ids  # those of run r are bounds[r] .. bounds[r + 1]

    @staticmethod
    def of(runs: _Runs, value: Ids, weight: Ids, run: Ids) -> _Members:
        bounds = np.zeros(len(runs) + 1, np.int64)
        np.cumsum(np.bincount(run, minlength=len(runs)), out=bounds[1:])
        return _Members(value, weight, run, bounds)


class _Aggregate(Protocol):
    def step(self, runs: _Runs, members: _Members) -> Ids:
        """Take the deltas; the aggregate's id after each run."""
        ...

    def resize(self, kept: Ids, room: int) -> None:
        """Group kept[i] is now group i, and there is room for this many groups."""
        ...

    @property
    def empty(self) -> int:
        """The aggregate of no members."""
        ...

    @property
    def nbytes(self) -> int: ...


class GroupBy:
    """The operator. `columns` are the keys and the aggregates' names."""

    origin = -(2**62)
    """The time of `initial`."""

    def __init__(
        self,
        columns_in: tuple[str, ...],
        keys: tuple[str, ...],
        aggregates: tuple[tuple[str, AggregateSpec], ...],
        dictionary: Dictionary,
    ) -> None:
        self.columns_in, self.keys = tuple(columns_in), tuple(keys)
        self.columns = self.keys + tuple(name for name, _ in aggregates)
        self._specs = tuple(spec for _, spec in aggregates)
        for spec in self._specs:
            _check(spec, self.columns_in)
        missing = [key for key in self.keys if key not in self.columns_in]
        if missing:
            raise UsageError(f"GROUP BY {missing[0]}: the input has no such column; it has {self.columns_in}")
        self._aggregates = tuple(_build(spec, dictionary) for spec in self._specs)
        self._groups = _GroupTable(len(self.keys))
        self._rows = np.zeros(_LEAST_ROOM, np.int64)
        self._last = np.zeros((len(self._specs), _LEAST_ROOM), np.int64)
        self._distinct_rows = any(spec.column is None and spec.distinct for spec in self._specs)
        self._row_numbers = _GroupTable(len(self.columns_in) if self._distinct_rows else 0)
        self._row_counts = np.zeros(_LEAST_ROOM, np.int64)
        for aggregate in self._aggregates:
            aggregate.resize(np.zeros(0, np.int64), _LEAST_ROOM)
        if not self.keys:
            self._groups.find(np.zeros((0, 1), np.int64))
            self._last[:, 0] = [aggregate.empty for aggregate in self._aggregates]

    def initial(self) -> Deltas:
        """What is there before any input: without keys the row of the empty group, at `origin`."""
        if self.keys:
            return Deltas.empty(self.columns)
        row = np.array([[aggregate.empty] for aggregate in self._aggregates], np.int64).reshape(-1, 1)
        return Deltas(self.columns, np.array([self.origin], np.int64), np.ones(1, np.int64), row)

    def step(self, *inputs: Deltas, until: int) -> Deltas:
        """See `Operator.step`."""
        (deltas,) = inputs
        if not len(deltas):
            return Deltas.empty(self.columns)
        deltas = deltas.project(self.columns_in)
        key_rows = deltas.values[[self.columns_in.index(key) for key in self.keys]]
        group = self._groups.find(key_rows)
        self._make_room()
        order = kernels.by_group(group, self._groups.room)
        runs, run = _runs(group[order], deltas.time, order)
        members = _Members.of(runs, group, deltas.weight[order], run)
        had_rows = self._rows[runs.group] > 0
        rows = _running(runs, members, members.weight, self._rows)
        ids = np.zeros((len(self._specs), len(runs)), np.int64)
        values: dict[str | None, Ids] = {}
        for i, (spec, aggregate) in enumerate(zip(self._specs, self._aggregates, strict=True)):
            if spec.column is None and not spec.distinct:
                ids[i] = _integer_ids(rows)
                continue
            if spec.column not in values:
                values[spec.column] = self._argument(spec.column, deltas)[order]
            ids[i] = aggregate.step(runs, replace(members, value=values[spec.column]))
        if self._distinct_rows:
            self._drop_rows(np.unique(values[None]) - 1)
        out = self._changes(runs, had_rows, rows > 0, ids)
        if self.keys:
            gone = runs.group[runs.last & (rows == 0)]
            self._last[:, gone] = 0
            self._groups.drop(gone)
            self._compact()
        return out

    def _argument(self, column: str | None, deltas: Deltas) -> Ids:
        """The members of an aggregate; for DISTINCT * the numbers of the rows, from 1."""
        if column is not None:
            return deltas.column(column)
        numbers = self._row_numbers.find(deltas.values)
        if self._row_numbers.room > len(self._row_counts):
            self._row_counts = _resized(self._row_counts, slice(None), self._row_numbers.room)
        np.add.at(self._row_counts, numbers, deltas.weight)
        return numbers + 1

    def _drop_rows(self, touched: Ids) -> None:
        rows = self._row_numbers
        rows.drop(touched[self._row_counts[touched] == 0])
        if rows.sparse:
            kept = rows.compact()
            number = np.zeros(len(self._row_counts) + 1, np.int64)
            number[kept + 1] = np.arange(1, len(kept) + 1)
            self._row_counts = _resized(self._row_counts, kept, rows.room)
            for spec, aggregate in zip(self._specs, self._aggregates, strict=True):
                if spec.column is None and isinstance(aggregate, _Distinct):
                    aggregate.renumber(number)

    def _changes(
        self, runs: _Runs, had_rows: NDArray[np.bool_], has_rows: NDArray[np.bool_], ids: Ids
    ) -> Deltas:
        """Old rows taken away, new ones added, where they differ. `had_rows` is before the batch."""
        first = runs.start == np.arange(len(runs))
        now, was = has_rows, np.where(first, had_rows, np.roll(has_rows, 1))
        if not self.keys:
            now = was = np.ones(len(runs), np.bool_)
        old = np.where(first, self._last[:, runs.group], np.roll(ids, 1, axis=1))
        self._last[:, runs.group[runs.last]] = ids[:, runs.last]
        differs = (was != now) | (old != ids).any(axis=0)
        minus, plus = np.flatnonzero(differs & was), np.flatnonzero(differs & now)
        which = np.concatenate([minus, plus])
        keys = self._groups.keys[:, runs.group[which]]
        values = np.concatenate([keys, np.concatenate([old[:, minus], ids[:, plus]], axis=1)])
        weight = np.repeat(np.array([-1, 1], np.int64), [len(minus), len(plus)])
        order = kernels.by_number(runs.instant[which], int(runs.instant.max()) + 1)
        return Deltas(self.columns, runs.time[which[order]], weight[order], values[:, order])

    def _make_room(self) -> None:
        if self._groups.room > len(self._rows):
            self._resize(np.arange(len(self._rows)), self._groups.room)

    def _compact(self) -> None:
        """Let go of memory that groups long gone took."""
        if self._groups.sparse:
            kept = self._groups.compact()
            self._resize(kept, self._groups.room)

    def _resize(self, kept: Ids, room: int) -> None:
        self._rows = _resized(self._rows, kept, room)
        self._last = _resized(self._last, kept, room)
        for aggregate in self._aggregates:
            aggregate.resize(kept, room)

    def __len__(self) -> int:
        """How many groups there are."""
        return len(self._groups)

    @property
    def nbytes(self) -> int:
        """Bytes of state held."""
        own = self._rows.nbytes + self._last.nbytes + self._row_counts.nbytes
        tables = self._groups.nbytes + self._row_numbers.nbytes
        return own + tables + sum(aggregate.nbytes for aggregate in self._aggregates)


def _check(spec: AggregateSpec, columns: tuple[str, ...]) -> None:
    if spec.op not in OPERATIONS:
        raise UsageError(f"{spec.op} is no aggregate; there are {', '.join(OPERATIONS)}")
    if spec.column is None and spec.op != "COUNT":
        raise UsageError(f"{spec.op} needs a column; only COUNT can do without")
    if spec.column is not None and spec.column not in columns:
        raise UsageError(f"{spec.op}({spec.column}): the input has no such column; it has {columns}")


def _build(spec: AggregateSpec, dictionary: Dictionary) -> _Aggregate:
    if spec.op in ("MIN", "MAX", "SAMPLE"):
        return _Extreme(spec.op == "MAX", dictionary)
    if spec.op == "GROUP_CONCAT":
        return _Concat(spec.distinct, " " if spec.separator is None else spec.separator, dictionary)
    plain: _Aggregate = _Count() if spec.op == "COUNT" else _Sum(spec.op == "AVG", dictionary)
    return _Distinct(plain, dictionary) if spec.distinct else plain


# ---------------------------------------------------------------------------- runs


def _runs(group: Ids, time: Ids, order: Ids) -> tuple[_Runs, Ids]:
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
    runs = _Runs(group[heads], time[order[heads]], instant[heads], start, np.append(first[1:], True))
    return runs, np.cumsum(new) - 1


def _running(runs: _Runs, members: _Members, change: Ids, state: Ids) -> Ids:
    """The state of each run's group after it: a sum of changes on top of `state`, which moves on.

    Sums wrap around at 64 bits on the way, which does no harm to what fits in the end."""
    total = np.zeros(len(change) + 1, np.int64)
    np.cumsum(change, out=total[1:])
    at_end = total[members.bounds]
    after = state[runs.group] + at_end[1:] - at_end[runs.start]
    state[runs.group[runs.last]] = after[runs.last]
    return after


def _resized(array: Ids, kept: Ids | slice, room: int) -> Ids:
    """`array[..., kept]`, with zeros after it."""
    some = array[..., kept]
    out = np.zeros((*array.shape[:-1], room), array.dtype)
    out[..., : some.shape[-1]] = some
    return out


def _power(least: int) -> int:
    return max(_LEAST_ROOM, 1 << (least - 1).bit_length())


class _GroupTable:
    """Rows of ids and their numbers, as laid out in `aggregate_kernels`."""

    def __init__(self, width: int) -> None:
        self.meta = np.zeros(3, np.int64)
        self.keys = np.zeros((width, _LEAST_ROOM), np.int64)
        self.spare = np.zeros(_LEAST_ROOM, np.int64)
        self.slots = np.zeros(2 * _LEAST_ROOM, np.int64)

    def __len__(self) -> int:
        return int(self.meta[0])

    @property
    def room(self) -> int:
        return len(self.spare)

    @property
    def sparse(self) -> bool:
        """Whether it is time to `compact`."""
        return self.room > _LEAST_ROOM and 8 * len(self) < self.room

    @property
    def nbytes(self) -> int:
        return self.keys.nbytes + self.spare.nbytes + self.slots.nbytes

    def find(self, rows: Ids) -> Ids:
        """The numbers of rows, new ones where need be."""
        done, parts = 0, []
        while True:
            rest = np.ascontiguousarray(rows[:, done:])
            parts.append(kernels.find_groups(self.slots, self.keys, self.spare, self.meta, rest))
            done += len(parts[-1])
            if done == rows.shape[1]:
                break
            self._grow(2 * self.room)
        return np.concatenate(parts)

    def drop(self, numbers: Ids) -> None:
        """These rows are gone."""
        kernels.drop_groups(self.slots, self.keys, self.spare, self.meta, numbers)

    def numbers(self) -> Ids:
        """All numbers in use."""
        return np.sort(self.slots[self.slots > 0] - 1)

    def compact(self) -> Ids:
        """Number the rows anew, without gaps; the old numbers in the order of the new ones."""
        kept = self.numbers()
        self.keys = np.ascontiguousarray(self.keys[:, kept])
        self.spare, self.meta = np.zeros(0, np.int64), np.array([len(kept), len(kept), 0], np.int64)
        self._grow(_power(2 * len(kept)), np.arange(len(kept)))
        return kept

    def _grow(self, room: int, numbers: Ids | None = None) -> None:
        numbers = self.numbers() if numbers is None else numbers
        self.keys, self.spare = (_resized(array, slice(None), room) for array in (self.keys, self.spare))
        self.slots = np.zeros(2 * room, np.int64)
        kernels.place_groups(self.slots, self.keys, numbers)


class _MemberTable:
    """(group, member) -> count, as laid out in `aggregate_kernels`; `sign` -1 keeps the least, +1 the
    greatest member at hand."""

    def __init__(self, dictionary: Dictionary, sign: int = 0, always: bool = False) -> None:
        self.dictionary, self.sign, self.always = dictionary, sign, always
        self.head = np.full(_LEAST_ROOM, -1, np.int64)
        self.best = self.head.copy()
        self.classes = np.zeros((kernels.CLASSES, _LEAST_ROOM), np.int64)
        self._allocate(_LEAST_ROOM)

    def _allocate(self, room: int) -> None:
        self.meta, self.spare = np.zeros(3, np.int64), np.zeros(room, np.int64)
        self.entries, self.slots = np.zeros((kernels.FIELDS, room), np.int64), np.zeros(2 * room, np.int64)

    def __len__(self) -> int:
        return int(self.meta[0])

    @property
    def nbytes(self) -> int:
        arrays = (self.head, self.best, self.classes, self.spare, self.entries, self.slots)
        return sum(array.nbytes for array in arrays)

    def step(self, runs: _Runs, members: _Members, key: Ids, kind: Ids) -> tuple[Ids, Ids, Ids]:
        """See `aggregate_kernels.members_step`."""
        need, room = len(self) + len(members.run), len(self.spare)
        if need > room or (room > _LEAST_ROOM and 16 * need < room):
            self._rebuild(np.arange(len(self.head)), len(self.head), _power(need + need // 2))
        return kernels.members_step(
            self.slots, self.entries, self.spare, self.meta, self.head, self.classes, self.best, self.sign,
            self.always, runs.group, members.run, members.value, members.weight, key, kind,
            _texts(self.dictionary),
        )  # fmt: skip

    def resize(self, kept: Ids, room: int) -> None:
        if len(kept) == len(self.head) and (kept == np.arange(len(kept))).all():  # more room, no more
            more = np.full(room - len(kept), -1, np.int64)
            self.head, self.best = np.append(self.head, more), np.append(self.best, more)
            self.classes = _resized(self.classes, kept, room)
        else:
            self._rebuild(kept, room, _power(2 * len(self)))

    def renumber(self, number: Ids) -> None:
        """Member v is now number[v]."""
        live = self.slots[self.slots > 0] - 1
        self.entries[kernels.VALUE, live] = number[self.entries[kernels.VALUE, live]]
        self._rebuild(np.arange(len(self.head)), len(self.head), _power(2 * len(self)))

    def _rebuild(self, kept: Ids, groups: int, room: int) -> None:
        old, live = self.entries, self.slots[self.slots > 0] - 1
        number = np.full(len(self.head), -1, np.int64)
        number[kept] = np.arange(len(kept))
        self._allocate(room)
        self.classes = _resized(self.classes, kept, groups)
        best = self.best[kept]
        self.head, self.best = np.full(groups, -1, np.int64), np.full(groups, -1, np.int64)
        places = np.full(old.shape[1] + 1, -1, np.int64)  # the last one is where entry -1, none, goes
        kernels.insert_members(
            self.slots, self.entries, self.spare, self.meta, self.head, number[old[kernels.GROUP, live]], old,
            live, places,
        )  # fmt: skip
        self.best[: len(kept)] = places[best]


# ---------------------------------------------------------------------------- aggregates


class _Count:
    """How many members are bound."""

    empty = int(np.int64(-(2**63)) | np.int64(Kind.INTEGER << 58))

    def __init__(self) -> None:
        self._state = np.zeros(_LEAST_ROOM, np.int64)

    def step(self, runs: _Runs, members: _Members) -> Ids:
        bound = np.where(members.value != UNBOUND, members.weight, 0)
        return _integer_ids(_running(runs, members, bound, self._state))

    def resize(self, kept: Ids, room: int) -> None:
        self._state = _resized(self._state, kept, room)

    @property
    def nbytes(self) -> int:
        return self._state.nbytes


class _Distinct:
    """An aggregate over the set of its members: it is told only when one comes or goes."""

    def __init__(self, inner: _Aggregate, dictionary: Dictionary) -> None:
        self._inner, self._table = inner, _MemberTable(dictionary)

    @property
    def empty(self) -> int:
        return self._inner.empty

    def step(self, runs: _Runs, members: _Members) -> Ids:
        nothing = np.zeros(len(members.run), np.int64)
        changes, _, _ = self._table.step(runs, members, nothing, nothing)
        return self._inner.step(runs, _Members.of(runs, changes[1], changes[2], changes[0]))

    def renumber(self, number: Ids) -> None:
        """Member v is now number[v]."""
        self._table.renumber(number)

    def resize(self, kept: Ids, room: int) -> None:
        self._table.resize(kept, room)
        self._inner.resize(kept, room)

    @property
    def nbytes(self) -> int:
        return self._table.nbytes + self._inner.nbytes


# What _Sum adds up: a number is ((HIGH · 2^30 + LOW) · 10^9 + UPPER) · 10^9 + LOWER, by 10^18. Digits are
# small enough that their sums never overflow, so they are put in order only where a result is wanted.
_HIGH, _LOW, _UPPER, _LOWER, _DECIMALS, _BAD, _FLOATS, _DOUBLES, _INF, _MINUS_INF, _NAN, _ALL = range(12)
_BILLION, _LOW_BITS = 10**9, 30
_MANY = 1 << 16
_PLACES_OF_STATE = 2**64
_EXACT, _INEXACT = frozenset([Sort.INTEGER, Sort.DECIMAL]), frozenset([Sort.FLOAT, Sort.DOUBLE])


class _HashedNumbers:
    """What hashed ids mean; those asked about lately are remembered."""

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._known: dict[int, Meaning] = {}

    def of(self, ids: Ids) -> list[Meaning]:
        """The sort and value of each."""
        wanted = ids.tolist()
        new = [id for id in wanted if id not in self._known]
        if new:
            if len(self._known) > _MANY:
                self._known = {id: self._known[id] for id in wanted if id in self._known}
            for id, term in zip(new, self._dictionary.terms(new), strict=True):
                self._known[id] = meaning(term) if isinstance(term, Literal) else (Sort.UNKNOWN, None)
        return [self._known[id] for id in wanted]


class _LargeSums:
    """Sums of the members whose digits have no place in the arrays, by group; few or none."""

    def __init__(self) -> None:
        self._sums: dict[int, Decimal] = {}

    def step(self, runs: _Runs, run: Ids, value: list[Decimal], weight: Ids) -> dict[int, Decimal]:
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
        if self._sums:
            number = {old: new for new, old in enumerate(kept.tolist())}
            self._sums = {number[group]: value for group, value in self._sums.items() if group in number}


class _Sum:
    """SUM, and AVG, which is the sum by the number of members (a decimal for integers)."""

    empty = _Count.empty

    def __init__(self, average: bool, dictionary: Dictionary) -> None:
        self._average, self._dictionary = average, dictionary
        self._state = np.zeros((12, _LEAST_ROOM), np.int64)
        self._doubles: Ids | None = None  # exact sums, once there are doubles
        self._hashed, self._large_sums = _HashedNumbers(dictionary), _LargeSums()

    def step(self, runs: _Runs, members: _Members) -> Ids:
        change, number, large = self._digits(members.value)
        where = np.array(list(large), np.int64)
        beside = self._large_sums.step(runs, members.run[where], list(large.values()), members.weight[where])
        after = np.zeros((12, len(runs)), np.int64)
        for i in range(12):
            if i in change:
                after[i] = _running(runs, members, change[i] * members.weight, self._state[i])
            else:
                after[i] = self._state[i][runs.group]
        good = after[_BAD] == 0
        inexact = good & (after[_FLOATS] + after[_DOUBLES] > 0)
        sums = np.zeros(len(runs))
        if number is not None and self._doubles is None:
            self._doubles = np.zeros((self._state.shape[1], kernels.LIMBS), np.int64)
        if self._doubles is not None:
            number = np.zeros(len(members.run)) if number is None else number
            some = number != 0
            sums = kernels.double_sums(
                self._doubles, runs.group, members.run[some], number[some], members.weight[some], inexact
            )
        return self._results(after, good, inexact, sums, beside)

    def resize(self, kept: Ids, room: int) -> None:
        self._state = _resized(self._state, kept, room)
        self._large_sums.resize(kept)
        if self._doubles is not None:
            # Where no doubles are left, there is nothing to keep.
            if self._state[_FLOATS].any() or self._state[_DOUBLES].any():
                self._doubles = np.ascontiguousarray(_resized(self._doubles.T, kept, room).T)
            else:
                self._doubles = None

    @property
    def nbytes(self) -> int:
        return self._state.nbytes + (0 if self._doubles is None else self._doubles.nbytes)

    # ------------------------------------------------------------------ members to digits

    def _digits(self, ids: Ids) -> tuple[dict[int, Ids], NDArray[np.float64] | None, dict[int, Decimal]]:
        """What each member adds to the state (rows that are all 0 left out), the finite doubles, and the
        members, by their positions, whose digits have no place in the state."""
        kind = kinds(ids)
        whole_kind = kind == Kind.INTEGER
        out: dict[int, Ids] = {_ALL: np.ones(len(ids), np.int64)}
        whole = np.where(whole_kind, ids << 6 >> 6, 0)
        if whole_kind.all():
            return out | {_HIGH: whole >> _LOW_BITS, _LOW: whole & (1 << _LOW_BITS) - 1}, None, {}
        decimal = kind == Kind.DECIMAL
        scale = np.where(decimal, ids >> 54 & 15, 0)
        mantissa, unit = np.where(decimal, ids << 10 >> 10, 0), 10**scale
        whole = np.where(decimal, mantissa // unit, whole)
        fraction = np.where(decimal, mantissa % unit * 10 ** (18 - scale), 0)
        out[_HIGH], out[_LOW] = whole >> _LOW_BITS, whole & (1 << _LOW_BITS) - 1
        out[_UPPER], out[_LOWER] = fraction // _BILLION, fraction % _BILLION
        single = (kind == Kind.FLOAT) | (kind == Kind.FLOAT_E)
        double = (kind == Kind.DOUBLE) | (kind == Kind.DOUBLE_E)
        bad = ~(whole_kind | decimal | single | double)
        number = np.where(single | double, numeric_values(ids)[0], 0.0)
        large: dict[int, Decimal] = {}
        odd = np.flatnonzero(ids > 0)
        if odd.size:
            distinct, places = np.unique(ids[odd], return_inverse=True)
            place = np.asarray(places)
            means = self._hashed.of(distinct)
            sort = np.array([sort for sort, _ in means])[place]
            floats = [value if sort in _INEXACT else 0.0 for sort, value in means]
            number[odd] = np.array(floats, np.float64)[place]
            exact = [value if sort in _EXACT else Decimal(0) for sort, value in means]
            for row, digit in enumerate(np.array([_split(v) for v in exact], np.int64).T):
                out[row][odd] = digit[place]
            decimal[odd], single[odd] = sort == Sort.DECIMAL, sort == Sort.FLOAT
            double[odd], bad[odd] = sort == Sort.DOUBLE, sort > Sort.DOUBLE
            beyond = [not _has_place(value) for value in exact]
            if any(beyond):
                which = np.flatnonzero(np.array(beyond)[place])
                large = {int(odd[i]): exact[place[i]] for i in which.tolist()}
        out |= {row: which.astype(np.int64) for row, which in (
            (_DECIMALS, decimal), (_BAD, bad), (_FLOATS, single), (_DOUBLES, double),
            (_INF, number == np.inf), (_MINUS_INF, number == -np.inf), (_NAN, np.isnan(number)),
        )}  # fmt: skip
        number[~np.isfinite(number)] = 0
        change = {row: added for row, added in out.items() if added.any()}
        return change, number if number.any() else None, large

    # ------------------------------------------------------------------ digits to ids

    def _results(
        self,
        after: Ids,
        good: NDArray[np.bool_],
        inexact: NDArray[np.bool_],
        sums: NDArray[np.float64],
        beside: dict[int, Decimal],
    ) -> Ids:
        ids = np.zeros(len(good), np.int64)
        upper = after[_UPPER] + after[_LOWER] // _BILLION
        low = after[_LOW] + upper // _BILLION
        high = after[_HIGH] + (low >> _LOW_BITS)
        low &= (1 << _LOW_BITS) - 1
        fraction = upper % _BILLION * _BILLION + after[_LOWER] % _BILLION
        whole, count = (high << _LOW_BITS) | low, after[_ALL]
        exact = good & ~inexact
        fits = np.abs(high) < 1 << 62 - _LOW_BITS
        fits[[r for r, value in beside.items() if value]] = False
        integral = exact & ((after[_DECIMALS] == 0) & (not self._average) | (count == 0))
        inline = integral & fits & (np.abs(whole) < 1 << 57)
        ids[inline] = _integer_ids(whole[inline])
        plain = np.flatnonzero(exact & ~integral & fits)
        if plain.size:
            negative = whole[plain] < 0
            below = fraction[plain]
            borrow = negative & (below > 0)
            size = np.where(negative, -whole[plain] - borrow, whole[plain])
            below = np.where(borrow, 10**18 - below, below)
            if self._average:
                size, below = kernels.quotients(size, below, count[plain])
            ids[plain] = self._decimal_ids(negative, size, below)

        def total(i: int) -> Decimal:
            scaled = ((int(high[i]) << _LOW_BITS) + int(low[i])) * 10**18 + int(fraction[i])
            return EXACTLY.add(Decimal(scaled).scaleb(-18, EXACTLY), beside.get(i, Decimal(0)))

        encode = self._dictionary.encode
        for i in np.flatnonzero(exact & ~inline & ~(~integral & fits)).tolist():
            sort = Sort.DECIMAL if after[_DECIMALS, i] > 0 else Sort.INTEGER
            found = (
                average_of(sort, total(i), 0.0, int(count[i]))
                if self._average
                else sum_of(sort, total(i), 0.0)
            )
            ids[i] = encode(found)
        which = np.flatnonzero(inexact)
        if which.size:
            exact_part = whole.astype(np.float64)
            odd = ~fits | (fraction != 0) | (np.abs(whole) > 1 << 53)  # not sure to be rounded once
            for i in np.flatnonzero(inexact & odd).tolist():
                exact_part[i] = float(total(i))
            self._inexact_ids(ids, which, after, sums, exact_part)
        return ids

    def _decimal_ids(self, negative: NDArray[np.bool_], whole: Ids, fraction: Ids) -> Ids:
        dictionary = self._dictionary
        ids, texts, starts, ends = kernels.decimal_ids(negative, whole, fraction, np.uint64(dictionary.seed))
        hashed = ids > 0
        dictionary.add_batch(ids[hashed], texts, starts[hashed], ends[hashed])
        return ids

    def _inexact_ids(
        self, ids: Ids, which: Ids, after: Ids, sums: NDArray[np.float64], exact_part: NDArray[np.float64]
    ) -> None:
        some = after[:, which]
        with np.errstate(over="ignore", invalid="ignore"):
            total = sums[which] + exact_part[which]
            total[some[_INF] > 0] = np.inf
            total[some[_MINUS_INF] > 0] = -np.inf
            total[(some[_NAN] > 0) | ((some[_INF] > 0) & (some[_MINUS_INF] > 0))] = np.nan
            double = some[_DOUBLES] > 0
            if self._average:
                single = total.astype(np.float32) / some[_ALL].astype(np.float32)
                total = np.where(double, total / some[_ALL], single)
            total = np.where(double, total, total.astype(np.float32)) + 0.0
        for is_double in (True, False):
            mine = double == is_double
            distinct, places = np.unique(total[mine], return_inverse=True)
            ids[which[mine]] = self._texts_to_ids([_inexact_text(v, is_double) for v in distinct.tolist()])[
                places
            ]

    def _texts_to_ids(self, texts: list[bytes]) -> Ids:
        data = np.frombuffer(bytearray(_PADDING.join([*texts, b""])), np.uint8)
        sizes = np.array([len(t) for t in texts], np.int64)
        ends = np.cumsum(sizes + PADDING) - PADDING
        ids = kernels.text_ids(data, ends - sizes, ends, np.uint64(self._dictionary.seed))
        hashed = ids > 0
        self._dictionary.add_batch(ids[hashed], data, (ends - sizes)[hashed], ends[hashed])
        return ids


class _Extreme:
    """MIN and MAX over the members at hand.

    Members of one kind (numbers, times, strings, IRIs, …) are compared in place. Of a group that has others,
    or several kinds, all terms are looked up at each instant at which it changes.
    """

    empty = UNBOUND

    def __init__(self, greatest: bool, dictionary: Dictionary) -> None:
        self._op, self._dictionary = "MAX" if greatest else "MIN", dictionary
        self._table, self._hashed = (
            _MemberTable(dictionary, 1 if greatest else -1),
            _HashedNumbers(dictionary),
        )

    def step(self, runs: _Runs, members: _Members) -> Ids:
        key, kind = _sort_keys(members.value, self._dictionary)
        self._number_keys(members.value, key, kind)
        _, extreme, snapshot = self._table.step(runs, members, key, kind)
        if snapshot.shape[1]:
            self._look_up(extreme, snapshot)
        return extreme

    def resize(self, kept: Ids, room: int) -> None:
        self._table.resize(kept, room)

    @property
    def nbytes(self) -> int:
        return self._table.nbytes

    def _number_keys(self, ids: Ids, key: Ids, kind: Ids) -> None:
        """Fill in class and key of hashed numbers that float64 has exactly, so far of no class."""
        others = np.flatnonzero((kind == kernels.OTHER) & (ids > 0))
        if not others.size:
            return
        distinct, places = np.unique(ids[others], return_inverse=True)
        values, kinds = np.zeros(len(distinct)), np.full(len(distinct), kernels.OTHER)
        for i, (sort, value) in enumerate(self._hashed.of(distinct)):
            if sort in _INEXACT and value == value:  # not NaN
                values[i], kinds[i] = value, kernels.NUMBER if sort is Sort.DOUBLE else kernels.FLOAT
            elif sort in _EXACT and len(value.as_tuple().digits) <= 15 and abs(value.adjusted()) <= 15:
                values[i], kinds[i] = float(value), kernels.NUMBER
        key[others], kind[others] = _float_keys(values)[places], kinds[places]

    def _look_up(self, extreme: Ids, snapshot: Ids) -> None:
        """Fill in the runs of the snapshot."""
        distinct, places = np.unique(snapshot[1], return_inverse=True)
        texts = [sort_text(term) for term in self._dictionary.terms(distinct)]
        _, rank = np.unique(np.array(texts, object), return_inverse=True)
        rank = -self._table.sign * rank
        order = np.lexsort((self._ties(distinct)[places], rank[places], snapshot[0]))
        runs, first = np.unique(snapshot[0, order], return_index=True)
        extreme[runs] = snapshot[1, order[first]]

    def _ties(self, ids: Ids) -> Ids:
        """The order of equal members: inline ids, then texts."""
        known = ids.tolist()
        keys = [
            (id > 0, min(id, 0), _written(id, term))
            for id, term in zip(known, self._dictionary.terms(ids), strict=True)
        ]
        ties = np.empty(len(keys), np.int64)
        ties[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
        return ties


class _Concat:
    """GROUP_CONCAT, made anew from all members of a group whenever it changes."""

    def __init__(self, distinct: bool, separator: str, dictionary: Dictionary) -> None:
        self._distinct, self._separator, self._dictionary = distinct, separator, dictionary
        self._table = _MemberTable(dictionary, always=True)

    @property
    def empty(self) -> int:
        return self._dictionary.encode(Literal(""))

    def step(self, runs: _Runs, members: _Members) -> Ids:
        nothing = np.zeros(len(members.run), np.int64)
        _, _, snapshot = self._table.step(runs, members, nothing, nothing)
        distinct, places = np.unique(snapshot[1], return_inverse=True)
        keys = [_text_key(term) for term in self._dictionary.terms(distinct)]
        by_text = sorted(range(len(keys)), key=lambda i: keys[i] or ("", "", ""))
        rank = np.empty(len(keys), np.int64)
        rank[by_text] = np.arange(len(keys))
        parts: list[list[str] | None] = [[] for _ in range(len(runs))]
        for i in np.lexsort((rank[places], snapshot[0])).tolist():
            run, key = snapshot[0, i], keys[places[i]]
            part = parts[run]
            if key is None:
                parts[run] = None
            elif part is not None:
                part.extend([key[0]] * (1 if self._distinct else int(snapshot[2, i])))
        encode, join = self._dictionary.encode, self._separator.join
        return np.array([UNBOUND if p is None else encode(Literal(join(p))) for p in parts], np.int64)

    def resize(self, kept: Ids, room: int) -> None:
        self._table.resize(kept, room)

    @property
    def nbytes(self) -> int:
        return self._table.nbytes


# ---------------------------------------------------------------------------- terms


_CLASSES = [
    kernels.MISSING, kernels.FLOAT, kernels.NUMBER, kernels.MOMENT,
    kernels.LOCAL_MOMENT, kernels.STRING,
    kernels.BOOLEAN,
]  # fmt: skip


def _integer_ids(values: Ids) -> Ids:
    """The ids of integers below 2^57."""
    return np.int64(_Count.empty) | (values & (1 << 58) - 1)


def _texts(dictionary: Dictionary) -> tuple[Ids, Ids, NDArray[np.uint8]]:
    """What kernels need to read a hashed term's text."""
    return dictionary.tables.slots, dictionary.tables.offsets, dictionary.tables.arena


def _float_keys(numbers: NDArray[np.float64]) -> Ids:
    """Integers in the order of the numbers; 0 and -0 are one."""
    bits = (numbers + 0.0).view(np.int64)
    return bits ^ (bits >> 63 & np.int64(2**63 - 1))


def _sort_keys(ids: Ids, dictionary: Dictionary) -> tuple[Ids, Ids]:
    """(key, class) of each id: within a class, keys are ordered as the terms are (but see `STRING`)."""
    kind = kinds(ids)
    numbers, valid = numeric_values(ids)
    single = (kind == Kind.FLOAT) | (kind == Kind.FLOAT_E)  # compared with a float, a decimal is rounded
    moment, is_time, zoned = time_values(ids)
    inline = ids & (1 << 58) - 1
    choices = [
        ids == UNBOUND,
        single,
        valid,
        is_time & zoned,
        is_time,
        kind == Kind.STRING,
        kind == Kind.BOOLEAN,
    ]
    number_key = _float_keys(numbers)
    keys = [np.zeros_like(ids), number_key, number_key, moment, moment, inline, inline]
    key, kind_of = np.select(choices, keys, 0), np.select(choices, _CLASSES, kernels.OTHER)
    kernels.text_classes(_texts(dictionary), ids, key, kind_of)
    return key, kind_of


def _written(id: int, term: Term | DefaultGraph) -> str:
    return text(term) if id > 0 else ""  # type: ignore[arg-type]


def _has_place(value: Decimal) -> bool:
    """Whether the state has digits for a number: 64 bits, 18 places."""
    return abs(value) < _PLACES_OF_STATE and value.as_tuple().exponent >= -18  # type: ignore[operator]


def _split(exact: Decimal) -> tuple[int, int, int, int]:
    if not _has_place(exact):
        return 0, 0, 0, 0
    whole, fraction = divmod(int(exact.scaleb(18, EXACTLY)), 10**18)
    return whole >> _LOW_BITS, whole & (1 << _LOW_BITS) - 1, fraction // _BILLION, fraction % _BILLION


def _inexact_text(value: float, double: bool) -> bytes:
    """The canonical text of a double or float, which has no exponent."""
    if not double and np.isfinite(value):
        lexical = np.format_float_positional(np.float32(value), unique=True, trim="-")
    else:
        lexical = repr(value).removesuffix(".0")
        if "e" in lexical or "n" in lexical:
            lexical = Literal(value).value
    return f'"{lexical}"^^<{_XSD}{"double" if double else "float"}>'.encode()


def _text_key(term: Term | DefaultGraph) -> tuple[str, str, str] | None:
    """(STR, DATATYPE, LANG), '' where there is none; None for a term without STR."""
    if isinstance(term, Literal):
        return term.value, term.datatype.value, term.language or ""
    if isinstance(term, BlankNode | Triple | DefaultGraph):
        return None
    return term.value, "", ""
