"""Kernels: the terms of Turtle, from where they are written to their ids.

A term is first only found: where it stands, and what it is made of. It gets an id when somebody asks for it,
and a canonical text (see `ntriples_kernels`) when that is hashed. Names and IRIs that came before are known
by their bytes (`_place`), and neither put together nor hashed again.

All positions count from `text`, those of what is put together too: it is written to a scratch buffer.
Whoever calls has made sure that there is room for it: a term needs its bytes, those of its prefix or its
datatype, and `MORE`. Before the text there are `WIDTH` readable bytes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kelda.rdf.byte_masks import WIDTH, among, differing, first_bit, move
from kelda.rdf.hash_kernels import helper, identity_of, inlined, load8, load64, store8, store64
from kelda.rdf.ntriples_kernels import (
    _NAME_DECIMAL,
    _NAME_INTEGER,
    _NAME_STRING,
    _RDF_2,
    _RDF_3,
    _RDF_4,
    _datetime,
    _digits,
    _string,
    _typed,
    _xsd_name,
)
from kelda.rdf.times import FIRST_MS, LAST_MS

# What a term is, and its columns: where its canonical text is (NOWHERE: not put together yet), its id (0:
# not made yet), two positions (of the local name, the text between the quotes, the number, the language or
# the label), a number (of the prefix, the datatype's term, the datatype's word, or of the blank node), and
# its place among the names that are remembered (-1: none).
IRI, NAME, BLANK, STRING, TYPED, NUMBER, IN_LANGUAGE = range(7)
KIND, START, END, ID, A, B, OF, PLACE = range(8)
TERM_SIZE = 8
NOWHERE = np.int64(-(1 << 62))  # no position: what is put together may well lie before the text

# Names that are remembered: the prefix and 1 more (IRIs: 1; 0: none), the size, the id, whether the
# dictionary has it, what datatype it is, whether any rule asks for it (-1: not looked up yet), which time
# predicate it is (-1: none).
NAMES = 1024
KEY, SIZE, NAME_ID, KNOWN, DATATYPE, ASKED, TIME = range(7)
NAME_COLUMNS = 8
NAME_ROOM = 2 * WIDTH
NAME_STRIDE = NAME_ROOM + WIDTH
OTHER, RDF = np.uint64(1), np.uint64(2)  # datatypes that are none of XML Schema's, and those of RDF

# Prefixes: where the name with its colon is and how long (-1: none), the same of its IRI from "<" to before
# ">", and whether every local name makes a valid IRI with it.
PREFIX_AT, PREFIX_SIZE, IRI_AT, IRI_SIZE, USABLE = range(5)
PREFIX_COLUMNS = 5

MORE = 96  # bytes that the text of a term may have beside its parts: the longest is the datatype of a number

# The counters of a message: terms, rows, bytes of scratch, bytes that texts may need, labels of blank nodes;
# and its own number.
TERMS, ROWS, USED, NEED, BLANKS, STAMP = range(6)

_P1, _P2 = np.uint64(0x9E3779B185EBCA87), np.uint64(0xC2B2AE3D27D4EB4F)
_EIGHT, _54 = np.uint64(8), np.uint64(54)
_XSD = np.frombuffer(b"^^<http://www.w3.org/2001/XMLSchema#", np.uint8)
_INTEGER_NAME, _DECIMAL_NAME = np.frombuffer(b"integer>", np.uint8), np.frombuffer(b"decimal>", np.uint8)
_DOUBLE_NAME = np.frombuffer(b"double>", np.uint8)
_closes_iris = among((62, 62))
_MINUS, _PLUS, _DOT, _COLON, _LESS, _GREATER, _QUOTE = 45, 43, 46, 58, 60, 62, 34


class Room(NamedTuple):
    """Where everything is: addresses, but the beginning of the scratch buffer counted from the text."""

    counts: int
    terms: int
    rows: int
    scratch: int
    names: int
    name_texts: int
    prefixes: int
    prefix_text: int
    labels: int
    stack: int
    scope: int


@inlined
def get(base, i):  # type: ignore[no-untyped-def]
    return np.int64(load64(base, i * 8))


@inlined
def put(base, i, value):  # type: ignore[no-untyped-def]
    store64(base, i * 8, np.int64(value))


@inlined
def of(room, term, column):  # type: ignore[no-untyped-def]
    return np.int64(load64(room.terms, (term * TERM_SIZE + column) * 8))


@inlined
def set_of(room, term, column, value):  # type: ignore[no-untyped-def]
    store64(room.terms, (term * TERM_SIZE + column) * 8, np.int64(value))


@helper
def new_term(room, kind, start, end, a, b, number, need):  # type: ignore[no-untyped-def]
    """The number of a term that was found, whose text takes at most so many bytes."""
    term = get(room.counts, TERMS)
    put(room.counts, TERMS, term + 1)
    put(room.counts, NEED, get(room.counts, NEED) + need + MORE)
    set_of(room, term, KIND, kind)
    set_of(room, term, START, start)
    set_of(room, term, END, end)
    set_of(room, term, ID, 0)
    set_of(room, term, A, a)
    set_of(room, term, B, b)
    set_of(room, term, OF, number)
    set_of(room, term, PLACE, -1)
    return term


@inlined
def same(text, i, other, k, size):  # type: ignore[no-untyped-def]
    """Whether `size` bytes are the same."""
    while size > WIDTH:
        if differing(text, i, other, k) != 0:
            return False
        i += WIDTH
        k += WIDTH
        size -= WIDTH
    return size == 0 or differing(text, i, other, k) << np.uint64(WIDTH - size) == 0


@helper
def _append(text, start, end, at):  # type: ignore[no-untyped-def]
    """Write a span at `at`, and some bytes that do not matter behind it; where it ends."""
    for k in range(0, end - start, WIDTH):
        move(text, start + k, text, at + k)
    return at + end - start


# ------------------------------------------------------------------------------ names


@inlined
def _hash(text, start, end, key):  # type: ignore[no-untyped-def]
    size = end - start
    last, before = load64(text, end - 8), load64(text, end - 16)
    if size < 16:
        if size > 8:
            before >>= _EIGHT * np.uint64(16 - size)
        else:
            before = np.uint64(0)
            last = last >> (_EIGHT * np.uint64(8 - size)) if size > 0 else np.uint64(0)
    x = (last ^ np.uint64(key)) * _P1 ^ (before + np.uint64(size)) * _P2
    return np.int64((x ^ (x >> np.uint64(29))) * _P1 >> _54)


@helper
def _expanded(text, term, room):  # type: ignore[no-untyped-def]
    """Have the text of a name put together, or stay as it is."""
    if of(room, term, START) != NOWHERE:
        return
    prefix = of(room, term, OF) * PREFIX_COLUMNS
    at = room.scratch + get(room.counts, USED)
    set_of(room, term, START, at)
    size = get(room.prefixes, prefix + IRI_SIZE)
    iri = get(room.prefixes, prefix + IRI_AT)
    for k in range(0, size, WIDTH):
        move(room.prefix_text, iri + k, text, at + k)
    at = _append(text, of(room, term, A), of(room, term, B), at + size)
    store8(text, at, _GREATER)
    set_of(room, term, END, at + 1)
    put(room.counts, USED, at + 1 - room.scratch)


@helper
def _datatype_at(text, start, end):  # type: ignore[no-untyped-def]
    """What the IRI from `start` to `end` is as a datatype."""
    word, _ = _xsd_name(text, start + 1)
    if word != 0:
        return word
    is_long = end - start > 41
    if is_long and load64(text, start + 17) == _RDF_2 and load64(text, start + 25) == _RDF_3:
        return RDF if load64(text, start + 33) == _RDF_4 else OTHER
    return OTHER


@helper
def named(text, term, room, seed):  # type: ignore[no-untyped-def]
    """Have the id of an IRI or a name, and its place if it is remembered. (id, what it is as a datatype.)"""
    is_name = of(room, term, KIND) == NAME
    first = of(room, term, A) if is_name else of(room, term, START)
    last = of(room, term, B) if is_name else of(room, term, END)
    key = of(room, term, OF) + 2 if is_name else 1
    place = _hash(text, first, last, key)
    row = place * NAME_COLUMNS
    size = last - first
    if (
        get(room.names, row + KEY) == key
        and get(room.names, row + SIZE) == size
        and same(text, first, room.name_texts, place * NAME_STRIDE, size)
    ):
        id = get(room.names, row + NAME_ID)
        set_of(room, term, ID, id)
        set_of(room, term, PLACE, place)
        return id, load64(room.names, (row + DATATYPE) * 8)
    if is_name:
        _expanded(text, term, room)
    start, end = of(room, term, START), of(room, term, END)
    id = identity_of(text, start, end, seed)
    datatype = _datatype_at(text, start, end)
    set_of(room, term, ID, id)
    if size <= NAME_ROOM:
        set_of(room, term, PLACE, place)
        put(room.names, row + KEY, key)
        put(room.names, row + SIZE, size)
        put(room.names, row + NAME_ID, id)
        put(room.names, row + KNOWN, 0)
        store64(room.names, (row + DATATYPE) * 8, datatype)
        put(room.names, row + ASKED, -1)
        move(text, first, room.name_texts, place * NAME_STRIDE)
        if size > WIDTH:
            move(text, first + WIDTH, room.name_texts, place * NAME_STRIDE + WIDTH)
    return id, datatype


@helper
def remembered(text, start, room):  # type: ignore[no-untyped-def]
    """(where it ends, its term) of the IRI at `start`, if it is remembered as it stands; else -1."""
    end = start
    mask = _closes_iris(text, end)
    if mask == 0:
        end += WIDTH
        mask = _closes_iris(text, end)
        if mask == 0:
            return np.int64(-1), np.int64(-1)
    end += first_bit(mask) + 1
    place = _hash(text, start, end, 1)
    row = place * NAME_COLUMNS
    size = end - start
    if get(room.names, row + KEY) != 1 or get(room.names, row + SIZE) != size:
        return np.int64(-1), np.int64(-1)
    if not same(text, start, room.name_texts, place * NAME_STRIDE, size):
        return np.int64(-1), np.int64(-1)
    term = new_term(room, IRI, start, end, -1, -1, -1, size)
    set_of(room, term, ID, get(room.names, row + NAME_ID))
    set_of(room, term, PLACE, place)
    return end, term


@inlined
def is_place_of(room, place, id):  # type: ignore[no-untyped-def]
    """Whether what is remembered there is this still."""
    return place >= 0 and get(room.names, place * NAME_COLUMNS + NAME_ID) == id


# ------------------------------------------------------------------------------ ids


@helper
def _put_bytes(text, at, some):  # type: ignore[no-untyped-def]
    for k in range(some.shape[0]):
        store8(text, at + k, some[k])
    return at + some.shape[0]


@helper
def _number_text(text, term, room):  # type: ignore[no-untyped-def]
    at = room.scratch + get(room.counts, USED)
    set_of(room, term, START, at)
    store8(text, at, _QUOTE)
    at = _append(text, of(room, term, A), of(room, term, B), at + 1)
    store8(text, at, _QUOTE)
    at = _put_bytes(text, at + 1, _XSD)
    word = np.uint64(of(room, term, OF))
    if word == _NAME_INTEGER:
        at = _put_bytes(text, at, _INTEGER_NAME)
    elif word == _NAME_DECIMAL:
        at = _put_bytes(text, at, _DECIMAL_NAME)
    else:
        at = _put_bytes(text, at, _DOUBLE_NAME)
    set_of(room, term, END, at)
    put(room.counts, USED, at - room.scratch)


@helper
def _typed_text(text, term, datatype, room):  # type: ignore[no-untyped-def]
    _expanded(text, datatype, room)
    at = room.scratch + get(room.counts, USED)
    after = _append(text, of(room, term, START), of(room, term, END), at)
    store8(text, after, 94)
    store8(text, after + 1, 94)
    after = _append(text, of(room, datatype, START), of(room, datatype, END), after + 2)
    set_of(room, term, START, at)
    set_of(room, term, END, after)
    put(room.counts, USED, after - room.scratch)


@helper
def _language_text(text, term, room):  # type: ignore[no-untyped-def]
    at = room.scratch + get(room.counts, USED)
    after = _append(text, of(room, term, START), of(room, term, END), at)
    store8(text, after, 64)
    after += 1
    for k in range(of(room, term, A), of(room, term, B)):
        c = load8(text, k)
        store8(text, after, c + 32 if 65 <= c <= 90 else c)
        after += 1
    set_of(room, term, START, at)
    set_of(room, term, END, after)
    put(room.counts, USED, after - room.scratch)


@helper
def write_number(text, at, number):  # type: ignore[no-untyped-def]
    """Write a number that is not negative; where it ends."""
    size = 1
    rest = number // 10
    while rest > 0:
        size += 1
        rest //= 10
    for k in range(size - 1, -1, -1):
        store8(text, at + k, 48 + number % 10)
        number //= 10
    return at + size


@helper
def _blank_text(text, term, room, scope_size):  # type: ignore[no-untyped-def]
    """The label: the scope, and the number of the blank node in it; without a number, as it is written."""
    if of(room, term, OF) < 0:
        set_of(room, term, START, of(room, term, A) - 2)
        set_of(room, term, END, of(room, term, B))
        return
    at = room.scratch + get(room.counts, USED)
    set_of(room, term, START, at)
    for k in range(0, scope_size, WIDTH):
        move(room.scope, k, text, at + k)
    after = write_number(text, at + scope_size, of(room, term, OF))
    set_of(room, term, END, after)
    put(room.counts, USED, after - room.scratch)


@helper
def identified(text, term, room, scope_size, seed):  # type: ignore[no-untyped-def]
    """The id of a term."""
    id = of(room, term, ID)
    if id != 0:
        return id
    kind = of(room, term, KIND)
    if kind in (IRI, NAME):
        return named(text, term, room, seed)[0]
    if kind == STRING:
        id = _string(text, of(room, term, START) + 1, of(room, term, END) - 1)
    elif kind == NUMBER:
        id = _typed(text, of(room, term, A), of(room, term, B), np.uint64(of(room, term, OF)))
        if id == 0:
            _number_text(text, term, room)
    elif kind == TYPED:
        datatype = of(room, term, OF)
        _, word = named(text, datatype, room, seed)
        if word == _NAME_STRING:
            id = _string(text, of(room, term, START) + 1, of(room, term, END) - 1)
        else:
            id = _typed(text, of(room, term, START) + 1, of(room, term, END) - 1, word)
            if id == 0:
                _typed_text(text, term, datatype, room)
    elif kind == IN_LANGUAGE:
        _language_text(text, term, room)
    else:
        _blank_text(text, term, room, scope_size)
    if id == 0:
        id = identity_of(text, of(room, term, START), of(room, term, END), seed)
    set_of(room, term, ID, id)
    return id


@helper
def texted(text, term, room):  # type: ignore[no-untyped-def]
    """Have the text of a term whose id is a hash."""
    if of(room, term, KIND) == NAME:
        _expanded(text, term, room)


# ------------------------------------------------------------------------------ times


@helper
def _moment(text, start, end):  # type: ignore[no-untyped-def]
    """(whether it is clear what time it is, milliseconds) of YYYY-MM-DDThh:mm:ss(.f{1,9})?(Z|±hh:mm)?."""
    if end - start < 19:
        return False, np.int64(0)
    inline = _datetime(text, start, start + 19)
    if inline == 0:
        return False, np.int64(0)
    time = ((inline & ((1 << 58) - 1)) >> 9) + FIRST_MS
    i = start + 19
    if i < end and load8(text, i) == _DOT:
        scale = 100
        i += 1
        first = i
        while i < end and 48 <= load8(text, i) <= 57:
            time += (load8(text, i) - 48) * scale
            scale //= 10
            i += 1
        if i == first or i - first > 9:
            return False, np.int64(0)
    if i == end or (i + 1 == end and load8(text, i) == 90):
        return True, time
    c = load8(text, i)
    if i + 6 != end or load8(text, i + 3) != _COLON or (c != _PLUS and c != _MINUS):
        return False, np.int64(0)
    hours, minutes = _digits(text, i + 1, i + 3), _digits(text, i + 4, i + 6)
    if hours < 0 or hours > 14 or minutes < 0 or minutes > 59:
        return False, np.int64(0)
    offset = (hours * 60 + minutes) * 60_000
    return True, time + offset if c == _MINUS else time - offset


@helper
def time_of(text, term, room):  # type: ignore[no-untyped-def]
    """(whether it is clear, milliseconds) of a literal: epoch milliseconds, or an ISO date and time."""
    quoted = of(room, term, KIND) != NUMBER
    start = of(room, term, START) + 1 if quoted else of(room, term, A)
    end = of(room, term, END) - 1 if quoted else of(room, term, B)
    first = start + 1 if start < end and load8(text, start) == _MINUS else start
    if 0 < end - first <= 18:
        value = _digits(text, first, end)
        if value >= 0:
            value = -value if first > start else value
            return FIRST_MS <= value <= LAST_MS, value
    return _moment(text, start, end)
