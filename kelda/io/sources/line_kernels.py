"""Where lines end, in arrays of bytes."""

from __future__ import annotations

from numba import njit

from kelda.rdf.byte_masks import WIDTH, among, bits

LINE_FEED = 10
BLOCK = 4096

_line_feeds = among((LINE_FEED, LINE_FEED))


@njit(cache=True, nogil=True)
def count(text):  # type: ignore[no-untyped-def]
    """How many lines end."""
    address = text.ctypes.data
    found = 0
    for block in range(text.shape[0] // WIDTH):
        found += bits(_line_feeds(address, block * WIDTH))
    for i in range(text.shape[0] // WIDTH * WIDTH, text.shape[0]):
        found += text[i] == LINE_FEED
    return found


@njit(cache=True, nogil=True)
def first_long(text, longest):  # type: ignore[no-untyped-def]
    """Where the first line begins that has more than `longest` bytes with its line feed; -1 if none has."""
    start = 0
    for i in range(text.shape[0]):
        if text[i] == LINE_FEED:
            if i + 1 - start > longest:
                return start
            start = i + 1
    return start if text.shape[0] - start > longest else -1


@njit(cache=True, nogil=True)
def behind(text, number):  # type: ignore[no-untyped-def]
    """Where that many lines have ended; there must be as many."""
    start = 0
    while True:
        block = count(text[start : start + BLOCK])
        if block >= number:
            break
        number -= block
        start += BLOCK
    while number:
        number -= text[start] == LINE_FEED
        start += 1
    return start
