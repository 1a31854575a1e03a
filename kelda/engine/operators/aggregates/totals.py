"""The exact total of numbers, of which SUM and AVG are made.

Integers and decimals are added exactly, of any size; doubles and floats as the exact sum, rounded once (not
as the sum of roundings in some order), so that a member that leaves leaves nothing behind. With a member that
is unbound or no number the total is unbound.

A number is ((HIGH · 2^30 + LOW) · 10^9 + UPPER) · 10^9 + LOWER, by 10^18. Digits are small enough that their
sums never overflow, so they are put in order only where a result is wanted. Numbers that are too large for
these are added up beside them (`LargeSums`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal

from kelda.engine.deltas import Ids
from kelda.engine.operators.aggregates import totals_kernels as kernels
from kelda.engine.operators.aggregates.integers import ZERO, integer_ids
from kelda.engine.operators.aggregates.large_sums import LargeSums
from kelda.engine.operators.aggregates.numbers import EXACT, INEXACT, HashedNumbers
from kelda.engine.operators.aggregates.runs import Members, Runs, running
from kelda.engine.operators.group_table import LEAST_ROOM, resized
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.hash_kernels import PADDING
from kelda.rdf.ids import Kind, kinds, numeric_values
from kelda.rdf.values import EXACTLY, Sort

_HIGH, _LOW, _UPPER, _LOWER, _DECIMALS, _BAD, _FLOATS, _DOUBLES, _INF, _MINUS_INF, _NAN, _ALL = range(12)
_BILLION, _LOW_BITS = 10**9, 30
_PLACES_OF_STATE = 2**64
_PADDING = bytes(PADDING)
_XSD = "http://www.w3.org/2001/XMLSchema#"


class Totals(ABC):
    """An aggregate that is a function of the total and the number of its members."""

    empty = ZERO

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._state = np.zeros((12, LEAST_ROOM), np.int64)
        self._doubles: Ids | None = None  # exact sums, once there are doubles
        self._hashed, self._large_sums = HashedNumbers(dictionary), LargeSums()

    def step(self, runs: Runs, members: Members) -> Ids:
        change, number, large = self._digits(members.value)
        where = np.array(list(large), np.int64)
        beside = self._large_sums.step(runs, members.run[where], list(large.values()), members.weight[where])
        after = np.zeros((12, len(runs)), np.int64)
        for i in range(12):
            if i in change:
                after[i] = running(runs, members, change[i] * members.weight, self._state[i])
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
        self._state = resized(self._state, kept, room)
        self._large_sums.resize(kept)
        if self._doubles is not None:
            # Where no doubles are left, there is nothing to keep.
            if self._state[_FLOATS].any() or self._state[_DOUBLES].any():
                self._doubles = np.ascontiguousarray(resized(self._doubles.T, kept, room).T)
            else:
                self._doubles = None

    @property
    def nbytes(self) -> int:
        return self._state.nbytes + (0 if self._doubles is None else self._doubles.nbytes)

    # ------------------------------------------------------------------ what is made of a total

    @abstractmethod
    def _is_integer(self, decimals: Ids, count: Ids) -> NDArray[np.bool_]:
        """Whether the result is an integer, of totals of so many numbers, so many of them decimals."""

    @abstractmethod
    def _of_decimals(self, whole: Ids, fraction: Ids, count: Ids) -> tuple[Ids, Ids]:
        """The result for whole + fraction / 10^18, as such, of totals that are not negative."""

    @abstractmethod
    def _of_large(self, sort: Sort, total: Decimal, count: int) -> Literal:
        """The result for an exact total, whatever its size."""

    @abstractmethod
    def _of_floats(
        self, total: NDArray[np.float64], double: NDArray[np.bool_], count: Ids
    ) -> NDArray[np.float64]:
        """The result for totals of floats, or of doubles."""

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
            floats = [value if sort in INEXACT else 0.0 for sort, value in means]
            number[odd] = np.array(floats, np.float64)[place]
            exact = [value if sort in EXACT else Decimal(0) for sort, value in means]
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
        integral = exact & self._is_integer(after[_DECIMALS], count)
        inline = integral & fits & (np.abs(whole) < 1 << 57)
        ids[inline] = integer_ids(whole[inline])
        plain = np.flatnonzero(exact & ~integral & fits)
        if plain.size:
            negative = whole[plain] < 0
            below = fraction[plain]
            borrow = negative & (below > 0)
            size = np.where(negative, -whole[plain] - borrow, whole[plain])
            below = np.where(borrow, 10**18 - below, below)
            size, below = self._of_decimals(size, below, count[plain])
            ids[plain] = self._decimal_ids(negative, size, below)

        def total(i: int) -> Decimal:
            scaled = ((int(high[i]) << _LOW_BITS) + int(low[i])) * 10**18 + int(fraction[i])
            return EXACTLY.add(Decimal(scaled).scaleb(-18, EXACTLY), beside.get(i, Decimal(0)))

        encode = self._dictionary.encode
        for i in np.flatnonzero(exact & ~inline & ~(~integral & fits)).tolist():
            sort = Sort.DECIMAL if after[_DECIMALS, i] > 0 else Sort.INTEGER
            ids[i] = encode(self._of_large(sort, total(i), int(count[i])))
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
            total = self._of_floats(total, double, some[_ALL])
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
