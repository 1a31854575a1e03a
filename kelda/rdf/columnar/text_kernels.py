"""Kernels: canonical texts of terms from cells, and what they are known by.

Texts are taken as addresses, as in `hash_kernels`: numba counts references to arrays at every call. Callers
make sure that what is written has room (`room`), and that behind every text there are `PADDING` bytes.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from kelda.rdf.hash_kernels import check_of, helper, identity_of, load8, load64, store8, store64
from kelda.rdf.ntriples_kernels import _string as short_string
from kelda.rdf.ntriples_kernels import iri_at

_MISSING = -1  # as in cells.py

# What a part of a template is, and how its text is put down: a literal part as it stands; the number of the
# record; a cell as it stands, percent-encoded, escaped, or as hexadecimal digits.
LITERAL, NUMBER, PLAIN, ENCODED, ESCAPED, HEX = range(6)
MOST = np.array([1, 0, 1, 3, 2, 2], np.int64)  # bytes that one byte becomes at most
DIGITS = 20  # of a number, at most

PART_HOW, PART_COLUMN, PART_BEGIN, PART_END = range(4)
PART_SIZE = 4

# What a text has to be before it is a term: nothing; an IRI, if that does not go without saying; a short
# string may be its own id.
ANY, IRI, STRING = 0, 1, 2

_LF, _CR, _QUOTE, _PERCENT, _ZERO, _BACKSLASH, _A = 10, 13, 34, 37, 48, 92, 65
_LOWER_A = 97


def _unreserved() -> np.ndarray:
    table = np.zeros(256, np.bool_)
    table[[byte for byte in range(128) if chr(byte).isalnum() or chr(byte) in "_.-~"]] = True
    return table


_UNRESERVED = _unreserved()
_EIGHT = np.int64(8)


@helper
def is_blank(byte):  # type: ignore[no-untyped-def]
    """Whether Python's `strip` takes away this ASCII character."""
    return 9 <= byte <= 13 or 28 <= byte <= 32


@helper
def _is_wide_blank(text, at):  # type: ignore[no-untyped-def]
    """Whether a character that is not ASCII, and that Python's `strip` takes away, is here."""
    first, second, third = load8(text, at), load8(text, at + 1), load8(text, at + 2)
    if first == 0xC2:
        return second in (0x85, 0xA0)
    if first == 0xE2:
        general = second == 0x80 and (third <= 0x8A or 0xA8 <= third <= 0xAF)
        return general or (second == 0x81 and third == 0x9F)
    return (first == 0xE1 and second == 0x9A and third == 0x80) or (
        first == 0xE3 and second == 0x80 and third == 0x80
    )


@helper
def copied(text, start, end, out, at):  # type: ignore[no-untyped-def]
    """Put a text down; where it ends. Up to seven bytes behind are written over."""
    i = start
    while i < end:
        store64(out, at + i - start, load64(text, i))
        i += _EIGHT
    return at + end - start


@helper
def _encoded(text, start, end, out, at):  # type: ignore[no-untyped-def]
    for i in range(start, end):
        c = load8(text, i)
        if _UNRESERVED[c]:
            store8(out, at, c)
            at += 1
        else:
            high, low = c >> 4, c & 15
            store8(out, at, _PERCENT)
            store8(out, at + 1, _ZERO + high if high < 10 else _A - 10 + high)
            store8(out, at + 2, _ZERO + low if low < 10 else _A - 10 + low)
            at += 3
    return at


@helper
def _escaped(text, start, end, out, at):  # type: ignore[no-untyped-def]
    for i in range(start, end):
        c = load8(text, i)
        if c in (_QUOTE, _BACKSLASH, _LF, _CR):
            store8(out, at, _BACKSLASH)
            at += 1
            c = 110 if c == _LF else 114 if c == _CR else c
        store8(out, at, c)
        at += 1
    return at


@helper
def _hex(text, start, end, out, at):  # type: ignore[no-untyped-def]
    for i in range(start, end):
        c = load8(text, i)
        high, low = c >> 4, c & 15
        store8(out, at, _ZERO + high if high < 10 else _LOWER_A - 10 + high)
        store8(out, at + 1, _ZERO + low if low < 10 else _LOWER_A - 10 + low)
        at += 2
    return at


@helper
def _number(number, out, at):  # type: ignore[no-untyped-def]
    digits, rest = 1, number
    while rest >= 10:
        rest //= 10
        digits += 1
    for i in range(digits - 1, -1, -1):
        store8(out, at + i, _ZERO + number % 10)
        number //= 10
    return at + digits


@njit(cache=True, nogil=True)
def present(texts, starts, ends, missing, offsets, odd):  # type: ignore[no-untyped-def]
    """Mark cells that are blank, or one of the texts that mean a missing value, as such. Rows with one that
    begins with a character outside ASCII that may be a blank are odd."""
    words = missing.ctypes.data
    for column in range(starts.shape[0]):
        text = texts[column]
        for row in range(starts.shape[1]):
            start, end = starts[column, row], ends[column, row]
            if start == _MISSING or odd[row]:
                continue
            i = start
            while i < end and is_blank(load8(text, i)):
                i += 1
            if i == end:
                starts[column, row] = _MISSING
                continue
            if _is_wide_blank(text, i):
                odd[row] = True
                continue
            for word in range(offsets.shape[0] - 1):
                size = offsets[word + 1] - offsets[word]
                if end - start == size:
                    j = 0
                    while j < size and load8(text, start + j) == load8(words, offsets[word] + j):
                        j += 1
                    if j == size:
                        starts[column, row] = _MISSING
                        break


@njit(cache=True, nogil=True)
def joined(parts, literals, cells, number, odd, out, begins, ends):  # type: ignore[no-untyped-def]
    """Put down the text of a template for each row, one behind another; where each begins (MISSING: a value
    is) and ends. Of odd rows none."""
    texts, cell_starts, cell_ends = cells
    words, to = literals.ctypes.data, out.ctypes.data
    at = np.int64(0)
    for row in range(odd.shape[0]):
        begins[row] = ends[row] = _MISSING
        if odd[row]:
            continue
        is_there = True
        for k in range(parts.shape[0]):
            if parts[k, PART_COLUMN] >= 0 and cell_starts[parts[k, PART_COLUMN], row] == _MISSING:
                is_there = False
        if not is_there:
            continue
        begins[row] = at
        for k in range(parts.shape[0]):
            how, column = parts[k, PART_HOW], parts[k, PART_COLUMN]
            if how == LITERAL:
                at = copied(words, parts[k, PART_BEGIN], parts[k, PART_END], to, at)
                continue
            if how == NUMBER:
                at = _number(number + row, to, at)
                continue
            text, start, end = texts[column], cell_starts[column, row], cell_ends[column, row]
            if how == PLAIN:
                at = copied(text, start, end, to, at)
            elif how == ENCODED:
                at = _encoded(text, start, end, to, at)
            elif how == ESCAPED:
                at = _escaped(text, start, end, to, at)
            else:
                at = _hex(text, start, end, to, at)
        ends[row] = at
    return at


@njit(cache=True, nogil=True)
def known_by(text, begins, ends, what, seed, odd, ids):  # type: ignore[no-untyped-def]
    """The ids of terms by their canonical texts; 0 where there is none. Rows with what is no IRI, or may be
    none, are odd."""
    address = text.ctypes.data
    for row in range(begins.shape[0]):
        begin, end = begins[row], ends[row]
        ids[row] = 0
        if begin == _MISSING or odd[row]:
            continue
        if what == IRI and iri_at(address, begin) != end:
            odd[row] = True
            continue
        identity = short_string(address, begin + 1, end - 1) if what == STRING else np.int64(0)
        ids[row] = identity if identity != 0 else identity_of(address, begin, end, seed)


@njit(cache=True, nogil=True)
def hashed(cells, seed, ids, checks):  # type: ignore[no-untyped-def]
    """Two hashes of each cell that is there."""
    text, begins, ends = cells
    for row in range(begins.shape[0]):
        if begins[row] != _MISSING:
            ids[row] = identity_of(text, begins[row], ends[row], seed)
            checks[row] = check_of(text, begins[row], ends[row], seed)
