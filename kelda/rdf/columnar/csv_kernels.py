"""Kernels: where the rows of a table are, and their cells, as `framings/tabular.py` finds them.

A row ends at a line break outside quotes. A quote opens a quoted cell only where a cell starts; one that
never closes opens nothing, and the row is broken. Texts have a line feed and padding behind them.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from kelda.rdf.hash_kernels import helper, load8, store8
from kelda.rdf.ntriples_kernels import _utf8 as is_utf8

TOO_LONG = -1  # instead of a number of rows: one has more bytes than it may have

# Of each row: where it begins and ends, and how many line feeds are before it.
BEGIN, END, LINE = range(3)
ROW_SIZE = 3

_LF, _CR, _QUOTE = 10, 13, 34


@helper
def _is_space(byte):  # type: ignore[no-untyped-def]
    """As Python has it for bytes."""
    return byte == 32 or 9 <= byte <= 13


@helper
def _is_all_space(text, start, end):  # type: ignore[no-untyped-def]
    while start < end and _is_space(load8(text, start)):
        start += 1
    return start == end


@helper
def _line_ends(text, at, size):  # type: ignore[no-untyped-def]
    """The position behind the next line feed, or the end."""
    while at < size and load8(text, at) != _LF:
        at += 1
    return min(at + 1, size)


@helper
def _closes(text, at, size):  # type: ignore[no-untyped-def]
    """Where the quote is that closes a cell whose text begins here, -1 if there is none; whether there are
    doubled ones before it."""
    doubled = False
    while at < size:
        if load8(text, at) == _QUOTE:
            if at + 1 == size or load8(text, at + 1) != _QUOTE:
                return at, doubled
            doubled = True
            at += 1
        at += 1
    return np.int64(-1), doubled


@helper
def _undoubled(text, start, end):  # type: ignore[no-untyped-def]
    """Write a cell without the doubled quotes in its place; where it ends then."""
    at = i = start
    while i < end:
        c = load8(text, i)
        store8(text, at, c)
        at += 1
        i += 2 if c == _QUOTE else 1
    return at


@njit(cache=True, nogil=True)
def rows_of(buffer, size, delimiter, places, longest, rows, starts, ends, odd):  # type: ignore[no-untyped-def]
    """Find the rows of the first `size` bytes of a buffer that are not blank; how many, or TOO_LONG.

    Cell c of a row goes into line `places[c]` of `starts` and `ends`, if that is not -1. Rows are odd where
    they have other than that many cells, are not UTF-8, or have quotes or carriage returns that may be wrong.
    Cells that stand in quotes are written anew without them, so the text is another then."""
    text = buffer.ctypes.data
    count = start = line = np.int64(0)
    while start < size:
        at = cell = start
        column = 0
        begin, lines = start, np.int64(0)
        wrong = foreign = zero = quotes = False
        end = np.int64(0)  # of the row, when it is found
        while end == 0:
            close, cell_end = np.int64(-1), np.int64(-1)
            if at < size and load8(text, at) == _QUOTE:
                quotes = True
                close, doubled = _closes(text, at + 1, size)
                if close < 0:
                    wrong, end = True, _line_ends(text, at, size)
                    break
                if close + 1 - start > longest:
                    return TOO_LONG
                for i in range(at + 1, close):
                    c = load8(text, i)
                    lines += c == _LF
                    foreign |= c >= 128
                    zero |= c == 0
                cell, cell_end = at + 1, close
                at = close + 1
            returns = np.int64(-1)  # where carriage returns began that reach up to here
            while at < size:
                c = load8(text, at)
                if c in (delimiter, _LF):
                    break
                if c == _CR:
                    if returns < 0:
                        returns = at
                else:
                    wrong |= returns >= 0 or close >= 0
                    returns = np.int64(-1)
                    foreign |= c >= 128
                    zero |= c == 0
                at += 1
            is_last = at >= size or load8(text, at) == _LF
            wrong |= returns >= 0 and not is_last
            if close < 0:
                cell_end = returns if returns >= 0 else at
            elif doubled:
                cell_end = ~cell_end  # until the row was looked at
            if column < places.shape[0] and places[column] >= 0:
                starts[places[column], count], ends[places[column], count] = cell, cell_end
            column += 1
            at += 1
            cell = at
            if is_last:
                end = min(at, size)
        if end - start > longest:
            return TOO_LONG
        if not quotes and _is_all_space(text, start, end):
            start = end
            line += 1
            continue
        rows[BEGIN, count], rows[END, count], rows[LINE, count] = begin, end, line
        wrong |= column != places.shape[0] or (quotes and zero)
        odd[count] = wrong or (foreign and not is_utf8(text, start, end, False))
        for place in range(starts.shape[0] if quotes and not odd[count] else 0):
            if ends[place, count] < 0:
                ends[place, count] = _undoubled(text, starts[place, count], ~ends[place, count])
        count += 1
        line += lines + (load8(text, end - 1) == _LF)
        start = end
    return count
