"""Kernels: from N-Triples text to ids, for one canonical term and for a whole buffer of lines.

`parse` reads the common forms only, and those exactly as pyoxigraph does. Whatever it is not sure about
(escapes that canonical text would not have, unusual IRIs and language tags, triple terms, and all that is
wrong) it marks as *slow* and leaves to pyoxigraph, so the kernel never has to judge a line invalid.

Canonical text escapes four characters (quote, backslash, line feed, carriage return) and no others, has
no `^^xsd:string`, and language tags in lower case. The layout of inline ids is described in `ids.py`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kelda.rdf.byte_masks import WIDTH, among, first_bit, not_among
from kelda.rdf.hash_kernels import (
    COLLISION,
    DONE,
    NEEDS_ROOM,
    PADDING,
    Tables,
    has_room,
    hash_span,
    helper,
    intern,
    load8,
    load64,
    store8,
)
from kelda.rdf.times import FIRST_MS, LAST_MS

# Tags of inline ids, 5 bits; `ids.Kind` gives them names.
INTEGER, BOOLEAN, DECIMAL, DATETIME, STRING = 1, 2, 3, 4, 5
DOUBLE, DOUBLE_E, FLOAT, FLOAT_E = 6, 7, 8, 9

_TOP = np.int64(-(2**63))

# Exactly representable, and so is every quotient's rounding: see ids.numeric_values.
_DECIMAL_LIMIT = 10**15
_DOUBLE_LIMIT = 2**53
_DOUBLE_E_LIMIT = 2**47
_FLOAT_LIMIT = 2**24

# What `parse` keeps in its state between calls.
POSITION, LINE, ROWS, SLOW, LINE_SIZE, CLASH_ENTRY, CLASH_START, CLASH_END = range(8)
STATE_SIZE = 8


class Syntax(NamedTuple):
    """Whether statements may have a graph, and whether lines begin with a time."""

    quads: bool
    timed: bool


class Found(NamedTuple):
    """What `parse` writes: the rows s, p, o, g, t, line; and of slow lines their row, and where they begin
    and end."""

    columns: NDArray[np.int64]
    slow: NDArray[np.int64]


_TAB, _LF, _CR, _SPACE, _QUOTE, _HASH, _PERCENT, _MINUS, _PLUS, _DOT = 9, 10, 13, 32, 34, 35, 37, 45, 43, 46
_SLASH, _ZERO, _NINE, _COLON, _LESS, _GREATER, _QUESTION, _AT = 47, 48, 57, 58, 60, 62, 63, 64
_BACKSLASH, _CARET, _UNDERSCORE = 92, 94, 95


def _word(text: bytes) -> np.uint64:
    return np.uint64(int.from_bytes(text.ljust(8, b"\0"), "little"))


_HTTP, _HTTPS = _word(b"<http://"), _word(b"<https:/")
_XSD = b"http://www.w3.org/2001/XMLSchema#"
_XSD_0, _XSD_1, _XSD_2, _XSD_3 = (_word(_XSD[i : i + 8]) for i in range(0, 32, 8))
_RDF = b"http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_RDF_2, _RDF_3, _RDF_4 = (_word(_RDF[i : i + 8]) for i in range(16, 40, 8))
_NAME_INTEGER, _NAME_BOOLEAN, _NAME_DECIMAL = _word(b"integer"), _word(b"boolean"), _word(b"decimal")
_NAME_DATETIME, _NAME_STRING = _word(b"dateTime"), _word(b"string")
_NAME_DOUBLE, _NAME_FLOAT = _word(b"double"), _word(b"float")
_TRUE, _FALSE = _word(b"true"), _word(b"false")
_ONE, _EIGHT = np.uint64(1), np.uint64(8)

not_common_in_iris = not_among((38, 59), (63, 90), (97, 122), (95, 95))
not_in_hosts = not_among((45, 46), (48, 57), (65, 90), (97, 122), (95, 95), (126, 126))
special_in_quotes = among((_QUOTE, _QUOTE), (_BACKSLASH, _BACKSLASH), (_LF, _LF), (_CR, _CR), (128, 255))

# Bits of _CLASS: what an ASCII byte may be part of.
_IRI, _LABEL, _ALPHA, _DIGIT, _HEX = 1, 2, 4, 8, 16


def _classes() -> np.ndarray:
    table = np.zeros(256, np.uint8)
    for byte in range(128):
        c = chr(byte)
        alpha, digit = c.isalpha(), c.isdigit()
        table[byte] = (
            _IRI * (alpha or digit or c in "-._~!$&'()*+,;=:@/?")
            + _LABEL * (alpha or digit or c in "_-")
            + _ALPHA * alpha
            + _DIGIT * digit
            + _HEX * (c in "0123456789abcdefABCDEF")
        )
    return table


_CLASS = _classes()
_DAYS_BEFORE_MONTH = np.array([0, 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334], np.int64)
_DAYS_IN_MONTH = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], np.int64)


@helper
def _is(text, i, classes):  # type: ignore[no-untyped-def]
    return _CLASS[np.uint8(load8(text, i))] & classes != 0


# ------------------------------------------------------------------------------ inline values


@helper
def _inline(tag, value):  # type: ignore[no-untyped-def]
    return _TOP | np.int64(tag) << 58 | (np.int64(value) & ((1 << 58) - 1))


@helper
def _short_word(text, start, end):  # type: ignore[no-untyped-def]
    """The up to eight bytes of a span as one word; 0 for a longer span."""
    if end - start > 8 or end == start:
        return np.uint64(0)
    word = load64(text, start)
    if end - start < 8:
        word &= (_ONE << (_EIGHT * np.uint64(end - start))) - _ONE
    return word


@helper
def _string(text, start, end):  # type: ignore[no-untyped-def]
    """Inline id of the string with this canonical text; 0 where it has more than 7 bytes, or a NUL.

    The first byte is the highest, so ids of short strings sort as the strings do.
    """
    if end - start > 14:
        return np.int64(0)
    value = np.int64(0)
    size = 0
    i = start
    while i < end:
        c = load8(text, i)
        if c == _BACKSLASH:
            i += 1
            c = load8(text, i)
            if c == 110:
                c = _LF
            elif c == 114:
                c = _CR
        if c == 0 or size == 7:
            return np.int64(0)
        value = value << 8 | c
        size += 1
        i += 1
    return _inline(STRING, value << 8 * (7 - size))


@helper
def _digits(text, start, end):  # type: ignore[no-untyped-def]
    """The number that a span of digits spells; -1 if there is something else in it."""
    value = np.int64(0)
    for i in range(start, end):
        digit = load8(text, i) - _ZERO
        if digit < 0 or digit > 9:
            return np.int64(-1)
        value = 10 * value + digit
    return value


@helper
def _integer(text, start, end):  # type: ignore[no-untyped-def]
    negative = start < end and load8(text, start) == _MINUS
    first = start + 1 if negative else start
    if first == end or end - first > 18:
        return np.int64(0)
    if load8(text, first) == _ZERO and (negative or end - first > 1):
        return np.int64(0)
    value = _digits(text, first, end)
    if value < 0 or value >= 1 << 57:
        return np.int64(0)
    return _inline(INTEGER, -value if negative else value)


@helper
def _number(text, start, end, plain, scientific, limit, scientific_limit):  # type: ignore[no-untyped-def]
    """Inline id of -?digits(.digits)? under tag `plain`, or of -?d(.digits)?E-?digits under `scientific`.

    0 where the text has another form, or does not come back from (mantissa, scale, exponent) as it is.
    """
    negative = start < end and load8(text, start) == _MINUS
    i = start + 1 if negative else start
    first = i
    mantissa = np.int64(0)
    digits = 0
    point = np.int64(-1)
    while i < end:
        c = load8(text, i)
        if _ZERO <= c <= _NINE:
            mantissa = 10 * mantissa + c - _ZERO
            digits += 1
            if digits > 17:
                return np.int64(0)
        elif c == _DOT and point < 0:
            point = i
        else:
            break
        i += 1
    whole = (point if point >= 0 else i) - first
    scale = i - point - 1 if point >= 0 else 0
    if whole == 0 or (point >= 0 and scale == 0) or scale > 15:
        return np.int64(0)
    if (whole > 1 and load8(text, first) == _ZERO) or (negative and mantissa == 0):
        return np.int64(0)
    signed = -mantissa if negative else mantissa
    if i == end:
        if mantissa >= limit:
            return np.int64(0)
        return _inline(plain, np.int64(scale) << 54 | (signed & ((1 << 54) - 1)))
    if scientific == 0 or load8(text, i) != 69 or whole != 1 or mantissa >= scientific_limit:
        return np.int64(0)
    i += 1
    down = i < end and load8(text, i) == _MINUS
    if down:
        i += 1
    if i == end or end - i > 2 or (load8(text, i) == _ZERO and (down or end - i > 1)):
        return np.int64(0)
    exponent = _digits(text, i, end)
    if exponent < 0 or exponent > 31:
        return np.int64(0)
    if down:
        exponent = -exponent
    # A power of ten that is exact in the type makes the value exactly rounded.
    reach = 22 if scientific == DOUBLE_E else 10
    if exponent - scale > reach or scale - exponent > reach:
        return np.int64(0)
    packed = (exponent & 63) << 52 | np.int64(scale) << 48 | (signed & ((1 << 48) - 1))
    return _inline(scientific, packed)


@helper
def _datetime(text, start, end):  # type: ignore[no-untyped-def]
    """Inline id of YYYY-MM-DDThh:mm:ss(.f{1,3})?(Z|±hh:mm)?; 0 where it does not fit or is no such date."""
    if end - start < 19:
        return np.int64(0)
    if not (
        load8(text, start + 4) == _MINUS
        and load8(text, start + 7) == _MINUS
        and load8(text, start + 10) == 84
        and load8(text, start + 13) == _COLON
        and load8(text, start + 16) == _COLON
    ):
        return np.int64(0)
    year = _digits(text, start, start + 4)
    month = _digits(text, start + 5, start + 7)
    day = _digits(text, start + 8, start + 10)
    hour = _digits(text, start + 11, start + 13)
    minute = _digits(text, start + 14, start + 16)
    second = _digits(text, start + 17, start + 19)
    if year < 1 or month < 1 or month > 12 or day < 1:
        return np.int64(0)
    if hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 59:
        return np.int64(0)
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if day > _DAYS_IN_MONTH[month] + (1 if leap and month == 2 else 0):
        return np.int64(0)
    i = start + 19
    places = np.int64(0)
    millis = np.int64(0)
    if i < end and load8(text, i) == _DOT:
        i += 1
        while i < end and _is(text, i, _DIGIT):
            millis = 10 * millis + load8(text, i) - _ZERO
            places += 1
            i += 1
            if places > 3:
                return np.int64(0)
        if places == 0:
            return np.int64(0)
        for _ in range(3 - places):
            millis *= 10
    zone = np.int64(0)
    if end - i == 1 and load8(text, i) == 90:
        zone = np.int64(1)
    elif (
        end - i == 6
        and load8(text, i + 3) == _COLON
        and (load8(text, i) == _PLUS or load8(text, i) == _MINUS)
    ):
        hours = _digits(text, i + 1, i + 3)
        minutes = _digits(text, i + 4, i + 6)
        offset = 60 * hours + minutes
        if hours < 0 or minutes < 0 or minutes > 59 or minutes % 15 != 0 or offset > 14 * 60:
            return np.int64(0)
        if load8(text, i) == _MINUS:
            if offset == 0:
                return np.int64(0)
            offset = -offset
        zone = 58 + offset // 15
    elif i != end:
        return np.int64(0)
    past = year - 1
    days = 365 * past + past // 4 - past // 100 + past // 400 + _DAYS_BEFORE_MONTH[month] + day - 1
    if leap and month > 2:
        days += 1
    clock = ((days * 24 + hour) * 60 + minute) * 60 + second
    return _inline(DATETIME, (clock * 1000 + millis) << 9 | places << 7 | zone)


@helper
def _xsd_name(text, start):  # type: ignore[no-untyped-def]
    """The local name, as a word, of the datatype whose IRI is at `start` (after '<'), and where it ends.

    (0, start) for all but the datatypes of XML Schema that mean something here.
    """
    if (
        load64(text, start) != _XSD_0
        or load64(text, start + 8) != _XSD_1
        or load64(text, start + 16) != _XSD_2
        or load64(text, start + 24) != _XSD_3
        or load8(text, start + 32) != _HASH
    ):
        return np.uint64(0), start
    end = start + 33
    while end < start + 42 and _is(text, end, _ALPHA):
        end += 1
    name = _short_word(text, start + 33, end)
    if load8(text, end) == _GREATER and (
        name in (_NAME_INTEGER, _NAME_DOUBLE, _NAME_DATETIME, _NAME_STRING)
        or name in (_NAME_DECIMAL, _NAME_FLOAT, _NAME_BOOLEAN)
    ):
        return name, end
    return np.uint64(0), start


@helper
def _typed(text, start, end, name):  # type: ignore[no-untyped-def]
    """Inline id of the literal with this lexical form and XML Schema datatype; 0 where it has none."""
    if name == _NAME_INTEGER:
        return _integer(text, start, end)
    if name == _NAME_DECIMAL:
        return _number(text, start, end, DECIMAL, 0, _DECIMAL_LIMIT, 0)
    if name == _NAME_DOUBLE:
        return _number(text, start, end, DOUBLE, DOUBLE_E, _DOUBLE_LIMIT, _DOUBLE_E_LIMIT)
    if name == _NAME_FLOAT:
        inline = _number(text, start, end, FLOAT, FLOAT_E, _FLOAT_LIMIT, _FLOAT_LIMIT)
        # 10^10 is the last power of ten that a float holds exactly.
        if (inline >> 58) & 31 == FLOAT and (inline >> 54) & 15 > 10:
            return np.int64(0)
        return inline
    if name == _NAME_DATETIME:
        return _datetime(text, start, end)
    if name == _NAME_BOOLEAN:
        word = _short_word(text, start, end)
        if word == _TRUE:
            return _inline(BOOLEAN, 1)
        if word == _FALSE:
            return _inline(BOOLEAN, 0)
    return np.int64(0)


@njit(cache=True, nogil=True)
def term_id(buf, seed):  # type: ignore[no-untyped-def]
    """(id, check) of the term whose canonical text `buf` holds, before the padding; check 0 if inline."""
    text, end = buf.ctypes.data, buf.shape[0] - PADDING
    inline = np.int64(0)
    if load8(text, 0) == _QUOTE:
        close = end - 1
        while load8(text, close) != _QUOTE:
            close -= 1
        if close == end - 1:
            inline = _string(text, 1, close)
        elif load8(text, close + 1) == _CARET:
            inline = _typed(text, 1, close, _xsd_name(text, close + 4)[0])
    if inline != 0:
        return inline, np.int64(0)
    return hash_span(text, 0, end, seed)


# ------------------------------------------------------------------------------ scanning
#
# Buffers end with a line feed, which no term contains, so no scan runs past the end (by more than WIDTH).


@helper
def _utf8(text, start, end, iri):  # type: ignore[no-untyped-def]
    """Whether a span that ends before an ASCII byte is UTF-8 (and, in an IRI, of U+00A0 .. U+D7FF)."""
    i = start
    while i < end:
        c = load8(text, i)
        if c < 0x80:
            i += 1
            continue
        second = load8(text, i + 1)
        if second & 0xC0 != 0x80:
            return False
        if 0xC2 <= c <= 0xDF:
            if iri and c == 0xC2 and second < 0xA0:
                return False
            i += 2
            continue
        if load8(text, i + 2) & 0xC0 != 0x80:
            return False
        if 0xE0 <= c <= 0xEF:
            if (c == 0xE0 and second < 0xA0) or (c == 0xED and second > 0x9F) or (iri and c > 0xED):
                return False
            i += 3
            continue
        if iri or c < 0xF0 or c > 0xF4 or load8(text, i + 3) & 0xC0 != 0x80:
            return False
        if (c == 0xF0 and second < 0x90) or (c == 0xF4 and second > 0x8F):
            return False
        i += 4
    return True


@helper
def iri_at(text, start):  # type: ignore[no-untyped-def]
    """The position after the absolute IRI at `start` (which is at '<'); -1 when unsure."""
    if load64(text, start) == _HTTP:
        i = start + 8
        authority = True
    else:
        i = start + 1
        if not _is(text, i, _ALPHA):
            return -1
        while (
            _is(text, i, _ALPHA | _DIGIT)
            or load8(text, i) == _PLUS
            or load8(text, i) == _MINUS
            or load8(text, i) == _DOT
        ):
            i += 1
        if load8(text, i) != _COLON:
            return -1
        i += 1
        authority = load8(text, i) == _SLASH and load8(text, i + 1) == _SLASH
        if authority:
            i += 2
    if authority:
        mask = not_in_hosts(text, i)
        while mask == 0:
            i += WIDTH
            mask = not_in_hosts(text, i)
        i += first_bit(mask)
        if load8(text, i) == _COLON:
            i += 1
            while _is(text, i, _DIGIT):
                i += 1
        if (
            load8(text, i) != _SLASH
            and load8(text, i) != _GREATER
            and load8(text, i) != _HASH
            and load8(text, i) != _QUESTION
        ):
            return -1
    fragment = False
    foreign = False
    while True:
        mask = not_common_in_iris(text, i)
        if mask == 0:
            i += WIDTH
            continue
        i += first_bit(mask)
        c = load8(text, i)
        if c == _GREATER:
            break
        if c == _HASH and not fragment:
            fragment = True
            i += 1
        elif c >= 0x80:
            foreign = True
            i += 1
        elif c == _PERCENT and _is(text, i + 1, _HEX) and _is(text, i + 2, _HEX):
            i += 3
        elif _is(text, i, _IRI):
            i += 1
        else:
            return -1
    if foreign and not _utf8(text, start, i, True):
        return -1
    return i + 1


@helper
def host_at(text, start):  # type: ignore[no-untyped-def]
    """The position after the slash behind the host of the web address at `start` (which is at '<'); -1 where
    that is something else."""
    i = start + 8
    if load64(text, start) != _HTTP:
        if load64(text, start) != _HTTPS or load8(text, i) != _SLASH:
            return -1
        i += 1
    mask = not_in_hosts(text, i)
    if mask == 0:
        return -1
    i += first_bit(mask)
    return i + 1 if load8(text, i) == _SLASH else -1


@helper
def _blank(text, start):  # type: ignore[no-untyped-def]
    """The position after the blank node at `start` (which is at '_'); -1 when unsure."""
    if load8(text, start + 1) != _COLON:
        return -1
    i = start + 2
    if not _is(text, i, _LABEL) or load8(text, i) == _MINUS:
        return -1
    while _is(text, i, _LABEL):
        i += 1
    if load8(text, i) != _SPACE and load8(text, i) != _TAB:
        return -1
    return i


@helper
def node_at(text, start):  # type: ignore[no-untyped-def]
    """The position after the IRI or blank node at `start`; -1 when unsure or when there is none."""
    if load8(text, start) == _LESS:
        return iri_at(text, start)
    if load8(text, start) == _UNDERSCORE:
        return _blank(text, start)
    return -1


@helper
def _quoted(text, start):  # type: ignore[no-untyped-def]
    """The position of the quote that closes the literal opened at `start`; -1 when unsure."""
    i = start + 1
    foreign = False
    while True:
        mask = special_in_quotes(text, i)
        if mask == 0:
            i += WIDTH
            continue
        i += first_bit(mask)
        c = load8(text, i)
        if c == _QUOTE:
            break
        if c == _BACKSLASH:
            c = load8(text, i + 1)
            if c != 110 and c != 114 and c != _QUOTE and c != _BACKSLASH:
                return -1
            i += 2
        elif c in (_LF, _CR):
            return -1
        else:
            foreign = True
            i += 1
            while load8(text, i) >= 0x80:
                i += 1
    if foreign and not _utf8(text, start, i, False):
        return -1
    return i


@helper
def _letters(text, start):  # type: ignore[no-untyped-def]
    """The position after the ASCII letters at `start`."""
    i = start
    while _is(text, i, _ALPHA):
        i += 1
    return i


@helper
def _language(text, start, lowered):  # type: ignore[no-untyped-def]
    """The position after ll(l)(-Script)?(-RR|-ddd)? at `start`; -1 when unsure. If it is to be `lowered`, it
    is in lower case now."""
    i = _letters(text, start)
    if i - start < 2 or i - start > 3:
        return -1
    if load8(text, i) == _MINUS and _letters(text, i + 1) == i + 5:
        i += 5
    if load8(text, i) == _MINUS:
        if _letters(text, i + 1) == i + 3:
            i += 3
        elif _is(text, i + 1, _DIGIT) and _is(text, i + 2, _DIGIT) and _is(text, i + 3, _DIGIT):
            i += 4
        else:
            return -1
    if load8(text, i) != _SPACE and load8(text, i) != _TAB:
        return -1
    if lowered:
        for k in range(start, i):
            c = load8(text, k)
            if 65 <= c <= 90:
                store8(text, k, c + 32)
    return i


@helper
def object_at(text, start, valued):  # type: ignore[no-untyped-def]
    """(position after it, end of its canonical text, its inline id or 0) of the object at `start`.

    The position is -1 when unsure. Unless it is to be `valued`, the inline id is always 0, and its text stays
    as it is; else that is canonical now.
    """
    if load8(text, start) != _QUOTE:
        after = node_at(text, start)
        return after, after, np.int64(0)
    close = _quoted(text, start)
    if close < 0:
        return -1, -1, np.int64(0)
    after = close + 1
    if load8(text, after) == _AT:
        after = _language(text, after + 1, valued)
        return after, after, np.int64(0)
    if load8(text, after) != _CARET:
        return after, after, _string(text, start + 1, close) if valued else np.int64(0)
    if load8(text, after + 1) != _CARET or load8(text, after + 2) != _LESS:
        return -1, -1, np.int64(0)
    datatype = after + 3
    name, datatype_end = _xsd_name(text, datatype)
    if name == _NAME_STRING:
        return datatype_end + 1, close + 1, _string(text, start + 1, close) if valued else np.int64(0)
    if name != 0:
        inline = _typed(text, start + 1, close, name) if valued else np.int64(0)
        return datatype_end + 1, datatype_end + 1, inline
    after = iri_at(text, datatype - 1)
    # rdf:langString and its like are not allowed here, and all of rdf: is left to pyoxigraph.
    if (
        after - datatype > 40
        and load64(text, datatype + 16) == _RDF_2
        and load64(text, datatype + 24) == _RDF_3
        and load64(text, datatype + 32) == _RDF_4
    ):
        return -1, -1, np.int64(0)
    return after, after, np.int64(0)


@helper
def skip(text, i):  # type: ignore[no-untyped-def]
    while load8(text, i) == _SPACE or load8(text, i) == _TAB:
        i += 1
    return i


@helper
def end_of_line(text, i):  # type: ignore[no-untyped-def]
    while load8(text, i) != _LF and load8(text, i) != _CR:
        i += 1
    return i


@helper
def next_line(text, stop):  # type: ignore[no-untyped-def]
    """Where the line behind the end of a line at `stop` begins."""
    return stop + 2 if load8(text, stop) == _CR and load8(text, stop + 1) == _LF else stop + 1


@helper
def line_feed(text, i):  # type: ignore[no-untyped-def]
    while load8(text, i) != _LF:
        i += 1
    return i


@helper
def ends_with_feed(text, i):  # type: ignore[no-untyped-def]
    """The position of the line feed that ends the line, if from `i` on there is nothing on it but blanks or a
    comment; -1 when unsure: a carriage return stands elsewhere than before it, or something else."""
    c = load8(text, i)
    if c == _LF:
        return i
    if c != _CR and c != _HASH:
        return -1
    stop = end_of_line(text, i)
    if load8(text, stop) == _CR:
        stop += 1
    return stop if load8(text, stop) == _LF else -1


@helper
def time_at(text, start):  # type: ignore[no-untyped-def]
    """(position after it, milliseconds) of the `epoch-ms TAB` at `start`; position -1 when unsure."""
    negative = load8(text, start) == _MINUS
    first = start + 1 if negative else start
    i = first
    while _is(text, i, _DIGIT):
        i += 1
    if i == first or i - first > 18 or load8(text, i) != _TAB:
        return -1, np.int64(0)
    value = _digits(text, first, i)
    if negative:
        value = -value
    if value < FIRST_MS or value > LAST_MS:
        return -1, np.int64(0)
    return i + 1, value


@helper
def ends(text, i):  # type: ignore[no-untyped-def]
    """Whether there is nothing on the line from `i` on but a comment."""
    return load8(text, i) in (_LF, _CR, _HASH)


@helper
def _statement(text, start, quads):  # type: ignore[no-untyped-def]
    """The statement at `start`: (where it ends, inline id of its object or 0, the span of each term).

    The span of a graph that is not there is (0, 0). The end is -1, and the rest nonsense, when unsure.
    """
    unsure = (-1, np.int64(0), ((start, start), (start, start), (start, start), (start, start)))
    s_end = node_at(text, start)
    if s_end < 0:
        return unsure
    p_start = skip(text, s_end)
    if load8(text, p_start) != _LESS:
        return unsure
    p_end = iri_at(text, p_start)
    if p_end < 0:
        return unsure
    o_start = skip(text, p_end)
    after, o_end, inline = object_at(text, o_start, True)
    if after < 0:
        return unsure
    at = skip(text, after)
    g_start = g_end = np.int64(0)
    if quads and load8(text, at) != _DOT:
        g_start = at
        g_end = node_at(text, g_start)
        if g_end < 0:
            return unsure
        at = skip(text, g_end)
    if load8(text, at) != _DOT:
        return unsure
    at = skip(text, at + 1)
    if not ends(text, at):
        return unsure
    return at, inline, ((start, s_end), (p_start, p_end), (o_start, o_end), (g_start, g_end))


@njit(cache=True, nogil=True)
def parse(buf, size, syntax, seed, tables, found, state):  # type: ignore[no-untyped-def]
    """Read lines of `buf[:size]` from state[POSITION] on, and intern the terms that are hashed.

    `buf` has a line feed at `size`. Where lines have times, they end with line feeds alone. A line that is
    slow has a place kept in the columns. Returns DONE, or NEEDS_ROOM (for state[LINE_SIZE] bytes; call again
    when there is), or COLLISION with entry and span in `state`.
    """
    text = buf.ctypes.data
    quads, timed = Syntax(*syntax)
    tables = Tables(*tables)
    columns, slow = Found(*found)
    line_start, line, row = state[POSITION], state[LINE], state[ROWS]
    status = DONE
    while line_start < size and status == DONE:
        body = skip(text, line_start)
        stop = np.int64(-1)
        time = np.int64(0)
        empty = ends(text, body)
        if empty and timed:
            # A comment goes to the end of its line, whatever is in it.
            stop = line_feed(text, body) if load8(text, body) == _HASH else ends_with_feed(text, body)
            empty = stop >= 0
        elif empty:
            stop = body
        elif timed:
            body, time = time_at(text, line_start)
            if body >= 0:
                body = skip(text, body)
        if not empty:
            if body >= 0:
                stop, inline, places = _statement(text, body, quads)
                if timed and stop >= 0:
                    stop = ends_with_feed(text, stop)
                if stop >= 0:
                    if not has_room(tables, 4, stop - line_start):
                        state[LINE_SIZE] = stop - line_start
                        status = NEEDS_ROOM
                        break
                    for column in range(4):
                        start, end = places[column]
                        identity = inline if column == 2 else np.int64(0)
                        if identity == 0 and end > 0:
                            identity, check = hash_span(text, start, end, seed)
                            entry = intern(tables, identity, check, text, start, end)
                            if entry < 0:
                                state[CLASH_ENTRY] = -1 - entry
                                state[CLASH_START] = start
                                state[CLASH_END] = end
                                status = COLLISION
                        columns[column, row] = identity
            if stop < 0:
                stop = line_feed(text, line_start) if timed else end_of_line(text, line_start)
                slow[0, state[SLOW]] = row
                slow[1, state[SLOW]] = line_start if timed else body
                slow[2, state[SLOW]] = stop
                state[SLOW] += 1
            columns[4, row] = time
            columns[5, row] = line
            row += 1
        line_start = next_line(text, end_of_line(text, stop))
        line += 1
    state[POSITION], state[LINE], state[ROWS] = line_start, line, row
    return status
