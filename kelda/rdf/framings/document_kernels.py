"""Kernel: lines of JSON-LD that are documents, and no context for those below."""

from __future__ import annotations

from numba import njit

from kelda.rdf.byte_masks import WIDTH, among, first_bit

# Why it stops: so many lines were wanted, or the next one does not fit; the text ends; or the next line is
# for the splitter to judge: it is blank, too long, or may be a context.
FULL, MORE, UNSURE = range(3)

_LF, _QUOTE, _COMMA, _COLON, _BACKSLASH = 10, 34, 44, 58, 92
_OPEN, _CLOSE, _OPEN_ARRAY, _CLOSE_ARRAY = 123, 125, 91, 93

_line_feed = among((_LF, _LF))


@njit(cache=True, nogil=True)
def _line_end(text, at):  # type: ignore[no-untyped-def]
    """The position behind the next line feed; 0 if there is none."""
    size, address = text.shape[0], text.ctypes.data
    while at + WIDTH <= size:
        mask = _line_feed(address, at)
        if mask != 0:
            return at + first_bit(mask) + 1
        at += WIDTH
    while at < size:
        if text[at] == _LF:
            return at + 1
        at += 1
    return 0


@njit(cache=True, nogil=True)
def _behind_blanks(text, at, end):  # type: ignore[no-untyped-def]
    while at < end and text[at] in (32, 9, 13, 11, 12, _LF):
        at += 1
    return at


@njit(cache=True, nogil=True)
def _string_end(text, at, end):  # type: ignore[no-untyped-def]
    """The position behind the string that begins at `at`; -1 if it has escapes or no end."""
    at += 1
    while at < end and text[at] != _QUOTE:
        if text[at] == _BACKSLASH:
            return -1
        at += 1
    return at + 1 if at < end else -1


@njit(cache=True, nogil=True)
def _is_context(text, at, end):  # type: ignore[no-untyped-def]
    """Whether the string from `at` to `end` is the name of a context."""
    name = b'"@context"'
    if end - at != len(name):
        return False
    same = True
    for i in range(len(name)):
        same = same and text[at + i] == name[i]
    return same


@njit(cache=True, nogil=True)
def _value_end(text, at, end):  # type: ignore[no-untyped-def]
    """The comma or the brace that ends the value of a member."""
    depth = 0
    quoted = False
    while at < end:
        c = text[at]
        if quoted:
            if c == _BACKSLASH:
                at += 1
            elif c == _QUOTE:
                quoted = False
        elif c == _QUOTE:
            quoted = True
        elif c in (_OPEN, _OPEN_ARRAY):
            depth += 1
        elif depth == 0 and c in (_COMMA, _CLOSE):
            return at
        elif c in (_CLOSE, _CLOSE_ARRAY):
            depth -= 1
        at += 1
    return end


@njit(cache=True, nogil=True)
def _may_be_context(text, start, end):  # type: ignore[no-untyped-def]
    """Whether all keys of the object on a line may be those of a context: so it is with few that are none."""
    at = _behind_blanks(text, start, end)
    if at == end or text[at] != _OPEN:
        return False
    at = _behind_blanks(text, at + 1, end)
    for _ in range(2):
        if at >= end or text[at] != _QUOTE:
            return False
        key_end = _string_end(text, at, end)
        if key_end < 0:
            return True
        if not _is_context(text, at, key_end):
            return False
        at = _behind_blanks(text, key_end, end)
        if at == end or text[at] != _COLON:
            return True
        at = _value_end(text, at + 1, end)
        if at == end or text[at] != _COMMA:
            return True
        at = _behind_blanks(text, at + 1, end)
    return True


@njit(cache=True, nogil=True)
def whole_documents(text, start, most, until, some, longest, at_end):  # type: ignore[no-untyped-def]
    """(where they end, how many they are, why it stops) of the documents from `start` on: at most so many,
    and, but for the first (unless there are `some` already), none that ends behind `until`."""
    size = text.shape[0]
    count = 0
    while count < most:
        if start == size:
            return start, count, FULL if at_end and (some or count > 0) else MORE
        end = _line_end(text, start)
        if end == 0:
            if not at_end:
                return start, count, MORE
            end = size
        blank = _behind_blanks(text, start, end) == end
        if blank or end - start > longest or _may_be_context(text, start, end):
            return start, count, UNSURE
        if end > until and (some or count > 0):
            return start, count, FULL
        start = end
        count += 1
    return start, count, FULL
