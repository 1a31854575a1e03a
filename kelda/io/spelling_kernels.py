"""Kernels: canonical N-Triples texts spelled as another format has them."""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np
from numba import njit

from kelda.rdf.arrow_kernels import BLANK, IRI, STRING, TAGGED, TYPED

MARK = 64  # bytes that what stands around a term cannot reach
WIDE = 8  # nor can what stands for one byte of it

_LF, _CR, _QUOTE, _MINUS, _LESS, _AT, _BACKSLASH = 10, 13, 34, 45, 60, 64, 92


@njit(cache=True, nogil=True)
def spelled(texts, offsets, spelling):
    """(bytes, starts, ends, odd): each canonical text in a spelling (`kelda.io.spelling`). Those that are
    `odd`, triple terms and characters that are none, are for somebody else; theirs are empty."""
    size = len(offsets) - 1
    starts, ends = np.zeros(size, np.int64), np.zeros(size, np.int64)
    odd = np.zeros(size, np.bool_)
    out = np.empty(2 * (offsets[size] - offsets[0]) + MARK * size + 4 * MARK, np.uint8)
    at = 0
    for i in range(size):
        need = at + WIDE * (offsets[i + 1] - offsets[i]) + 4 * MARK
        if need > len(out):
            grown = np.empty(2 * need, np.uint8)
            grown[:at] = out[:at]
            out = grown
        starts[i], ends[i] = _spelled(out, at, texts, offsets[i], offsets[i + 1], spelling)
        if starts[i] < 0:
            starts[i], ends[i], odd[i] = at, at, True
        at = ends[i]
    return out[:at], starts, ends, odd


@njit(cache=True, nogil=True)
def _spelled(out, at, texts, start, end, spelling):
    """Write one text at `at`, or one byte behind; from where to where it is, or -1, -1."""
    escapes, sizes, special, marks, mark_sizes, second = spelling
    kind, begin, close, rest, last = _parts(texts, start, end)
    if kind < 0:
        return np.int64(-1), np.int64(-1)
    if second == 0 and kind >= STRING:
        kind = STRING
    table, quoted = 0 if kind == IRI else 1, False
    first = at
    at = _mark(out, at + 1, marks, mark_sizes, kind, 0)  # a quote may come before it
    j = begin
    while j < close:
        byte = texts[j]
        if byte == _BACKSLASH and kind >= STRING:
            j += 1
            if j == close:
                return np.int64(-1), np.int64(-1)
            byte = texts[j]
            byte = _LF if byte == 110 else _CR if byte == 114 else byte
        elif byte == 0xEF and j + 2 < close and texts[j + 1] == 0xBF and texts[j + 2] >= 0xBE:
            return np.int64(-1), np.int64(-1)
        quoted |= special[byte]
        if sizes[table, byte] == 1:
            out[at] = byte
            at += 1
        else:
            for k in range(sizes[table, byte]):
                out[at + k] = escapes[table, byte, k]
            at += sizes[table, byte]
        j += 1
    if kind in (TAGGED, TYPED):
        at = _mark(out, at, marks, mark_sizes, kind, 1)
        for j in range(rest, last):
            byte = texts[j]
            if second == 1 and kind == TAGGED and byte == _MINUS and j + 1 < last and texts[j + 1] == _MINUS:
                break
            for k in range(sizes[0, byte]):
                out[at + k] = escapes[0, byte, k]
            at += sizes[0, byte]
    at = _mark(out, at, marks, mark_sizes, kind, 2)
    if quoted:
        out[first] = out[at] = _QUOTE
        return first, at + 1
    return first + 1, at


@njit(cache=True, nogil=True)
def _parts(texts, start, end):
    """(kind or -1, where its value begins and ends, where its language or datatype does)."""
    if end - start < 2:
        return -1, start, end, end, end
    first = texts[start]
    if first == _LESS:
        if texts[start + 1] == _LESS:
            return -1, start, end, end, end
        return IRI, start + 1, end - 1, end, end
    if first != _QUOTE:
        return BLANK, start + 2, end, end, end
    close = end - 1
    while close > start and texts[close] != _QUOTE:
        close -= 1
    if close == start:
        return -1, start, end, end, end
    if close == end - 1:
        return STRING, start + 1, close, end, end
    if texts[close + 1] == _AT:
        return TAGGED, start + 1, close, close + 2, end
    return TYPED, start + 1, close, close + 4, end - 1


@njit(cache=True, nogil=True)
def _mark(out, at, marks, sizes, kind, place):
    for k in range(sizes[kind, place]):
        out[at + k] = marks[kind, place, k]
    return at + sizes[kind, place]
