"""Where lines end, in arrays of bytes."""

from __future__ import annotations

from numba import njit

LINE_FEED = 10
BLOCK = 4096


@njit(cache=True, nogil=True)
def count(text):  # type: ignore[no-untyped-def]
    """How many lines end."""
    found = 0
    for i in range(text.shape[0]):
        found += text[i] == LINE_FEED
    return found


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
