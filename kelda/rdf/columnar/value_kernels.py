"""Kernels: literals of XML Schema's datatypes from cells, checked as `framings/mapping.py` checks them.

What is not surely valid makes the row odd, so a kernel never has to judge a value invalid.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from kelda.rdf.columnar.text_kernels import copied, is_blank
from kelda.rdf.hash_kernels import PADDING, helper, identity_of, load8, store8
from kelda.rdf.ntriples_kernels import _datetime as date_time_id
from kelda.rdf.ntriples_kernels import _digits as digits_of
from kelda.rdf.ntriples_kernels import _typed as typed_id

_MISSING = -1  # as in cells.py

# What a lexical form may look like.
INTEGER, DECIMAL, FLOATING, BOOLEAN, DATE_TIME, STAMP, DATE, TIME, OTHER = range(9)

_PLUS, _MINUS, _DOT, _ZERO, _NINE, _COLON, _T, _Z, _E, _LOWER_E = 43, 45, 46, 48, 57, 58, 84, 90, 69, 101
_QUOTE = 34


@helper
def _is_digit(byte):  # type: ignore[no-untyped-def]
    return _ZERO <= byte <= _NINE


@helper
def stripped(text, start, end):  # type: ignore[no-untyped-def]
    """The span without the blanks at both ends."""
    while start < end and is_blank(load8(text, start)):
        start += 1
    while start < end and is_blank(load8(text, end - 1)):
        end -= 1
    return start, end


@helper
def _is_word(text, start, end, word):  # type: ignore[no-untyped-def]
    """Whether the span is this word of up to eight letters, of which the first is the lowest byte."""
    for i in range(start, end):
        if load8(text, i) != word & 255:
            return False
        word >>= 8
    return word == 0


def _word(letters: str) -> int:
    return int.from_bytes(letters.encode(), "little")


_TRUE, _FALSE, _INF, _NAN = _word("true"), _word("false"), _word("INF"), _word("NaN")


@helper
def _is_integer(text, start, end, low, high):  # type: ignore[no-untyped-def]
    """[+-]?digits, not too many of them, within the bounds."""
    first = load8(text, start)
    i = start + 1 if first in (_MINUS, _PLUS) else start
    if i >= end or end - i > 18:
        return False
    value = digits_of(text, i, end)
    if value < 0:
        return False
    if first == _MINUS:
        value = -value
    return low <= value <= high


@helper
def _is_number(text, start, end, scientific):  # type: ignore[no-untyped-def]
    """[+-]?(digits(.digits?)?|.digits), with ([eE][+-]?digits)? if `scientific`."""
    i = start
    if load8(text, i) == _MINUS or load8(text, i) == _PLUS:
        i += 1
    digits = 0
    while i < end and _is_digit(load8(text, i)):
        i += 1
        digits += 1
    if i < end and load8(text, i) == _DOT:
        i += 1
        while i < end and _is_digit(load8(text, i)):
            i += 1
            digits += 1
    if digits == 0:
        return False
    if i == end:
        return True
    if not scientific or (load8(text, i) != _E and load8(text, i) != _LOWER_E):
        return False
    i += 1
    if i < end and (load8(text, i) == _MINUS or load8(text, i) == _PLUS):
        i += 1
    if i >= end:
        return False
    while i < end:
        if not _is_digit(load8(text, i)):
            return False
        i += 1
    return True


@helper
def _is_floating(text, start, end):  # type: ignore[no-untyped-def]
    if _is_number(text, start, end, True) or _is_word(text, start, end, _NAN):
        return True
    first = load8(text, start)
    i = start + 1 if first in (_MINUS, _PLUS) else start
    return _is_word(text, i, end, _INF)


@helper
def _number_in(text, at, low, high):  # type: ignore[no-untyped-def]
    """Whether there are two digits, for a number within these bounds."""
    value = digits_of(text, at, at + 2)
    return low <= value <= high


@helper
def _is_zone(text, i, end):  # type: ignore[no-untyped-def]
    """(Z|[+-]hh:mm)?, up to 14:59."""
    if i == end:
        return True
    if end - i == 1:
        return load8(text, i) == _Z
    return (
        end - i == 6
        and (load8(text, i) == _PLUS or load8(text, i) == _MINUS)
        and _number_in(text, i + 1, 0, 14)
        and load8(text, i + 3) == _COLON
        and _number_in(text, i + 4, 0, 59)
    )


@helper
def _behind_fraction(text, i, end):  # type: ignore[no-untyped-def]
    """The position behind (.digits)?; -1 if no digit comes behind the point."""
    if i >= end or load8(text, i) != _DOT:
        return i
    first = i + 1
    i = first
    while i < end and _is_digit(load8(text, i)):
        i += 1
    return i if i > first else np.int64(-1)


@helper
def _is_date_time(text, start, end, scratch, zone_needed):  # type: ignore[no-untyped-def]
    """A date and time of the calendar, with a fraction of any length and a zone in quarters of an hour. In
    the scratch is room for the same without the fraction."""
    if end - start < 19:
        return False
    rest = _behind_fraction(text, start + 19, end)
    if rest < 0 or end - rest > 6:
        return False
    for i in range(19):
        store8(scratch, i, load8(text, start + i))
    for i in range(rest, end):
        store8(scratch, 19 + i - rest, load8(text, i))
    return (not zone_needed or rest < end) and date_time_id(scratch, 0, 19 + end - rest) != 0


@helper
def _is_date(text, start, end):  # type: ignore[no-untyped-def]
    return (
        end - start >= 10
        and digits_of(text, start, start + 4) >= 0
        and load8(text, start + 4) == _MINUS
        and _number_in(text, start + 5, 1, 12)
        and load8(text, start + 7) == _MINUS
        and _number_in(text, start + 8, 1, 31)
        and _is_zone(text, start + 10, end)
    )


@helper
def _is_time(text, start, end):  # type: ignore[no-untyped-def]
    if end - start < 8 or not (
        _number_in(text, start, 0, 23)
        and load8(text, start + 2) == _COLON
        and _number_in(text, start + 3, 0, 59)
        and load8(text, start + 5) == _COLON
        and _number_in(text, start + 6, 0, 59)
    ):
        return False
    rest = _behind_fraction(text, start + 8, end)
    return rest >= 0 and _is_zone(text, rest, end)


@helper
def _is_valid(text, start, end, shape, low, high, scratch):  # type: ignore[no-untyped-def]
    if start == end:
        return False
    if shape == OTHER:  # for the caller to see
        return True
    if shape == INTEGER:
        return _is_integer(text, start, end, low, high)
    if shape == DECIMAL:
        return _is_number(text, start, end, False)
    if shape == FLOATING:
        return _is_floating(text, start, end)
    if shape == BOOLEAN:
        byte = load8(text, start)
        return (
            _is_word(text, start, end, _TRUE)
            or _is_word(text, start, end, _FALSE)
            or (end - start == 1 and (byte == _ZERO or byte == _ZERO + 1))
        )
    if shape == DATE:
        return _is_date(text, start, end)
    if shape == TIME:
        return _is_time(text, start, end)
    return _is_date_time(text, start, end, scratch, shape == STAMP)


@njit(cache=True, nogil=True)
def valued(cells, datatype, wanted, seed, odd, found):  # type: ignore[no-untyped-def]
    """The ids of literals with one datatype, and, of those that have one, where their texts are in `out`.

    `datatype` is (shape, low, high, its name as a word or 0, the text behind the lexical form). If they are
    not wanted, their ids are 1, and they have no texts."""
    text, starts, ends = cells
    shape, low, high, name, behind = datatype
    ids, out, begins, out_ends = found
    to, closing, size = out.ctypes.data, behind.ctypes.data, np.int64(behind.shape[0] - PADDING)
    room = np.zeros(32, np.uint8)
    scratch = room.ctypes.data
    at = np.int64(0)
    for row in range(starts.shape[0]):
        ids[row] = 0
        begins[row] = out_ends[row] = _MISSING
        if starts[row] == _MISSING or odd[row]:
            continue
        start, end = stripped(text, starts[row], ends[row])
        inline = typed_id(text, start, end, name)
        if inline != 0:
            ids[row] = inline
            continue
        if not _is_valid(text, start, end, shape, low, high, scratch):
            odd[row] = True
            continue
        ids[row] = 1
        if wanted:
            begins[row] = at
            store8(to, at, _QUOTE)
            at = copied(text, start, end, to, at + 1)
            at = copied(closing, 0, size, to, at)
            out_ends[row] = at
            ids[row] = identity_of(to, begins[row], at, seed)
