"""Kernels: messages in Turtle, TriG, N-Triples and N-Quads, from text to columns of ids.

A message is read whole before anything of it is made known. The common forms of all tokens are read, and
those exactly as pyoxigraph reads them; a message with anything else in it is *odd*, and left to that. So the
kernel never has to judge a message invalid.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kelda.rdf.byte_masks import WIDTH
from kelda.rdf.hash_kernels import Tables, check_of, has_room, helper, intern
from kelda.rdf.keyset_kernels import has
from kelda.rdf.turtle_statement_kernels import FIXED, ODD, READ, ROW_SIZE, TOO_MUCH, read_message
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
    NAME_COLUMNS,
    NEED,
    NOWHERE,
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
    of,
    put,
    set_of,
    texted,
    time_of,
    write_number,
)
from kelda.rdf.turtle_tokens_kernels import (
    MORE_SCRATCH,
)

# What `parse` keeps in its state between calls: the message it is at, the rows and events so far, the rows
# that are asked for; what is needed (of the dictionary: entries and bytes); a clash in the dictionary.
MESSAGE, ALL_ROWS, EVENTS, FOUND, ENTRIES, BYTES, CLASH_ENTRY, CLASH_START, CLASH_END = range(9)
STATE_SIZE = 16

DONE, FULL, NEEDS_ROOM, COLLISION = range(4)  # what it returns
# Columns of the rules, as `skim_kernels` has them.
_RULE_P, _RULE_S, _RULE_S_MASK, _RULE_O, _RULE_O_MASK = range(5)

_IS_KNOWN = -2  # the place of a term that is not remembered, but in the dictionary


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


# ------------------------------------------------------------------------------ what it says


@helper
def _number_blanks(room, keeps_labels):  # type: ignore[no-untyped-def]
    """Number the blank nodes of a message by their first appearance, unless they have labels that are kept;
    how many have numbers."""
    next = np.int64(0)
    for row in range(get(room.counts, ROWS)):
        for part in (0, 2, 3):
            term = get(room.rows, row * ROW_SIZE + part)
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
        p = get(room.rows, row * ROW_SIZE + 1)
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
        o = get(room.rows, row * ROW_SIZE + 2)
        is_literal = o >= FIXED and of(room, o, KIND) >= STRING
        if not is_literal:
            if is_named:
                return False, False, none
            continue
        if of(room, o, KIND) == STRING and of(room, o, START) == NOWHERE:  # a boolean
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
    and then padding. `scope` is what the labels of blank nodes begin with. `times` are the ids of the
    predicates that may say the time; `how` says whether one was named, whether a message needs a time, and
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
            became = read_message(
                text,
                begins[message],
                ends[message],
                room,
                mask,
                is_document,
                terms.shape[0] // TERM_SIZE,
                min(rows.shape[0] // ROW_SIZE, all_times.shape[0] - row, columns.shape[1] - many),
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
            p_term = get(room.rows, k * ROW_SIZE + 1)
            p = identified(text, p_term, room, scope_size, seed)
            place = of(room, p_term, PLACE)
            if is_place_of(room, place, p):
                if get(room.names, place * NAME_COLUMNS + ASKED) < 0:
                    _look_up(room, place, p, rules, times)
                if get(room.names, place * NAME_COLUMNS + ASKED) == 0:
                    continue
            elif not _is_asked(rules, p):
                continue
            s_term, o_term = get(room.rows, k * ROW_SIZE), get(room.rows, k * ROW_SIZE + 2)
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
                term = get(room.rows, k * ROW_SIZE + part)
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
