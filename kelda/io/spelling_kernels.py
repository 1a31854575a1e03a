"""Kernels: canonical N-Triples texts spelled as another format has them."""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np
from numba import njit

from kelda.rdf.arrow_kernels import BLANK, IRI, LONGEST, STRING, TAGGED, TYPED, write_lexical
from kelda.rdf.hash_kernels import PADDING
from kelda.rdf.ids import Kind

MARK = 64  # bytes that what stands around a term cannot reach
WIDE = 8  # nor can what stands for one byte of it
ROOM = 4 * MARK + LONGEST + PADDING  # around and for a term of no text of its own

_STRING = int(Kind.STRING)

_LF, _CR, _QUOTE, _MINUS, _LESS, _AT, _BACKSLASH = 10, 13, 34, 45, 60, 64, 92


@njit(cache=True, nogil=True)
def spelled(texts, offsets, inline, spelling):
    """(bytes, starts, ends, odd): canonical texts in a spelling (`kelda.io.spelling`), then inline ids, and
    padding at the end. Texts that are `odd`, triple terms and those with characters that are none, are for
    somebody else; they are empty here."""
    endings, ending_sizes = spelling[-2:]
    marks, mark_sizes = spelling[3:5]
    hashed = len(offsets) - 1
    size = hashed + len(inline)
    starts, ends = np.zeros(size, np.int64), np.zeros(size, np.int64)
    odd = np.zeros(size, np.bool_)
    out = np.empty(2 * (offsets[hashed] - offsets[0]) + 2 * MARK * size + ROOM, np.uint8)
    canonical = np.empty(LONGEST, np.uint8)
    at = 0
    for i in range(size):
        need = at + ROOM
        if i < hashed:
            need += WIDE * (offsets[i + 1] - offsets[i])
        if need > len(out):
            grown = np.empty(2 * need, np.uint8)
            grown[:at] = out[:at]
            out = grown
        if i < hashed:
            starts[i], ends[i] = _spelled(out, at, texts, offsets[i], offsets[i + 1], spelling)
        else:
            id = inline[i - hashed]
            kind, value = id >> 58 & 31, id & (1 << 58) - 1
            if kind == _STRING:
                canonical[0] = _QUOTE
                end = write_lexical(canonical, 1, kind, value, True)
                canonical[end] = _QUOTE
                starts[i], ends[i] = _spelled(out, at, canonical, 0, end + 1, spelling)
            else:
                starts[i] = at
                at = _mark(out, at, marks[TYPED, 0], mark_sizes[TYPED, 0])
                at = write_lexical(out, at, kind, value, False)
                ends[i] = _mark(out, at, endings[kind], ending_sizes[kind])
        if starts[i] < 0:
            starts[i], ends[i], odd[i] = at, at, True
        at = ends[i]
    out[at : at + PADDING] = 0
    return out[: at + PADDING], starts, ends, odd


@njit(cache=True, nogil=True)
def _spelled(out, at, texts, start, end, spelling):
    """Write one text at `at`, or one byte behind; from where to where it is, or -1, -1."""
    escapes, sizes, special, marks, mark_sizes, second, plain = spelling[:7]
    kind, begin, close, rest, last = _parts(texts, start, end)
    if kind < 0:
        return np.int64(-1), np.int64(-1)
    if second == 0 and kind >= STRING:
        kind = STRING
    table, quoted = 0 if kind == IRI else 1, False
    first = at
    at = _mark(out, at + 1, marks[kind, 0], mark_sizes[kind, 0])  # a quote may come before it
    j = begin
    while j < close:
        byte = texts[j]
        if plain[table, byte]:
            out[at] = byte
            at += 1
            j += 1
            continue
        if byte == _BACKSLASH and kind >= STRING:
            j += 1
            if j == close:
                return np.int64(-1), np.int64(-1)
            byte = texts[j]
            byte = _LF if byte == 110 else _CR if byte == 114 else byte
        elif byte == 0xEF and j + 2 < close and texts[j + 1] == 0xBF and texts[j + 2] >= 0xBE:
            return np.int64(-1), np.int64(-1)
        quoted |= special[byte]
        at = _mark(out, at, escapes[table, byte], sizes[table, byte])
        j += 1
    if kind in (TAGGED, TYPED):
        at = _mark(out, at, marks[kind, 1], mark_sizes[kind, 1])
        for j in range(rest, last):
            byte = texts[j]
            if plain[0, byte] and byte != _MINUS:
                out[at] = byte
                at += 1
                continue
            if second == 1 and kind == TAGGED and byte == _MINUS and j + 1 < last and texts[j + 1] == _MINUS:
                break
            at = _mark(out, at, escapes[0, byte], sizes[0, byte])
    at = _mark(out, at, marks[kind, 2], mark_sizes[kind, 2])
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
def _mark(out, at, mark, size):
    for k in range(size):
        out[at + k] = mark[k]
    return at + size
