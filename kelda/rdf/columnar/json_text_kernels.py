"""Kernels: strings and numbers of JSON, as `json.loads` takes them.

A text ends with a line feed, which no string or number contains, and has `WIDTH` readable bytes behind that:
so nothing here reads past it by more. What json.loads would not take, or `json_text` of the framings would
not, is -1.
"""

from __future__ import annotations

from kelda.rdf.byte_masks import WIDTH, among, first_bit
from kelda.rdf.hash_kernels import helper, inlined, load8, store8
from kelda.rdf.ntriples_kernels import _utf8

LF, SPACE, QUOTE, COMMA, MINUS, COLON, BACKSLASH = 10, 32, 34, 44, 45, 58, 92
_PLUS, _DOT, _SLASH, _ZERO, _NINE, _E, _U = 43, 46, 47, 48, 57, 69, 117

_feeds = among((LF, LF))
_special = among((QUOTE, QUOTE), (BACKSLASH, BACKSLASH), (0, 31), (128, 255))


@inlined
def skip_blanks(text, i):  # type: ignore[no-untyped-def]
    """Where the next byte is that is no blank on its line."""
    while load8(text, i) in (32, 9, 13):
        i += 1
    return i


@helper
def _hex(text, i):  # type: ignore[no-untyped-def]
    """The number that four hexadecimal digits spell; -1 if there is something else."""
    value = 0
    for at in range(i, i + 4):
        c = load8(text, at)
        if _ZERO <= c <= _NINE:
            digit = c - _ZERO
        elif 97 <= c <= 102 or 65 <= c <= 70:
            digit = (c | 32) - 87
        else:
            return -1
        value = value << 4 | digit
    return value


@helper
def _escape(text, i):  # type: ignore[no-untyped-def]
    """(the character, the position after it) of the escape at `i`; the position is -1 if it is none, or half
    of a surrogate pair."""
    c = load8(text, i + 1)
    if c in (QUOTE, BACKSLASH, _SLASH):
        return c, i + 2
    if c == 110:
        return 10, i + 2
    if c == 114:
        return 13, i + 2
    if c == 116:
        return 9, i + 2
    if c == 98:
        return 8, i + 2
    if c == 102:
        return 12, i + 2
    if c != _U:
        return 0, -1
    value = _hex(text, i + 2)
    if value < 0 or 0xDC00 <= value <= 0xDFFF:
        return 0, -1
    if value < 0xD800 or value > 0xDFFF:
        return value, i + 6
    if load8(text, i + 6) != BACKSLASH or load8(text, i + 7) != _U:
        return 0, -1
    low = _hex(text, i + 8)
    if low < 0xDC00 or low > 0xDFFF:
        return 0, -1
    return 0x10000 + ((value - 0xD800) << 10) + low - 0xDC00, i + 12


@inlined
def string_at(text, start):  # type: ignore[no-untyped-def]
    """(where the string that opens at `start` closes, whether there are escapes in it)."""
    i = start + 1
    foreign = escaped = False
    while True:
        mask = _special(text, i)
        if mask == 0:
            i += WIDTH
            continue
        i += first_bit(mask)
        c = load8(text, i)
        if c == QUOTE:
            break
        if c == BACKSLASH:
            escaped = True
            i = _escape(text, i)[1]
            if i < 0:
                return i, False
        elif c >= 128:
            foreign = True
            i += 1
            while load8(text, i) >= 128:
                i += 1
        else:
            return -1, False
    if foreign and not _utf8(text, start, i, False):
        return -1, False
    return i, escaped


@inlined
def _digits_end(text, i):  # type: ignore[no-untyped-def]
    while _ZERO <= load8(text, i) <= _NINE:
        i += 1
    return i


@inlined
def number_at(text, start):  # type: ignore[no-untyped-def]
    """The position after the number at `start`."""
    i = start + 1 if load8(text, start) == MINUS else start
    if load8(text, i) == _ZERO:
        i += 1
    else:
        first = i
        i = _digits_end(text, i)
        if i == first:
            return -1
    if load8(text, i) == _DOT:
        end = _digits_end(text, i + 1)
        if end == i + 1:
            return -1
        i = end
    if load8(text, i) | 32 == _E | 32:
        i += 2 if load8(text, i + 1) in (_PLUS, MINUS) else 1
        end = _digits_end(text, i)
        if end == i:
            return -1
        i = end
    return i


@helper
def unescaped(text, start, end, out, at, quoted):  # type: ignore[no-untyped-def]
    """Write what the inside of a string means to `out` + `at`, in UTF-8; where that ends. It may be written
    over itself, as it does not become longer. If it is to be `quoted`, the four characters that have escapes
    in canonical N-Triples have them there."""
    i = start
    while i < end:
        c = load8(text, i)
        if c != BACKSLASH:
            store8(out, at, c)
            at += 1
            i += 1
            continue
        c, i = _escape(text, i)
        if quoted and c in (QUOTE, BACKSLASH, 10, 13):
            store8(out, at, BACKSLASH)
            store8(out, at + 1, 110 if c == 10 else 114 if c == 13 else c)
            at += 2
        elif c < 0x80:
            store8(out, at, c)
            at += 1
        elif c < 0x800:
            store8(out, at, 0xC0 | c >> 6)
            store8(out, at + 1, 0x80 | c & 63)
            at += 2
        elif c < 0x10000:
            store8(out, at, 0xE0 | c >> 12)
            store8(out, at + 1, 0x80 | c >> 6 & 63)
            store8(out, at + 2, 0x80 | c & 63)
            at += 3
        else:
            store8(out, at, 0xF0 | c >> 18)
            store8(out, at + 1, 0x80 | c >> 12 & 63)
            store8(out, at + 2, 0x80 | c >> 6 & 63)
            store8(out, at + 3, 0x80 | c & 63)
            at += 4
    return at


@helper
def feed_behind(text, i):  # type: ignore[no-untyped-def]
    """Where the line ends that `i` is on."""
    mask = _feeds(text, i)
    while mask == 0:
        i += WIDTH
        mask = _feeds(text, i)
    return i + first_bit(mask)


@inlined
def blank_line_ends(text, i):  # type: ignore[no-untyped-def]
    """Where the line ends, if from `i` on there is nothing on it but what `bytes.isspace` takes for blanks;
    -1 if there is."""
    while load8(text, i) in (32, 9, 13, 11, 12):
        i += 1
    return i if load8(text, i) == LF else -1
