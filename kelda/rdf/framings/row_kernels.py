"""Kernels: where rows of CSV and lines end, as `RowSplitter` and `LineSplitter` find them."""

from __future__ import annotations

from numba import njit

from kelda.rdf.byte_masks import WIDTH, among, first_bit

# Why it stops: so many rows were wanted, or the next one does not fit; the text ends; or here something is
# for the splitter to judge.
FULL, MORE, UNSURE = range(3)

_LF, _QUOTE = 10, 34

_line_feed_or_quote = among((_LF, _LF), (_QUOTE, _QUOTE))


@njit(cache=True, nogil=True)
def _next(text, at):  # type: ignore[no-untyped-def]
    """Where the next line feed or quote is, or the end."""
    size, address = text.shape[0], text.ctypes.data
    while at + WIDTH <= size:
        mask = _line_feed_or_quote(address, at)
        if mask != 0:
            return at + first_bit(mask)
        at += WIDTH
    while at < size and text[at] != _LF and text[at] != _QUOTE:
        at += 1
    return at


@njit(cache=True, nogil=True)
def _closes(text, at):  # type: ignore[no-untyped-def]
    """The position behind the quote that closes the text that begins here; -1 if there is none."""
    while at < text.shape[0]:
        if text[at] == _QUOTE:
            if at + 1 == text.shape[0] or text[at + 1] != _QUOTE:
                return at + 1
            at += 1
        at += 1
    return -1


@njit(cache=True, nogil=True)
def whole_rows(text, start, delimiter, most, until, longest, at_end):  # type: ignore[no-untyped-def]
    """(where they end, how many they are, why it stops) of the whole rows from `start` on: at most so many,
    and, but for the first, none that ends behind `until`."""
    size = text.shape[0]
    count = 0
    while count < most:
        at = start
        if start == size:
            return start, count, FULL if at_end else MORE
        while at < size and (text[at] == 32 or 9 <= text[at] <= 13) and text[at] != _LF:
            at += 1
        if at == size or text[at] == _LF:  # a blank line
            return start, count, FULL if count > 0 else UNSURE
        at = start
        end = 0
        while end == 0:
            at = _next(text, at)
            if at == size:
                if not at_end:
                    return start, count, MORE
                end = size
            elif text[at] == _LF:
                end = at + 1
            elif at > start and text[at - 1] != delimiter:
                at += 1
            else:
                at = _closes(text, at + 1)
                if at < 0 or at - start > longest:
                    return start, count, UNSURE
                if at == size and not at_end:
                    return start, count, MORE
        if end - start > longest:
            return start, count, UNSURE
        if end > until and count > 0:
            return start, count, FULL
        start = end
        count += 1
    return start, count, FULL


@njit(cache=True, nogil=True)
def whole_lines(text, start, most, longest, at_end):  # type: ignore[no-untyped-def]
    """The same of lines."""
    size = text.shape[0]
    count = 0
    while count < most:
        at = start
        while at < size and text[at] != _LF:
            at = _next(text, at + (text[at] == _QUOTE))
        if at == size and (not at_end or start == size):
            return start, count, MORE
        end = min(at + 1, size)
        if end - start > longest:
            return start, count, UNSURE
        start = end
        count += 1
    return start, count, FULL
