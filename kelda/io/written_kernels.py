"""Kernels: rows of numbered texts, one after another in one array of bytes.

What stands before a row is a *lead*: fixed parts, with something of the row between each two (`fields`). All
texts have eight readable bytes behind the last one, since they are copied eight bytes at a time.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np
from numba import njit

from kelda.rdf.arrow_kernels import write_datetime
from kelda.rdf.hash_kernels import PADDING, helper, inlined, load64, store8, store64
from kelda.rdf.times import FIRST_MS

TIME, SIGN, INSTANT = range(3)  # fields: as a number, as + or -, as a dateTime

LONGEST = 32  # bytes that a field cannot reach

_MINUS, _PLUS, _ZERO, _SPACE = 45, 43, 48, 32
_UTC = 1  # the zone of an inline dateTime


@inlined
def _put(out, at, text, start, end):
    """Copy the bytes from `start` to `end`; where they end. Up to seven bytes behind are written, too."""
    to = at + end - start
    while at < to:
        store64(out, at, load64(text, start))
        start += 8
        at += 8
    return to


@helper
def _number(out, at, number):
    rest = np.uint64(number)
    if number < 0:
        store8(out, at, _MINUS)
        at += 1
        rest = np.uint64(-number)
    size, more = 1, rest
    while more >= np.uint64(10):
        more //= np.uint64(10)
        size += 1
    for place in range(at + size - 1, at - 1, -1):
        store8(out, place, np.int64(_ZERO + np.int64(rest % np.uint64(10))))
        rest //= np.uint64(10)
    return at + size


@njit(cache=True, nogil=True)
def _instant(array, at, ms):
    """The dateTime in UTC, with as few decimals as it needs."""
    places = 0 if ms % 1000 == 0 else 1 if ms % 100 == 0 else 2 if ms % 10 == 0 else 3
    return write_datetime(array, at, (ms - FIRST_MS) << 9 | places << 7 | _UTC)


@njit(cache=True, nogil=True)
def _lead(array, at, lead, time, sign):
    parts, ends, fields = lead
    out, text = array.ctypes.data, parts.ctypes.data
    at = _put(out, at, text, 0, ends[0])
    for i in range(len(fields)):
        if fields[i] == TIME:
            at = _number(out, at, time)
        elif fields[i] == SIGN:
            store8(out, at, _PLUS if sign > 0 else _MINUS)
            at += 1
        else:
            at = _instant(array, at, time)
        at = _put(out, at, text, ends[i], ends[i + 1])
    return at


@njit(cache=True, nogil=True)
def _lead_room(lead):
    _, ends, fields = lead
    return ends[-1] + LONGEST * len(fields)


@njit(cache=True, nogil=True)
def rows(rows, cells, texts, labels, lead, omitted, tail):
    """Each row as its lead, its cells with their labels before them, and the tail.

    `rows` are (time, sign, which): at that time column `which` of `cells` is said, numbers of `texts` by
    variable. If something is `omitted`, cells without a text are, with their labels, and of the first label
    that many bytes.
    """
    time, sign, which = rows
    array, starts, ends = texts
    text = array.ctypes.data
    label_array, label_ends = labels
    label, tail_text = label_array.ctypes.data, tail.ctypes.data
    width, size = cells.shape[0], len(tail) - PADDING
    room = np.zeros(cells.shape[1], np.int64)  # for the cells of each
    for c in range(width):
        for i in range(cells.shape[1]):
            number = cells[c, i]
            if number != 0 or omitted == 0:
                room[i] += label_ends[c + 1] - label_ends[c] + ends[number] - starts[number]
    total = len(time) * (_lead_room(lead) + size) + PADDING
    for i in which:
        total += room[i]
    out = np.empty(total, np.uint8)
    to = out.ctypes.data
    at, begun, ended = 0, 0, 0  # where the last lead is
    for row in range(len(time)):
        if row > 0 and time[row] == time[row - 1] and sign[row] == sign[row - 1]:
            begun, ended, at = at, at + ended - begun, _put(to, at, to, begun, ended)
        else:
            begun, at = at, _lead(out, at, lead, time[row], sign[row])
            ended = at
        skip, i = omitted, which[row]
        for c in range(width):
            number = cells[c, i]
            if number != 0 or omitted == 0:
                at = _put(to, at, label, label_ends[c] + skip, label_ends[c + 1])
                at = _put(to, at, text, starts[number], ends[number])
                skip = 0
        at = _put(to, at, tail_text, 0, size)
    return out[:at]


@njit(cache=True, nogil=True)
def statements(answers, cells, texts, lead, graph, dot, tail):
    """(bytes, where each answer ends): each answer as its lead, its statements, and the tail.

    `answers` are (time, sign, ends): of each answer, and where its columns of `cells` end, which are numbers
    of `texts`: subject, predicate, object and maybe a graph. Where there is none, `graph` is, a lead of
    nothing or with the space before it. A statement ends with `dot`.
    """
    time, sign, last = answers
    array, starts, ends = texts
    text, dot_text, tail_text = array.ctypes.data, dot.ctypes.data, tail.ctypes.data
    dot_size, tail_size = len(dot) - PADDING, len(tail) - PADDING
    total = len(time) * (_lead_room(lead) + tail_size) + PADDING
    total += cells.shape[1] * (len(cells) + dot_size + _lead_room(graph))
    for c in range(len(cells)):
        for i in range(cells.shape[1]):
            total += ends[cells[c, i]] - starts[cells[c, i]]
    out, offsets = np.empty(total, np.uint8), np.zeros(len(time) + 1, np.int64)
    to = out.ctypes.data
    at, row = 0, 0
    for answer in range(len(time)):
        at = _lead(out, at, lead, time[answer], sign[answer])
        while row < last[answer]:
            for c in range(len(cells)):
                number = cells[c, row]
                if c == 3 and number == 0:
                    continue
                if c > 0:
                    store8(to, at, _SPACE)
                    at += 1
                at = _put(to, at, text, starts[number], ends[number])
            if len(cells) == 3 or cells[3, row] == 0:
                at = _lead(out, at, graph, time[answer], sign[answer])
            at = _put(to, at, dot_text, 0, dot_size)
            row += 1
        at = _put(to, at, tail_text, 0, tail_size)
        offsets[answer + 1] = at
    return out[:at], offsets
