"""Kernel: lines of JSON-LD that have a known shape, as ids.

A shape is the text of a document but for its values: pieces of text with holes between them. A line has the
shape if the pieces stand in it, byte for byte, and each hole has a value of its kind: then it is as valid as
the document that the shape was learned from, and says the same triples, with the terms that its own values
make. What values may be in a hole, and which terms they make, say the hole's columns. What is not sure leaves
the line to the framing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kelda.rdf.byte_masks import WIDTH, move
from kelda.rdf.columnar.json_text_kernels import (
    COLON,
    LF,
    MINUS,
    QUOTE,
    blank_line_ends,
    feed_behind,
    number_at,
    skip_blanks,
    string_at,
    unescaped,
)
from kelda.rdf.hash_kernels import helper, identity_of, load8, store8
from kelda.rdf.keyset_kernels import has
from kelda.rdf.ntriples_kernels import DATETIME, _datetime, _string, _typed, iri_at
from kelda.rdf.skim_kernels import _same
from kelda.rdf.times import FIRST_MS, LAST_MS

# Columns of the shapes: the first piece; the first hole, and how many there are (there is one piece more);
# the first quad, and how many there are.
PIECE, HOLE, HOLES, QUAD, QUADS = range(5)

# Columns of the holes: what values they take, and what those become; of a literal the datatype and the text
# behind the closing quote, twice for numbers: of whole ones, and of others; whether whole ones are written as
# doubles too; and the rules by which a text becomes an IRI.
KIND, ROLE = range(2)
TYPE, SUFFIX, SUFFIX_END, TYPE_2, SUFFIX_2, SUFFIX_2_END, ALWAYS_DOUBLE, RULE, RULE_END = range(2, 11)
STRING, NUMBER = 0, 1
SILENT, LITERAL, IRI = 0, 1, 2
PLAIN = 1  # the type of a string without datatype and language; others are words as `_typed` has them, or 0

# Columns of the rules: values that begin so (with all up to the colon, and two slashes behind that; nothing:
# a name without colon) become the base and the rest of the value.
BEGIN, BEGIN_END, BASE, BASE_END = range(4)

# Parts of quads: a constant, a hole or a blank node, with its number.
CONSTANT, OF_HOLE, BLANK = 0, 1 << 32, 2 << 32
_PART, _NUMBER = 3 << 32, (1 << 32) - 1

# Times of shapes: their mode, and the latest that is always there.
UNTIMED, TIMED, NEVER = 0, 1, 2

UNKNOWN = -1  # the line has no shape that is known
MOST_DIGITS = 15

_PLUS, _DOT, _SLASH, _ZERO, _NINE, _LESS, _GREATER = 43, 46, 47, 48, 57, 60, 62
_NO_TIME = np.int64(-(2**63))
_YEAR_ONE = FIRST_MS


# For what takes arrays, allocates nothing and keeps nothing: references to them are not counted.
_uncounted = njit(cache=True, nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False)


class Shapes(NamedTuple):
    """All shapes that are known, as laid out above, and the terms of the contexts, by their hashes."""

    shapes: NDArray[np.int64]
    pieces: NDArray[np.int64]
    holes: NDArray[np.int64]
    rules: NDArray[np.int64]
    quads: NDArray[np.int64]
    texts: NDArray[np.uint8]
    constants: NDArray[np.int64]
    terms: NDArray[np.int64]


class Wanted(NamedTuple):
    """Of quads, whether somebody asks for them; of holes, whether their ids are needed, and whether they are
    times; the times of shapes."""

    quads: NDArray[np.bool_]
    holes: NDArray[np.bool_]
    times: NDArray[np.bool_]
    shapes: NDArray[np.int64]


class Lines(NamedTuple):
    """Where lines begin; of each its shape, and its time."""

    begins: NDArray[np.int64]
    shape: NDArray[np.int64]
    time: NDArray[np.int64]


class Out(NamedTuple):
    """Quads: s, p, o, g, and the number of each among all; where in the arena their terms stand (as
    `Dictionary.add_rows` wants it)."""

    columns: NDArray[np.int64]
    spans: NDArray[np.int32]
    arena: NDArray[np.uint8]


@njit(cache=True, nogil=True)
def split(buf, size, begins, numbers):  # type: ignore[no-untyped-def]
    """Where the lines of `buf[:size]` begin that are not blank, and their numbers from 0; how many there are.
    The last line ends with a line feed."""
    text = buf.ctypes.data
    at, line, count = 0, 0, 0
    while at < size:
        end = blank_line_ends(text, at)
        if end < 0:
            begins[count], numbers[count] = at, line
            count += 1
            end = feed_behind(text, at)
        at = end + 1
        line += 1
    return count


@helper
def _copied(text, start, end, out, at):  # type: ignore[no-untyped-def]
    """Write a span to `out` + `at`, and up to `WIDTH` bytes behind it; where it ends."""
    size = end - start
    for i in range(0, size, WIDTH):
        move(text, start + i, out, at + i)
    return at + size


@_uncounted
def _fits(text, start, shape, known, values):  # type: ignore[no-untyped-def]
    """Whether the line at `start` has a shape; if so, where the values of its holes begin and end, and
    whether they have escapes, is in `values`."""
    texts = known.texts.ctypes.data
    piece, hole = known.shapes[shape, PIECE], known.shapes[shape, HOLE]
    count = known.shapes[shape, HOLES]
    i = start
    for k in range(count + 1):
        begin, size = known.pieces[piece + k, 0], known.pieces[piece + k, 1] - known.pieces[piece + k, 0]
        if not _same(text, i, texts, begin, size):
            return False
        i += size
        if k == count:
            break
        kind = known.holes[hole + k, KIND]
        end, escaped = i, False
        if kind == STRING:
            end, escaped = string_at(text, i - 1)
        else:
            end = number_at(text, i)
        if end < 0:
            return False
        values[0, k], values[1, k], values[2, k] = i, end, escaped
        i = end
    return load8(text, skip_blanks(text, i)) == LF


@_uncounted
def _begins(text, start, size, texts, rule):  # type: ignore[no-untyped-def]
    if rule[BEGIN_END] - rule[BEGIN] != size:
        return False
    same = True
    for k in range(size):
        same = same and load8(text, start + k) == load8(texts, rule[BEGIN] + k)
    return same


@_uncounted
def _iri(text, start, end, hole, known, out, at):  # type: ignore[no-untyped-def]
    """Write the IRI that a value becomes to `out` + `at`; where it ends, -1 when unsure."""
    texts = known.texts.ctypes.data
    colon = start
    named = True  # a name without colon
    while colon < end and load8(text, colon) != COLON:
        c = load8(text, colon)
        letter = 97 <= c | 32 <= 122 or _ZERO <= c <= _NINE or c in (95, MINUS)
        named = named and (letter or (c == _SLASH and colon > start))
        colon += 1
    size = 0
    if colon < end:
        size = colon + 1 - start
        if size == 1:
            return -1
        if end - colon > 2 and load8(text, colon + 1) == _SLASH and load8(text, colon + 2) == _SLASH:
            size += 2
    elif not named or start == end:
        return -1
    if has(known.terms, 0, known.terms.shape[0] - 1, identity_of(text, start, end, np.uint64(0))):
        return -1
    for k in range(hole[RULE], hole[RULE_END]):
        rule = known.rules[k]
        if _begins(text, start, size, texts, rule):
            first = at
            store8(out, at, _LESS)
            at = _copied(texts, rule[BASE], rule[BASE_END], out, at + 1)
            at = _copied(text, start + size, end, out, at)
            store8(out, at, _GREATER)
            return at + 1 if iri_at(out, first) == at + 1 else -1
    return -1


@helper
def _number_text(text, start, end, always_double, out, at):  # type: ignore[no-untyped-def]
    """Write a number as JSON-LD has it to `out` + `at`: (where it ends, whether it is a double); -1 when
    unsure: with an exponent, many digits, or as -0."""
    negative = load8(text, start) == MINUS
    first = start + 1 if negative else start
    point = first
    while point < end and load8(text, point) != _DOT:
        if load8(text, point) > _NINE:
            return -1, False
        point += 1
    last = end
    for i in range(point + 1, end):
        if load8(text, i) > _NINE:
            return -1, False
    if end - first > MOST_DIGITS + 1:
        return -1, False
    if load8(text, first) == _ZERO:
        first += 1  # a zero before the point is no digit of the number
    while last > point + 1 and load8(text, last - 1) == _ZERO:
        last -= 1
    if last == point + 1:
        last = point
    zero = first == last
    if zero and negative:
        return -1, False
    if negative:
        store8(out, at, MINUS)
        at += 1
    double = last > point or always_double
    if not double:
        if zero:
            store8(out, at, _ZERO)
            return at + 1, False
        for i in range(first, last):
            store8(out, at, load8(text, i))
            at += 1
        return at, False
    exponent = point - first - 1
    if zero:
        first, last, exponent = start, start + 1, 0  # the digit 0
    elif first == point:  # 0.00x
        first += 1
        while load8(text, first) == _ZERO:
            first += 1
            exponent -= 1
    elif last == point:
        while load8(text, last - 1) == _ZERO:
            last -= 1
    store8(out, at, load8(text, first))
    store8(out, at + 1, _DOT)
    at += 2
    fraction = at
    for i in range(first + 1, last):
        if i != point:
            store8(out, at, load8(text, i))
            at += 1
    if at == fraction:
        store8(out, at, _ZERO)
        at += 1
    store8(out, at, 69)
    at += 1
    if exponent < 0:
        store8(out, at, MINUS)
        at += 1
        exponent = -exponent
    return _decimal(exponent, out, at), True


@helper
def _decimal(value, out, at):  # type: ignore[no-untyped-def]
    """Write a number that is not negative; where it ends."""
    power = np.int64(1)
    while value // power >= 10:
        power *= 10
    while power > 0:
        store8(out, at, _ZERO + value // power % 10)
        at += 1
        power //= 10
    return at


@helper
def _time(text, start, end):  # type: ignore[no-untyped-def]
    """The milliseconds that the text of a literal says; `_NO_TIME` when unsure."""
    i = start
    if i < end and load8(text, i) in (_PLUS, MINUS):
        i += 1
    if 0 < end - i <= 18:
        value = np.int64(0)
        for k in range(i, end):
            c = load8(text, k)
            if c < _ZERO or c > _NINE:
                value = _NO_TIME
                break
            value = 10 * value + c - _ZERO
        if value != _NO_TIME:
            if load8(text, start) == MINUS:
                value = -value
            return value if FIRST_MS <= value <= LAST_MS else _NO_TIME
    inline = _datetime(text, start, end)
    if inline == 0 or (inline >> 58) & 31 != DATETIME:
        return _NO_TIME
    value = inline & ((1 << 58) - 1)
    zone = value & 127
    offset = (zone - 58) * (15 * 60_000) if zone > 1 else 0
    return (value >> 9) + _YEAR_ONE - offset


@_uncounted
def _literal(text, start, end, escaped, kind, hole, known, out, at):  # type: ignore[no-untyped-def]
    """Write the literal that a value becomes to `out` + `at`: (where it ends, -1 when unsure; where it
    closes; its inline id, or 0)."""
    unsure = (-1, at, np.int64(0))
    datatype, suffix, suffix_end = hole[TYPE], hole[SUFFIX], hole[SUFFIX_END]
    store8(out, at, QUOTE)
    if kind == NUMBER:
        close, double = _number_text(text, start, end, hole[ALWAYS_DOUBLE] != 0, out, at + 1)
        if close < 0:
            return unsure
        if double:
            datatype, suffix, suffix_end = hole[TYPE_2], hole[SUFFIX_2], hole[SUFFIX_2_END]
    elif escaped:
        close = unescaped(text, start, end, out, at + 1, True)
    else:
        close = _copied(text, start, end, out, at + 1)
    store8(out, close, QUOTE)
    inline = np.int64(0)
    if datatype == PLAIN:
        inline = _string(out, at + 1, close)
    elif datatype != 0:
        inline = _typed(out, at + 1, close, np.uint64(datatype))
    return _copied(known.texts.ctypes.data, suffix, suffix_end, out, close + 1), close, inline


@helper
def _blank(scope, ordinal, number, out, at):  # type: ignore[no-untyped-def]
    """Write the blank node of a record to `out` + `at`; where it ends."""
    store8(out, at, 95)
    store8(out, at + 1, COLON)
    at = _copied(scope.ctypes.data, 0, scope.shape[0] - WIDTH, out, at + 2)
    at = _decimal(ordinal, out, at)
    store8(out, at, 98)
    return _decimal(number, out, at + 1)


@_uncounted
def _terms(text, shape, known, wanted, values, terms, seed, out, at):  # type: ignore[no-untyped-def]
    """Make the terms of a line's values, in `terms`: id, begin, end. (Where they end in `out`, -1 when
    unsure; the time of the line)."""
    hole = known.shapes[shape, HOLE]
    time = wanted.shapes[shape, 1]
    for k in range(known.shapes[shape, HOLES]):
        columns = known.holes[hole + k]
        kind, role = columns[KIND], columns[ROLE]
        start, end, escaped = values[0, k], values[1, k], values[2, k] != 0
        terms[0, k] = 0
        if role == SILENT:
            continue
        needed, timed = wanted.holes[hole + k], wanted.times[hole + k]
        inline = np.int64(0)
        if role == IRI:
            if escaped:
                return -1, time
            term_end = _iri(text, start, end, columns, known, out, at)
        elif kind != STRING or needed or timed:
            term_end, close, inline = _literal(text, start, end, escaped, kind, columns, known, out, at)
            if timed and term_end >= 0:
                moment = _time(out, at + 1, close)
                if moment == _NO_TIME:
                    return -1, time
                time = max(time, moment)
        else:
            continue
        if term_end < 0:
            return -1, time
        if inline != 0:
            terms[0, k] = inline
        elif needed:
            terms[0, k] = identity_of(out, at, term_end, seed)
            terms[1, k], terms[2, k] = at, term_end
            at = term_end
    return at, time


@njit(cache=True, nogil=True)
def read(buf, known, wanted, lines, first, last, ordinal, scope, seed, result, state):  # type: ignore[no-untyped-def]
    """Read lines `first` to `last`. The first has record number `ordinal`, and blank nodes have labels that
    begin with `scope` (with `WIDTH` bytes behind it). In `state` are the rows so far, the rows that somebody
    asks for, and how much of the arena is in use."""
    text = buf.ctypes.data
    known, wanted, lines, result = Shapes(*known), Wanted(*wanted), Lines(*lines), Out(*result)
    columns, spans, arena = result.columns, result.spans, result.arena.ctypes.data
    most = 1
    for shape in range(known.shapes.shape[0]):
        most = max(most, known.shapes[shape, HOLES], known.shapes[shape, QUADS] * 3)
    values, terms = np.zeros((3, most), np.int64), np.zeros((3, most), np.int64)
    blank_ids = np.zeros(most, np.int64)
    followed = np.zeros(known.shapes.shape[0] + 1, np.int64)
    rows, found, used = state[0], state[1], state[2]
    before = known.shapes.shape[0]
    for line in range(first, last):
        start = lines.begins[line]
        lines.shape[line] = UNKNOWN
        guess = followed[before]
        for attempt in range(known.shapes.shape[0]):
            # The one that followed the last time comes first, instead of shape 0.
            shape = guess if attempt == 0 else 0 if attempt == guess else attempt
            if wanted.shapes[shape, 0] == NEVER or not _fits(text, start, shape, known, values):
                continue
            at, time = _terms(text, shape, known, wanted, values, terms, seed, arena, used)
            if at < 0:
                continue
            used = at
            lines.shape[line], lines.time[line] = shape, time
            followed[before] = before = shape
            break
        shape = lines.shape[line]
        if shape < 0:
            continue
        blank_ids[:] = 0
        quad = known.shapes[shape, QUAD]
        for k in range(known.shapes[shape, QUADS]):
            if wanted.quads[quad + k]:
                for part in range(4):
                    what = known.quads[quad + k, part]
                    number = what & _NUMBER
                    id, begin, end = np.int64(0), np.int64(0), np.int64(0)
                    if what & _PART == CONSTANT:
                        id = known.constants[number]
                    elif what & _PART == OF_HOLE:
                        id, begin, end = terms[0, number], terms[1, number], terms[2, number]
                        terms[2, number] = 0  # it is known from now on
                    else:
                        if blank_ids[number] == 0:
                            begin, end = used, _blank(scope, ordinal + line - first, number, arena, used)
                            blank_ids[number] = identity_of(arena, begin, end, seed)
                            used = end
                        id = blank_ids[number]
                    columns[part, found] = id
                    spans[2 * part, found], spans[2 * part + 1, found] = begin, end
                columns[4, found] = rows + k
                found += 1
        rows += known.shapes[shape, QUADS]
    state[0], state[1], state[2] = rows, found, used
