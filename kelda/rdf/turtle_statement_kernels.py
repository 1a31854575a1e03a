"""Kernels: the statements of a message in Turtle, TriG, N-Triples or N-Quads.

Quads come in pyoxigraph's order, on which the labels of blank nodes depend: a string is told with the token
behind it, as a datatype may follow; and what one token tells comes last first.
"""

from __future__ import annotations

import numpy as np

from kelda.rdf.hash_kernels import helper, inlined, load8, load64
from kelda.rdf.ntriples_kernels import BOOLEAN as _BOOLEAN
from kelda.rdf.ntriples_kernels import _inline
from kelda.rdf.turtle_terms_kernels import (
    END,
    ID,
    IRI,
    IRI_AT,
    IRI_SIZE,
    KIND,
    NAME,
    NOWHERE,
    PREFIX_COLUMNS,
    ROWS,
    START,
    STRING,
    TERMS,
    get,
    new_term,
    of,
    put,
    same,
    set_of,
)
from kelda.rdf.turtle_tokens_kernels import (
    ends_word,
    gap,
    is_space,
    new_blank,
    node,
    number,
    prefix_at,
    string,
)

READ, ODD, TOO_MUCH = range(3)  # what becomes of a message

DEPTH = 64  # brackets and lists in one another
STACK_SIZE = 3 * (DEPTH + 1)

# Terms that every message has: rdf:type, rdf:first, rdf:rest, rdf:nil.
TYPE, FIRST, REST, NIL, FIXED = range(5)

# What is expected: a statement, a verb, a verb or the end of what it is said of, an object, something behind
# an object; the inside of brackets that just opened, and what comes behind those of a subject; a dot.
_TOP, _VERB, _MAYBE_VERB, _OBJECT, _AFTER, _SUBJECT_OPENS, _OPENS, _LIST_OPENS, _AFTER_SUBJECT, _DOT_ONLY = (
    range(10)
)
_BRACKET, _SUBJECT, _LIST = range(3)  # what is open
ROW_SIZE = 4

_QUOTE, _APOSTROPHE, _OPEN, _CLOSE, _PLUS, _COMMA, _MINUS, _DOT, _SEMICOLON = (
    34,
    39,
    40,
    41,
    43,
    44,
    45,
    46,
    59,
)
_LESS, _AT, _OPEN_BRACKET, _CLOSE_BRACKET, _UNDERSCORE, _OPEN_BRACE, _CLOSE_BRACE = (
    60,
    64,
    91,
    93,
    95,
    123,
    125,
)


def _bytes_as_word(text: bytes) -> np.uint64:
    return np.uint64(int.from_bytes(text.ljust(8, b"\0"), "little"))


_TRUE, _FALSE = _bytes_as_word(b"true"), _bytes_as_word(b"false")
_PREFIX_WORD, _BASE_WORD, _GRAPH_WORD = (_bytes_as_word(word) for word in (b"prefix", b"base", b"graph"))
_VERSION_WORD, _AT_BASE, _AT_PREFIX = (_bytes_as_word(word) for word in (b"version", b"@base", b"@prefix"))
_VERSIONS = np.frombuffer(b'"1.2-messages"', np.uint8)


@helper
def _emit(room, s, p, o, g):  # type: ignore[no-untyped-def]
    row = get(room.counts, ROWS)
    put(room.rows, row * ROW_SIZE, s)
    put(room.rows, row * ROW_SIZE + 1, p)
    put(room.rows, row * ROW_SIZE + 2, o)
    put(room.rows, row * ROW_SIZE + 3, g)
    put(room.counts, ROWS, row + 1)


@helper
def _turned(room, first, last):  # type: ignore[no-untyped-def]
    """Have the rows of one token last first."""
    last -= 1
    while first < last:
        for k in range(ROW_SIZE):
            row = get(room.rows, first * ROW_SIZE + k)
            put(room.rows, first * ROW_SIZE + k, get(room.rows, last * ROW_SIZE + k))
            put(room.rows, last * ROW_SIZE + k, row)
        first += 1
        last -= 1


@inlined
def _lowered(text, i, size):  # type: ignore[no-untyped-def]
    word = load64(text, i) & ((np.uint64(1) << np.uint64(8 * size)) - np.uint64(1))
    return word | np.uint64(0x2020202020202020) & ((np.uint64(1) << np.uint64(8 * size)) - np.uint64(1))


@helper
def _directive(text, i, room, mask):  # type: ignore[no-untyped-def]
    """Where the directive at `i` ends, if it says what holds already, or a usual version; -1 if not."""
    at = load8(text, i) == _AT
    name = i
    if at and load64(text, i) & np.uint64(0x00FFFFFFFFFFFFFF) == _AT_PREFIX:
        i += 7
    elif at and load64(text, i) & np.uint64(0x000000FFFFFFFFFF) == _AT_BASE:
        i += 5
    elif _lowered(text, i, 6) == _PREFIX_WORD:
        i += 6
    elif _lowered(text, i, 4) == _BASE_WORD:
        i += 4
    elif _lowered(text, i, 7) == _VERSION_WORD:
        i, _ = gap(text, i + 7)
        for k in range(_VERSIONS.shape[0]):
            if load8(text, i + k) != _VERSIONS[k]:
                return np.int64(-1)
        return i + _VERSIONS.shape[0]
    else:
        return np.int64(-1)
    is_prefix = i - name >= 6
    if not is_space(load8(text, i)):
        return np.int64(-1)
    i, _ = gap(text, i)
    prefix = np.int64(-1)
    if is_prefix:
        first = i
        while load8(text, i) > 32 and load8(text, i) != 58:
            i += 1
        if load8(text, i) != 58:
            return np.int64(-1)
        i += 1
        prefix = prefix_at(text, first, i, room, mask)
        i, _ = gap(text, i)
    else:
        prefix = prefix_at(text, i, i, room, mask)
    if prefix < 0 or load8(text, i) != _LESS:
        return np.int64(-1)
    iri = get(room.prefixes, prefix * PREFIX_COLUMNS + IRI_AT)
    size = get(room.prefixes, prefix * PREFIX_COLUMNS + IRI_SIZE)
    if not same(text, i, room.prefix_text, iri, size) or load8(text, i + size) != 62:
        return np.int64(-1)
    i += size + 1
    if at:
        i, _ = gap(text, i)
        if load8(text, i) != _DOT:
            return np.int64(-1)
        i += 1
    return i


@helper
def _is_directive(text, i):  # type: ignore[no-untyped-def]
    """Whether a word stands there that no name is: a directive's, or GRAPH."""
    c = load8(text, i)
    if c == _AT:
        return True
    c |= 32
    if c == 112:
        return _lowered(text, i, 6) == _PREFIX_WORD and load8(text, i + 6) <= 32
    if c == 98:
        return _lowered(text, i, 4) == _BASE_WORD and load8(text, i + 4) <= 32
    if c == 118:
        return _lowered(text, i, 7) == _VERSION_WORD and load8(text, i + 7) <= 32
    return c == 103 and _lowered(text, i, 5) == _GRAPH_WORD and load8(text, i + 5) <= 32


@helper
def read_message(text, begin, limit, room, mask, is_document, most_terms, most_rows, most_scratch, seed):  # type: ignore[no-untyped-def]
    """Read a message: its terms and rows are in the room. READ, ODD or TOO_MUCH."""
    none = np.int64(-1)
    i = begin
    state = _TOP
    depth = np.int64(0)
    s = p = g = pending = subject = none
    in_block = opens_block = is_quads = False
    is_plain = not is_document  # whether it may be N-Quads
    step = np.int64(0)
    while True:
        i, broken = gap(text, i)
        rows = get(room.counts, ROWS)
        if rows - step > 1:
            _turned(room, step, rows)
        step = rows
        if i >= limit:
            break
        if rows + 8 > most_rows or get(room.counts, TERMS) + 8 > most_terms:
            return TOO_MUCH
        if pending >= 0:
            _emit(room, s, p, pending, g)
            pending = none
        if (state == _TOP) != broken and not (state == _TOP and rows == 0):
            is_plain = False
        c = load8(text, i)
        if state == _SUBJECT_OPENS:
            s = new_blank(room)
            if c == _CLOSE_BRACKET:
                i += 1
                state = _VERB
                continue
            put(room.stack, 0, _SUBJECT)
            depth = np.int64(1)
            state = _VERB
        elif state == _OPENS:
            blank = new_blank(room)
            if c == _CLOSE_BRACKET:
                i += 1
                _emit(room, s, p, blank, g)
                state = _AFTER
                continue
            if depth == DEPTH:
                return ODD
            put(room.stack, 3 * depth, _BRACKET)
            put(room.stack, 3 * depth + 1, s)
            put(room.stack, 3 * depth + 2, p)
            depth += 1
            s = blank
            state = _VERB
        elif state == _LIST_OPENS:
            if c == _CLOSE:
                i += 1
                _emit(room, s, p, NIL, g)
                state = _AFTER
                continue
            if depth == DEPTH:
                return ODD
            put(room.stack, 3 * depth, _LIST)
            put(room.stack, 3 * depth + 1, s)
            put(room.stack, 3 * depth + 2, p)
            depth += 1
            blank = new_blank(room)
            _emit(room, s, p, blank, g)
            s, p = blank, np.int64(FIRST)
            state = _OBJECT
        elif state == _AFTER_SUBJECT:
            state = _MAYBE_VERB if c == _DOT else _VERB
        if state == _AFTER and depth > 0 and get(room.stack, 3 * depth - 3) == _LIST:
            if c == _CLOSE:
                i += 1
                depth -= 1
                _emit(room, s, REST, NIL, g)
                s, p = get(room.stack, 3 * depth + 1), get(room.stack, 3 * depth + 2)
                continue
            blank = new_blank(room)
            _emit(room, s, REST, blank, g)
            s, p = blank, np.int64(FIRST)
            state = _OBJECT
        if state == _MAYBE_VERB and c in (_DOT, _CLOSE_BRACKET, _CLOSE_BRACE):
            state = _AFTER
        if state == _OBJECT:
            if c in (_QUOTE, _APOSTROPHE):
                end, o, is_told, quads_too = string(text, i, limit, room, mask, most_scratch, seed)
                is_plain &= quads_too
                if end == -2:
                    return TOO_MUCH
                if end < 0 or end > limit:
                    return ODD
                i = end
                if is_told:  # with the token behind the quotes
                    rows = get(room.counts, ROWS)
                    if rows - step > 1:
                        _turned(room, step, rows)
                    step = rows
                    _emit(room, s, p, o, g)
                else:
                    pending = o
                state = _AFTER
                continue
            if c in (_OPEN_BRACKET, _OPEN):
                is_plain = False
                state = _OPENS if c == _OPEN_BRACKET else _LIST_OPENS
                i += 1
                continue
            if 48 <= c <= 57 or c in (_PLUS, _MINUS, _DOT):
                is_plain = False
                end, o = number(text, i, room)
            else:
                end = o = none
                size = 4 if c == 116 else 5
                if c in (116, 102):
                    word = load64(text, i) & ((np.uint64(1) << np.uint64(8 * size)) - np.uint64(1))
                    after = load8(text, i + size)
                    is_word = ends_word(after) or (after == _DOT and is_space(load8(text, i + size + 1)))
                    if is_word and word in (_TRUE, _FALSE):
                        end = i + size
                        o = new_term(room, STRING, NOWHERE, NOWHERE, none, none, none, 0)
                        set_of(room, o, ID, _inline(_BOOLEAN, 1 if word == _TRUE else 0))
                        is_plain = False
                if end < 0:
                    is_plain &= c in (_LESS, _UNDERSCORE)
                    end, o = node(text, i, room, mask)
                    if end >= 0:
                        is_plain &= of(room, o, KIND) != NAME
            if end < 0 or end > limit:
                return ODD
            i = end
            _emit(room, s, p, o, g)
            state = _AFTER
        elif state in (_VERB, _MAYBE_VERB):
            if c == _SEMICOLON and state == _MAYBE_VERB:
                i += 1
                continue
            if c == 97 and is_space(load8(text, i + 1)):
                i += 1
                p = np.int64(TYPE)
                is_plain = False
            else:
                if c == _UNDERSCORE:
                    return ODD
                end, p = node(text, i, room, mask)
                if end < 0 or end > limit:
                    return ODD
                is_plain &= of(room, p, KIND) == IRI
                i = end
            state = _OBJECT
        elif state == _AFTER:
            i += 1
            if c in (_COMMA, _SEMICOLON):
                is_plain = False
                state = _OBJECT if c == _COMMA else _MAYBE_VERB
            elif c == _DOT and depth == 0:
                state = _TOP
            elif c == _CLOSE_BRACE and depth == 0 and in_block:
                in_block = False
                g = none
                state = _TOP
            elif c == _CLOSE_BRACKET and depth > 0:
                depth -= 1
                if get(room.stack, 3 * depth) == _SUBJECT:
                    state = _AFTER_SUBJECT
                else:
                    blank = s
                    s, p = get(room.stack, 3 * depth + 1), get(room.stack, 3 * depth + 2)
                    _emit(room, s, p, blank, g)
            elif c in (_LESS, _UNDERSCORE) and depth == 0 and is_plain and not in_block:
                end, o = node(text, i - 1, room, mask)
                if end < 0 or end > limit or of(room, o, KIND) == NAME:
                    return ODD
                put(room.rows, (get(room.counts, ROWS) - 1) * ROW_SIZE + 3, o)
                i = end
                is_quads = True
                state = _DOT_ONLY
            else:
                return ODD
        elif state == _DOT_ONLY:
            if c != _DOT:
                return ODD
            i += 1
            state = _TOP
        elif c == _CLOSE_BRACE and in_block:
            in_block = False
            g = none
            i += 1
        elif c == _OPEN_BRACE and not in_block and not is_document:
            in_block, opens_block, is_plain = True, False, False
            i += 1
        elif opens_block:
            return ODD
        elif c == _OPEN_BRACKET:
            is_plain = False
            state = _SUBJECT_OPENS
            i += 1
        elif _is_directive(text, i):
            if in_block or is_document:
                return ODD
            is_plain = False
            if (c | 32) == 103:
                i, _ = gap(text, i + 5)
                i, g = node(text, i, room, mask)
                opens_block = True
            else:
                i = _directive(text, i, room, mask)
            if i < 0 or i > limit:
                return ODD
        else:
            end = none
            if c == _LESS and subject >= 0:  # that of the statement before
                start, size = of(room, subject, START), of(room, subject, END) - of(room, subject, START)
                if i + size <= limit and same(text, i, text, start, size):
                    end, s = i + size, subject
            if end < 0:
                end, s = node(text, i, room, mask)
                if end < 0 or end > limit:
                    return ODD
                subject = s if of(room, s, KIND) == IRI else none
            is_plain &= of(room, s, KIND) != NAME
            i = end
            if not in_block and not is_document:
                after, _ = gap(text, i)
                if load8(text, after) == _OPEN_BRACE:
                    g, opens_block = s, True
                    continue
            state = _VERB
    if state != _TOP or in_block or opens_block or (is_quads and not is_plain):
        return ODD
    return READ
