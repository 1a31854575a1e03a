"""Kernels: times from cells, as `TimeColumn` of `framings/mapping.py` and `framings/eventtime.py` read them.

What is not surely a time makes the row odd.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from kelda.rdf.columnar.found import NO_TIME
from kelda.rdf.columnar.value_kernels import stripped
from kelda.rdf.hash_kernels import helper, load8
from kelda.rdf.ntriples_kernels import _DAYS_BEFORE_MONTH, _DAYS_IN_MONTH, DATETIME
from kelda.rdf.ntriples_kernels import _digits as digits_of
from kelda.rdf.times import FIRST_MS, LAST_MS

_MISSING = -1  # as in cells.py

# How times are written: ISO 8601; numbers of milliseconds or seconds; ISO or whole milliseconds, as times in
# literals are; or step by step.
ISO, MILLISECONDS, SECONDS, LITERAL, STEPS = range(5)

# The steps of a pattern, with how many digits they have at least and at most: a character, or a part of the
# time. A zone is Z or ±hh:mm or ±hhmm.
CHARACTER, YEAR, MONTH, DAY, HOUR, MINUTE, SECOND, FRACTION, ZONE = range(9)
STEP_SIZE = 3

_PLUS, _MINUS, _DOT, _ZERO, _NINE, _COLON, _SPACE, _T, _Z = 43, 45, 46, 48, 57, 58, 32, 84, 90
_NONE = np.int64(NO_TIME)
_MINUTE = np.int64(60_000)
_DATE_TIME = np.int64(-(2**63) + (DATETIME << 58))


@helper
def _is_digit(byte):  # type: ignore[no-untyped-def]
    return _ZERO <= byte <= _NINE


@helper
def _run(text, start, end, most):  # type: ignore[no-untyped-def]
    """The position behind the digits at `start`, or behind so many of them."""
    i = start
    while i < end and i - start < most and _is_digit(load8(text, i)):
        i += 1
    return i


@helper
def _moment(year, month, day, hour, minute, second, millis):  # type: ignore[no-untyped-def]
    """Milliseconds since 1970; none for what is not in the calendar."""
    if year < 1 or year > 9999 or month < 1 or month > 12 or day < 1:
        return _NONE
    if hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 59:
        return _NONE
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if day > _DAYS_IN_MONTH[month] + (1 if leap and month == 2 else 0):
        return _NONE
    past = year - 1
    days = 365 * past + past // 4 - past // 100 + past // 400 + _DAYS_BEFORE_MONTH[month] + day - 1
    if leap and month > 2:
        days += 1
    return FIRST_MS + (((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + millis


@helper
def _millis(text, start, end):  # type: ignore[no-untyped-def]
    """The first three digits of a fraction."""
    millis = np.int64(0)
    for i in range(start, start + 3):
        millis = 10 * millis + (load8(text, i) - _ZERO if i < end else 0)
    return millis


@helper
def _offset(text, start, end, short):  # type: ignore[no-untyped-def]
    """(position behind it, milliseconds) of the zone at `start`, Z or ±hh:mm or, if that may be, ±hhmm; the
    position is -1 when unsure."""
    nowhere = np.int64(-1)
    if start < end and load8(text, start) == _Z:
        return start + 1, np.int64(0)
    if end - start < 5 or (load8(text, start) != _PLUS and load8(text, start) != _MINUS):
        return nowhere, np.int64(0)
    hours = digits_of(text, start + 1, start + 3)
    at = start + 3
    if load8(text, at) == _COLON:
        at += 1
    elif not short:
        return nowhere, np.int64(0)
    if end - at < 2:
        return nowhere, np.int64(0)
    minutes = digits_of(text, at, at + 2)
    if hours < 0 or hours > 23 or minutes < 0 or minutes > 59:
        return nowhere, np.int64(0)
    offset = (60 * hours + minutes) * _MINUTE
    return at + 2, -offset if load8(text, start) == _MINUS else offset


@helper
def _iso(text, start, end):  # type: ignore[no-untyped-def]
    """(milliseconds, whether a zone is named) of yyyy-mm-dd([T ]hh:mm(:ss(.f{1,9})?)?(Z|±hh:mm)?)?."""
    if end - start < 10 or load8(text, start + 4) != _MINUS or load8(text, start + 7) != _MINUS:
        return _NONE, False
    year = digits_of(text, start, start + 4)
    month = digits_of(text, start + 5, start + 7)
    day = digits_of(text, start + 8, start + 10)
    hour = minute = second = millis = np.int64(0)
    at = start + 10
    if at < end:
        if end - at < 6 or (load8(text, at) != _T and load8(text, at) != _SPACE):
            return _NONE, False
        hour, minute = digits_of(text, at + 1, at + 3), digits_of(text, at + 4, at + 6)
        if load8(text, at + 3) != _COLON:
            return _NONE, False
        at += 6
        if end - at >= 3 and load8(text, at) == _COLON:
            second = digits_of(text, at + 1, at + 3)
            at += 3
            if at < end and load8(text, at) == _DOT:
                behind = _run(text, at + 1, end, 10)
                if behind == at + 1 or behind == at + 11:
                    return _NONE, False
                millis = _millis(text, at + 1, behind)
                at = behind
    moment = _moment(year, month, day, hour, minute, second, millis)
    if at == end or moment == _NONE:
        return moment, False
    at, offset = _offset(text, at, end, False)
    return (moment - offset if at == end else _NONE), True


@helper
def _number(text, start, end, seconds):  # type: ignore[no-untyped-def]
    """[+-]?digits(.digits)?, in milliseconds; at most 18 digits before the point."""
    first = load8(text, start) if start < end else np.int64(0)
    begin = start + 1 if first in (_MINUS, _PLUS) else start
    behind = _run(text, begin, end, 19)
    if behind == begin or behind - begin > (15 if seconds else 18):
        return _NONE
    ms = digits_of(text, begin, behind)
    fraction = np.int64(0)
    if behind < end:
        if load8(text, behind) != _DOT or behind + 1 == end or _run(text, behind + 1, end, end) != end:
            return _NONE
        fraction = _millis(text, behind + 1, end)
    if seconds:
        ms = 1000 * ms + fraction
    return -ms if first == _MINUS else ms


@helper
def _whole(text, start, end):  # type: ignore[no-untyped-def]
    """Whether it is [+-]?digits."""
    first = load8(text, start) if start < end else np.int64(0)
    begin = start + 1 if first in (_MINUS, _PLUS) else start
    return begin < end and _run(text, begin, end, end) == end


@helper
def _by_steps(text, start, end, steps):  # type: ignore[no-untyped-def]
    """(milliseconds, whether a zone is named) of a text that is as the steps have it."""
    year, month, day = np.int64(1900), np.int64(1), np.int64(1)
    hour = minute = second = millis = offset = np.int64(0)
    named = False
    at = start
    for k in range(steps.shape[0]):
        step = steps[k, 0]
        if step == CHARACTER:
            if at >= end or load8(text, at) != steps[k, 1]:
                return _NONE, False
            at += 1
            continue
        if step == ZONE:
            at, offset = _offset(text, at, end, True)
            if at < 0:
                return _NONE, False
            named = True
            continue
        behind = _run(text, at, end, steps[k, 2])
        if behind - at < steps[k, 1]:
            return _NONE, False
        if step == FRACTION:
            millis = _millis(text, at, behind)
        else:
            value = digits_of(text, at, behind)
            if step == YEAR:
                year = value
            elif step == MONTH:
                month = value
            elif step == DAY:
                day = value
            elif step == HOUR:
                hour = value
            elif step == MINUTE:
                minute = value
            else:
                second = value
        at = behind
    moment = _moment(year, month, day, hour, minute, second, millis)
    if at != end or moment == _NONE:
        return _NONE, False
    return moment - offset, named


@njit(cache=True, nogil=True)
def moments(cells, way, steps, odd, ms, local):  # type: ignore[no-untyped-def]
    """The time of each row, NO_TIME where it has no value; and whether it is that of a clock somewhere, as it
    names no zone."""
    text, starts, ends = cells
    for row in range(starts.shape[0]):
        ms[row], local[row] = _NONE, False
        if starts[row] == _MISSING or odd[row]:
            continue
        start, end = stripped(text, starts[row], ends[row])
        named = True
        if way in (MILLISECONDS, SECONDS):
            moment = _number(text, start, end, way == SECONDS)
        elif way == LITERAL and _whole(text, start, end):
            moment = _number(text, start, end, False)
        elif way == STEPS:
            moment, named = _by_steps(text, start, end, steps)
        else:
            moment, named = _iso(text, start, end)
        if moment < FIRST_MS or moment > LAST_MS:
            odd[row] = True
            continue
        ms[row], local[row] = moment, not named


@njit(cache=True, nogil=True)
def date_times(ms, ids):  # type: ignore[no-untyped-def]
    """The ids of times as `times.ms_to_iso` writes them; 0 where there is none."""
    for row in range(ms.shape[0]):
        ids[row] = 0
        if ms[row] == _NONE:
            continue
        fraction = ms[row] % 1000
        places = 0 if fraction == 0 else 1 if fraction % 100 == 0 else 2 if fraction % 10 == 0 else 3
        ids[row] = _DATE_TIME | (ms[row] - FIRST_MS) << 9 | places << 7 | 1
