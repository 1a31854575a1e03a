"""Kernels: messages in Turtle, TriG, N-Triples and N-Quads, from text to columns of ids.

A message is read whole before anything of it is made known. The common forms of all tokens are read, and
those exactly as pyoxigraph reads them; a message with anything else in it is *odd*, and left to that. So the
kernel never has to judge a message invalid.

Quads come in pyoxigraph's order, on which the labels of blank nodes depend: a string is told with the token
behind it, as a datatype may follow; and what one token tells comes last first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kelda.rdf.byte_masks import WIDTH
from kelda.rdf.hash_kernels import Tables, check_of, has_room, helper, inlined, intern, load8, load64
from kelda.rdf.keyset_kernels import has
from kelda.rdf.ntriples_kernels import BOOLEAN as _BOOLEAN
from kelda.rdf.ntriples_kernels import _inline
from kelda.rdf.turtle_terms_kernels import (
    ASKED,
    BLANK,
    BLANKS,
    END,
    ID,
    IRI,
    IRI_AT,
    IRI_SIZE,
    KIND,
    KNOWN,
    NAME,
    NAME_COLUMNS,
    NEED,
    OF,
    PLACE,
    PREFIX_COLUMNS,
    ROWS,
    STAMP,
    START,
    STRING,
    TERM_SIZE,
    TERMS,
    TIME,
    USED,
    A,
    Room,
    get,
    identified,
    is_place_of,
    named,
    new_term,
    of,
    put,
    same,
    set_of,
    texted,
    time_of,
    write_number,
)
from kelda.rdf.turtle_tokens_kernels import (
    MORE_SCRATCH,
    ends_word,
    gap,
    is_space,
    new_blank,
    node,
    number,
    prefix_at,
    string,
)

# What `parse` keeps in its state between calls: the message it is at, the rows and events so far, the rows
# that are asked for; what is needed (of the dictionary: entries and bytes); a clash in the dictionary.
MESSAGE, ALL_ROWS, EVENTS, FOUND, ENTRIES, BYTES, CLASH_ENTRY, CLASH_START, CLASH_END = range(9)
STATE_SIZE = 16

DONE, FULL, NEEDS_ROOM, COLLISION = range(4)  # what it returns
READ, ODD, TOO_MUCH = range(3)  # what becomes of a message

DEPTH = 64  # brackets and lists in one another
STACK_SIZE = 3 * (DEPTH + 1)

# Terms that every message has: rdf:type, rdf:first, rdf:rest, rdf:nil.
TYPE, FIRST, REST, NIL, FIXED = range(5)

# Columns of the rules, as `skim_kernels` has them.
_RULE_P, _RULE_S, _RULE_S_MASK, _RULE_O, _RULE_O_MASK = range(5)

# What is expected: a statement, a verb, a verb or the end of what it is said of, an object, something behind
# an object; the inside of brackets that just opened, and what comes behind those of a subject; a dot.
_TOP, _VERB, _MAYBE_VERB, _OBJECT, _AFTER, _SUBJECT_OPENS, _OPENS, _LIST_OPENS, _AFTER_SUBJECT, _DOT_ONLY = (
    range(10)
)
_BRACKET, _SUBJECT, _LIST = range(3)  # what is open
_ROW = 4
_IS_KNOWN = -2  # the place of a term that is not remembered, but in the dictionary

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


class Messages(NamedTuple):
    """Where messages begin and end, and the number of each, for the labels of its blank nodes."""

    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    numbers: NDArray[np.int64]
    odd: NDArray[np.bool_]


class Work(NamedTuple):
    """What is used again and again."""

    counts: NDArray[np.int64]
    terms: NDArray[np.int64]
    rows: NDArray[np.int64]
    scratch: NDArray[np.uint8]
    names: NDArray[np.int64]
    name_texts: NDArray[np.uint8]
    labels: NDArray[np.int64]
    stack: NDArray[np.int64]


class Prefixes(NamedTuple):
    """The prefixes in force, in a table of `mask` + 1 places; behind these what the base begins relative IRIs
    and fragments with, and the terms that every message has."""

    table: NDArray[np.int64]
    text: NDArray[np.uint8]
    mask: int


class Found(NamedTuple):
    """The time and event of all rows, the record of all events, and the rows that are asked for."""

    times: NDArray[np.int64]
    events: NDArray[np.int64]
    records: NDArray[np.int64]
    columns: NDArray[np.int64]  # s, p, o, g, row


@helper
def _emit(room, s, p, o, g):  # type: ignore[no-untyped-def]
    row = get(room.counts, ROWS)
    put(room.rows, row * _ROW, s)
    put(room.rows, row * _ROW + 1, p)
    put(room.rows, row * _ROW + 2, o)
    put(room.rows, row * _ROW + 3, g)
    put(room.counts, ROWS, row + 1)


@helper
def _turned(room, first, last):  # type: ignore[no-untyped-def]
    """Have the rows of one token last first."""
    last -= 1
    while first < last:
        for k in range(_ROW):
            row = get(room.rows, first * _ROW + k)
            put(room.rows, first * _ROW + k, get(room.rows, last * _ROW + k))
            put(room.rows, last * _ROW + k, row)
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
def _message(text, begin, limit, room, mask, is_document, most_terms, most_rows, most_scratch, seed):  # type: ignore[no-untyped-def]
    """Read a message: its terms and rows are in the room. READ, ODD or TOO_MUCH."""
    none = np.int64(-1)
    i = begin
    state = _TOP
    depth = np.int64(0)
    s = p = g = pending = none
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
                    if ends_word(after) or (after == _DOT and is_space(load8(text, i + size + 1))):
                        if word in (_TRUE, _FALSE):
                            end = i + size
                            o = new_term(room, STRING, none, none, none, none, none, 0)
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
                put(room.rows, (get(room.counts, ROWS) - 1) * _ROW + 3, o)
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
            end, s = node(text, i, room, mask)
            if end < 0 or end > limit:
                return ODD
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


# ------------------------------------------------------------------------------ what it says


@helper
def _number_blanks(room, keeps_labels):  # type: ignore[no-untyped-def]
    """Number the blank nodes of a message by their first appearance, unless they have labels that are kept;
    how many have numbers."""
    next = np.int64(0)
    for row in range(get(room.counts, ROWS)):
        for part in (0, 2, 3):
            term = get(room.rows, row * _ROW + part)
            if term >= FIXED and of(room, term, KIND) == BLANK and of(room, term, OF) < 0:
                if keeps_labels and of(room, term, A) >= 0:
                    continue
                set_of(room, term, OF, next)
                next += 1
    return next


@helper
def _time(text, room, times, is_named, seed):  # type: ignore[no-untyped-def]
    """(whether it is clear, whether there is one, the time) of a message: what `event_time` says."""
    none = np.int64(0)
    best = times.shape[0]
    latest = none
    for row in range(get(room.counts, ROWS)):
        p = get(room.rows, row * _ROW + 1)
        id, _ = named(text, p, room, seed) if of(room, p, ID) == 0 else (of(room, p, ID), np.uint64(0))
        place = of(room, p, PLACE)
        entry = place * NAME_COLUMNS
        if is_place_of(room, place, id) and get(room.names, entry + ASKED) >= 0:
            which = get(room.names, entry + TIME)
        else:
            which = np.int64(-1)
            for k in range(times.shape[0]):
                if times[k] == id:
                    which = np.int64(k)
        if which < 0 or which > best:
            continue
        o = get(room.rows, row * _ROW + 2)
        is_literal = o >= FIXED and of(room, o, KIND) >= STRING
        if not is_literal:
            if is_named:
                return False, False, none
            continue
        if of(room, o, KIND) == STRING and of(room, o, START) < 0:  # a boolean
            return False, False, none
        clear, time = time_of(text, o, room)
        if not clear:
            return False, False, none
        if which < best or time > latest:
            best, latest = which, time
    is_there = best < times.shape[0]
    return is_there or not is_named, is_there, latest


@helper
def _is_asked(rules, p):  # type: ignore[no-untyped-def]
    found = False
    for k in range(rules.shape[0]):
        found |= rules[k, _RULE_P] == 0 or rules[k, _RULE_P] == p
    return found


@helper
def _look_up(room, place, id, rules, times):  # type: ignore[no-untyped-def]
    """Note what is asked of a predicate that is remembered."""
    entry = place * NAME_COLUMNS
    which = -1
    for k in range(times.shape[0]):
        if times[k] == id:
            which = k
    put(room.names, entry + TIME, which)
    put(room.names, entry + ASKED, 1 if _is_asked(rules, id) else 0)


@njit(cache=True, nogil=True)
def parse(buf, messages, prefixes, scope, work, asked, times, how, seed, tables, found, state):  # type: ignore[no-untyped-def]
    """Read messages from state[MESSAGE] on. `buf` has `WIDTH` bytes before the text, a line feed behind it
    and then padding. `scope` is what the labels of blank nodes begin with. `times` are the ids of the predicates
    that may say the time; `how` says whether one was named, whether a message needs a time, and
    whether these are parts of one document in Turtle: then blank nodes keep their labels.

    Returns DONE; or FULL, when larger arrays are needed (state[BYTES]: of scratch; else of terms and rows);
    NEEDS_ROOM and COLLISION as `ntriples_kernels.parse`. Then to call again.
    """
    begins, ends, numbers, odd = messages
    counts, terms, rows, scratch, names, name_texts, labels, stack = work
    table, prefix_text, mask = prefixes
    rules, sets = asked
    is_named, needs_time, is_document = how
    tables = Tables(*tables)
    all_times, all_events, records, columns = found
    text = buf.ctypes.data + np.uint64(WIDTH)
    scope_at = scratch.shape[0] - 2 * WIDTH
    room = Room(
        counts.ctypes.data,
        terms.ctypes.data,
        rows.ctypes.data,
        np.int64(scratch.ctypes.data) - np.int64(text),
        names.ctypes.data,
        name_texts.ctypes.data,
        table.ctypes.data,
        prefix_text.ctypes.data,
        labels.ctypes.data,
        stack.ctypes.data,
        scratch.ctypes.data + np.uint64(scope_at),
    )
    most_scratch = scope_at - MORE_SCRATCH
    scratch[scope_at : scope_at + scope.shape[0]] = scope
    for k in range(FIXED):
        row = (mask + 3 + k) * PREFIX_COLUMNS
        set_of(room, k, KIND, IRI)
        start = np.int64(prefix_text.ctypes.data) - np.int64(text) + get(room.prefixes, row + IRI_AT)
        set_of(room, k, START, start)
        set_of(room, k, END, start + get(room.prefixes, row + IRI_SIZE))
        set_of(room, k, ID, 0)
        set_of(room, k, PLACE, -1)
    message, row, event, many = state[MESSAGE], state[ALL_ROWS], state[EVENTS], state[FOUND]
    status = DONE
    while message < begins.shape[0] and status == DONE:
        counts[TERMS], counts[ROWS], counts[USED], counts[NEED], counts[BLANKS] = (
            FIXED,
            0,
            0,
            4 * MORE_SCRATCH,
            0,
        )
        counts[STAMP] += 1
        became = ODD
        if not odd[message]:
            became = _message(
                text,
                begins[message],
                ends[message],
                room,
                mask,
                is_document,
                terms.shape[0] // TERM_SIZE,
                min(rows.shape[0] // _ROW, all_times.shape[0] - row, columns.shape[1] - many),
                most_scratch,
                seed,
            )
        size = counts[ROWS]
        is_there, time = False, np.int64(0)
        if became == READ and counts[USED] + counts[NEED] + MORE_SCRATCH > most_scratch:
            became = TOO_MUCH
        if became == READ and size > 0:
            clear, is_there, time = _time(text, room, times, is_named, seed)
            if not clear or (needs_time and not is_there):
                became = ODD
        if became == TOO_MUCH:
            state[BYTES] = counts[USED] + counts[NEED]
            status = FULL
            break
        if became == ODD:
            odd[message] = True
            message += 1
            continue
        scope_size = np.int64(0)
        if counts[BLANKS] > 0 or counts[TERMS] > FIXED:
            blanks = _number_blanks(room, is_document)
            if blanks > 0:
                at = write_number(room.scope, np.int64(scope.shape[0]), numbers[message])
                scratch[scope_at + at] = 98
                scope_size = at + 1
                if counts[USED] + counts[NEED] + blanks * (scope_size + 24) + MORE_SCRATCH > most_scratch:
                    state[BYTES] = counts[USED] + counts[NEED] + blanks * (scope_size + 24)
                    status = FULL
                    break
                counts[NEED] += blanks * (scope_size + 24)
        if not has_room(tables, counts[TERMS], counts[NEED]):
            state[ENTRIES], state[BYTES] = counts[TERMS], counts[NEED]
            status = NEEDS_ROOM
            break
        if size > 0:
            records[event] = message
        for k in range(size):
            all_times[row + k] = time if is_there else np.int64(-(2**63))
            all_events[row + k] = event
            p_term = get(room.rows, k * _ROW + 1)
            p = identified(text, p_term, room, scope_size, seed)
            place = of(room, p_term, PLACE)
            if is_place_of(room, place, p):
                if get(room.names, place * NAME_COLUMNS + ASKED) < 0:
                    _look_up(room, place, p, rules, times)
                if get(room.names, place * NAME_COLUMNS + ASKED) == 0:
                    continue
            elif not _is_asked(rules, p):
                continue
            s_term, o_term = get(room.rows, k * _ROW), get(room.rows, k * _ROW + 2)
            matches = False
            for r in range(rules.shape[0]):
                if rules[r, _RULE_P] != 0 and rules[r, _RULE_P] != p:
                    continue
                if rules[r, _RULE_S_MASK] >= 0:
                    s = identified(text, s_term, room, scope_size, seed)
                    if not has(sets, rules[r, _RULE_S], rules[r, _RULE_S_MASK], s):
                        continue
                if rules[r, _RULE_O_MASK] >= 0:
                    o = identified(text, o_term, room, scope_size, seed)
                    if not has(sets, rules[r, _RULE_O], rules[r, _RULE_O_MASK], o):
                        continue
                matches = True
                break
            if not matches:
                continue
            for part in range(4):
                term = get(room.rows, k * _ROW + part)
                id = np.int64(0)
                if term >= 0:
                    id = identified(text, term, room, scope_size, seed)
                columns[part, many] = id
                if id <= 0:
                    continue
                place = of(room, term, PLACE)
                if place == _IS_KNOWN:
                    continue
                remembered = is_place_of(room, place, id)
                if remembered and get(room.names, place * NAME_COLUMNS + KNOWN) != 0:
                    continue
                texted(text, term, room)
                start, end = of(room, term, START), of(room, term, END)
                entry = intern(tables, id, check_of(text, start, end, seed), text, start, end)
                if entry < 0:
                    state[CLASH_ENTRY], state[CLASH_START], state[CLASH_END] = -1 - entry, start, end
                    status = COLLISION
                if remembered:
                    put(room.names, place * NAME_COLUMNS + KNOWN, 1)
                else:
                    set_of(room, term, PLACE, _IS_KNOWN)
            columns[4, many] = row + k
            many += 1
        row += size
        event += size > 0
        message += 1
    state[MESSAGE], state[ALL_ROWS], state[EVENTS], state[FOUND] = message, row, event, many
    return status
