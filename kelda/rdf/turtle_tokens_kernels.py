"""Kernels: the tokens of Turtle, and where they end.

Each takes the usual form of a token, and gives -1 for every other: what that means is for the parser to say.
The text ends with a line feed, and zeros behind it, in which no token goes on.
"""

from __future__ import annotations

import numpy as np

from kelda.rdf.byte_masks import WIDTH, among, first_bit, not_among
from kelda.rdf.hash_kernels import helper, inlined, load8, load64, store8, store64
from kelda.rdf.ntriples_kernels import (
    _NAME_DECIMAL,
    _NAME_DOUBLE,
    _NAME_INTEGER,
    _utf8,
    iri_at,
    special_in_quotes,
)
from kelda.rdf.turtle_terms_kernels import (
    BLANK,
    BLANKS,
    IN_LANGUAGE,
    IRI,
    IRI_SIZE,
    NAME,
    NEED,
    NOWHERE,
    NUMBER,
    PREFIX_AT,
    PREFIX_COLUMNS,
    PREFIX_SIZE,
    RDF,
    STAMP,
    STRING,
    TYPED,
    USABLE,
    USED,
    A,
    B,
    get,
    named,
    new_term,
    put,
    remembered,
    same,
    set_of,
)

_TAB, _LF, _CR, _SPACE, _QUOTE, _HASH, _APOSTROPHE = 9, 10, 13, 32, 34, 35, 39
_PLUS, _COMMA, _MINUS, _DOT, _COLON, _SEMICOLON, _LESS, _GREATER, _AT = 43, 44, 45, 46, 58, 59, 60, 62, 64
_BACKSLASH, _CLOSE_BRACKET, _CARET, _UNDERSCORE, _CLOSE, _CLOSE_BRACE = 92, 93, 94, 95, 41, 125
_P1 = np.uint64(0x9E3779B185EBCA87)
_EIGHT, _ONE = np.uint64(8), np.uint64(1)

_not_in_names = not_among((45, 46), (48, 58), (65, 90), (95, 95), (97, 122))
_colons = among((_COLON, _COLON))

MORE_SCRATCH = 4 * WIDTH  # bytes that may be written behind what is needed

LABELS = 1 << 14  # places for the labels of blank nodes; at most half of them are taken
# Of a label: the message it is of, its hash, where it stands, and its term.
LABEL_STAMP, LABEL_HASH, LABEL_START, LABEL_END, LABEL_TERM = range(5)
LABEL_COLUMNS = 5


@helper
def _gap(text, i):  # type: ignore[no-untyped-def]
    broken = False
    while True:
        c = load8(text, i)
        if c in (_LF, _CR):
            broken = True
        elif c == _HASH:
            while load8(text, i + 1) != _LF and load8(text, i + 1) != _CR:
                i += 1
        elif c != _SPACE and c != _TAB:
            return i, broken
        i += 1


@inlined
def gap(text, i):  # type: ignore[no-untyped-def]
    """The next position with something else than blanks and comments; whether a line ends before it."""
    if load8(text, i) == _SPACE:
        i += 1
    c = load8(text, i)
    if c > _HASH or c in (_QUOTE, 0):
        return i, False
    return _gap(text, i)


@inlined
def is_space(c):  # type: ignore[no-untyped-def]
    return c in (_SPACE, _LF, _TAB, _CR)


@inlined
def ends_word(c):  # type: ignore[no-untyped-def]
    """Whether a name or a number certainly ends before this byte."""
    return is_space(c) or c in (_SEMICOLON, _COMMA, _CLOSE_BRACKET, _CLOSE, _CLOSE_BRACE)


@inlined
def _is_letter(c):  # type: ignore[no-untyped-def]
    return 97 <= (c | 32) <= 122


@inlined
def _is_digit(c):  # type: ignore[no-untyped-def]
    return 48 <= c <= 57


# ------------------------------------------------------------------------------ names


@helper
def prefix_at(text, start, end, room, mask):  # type: ignore[no-untyped-def]
    """The number of the prefix with this name; -1 if there is none."""
    size = end - start
    word = load64(text, start)
    if size < 8:
        word &= (_ONE << (_EIGHT * np.uint64(size))) - _ONE
    place = np.int64(((word + np.uint64(size)) * _P1) >> np.uint64(40)) & mask
    while True:
        row = place * PREFIX_COLUMNS
        known = get(room.prefixes, row + PREFIX_SIZE)
        if known < 0:
            return np.int64(-1)
        if known == size and same(text, start, room.prefix_text, get(room.prefixes, row + PREFIX_AT), size):
            return place
        place = (place + 1) & mask


@helper
def _name(text, start, room, mask):  # type: ignore[no-untyped-def]
    """(where it ends, its term) of the prefixed name at `start`."""
    end = start
    found = _not_in_names(text, end)
    while found == 0:
        end += WIDTH
        found = _not_in_names(text, end)
    end += first_bit(found)
    if not ends_word(load8(text, end)):
        return np.int64(-1), np.int64(-1)
    while end > start and load8(text, end - 1) == _DOT:
        end -= 1
    found = _colons(text, start)
    if found == 0:
        return np.int64(-1), np.int64(-1)
    local = start + first_bit(found) + 1
    if local > end:
        return np.int64(-1), np.int64(-1)
    c = load8(text, local)
    if local < end and c in (_MINUS, _DOT):
        return np.int64(-1), np.int64(-1)
    prefix = prefix_at(text, start, local, room, mask)
    if prefix < 0 or get(room.prefixes, prefix * PREFIX_COLUMNS + USABLE) == 0:
        return np.int64(-1), np.int64(-1)
    need = get(room.prefixes, prefix * PREFIX_COLUMNS + IRI_SIZE) + end - local
    return end, new_term(room, NAME, NOWHERE, NOWHERE, local, end, prefix, need)


@helper
def _relative(text, start, room, mask):  # type: ignore[no-untyped-def]
    """The same of an IRI that is a plain name, a fragment or nothing, behind the base. Its parts are in the
    table of prefixes, behind all names."""
    i = start + 1
    prefix = mask + 1
    if load8(text, i) in (_HASH, _GREATER):
        prefix += 1
    first = i
    if load8(text, i) == _HASH:
        i += 1
    while _is_letter(load8(text, i)) or _is_digit(load8(text, i)) or load8(text, i) in (_MINUS, _UNDERSCORE):
        i += 1
    if load8(text, i) != _GREATER or get(room.prefixes, prefix * PREFIX_COLUMNS + USABLE) == 0:
        return np.int64(-1), np.int64(-1)
    need = get(room.prefixes, prefix * PREFIX_COLUMNS + IRI_SIZE) + i - first
    return i + 1, new_term(room, NAME, NOWHERE, NOWHERE, first, i, prefix, need)


@helper
def _blank(text, start, room):  # type: ignore[no-untyped-def]
    """The same of the blank node at `start`."""
    none = (np.int64(-1), np.int64(-1))
    if load8(text, start + 1) != _COLON:
        return none
    first = i = start + 2
    if load8(text, i) == _MINUS:
        return none
    hash = np.uint64(14695981039346656037)
    while True:
        c = load8(text, i)
        if not (_is_letter(c) or _is_digit(c) or c in (_MINUS, _UNDERSCORE)):
            break
        hash = (hash ^ np.uint64(c)) * np.uint64(1099511628211)
        i += 1
    if i == first or not (ends_word(c) or (c == _DOT and is_space(load8(text, i + 1)))):
        return none
    stamp = get(room.counts, STAMP)
    hash ^= hash >> np.uint64(32)
    place = np.int64(hash) & (LABELS - 1)
    while get(room.labels, place * LABEL_COLUMNS + LABEL_STAMP) == stamp:
        row = place * LABEL_COLUMNS
        known = get(room.labels, row + LABEL_START)
        if load64(room.labels, (row + LABEL_HASH) * 8) == hash:
            size = get(room.labels, row + LABEL_END) - known
            if size == i - first and same(text, first, text, known, size):
                return i, get(room.labels, row + LABEL_TERM)
        place = (place + 1) & (LABELS - 1)
    if 2 * get(room.counts, BLANKS) >= LABELS:
        return none
    put(room.counts, BLANKS, get(room.counts, BLANKS) + 1)
    term = new_blank(room)
    set_of(room, term, A, first)
    set_of(room, term, B, i)
    put(room.counts, NEED, get(room.counts, NEED) + i - first)
    row = place * LABEL_COLUMNS
    put(room.labels, row + LABEL_STAMP, stamp)
    store64(room.labels, (row + LABEL_HASH) * 8, hash)
    put(room.labels, row + LABEL_START, first)
    put(room.labels, row + LABEL_END, i)
    put(room.labels, row + LABEL_TERM, term)
    return i, term


@helper
def new_blank(room):  # type: ignore[no-untyped-def]
    """The term of a blank node without a label."""
    return new_term(room, BLANK, NOWHERE, NOWHERE, -1, -1, -1, 0)


@helper
def node(text, start, room, mask):  # type: ignore[no-untyped-def]
    """(where it ends, its term) of the IRI, name or blank node at `start`."""
    c = load8(text, start)
    if c == _LESS:
        end, term = remembered(text, start, room)
        if end >= 0:
            return end, term
        end = np.int64(iri_at(text, start))
        if end < 0:
            return _relative(text, start, room, mask)
        return end, new_term(room, IRI, start, end, -1, -1, -1, end - start)
    if c == _UNDERSCORE:
        return _blank(text, start, room)
    return _name(text, start, room, mask)


# ------------------------------------------------------------------------------ literals


@helper
def number(text, start, room):  # type: ignore[no-untyped-def]
    """The same of the number at `start`."""
    i = start
    if load8(text, i) in (_PLUS, _MINUS):
        i += 1
    first = i
    while _is_digit(load8(text, i)):
        i += 1
    digits = i - first
    word = _NAME_INTEGER
    if load8(text, i) == _DOT and _is_digit(load8(text, i + 1)):
        word = _NAME_DECIMAL
        i += 1
        while _is_digit(load8(text, i)):
            i += 1
    elif digits == 0:
        return np.int64(-1), np.int64(-1)
    if load8(text, i) in (69, 101):
        word = _NAME_DOUBLE
        i += 1
        if load8(text, i) in (_PLUS, _MINUS):
            i += 1
        first = i
        while _is_digit(load8(text, i)):
            i += 1
        if i == first:
            return np.int64(-1), np.int64(-1)
    c = load8(text, i)
    if not (ends_word(c) or (c == _DOT and is_space(load8(text, i + 1)))):
        return np.int64(-1), np.int64(-1)
    return i, new_term(room, NUMBER, NOWHERE, NOWHERE, start, i, np.int64(word), i - start)


@helper
def _closes(text, start, limit):  # type: ignore[no-untyped-def]
    """(where the string at `start` closes, with how many quotes, whether its text is not canonical)."""
    quote = load8(text, start)
    odd = quote == _APOSTROPHE
    i = start + 1
    if load8(text, i) == quote and load8(text, i + 1) == quote:
        i += 2
        while i < limit:
            c = load8(text, i)
            if c == quote and load8(text, i + 1) == quote and load8(text, i + 2) == quote:
                return i, 3, True
            i += 2 if c == _BACKSLASH else 1
        return np.int64(-1), 3, True
    while i < limit:
        if not odd:
            mask = special_in_quotes(text, i)
            if mask == 0:
                i += WIDTH
                continue
            i += first_bit(mask)
        c = load8(text, i)
        if c == quote:
            return i, 1, odd
        if c in (_LF, _CR):
            break
        if c == _BACKSLASH:
            i += 1
            c = load8(text, i)
            if c not in (110, 114, _QUOTE, _BACKSLASH):
                odd = True
        i += 1
    return np.int64(-1), 1, True


@helper
def _is_ascii(text, start, end):  # type: ignore[no-untyped-def]
    high = np.uint64(0x8080808080808080)
    i = start
    while i + 8 <= end:
        if load64(text, i) & high != 0:
            return False
        i += 8
    while i < end:
        if load8(text, i) >= 128:
            return False
        i += 1
    return True


@helper
def _canonical(text, start, end, room):  # type: ignore[no-untyped-def]
    """Write what stands between quotes to the scratch buffer as canonical text: where that is. (NOWHERE
    if an escape is none.)"""
    begin = at = room.scratch + get(room.counts, USED)
    store8(text, at, _QUOTE)
    at += 1
    i = start
    while i < end:
        c = load8(text, i)
        i += 1
        if c == _BACKSLASH:
            c = load8(text, i)
            i += 1
            if c == 116:
                c = _TAB
            elif c == 110:
                c = _LF
            elif c == 114:
                c = _CR
            elif c == 98:
                c = 8
            elif c == 102:
                c = 12
            elif c not in (_QUOTE, _APOSTROPHE, _BACKSLASH):
                return NOWHERE, NOWHERE
        if c in (_LF, _CR, _QUOTE, _BACKSLASH):
            store8(text, at, _BACKSLASH)
            at += 1
            c = 110 if c == _LF else 114 if c == _CR else c
        store8(text, at, c)
        at += 1
    store8(text, at, _QUOTE)
    put(room.counts, USED, at + 1 - room.scratch)
    return begin, at + 1


@helper
def _language(text, start):  # type: ignore[no-untyped-def]
    """Where the ll(l)(-Script)?(-RR|-ddd)? at `start` ends."""
    i = start
    while _is_letter(load8(text, i)):
        i += 1
    if i - start < 2 or i - start > 3:
        return np.int64(-1)
    parts = 0
    while load8(text, i) == _MINUS:
        first = i + 1
        i = first
        letters = digits = 0
        while _is_letter(load8(text, i)) or _is_digit(load8(text, i)):
            if _is_digit(load8(text, i)):
                digits += 1
            else:
                letters += 1
            i += 1
        if parts == 0 and letters == 4 and digits == 0:
            parts = 1
        elif parts < 2 and ((letters == 2 and digits == 0) or (digits == 3 and letters == 0)):
            parts = 2
        else:
            return np.int64(-1)
    c = load8(text, i)
    return i if ends_word(c) or (c == _DOT and is_space(load8(text, i + 1))) else np.int64(-1)


@helper
def string(text, start, limit, room, mask, size, seed):  # type: ignore[no-untyped-def]
    """(where it ends, its term, whether something stands behind its quotes, whether N-Quads has it too) of
    the literal with quotes at `start`; the scratch buffer has `size` bytes. End -2: it needs a larger one."""
    none = (np.int64(-1), np.int64(-1), False, False)
    close, quotes, odd = _closes(text, start, limit)
    if close < 0:
        return none
    if not _is_ascii(text, start, close) and not _utf8(text, start, close, False):
        return none
    begin, end = start, close + 1
    if odd:
        if get(room.counts, USED) + 2 * (close - start) + MORE_SCRATCH > size:
            put(room.counts, NEED, get(room.counts, NEED) + 2 * (close - start))
            return np.int64(-2), np.int64(-1), False, False
        begin, end = _canonical(text, start + quotes, close, room)
        if begin == NOWHERE:
            return none
    plain = quotes == 1 and load8(text, start) == _QUOTE
    after = close + quotes
    c = load8(text, after)
    if c == _AT:
        behind = _language(text, after + 1)
        if behind < 0:
            return none
        term = new_term(room, IN_LANGUAGE, begin, end, after + 1, behind, -1, end - begin + behind - after)
        return behind, term, True, plain
    if c != _CARET:
        return after, new_term(room, STRING, begin, end, -1, -1, -1, end - begin), False, plain
    if load8(text, after + 1) != _CARET or load8(text, after + 2) == _UNDERSCORE:
        return none
    before = get(room.counts, NEED)
    behind, datatype = node(text, after + 2, room, mask)
    if behind < 0:
        return none
    need = end - begin + get(room.counts, NEED) - before  # its own text has that of the datatype in it
    if get(room.counts, USED) + get(room.counts, NEED) + MORE_SCRATCH > size:
        return np.int64(-2), np.int64(-1), False, False
    if named(text, datatype, room, seed)[1] == RDF:
        return none
    plain = plain and load8(text, after + 2) == _LESS
    return behind, new_term(room, TYPED, begin, end, -1, -1, datatype, need), True, plain
