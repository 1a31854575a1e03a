"""Kernels: from ids and canonical N-Triples texts to the texts of a column."""

from __future__ import annotations

import numpy as np
from numba import njit

from kelda.rdf.ids import Kind
from kelda.rdf.times import FIRST_MS

_INTEGER, _BOOLEAN, _DATETIME, _STRING = (
    int(k) for k in (Kind.INTEGER, Kind.BOOLEAN, Kind.DATETIME, Kind.STRING)
)
_DOUBLE_E, _FLOAT_E = int(Kind.DOUBLE_E), int(Kind.FLOAT_E)

# What a term is, by its canonical text.
IRI, BLANK, TRIPLE, STRING, TAGGED, TYPED = range(6)

LONGEST = 96  # bytes that the text of an inline id cannot reach

_LF, _CR, _QUOTE, _PLUS, _MINUS, _DOT, _ZERO = 10, 13, 34, 43, 45, 46, 48
_COLON, _LESS, _AT, _E, _T, _Z, _BACKSLASH = 58, 60, 64, 69, 84, 90, 92
_TRUE, _FALSE = (np.frombuffer(word, np.uint8) for word in (b"true", b"false"))


def _endings() -> list[bytes]:
    """What stands behind the lexical form, by kind."""
    names = {kind: kind.name.removesuffix("_E").lower() for kind in Kind}
    names[Kind.DATETIME] = "dateTime"
    typed = {k: f'"^^<http://www.w3.org/2001/XMLSchema#{name}>' for k, name in names.items()}
    typed[Kind.STRING] = '"'
    return [typed[Kind(k)].encode() if k in typed else b"" for k in range(32)]


_ENDINGS = np.array([np.frombuffer(e.ljust(LONGEST), np.uint8) for e in _endings()])
_ENDING_SIZES = np.array([len(e) for e in _endings()], np.int64)


@njit(cache=True, nogil=True)
def inline_texts(ids, full):  # type: ignore[no-untyped-def]
    """(bytes, offsets): of each inline id its lexical form, or, if `full`, its N-Triples text."""
    offsets = np.zeros(len(ids) + 1, np.int64)
    out = np.empty(16 * len(ids) + LONGEST, np.uint8)
    at = 0
    for i in range(len(ids)):
        if at + LONGEST > len(out):
            grown = np.empty(2 * len(out) + LONGEST, np.uint8)
            grown[:at] = out[:at]
            out = grown
        kind = ids[i] >> 58 & 31
        if full:
            out[at] = _QUOTE
            at += 1
        at = write_lexical(out, at, kind, ids[i] & (1 << 58) - 1, full)
        if full:
            for j in range(_ENDING_SIZES[kind]):
                out[at + j] = _ENDINGS[kind, j]
            at += _ENDING_SIZES[kind]
        offsets[i + 1] = at
    return out[:at], offsets


@njit(cache=True, nogil=True)
def write_lexical(out, at, kind, value, escaped):  # type: ignore[no-untyped-def]
    """Write the lexical form at `at`; where it ends."""
    if kind == _STRING:
        return _string(out, at, value, escaped)
    if kind == _BOOLEAN:
        word = _TRUE if value else _FALSE
        out[at : at + len(word)] = word
        return at + len(word)
    if kind == _DATETIME:
        return write_datetime(out, at, value)
    if kind == _INTEGER:
        return _number(out, at, value << 6 >> 6, 0)
    if kind in (_DOUBLE_E, _FLOAT_E):
        at = _number(out, at, value << 16 >> 16, value >> 48 & 15)
        out[at] = _E
        return _number(out, at + 1, value << 6 >> 58, 0)
    return _number(out, at, value << 10 >> 10, value >> 54)


@njit(cache=True, nogil=True)
def _string(out, at, value, escaped):  # type: ignore[no-untyped-def]
    for shift in range(48, -1, -8):
        byte = value >> shift & 255
        if byte == 0:
            break
        if escaped and byte in (_QUOTE, _BACKSLASH, _LF, _CR):
            out[at] = _BACKSLASH
            at += 1
            byte = 110 if byte == _LF else 114 if byte == _CR else byte
        out[at] = byte
        at += 1
    return at


@njit(cache=True, nogil=True)
def _number(out, at, mantissa, scale):  # type: ignore[no-untyped-def]
    """The mantissa with so many of its digits behind a point."""
    if mantissa < 0:
        out[at] = _MINUS
        at += 1
        mantissa = -mantissa
    digits, rest = 1, mantissa
    while rest >= 10:
        rest //= 10
        digits += 1
    digits = max(digits, scale + 1)
    end = at + digits + (1 if scale else 0)
    place = end
    for i in range(digits):
        if scale and i == scale:
            place -= 1
            out[place] = _DOT
        place -= 1
        out[place] = _ZERO + mantissa % 10
        mantissa //= 10
    return end


@njit(cache=True, nogil=True)
def _padded(out, at, number, width):  # type: ignore[no-untyped-def]
    for i in range(width - 1, -1, -1):
        out[at + i] = _ZERO + number % 10
        number //= 10
    return at + width


@njit(cache=True, nogil=True)
def write_datetime(out, at, value):  # type: ignore[no-untyped-def]
    clock, places, zone = value >> 9, value >> 7 & 3, value & 127
    ms = clock + FIRST_MS
    day, ms = ms // 86_400_000, ms % 86_400_000
    # The calendar, in years that begin in March and spans of 400 of them.
    day += 719_468
    span, day = day // 146_097, day % 146_097
    year = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5
    month = month + 3 if month < 10 else month - 9
    at = _padded(out, at, year + 400 * span + (1 if month <= 2 else 0), 4)
    out[at] = _MINUS
    at = _padded(out, at + 1, month, 2)
    out[at] = _MINUS
    at = _padded(out, at + 1, day + 1, 2)
    out[at] = _T
    at = _padded(out, at + 1, ms // 3_600_000, 2)
    out[at] = _COLON
    at = _padded(out, at + 1, ms // 60_000 % 60, 2)
    out[at] = _COLON
    at = _padded(out, at + 1, ms // 1000 % 60, 2)
    if places:
        out[at] = _DOT
        at = _padded(out, at + 1, ms % 1000 // 10 ** (3 - places), places)
    if zone == 1:
        out[at] = _Z
        return at + 1
    if zone > 1:
        offset = 15 * (zone - 58)
        out[at] = _MINUS if offset < 0 else _PLUS
        at = _padded(out, at + 1, abs(offset) // 60, 2)
        out[at] = _COLON
        at = _padded(out, at + 1, abs(offset) % 60, 2)
    return at


@njit(cache=True, nogil=True)
def taken_apart(texts, offsets):  # type: ignore[no-untyped-def]
    """Of each canonical N-Triples text (what, types, bytes, offsets): what kind of term it is, where its
    datatype's IRI begins in `texts` (if TYPED; it ends one byte before the text does), and its bare text,
    without brackets, quotes and escapes. Triple terms stay as they are."""
    size = len(offsets) - 1
    what, types = np.empty(size, np.int8), np.zeros(size, np.int64)
    out, ends = np.empty(offsets[size] - offsets[0], np.uint8), np.zeros(size + 1, np.int64)
    at = 0
    for i in range(size):
        start, end = offsets[i], offsets[i + 1]
        first = texts[start]
        if first == _QUOTE:
            close = end - 1
            while texts[close] != _QUOTE:
                close -= 1
            if close == end - 1:
                what[i] = STRING
            elif texts[close + 1] == _AT:
                what[i] = TAGGED
            else:
                what[i], types[i] = TYPED, close + 4
            j = start + 1
            while j < close:
                byte = texts[j]
                if byte == _BACKSLASH:
                    j += 1
                    byte = texts[j]
                    byte = _LF if byte == 110 else _CR if byte == 114 else byte
                out[at] = byte
                at += 1
                j += 1
        else:
            if first != _LESS:
                what[i] = BLANK
            elif texts[start + 1] == _LESS:
                what[i] = TRIPLE
            else:
                what[i] = IRI
                start, end = start + 1, end - 1
            for j in range(start, end):
                out[at] = texts[j]
                at += 1
        ends[i + 1] = at
    return what, types, out[:at], ends
