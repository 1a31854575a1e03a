"""Kernel: of text with times, what somebody asks for.

Every line is checked as `ntriples_kernels.parse` checks it, but only of statements that are asked for are the
ids made. What lines have in common is not looked at twice: a line is known by comparing bytes, piece by
piece.

    1264982416173 <http://…/post/po7997> <http://…#title> "null" .
    ───── as the line before ────────────┤── a name ──────┤      ├─ as the last behind that name
                                                          a look

Time and subject are often those of the line before; the predicate is one of two that came behind the one
before; the object is looked at up to where it closes (an IRI with a host that is known there, for characters
that any IRI may have; a literal, for its quote); and all behind that, its datatype too, is what it was the
last time. Where a piece is not as expected, it is read by itself, and remembered.

Text that stands in a file is read here too, block by block: to come back to Python for each costs a few
hundredths of the time, and many times as much where another thread is busy there
(docs/decisions/skimming.md).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from kelda.rdf.byte_masks import WIDTH, differing, first_bit, move
from kelda.rdf.hash_kernels import helper, identity_of, inlined, load8, load64, store8, store64
from kelda.rdf.keyset_kernels import has
from kelda.rdf.ntriples_kernels import (
    ends,
    ends_with_feed,
    host_at,
    iri_at,
    line_feed,
    node_at,
    not_common_in_iris,
    object_at,
    skip,
    special_in_quotes,
    time_at,
)

# What `skim` keeps in its state between calls. The first are for the caller to read and to set: how much text
# is in the block, from where to where the next stands in the file, the line, the rows so far; how many runs
# and rows were found, and how many bytes of their terms are kept behind the block.
SIZE, AT, UNTIL, LINE, ROWS, RUNS, FOUND, KEPT = range(8)
# A line that the kernel is not sure about: where it begins and ends; and what the caller found there.
BEGIN, END, VERDICT, TIME, SUBJECT, PREDICATE, OBJECT = range(8, 15)
# The rest is its own: where the next line begins, the time of the last row, the last predicate's place, how
# many rows have their terms kept.
_POSITION, _LAST_TIME, _LAST_NAME, _ROWS_KEPT = range(15, 19)
STATE_SIZE = 19

MORE, ASK, FULL = 0, 1, 2  # what it returns
NONE, STATEMENT, NO_STATEMENT = 0, 1, 2  # verdicts
SHORTEST = 12  # bytes of a line with a time and a statement: fewer than any has
MANY = 1000  # rows of a block whose terms are not kept, but taken by the caller as they stand

# Columns of the rules: predicate (0: any), and where in the tables the set of subjects and that of objects
# begins, with its size less one (-1: any will do).
RULE_P, RULE_S, RULE_S_MASK, RULE_O, RULE_O_MASK = range(5)
RULE_SIZE = 5

# Predicates that are remembered, by the low bits of their ids. Of each: the id, the size of its text (0: too
# long, or none), the places of two that came behind it, the size of the text behind the last object that it
# had (0: none), and whether any rule asks for it.
NAMES = 1024
NAME_ID, NAME_SIZE, NAME_NEXT, NAME_OTHER, NAME_TAIL, NAME_ASKED = range(6)
NAME_COLUMNS = 8
# Their texts, with a blank behind, and the text behind an object, from where it closes to the end of the
# line.
NAME_ROOM, TAIL_ROOM = 128, WIDTH
NAME_STRIDE, TAIL_STRIDE = NAME_ROOM + WIDTH, TAIL_ROOM + WIDTH
# Beginnings of IRIs, from "<" to the slash behind the host, by a hash of some of it; with their sizes.
HOSTS, HOST_STRIDE = 16, 2 * WIDTH

_SPACE, _QUOTE, _HASH, _DOT, _LESS, _GREATER = 32, 34, 35, 46, 60, 62
_LF = 10
_NOTHING = np.int64(0)

# Of the system: file, address, size, position.
_pread = types.ExternalFunction("pread", types.int64(types.int32, types.uint64, types.uint64, types.int64))


# Records. Python hands over plain tuples, whose types numba finds far sooner than those of named ones.


class Block(NamedTuple):
    """Text that is read at once: where it stands, how many bytes it may have, the file that more of it comes
    from (-1: none), and whether it is the last."""

    buffer: NDArray[np.uint8]
    room: int
    file: int
    final: bool


class Rules(NamedTuple):
    """What is asked for, and the sets of ids in it."""

    rows: NDArray[np.int64]
    tables: NDArray[np.int64]


class Known(NamedTuple):
    """What is remembered of predicates, of texts behind objects and of hosts: the arrays' addresses."""

    names: int
    texts: int
    tails: int
    hosts: int
    host_sizes: int


class Found(NamedTuple):
    """Rows that are asked for, and where their terms stand; the runs of all rows."""

    columns: NDArray[np.int64]
    spans: NDArray[np.int32]
    heads: NDArray[np.int64]
    times: NDArray[np.int64]


class Before(NamedTuple):
    """Of the line before: where it begins, how much of it is its time, where in it the subject is, and how
    much comes before the predicate (all of no size at first); the place of that; the subject's id (0: not
    made yet), and whether no rule can match it, as far as is known."""

    start: int
    time_size: int
    s_offset: int
    s_size: int
    p_offset: int
    name: int
    s: int
    barred: bool


@inlined
def _same(text, i, other, k, size):  # type: ignore[no-untyped-def]
    """Whether `size` bytes, at least one, are the same."""
    while size > WIDTH:
        if differing(text, i, other, k) != 0:
            return False
        i += WIDTH
        k += WIDTH
        size -= WIDTH
    return differing(text, i, other, k) << np.uint64(WIDTH - size) == 0


@helper
def _copy(text, i, other, k, size):  # type: ignore[no-untyped-def]
    """Write `size` bytes of `text` to `other`."""
    for at in range(size):
        store8(other, k + at, load8(text, i + at))


@helper
def _move(text, i, other, k, size):  # type: ignore[no-untyped-def]
    """Write `size` bytes of `text` to `other`, and some that do not matter behind them; forwards."""
    for at in range(0, size, WIDTH):
        move(text, i + at, other, k + at)


# ------------------------------------------------------------------------------ what is remembered


@inlined
def _of(known, place, column):  # type: ignore[no-untyped-def]
    return np.int64(load64(known.names, (place * NAME_COLUMNS + column) * 8))


@helper
def _set(known, place, column, value):  # type: ignore[no-untyped-def]
    store64(known.names, (place * NAME_COLUMNS + column) * 8, np.int64(value))


@helper
def _named(known, id, text, start, end):  # type: ignore[no-untyped-def]
    """The place of a predicate, which is known there from now on."""
    place = id & (NAMES - 1)
    if _of(known, place, NAME_ID) != id:
        _set(known, place, NAME_ID, id)
        _set(known, place, NAME_SIZE, 0)
        _set(known, place, NAME_TAIL, 0)
        if end - start <= NAME_ROOM:
            _set(known, place, NAME_SIZE, end - start)
            _copy(text, start, known.texts, place * NAME_STRIDE, end - start)
            store8(known.texts, place * NAME_STRIDE + end - start, _SPACE)
    return place


@inlined
def _is_named(known, place, text, start, behind):  # type: ignore[no-untyped-def]
    """Whether the predicate of a place stands at `start`, with so much (0 or 1) of the blank behind it."""
    size = _of(known, place, NAME_SIZE)
    return size > 0 and _same(text, start, known.texts, place * NAME_STRIDE, size + behind)


@inlined
def _host_place(text, start):  # type: ignore[no-untyped-def]
    """Where the beginning of the IRI at `start` would be known."""
    return np.int64((load64(text, start + 8) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(60))


@helper
def _learn_host(known, text, start):  # type: ignore[no-untyped-def]
    end = host_at(text, start)
    if end >= 0 and end - start <= WIDTH:
        place = _host_place(text, start)
        store64(known.host_sizes, place * 8, end - start)
        _copy(text, start, known.hosts, place * HOST_STRIDE, end - start)


@inlined
def _iri_closes(known, text, start):  # type: ignore[no-untyped-def]
    """Where the ">" of the IRI at `start` is; -1 if that takes more than a look."""
    place = _host_place(text, start)
    size = np.int64(load64(known.host_sizes, place * 8))
    if size == 0 or differing(text, start, known.hosts, place * HOST_STRIDE) << np.uint64(WIDTH - size) != 0:
        return np.int64(-1)
    # What may be in a host may be behind it too.
    mask = not_common_in_iris(text, start + 1)
    if mask == 0:
        return np.int64(-1)
    i = start + 1 + first_bit(mask)
    if load8(text, i) == _HASH:
        mask = not_common_in_iris(text, i + 1)
        if mask == 0:
            return np.int64(-1)
        i += 1 + first_bit(mask)
    return i if load8(text, i) == _GREATER else np.int64(-1)


@inlined
def _closes(known, text, start):  # type: ignore[no-untyped-def]
    """Where the object at `start` closes, with ">" or a quote; -1 if that takes more than a look."""
    first = load8(text, start)
    if first == _QUOTE:
        i = start + 1
        mask = special_in_quotes(text, i)
        while mask == 0:
            i += WIDTH
            mask = special_in_quotes(text, i)
        i += first_bit(mask)
        return i if load8(text, i) == _QUOTE else np.int64(-1)
    if first == _LESS:
        return _iri_closes(known, text, start)
    return np.int64(-1)


@helper
def asks_for(rules, p):  # type: ignore[no-untyped-def]
    found = False
    for k in range(rules.shape[0]):
        found |= rules[k, RULE_P] == 0 or rules[k, RULE_P] == p
    return found


@njit(cache=True, nogil=True)
def ask(names, rules):  # type: ignore[no-untyped-def]
    """Note which of the predicates that are known some rule asks for."""
    for place in range(NAMES):
        names[place, NAME_ASKED] = asks_for(rules, names[place, NAME_ID])


# ------------------------------------------------------------------------------ reading


@helper
def _object_id(text, start, seed):  # type: ignore[no-untyped-def]
    """The id of the object at `start`, whose text is canonical now, and where that ends."""
    _, end, inline = object_at(text, start, True)
    return inline if inline != 0 else identity_of(text, start, end, seed), end


@helper
def _statement_ends(text, o_start):  # type: ignore[no-untyped-def]
    """The line feed behind a statement whose object is at `o_start`; -1 when unsure."""
    after, _, _ = object_at(text, o_start, False)
    if after < 0:
        return np.int64(-1)
    at = skip(text, after)
    if load8(text, at) != _DOT:  # a graph, whose name nobody asks for
        at = node_at(text, at)
        if at < 0:
            return np.int64(-1)
        at = skip(text, at)
    if load8(text, at) != _DOT:
        return np.int64(-1)
    return np.int64(ends_with_feed(text, skip(text, at + 1)))


@inlined
def _is_barred(rules, s):  # type: ignore[no-untyped-def]
    """Whether no rule may match a statement with this subject."""
    for k in range(rules.rows.shape[0]):
        mask = rules.rows[k, RULE_S_MASK]
        if mask < 0 or has(rules.tables, rules.rows[k, RULE_S], mask, s):
            return False
    return True


@helper
def _usual_lines(text, start, size, before, known, rules, seed):  # type: ignore[no-untyped-def]
    """Pass over lines with the time of the line before that are as expected, and that no rule asks for.

    Nearly all lines are such, so this is a loop by itself, which does nothing else: the other lines are for
    `skim`, in which it has no place to be as fast. Returns where it ends, what is known of the line before
    there, and how many lines there are.
    """
    first, time_size, s_offset, s_size, p_offset, name, s, barred = before
    lines = _NOTHING
    while True:
        if p_offset == 0 or not _same(text, start, text, first, p_offset):
            body = start + time_size
            if load8(text, body) != _LESS or not _same(text, start, text, first, time_size):
                break
            s_end = _iri_closes(known, text, body) + 1
            if s_end <= 0 or load8(text, s_end) != _SPACE or load8(text, s_end + 1) != _LESS:
                break
            first, s_offset, s_size, p_offset = start, time_size, s_end - body, s_end + 1 - start
            s, barred = _NOTHING, False
        p_start = start + p_offset
        place = _of(known, name, NAME_NEXT)
        if not _is_named(known, place, text, p_start, 1):
            place = _of(known, name, NAME_OTHER)
            if not _is_named(known, place, text, p_start, 1):
                break
        if _of(known, place, NAME_ASKED) != 0 and not barred:
            if s == 0:
                s = identity_of(text, first + s_offset, first + s_offset + s_size, seed)
            barred = _is_barred(rules, s)
            if not barred:
                break
        closes = _closes(known, text, p_start + _of(known, place, NAME_SIZE) + 1)
        tail = _of(known, place, NAME_TAIL)
        if closes < 0 or tail == 0 or closes + tail > size:
            break
        if not _same(text, closes, known.tails, place * TAIL_STRIDE, tail):
            break
        lines += 1
        start, name = closes + tail, place
    return start, Before(first, time_size, s_offset, s_size, p_offset, name, s, barred), lines


@helper
def _keep(text, first, found, spans, kept):  # type: ignore[no-untyped-def]
    """Move the terms of some rows behind the `kept` bytes of those before; where they end then."""
    for row in range(first, found):
        for part in range(3):
            start, end = np.int64(spans[2 * part, row]), np.int64(spans[2 * part + 1, row])
            _move(text, start, text, kept, end - start)
            spans[2 * part, row] = kept
            kept += end - start
            spans[2 * part + 1, row] = kept if end > 0 else 0
    return kept


@njit(cache=True, nogil=True)
def skim(block, asked, known, found, seed, state):  # type: ignore[no-untyped-def]
    """Read lines of a block, of which state[SIZE] bytes are there, with room for one more behind it; unless
    it is the last, its last line may go on and is left. Text from state[AT] to state[UNTIL] of a file is read
    here. Behind the block, from `WIDTH` bytes on, is room for terms that are kept while the next is read.
    What is known of predicates is from `ask` with these rules.

    Every statement is a row. Where a run of rows with one time begins is in `heads`, and that time in
    `times`; rows that match one of the rules are in `columns` (s, p, o, 0, row), and in `spans` where in the
    block their terms begin and end (as `Dictionary.add_rows` wants it).

    Returns MORE, with what is left at the front of the block, when it needs more text (or there is none,
    after the last); ASK at a line that it is not sure about: the caller is to put what it is into the state;
    FULL: the caller is to take what was found, and to set the numbers of that to 0. Then to call again.
    """
    buf, room, file, final = Block(*block)
    rules = Rules(*asked)
    rule, tables = rules
    columns, spans, heads, times = Found(*found)
    names, texts, tails, hosts, host_sizes = known
    known = Known(
        names.ctypes.data, texts.ctypes.data, tails.ctypes.data, hosts.ctypes.data, host_sizes.ctypes.data
    )
    text = buf.ctypes.data
    line_start, size, line, row = state[_POSITION], state[SIZE], state[LINE], state[ROWS]
    runs, many, kept = state[RUNS], state[FOUND], state[KEPT]
    rows_kept = min(many, state[_ROWS_KEPT])
    last_time, name = state[_LAST_TIME], state[_LAST_NAME]
    status = MORE
    # What is in `Before`, one by one: to put it together at each line would take longer than to read it.
    before, time_size, s_offset, s_size, before_p = line_start, _NOTHING, _NOTHING, _NOTHING, _NOTHING
    time = s = _NOTHING
    barred = False
    was_found = False  # the line before
    while True:
        if max(runs, many) + size // SHORTEST + 1 > heads.shape[0]:
            status = FULL
            break
        store8(text, size, _LF)
        while line_start < size:
            if not was_found and time_size > 0 and row > 0 and time == last_time and state[VERDICT] == NONE:
                last = Before(before, time_size, s_offset, s_size, before_p, name, s, barred)
                line_start, last, lines = _usual_lines(text, line_start, size, last, known, rules, seed)
                before, time_size, s_offset, s_size, before_p, name, s, barred = last
                row += lines
                line += lines
                if line_start >= size:
                    break
            p = o = _NOTHING
            body = stop = s_end = p_start = p_end = o_start = o_end = next_start = np.int64(-1)
            place = name
            is_row = is_asked = is_given = False
            if state[VERDICT] != NONE:
                is_row = is_asked = is_given = state[VERDICT] == STATEMENT
                time, s, p, o = state[TIME], state[SUBJECT], state[PREDICATE], state[OBJECT]
                time_size = s_size = before_p = _NOTHING
                next_start = state[END] + 1
                state[VERDICT] = NONE
            else:
                if before_p > 0 and _same(text, line_start, text, before, before_p):
                    body = line_start + s_offset
                    s_end = body + s_size
                    p_start = line_start + before_p
                else:
                    if time_size > 0 and _same(text, line_start, text, before, time_size):
                        body = line_start + time_size
                    else:
                        body, time = time_at(text, line_start)
                        time_size = body - line_start
                    before_p = _NOTHING
                    if body < 0:
                        time_size = s_size = _NOTHING
                        body = skip(text, line_start)
                        if load8(text, body) == _HASH:  # a comment goes to the end of its line
                            stop = line_feed(text, body)
                        elif ends(text, body):
                            stop = ends_with_feed(text, body)
                    else:
                        body = skip(text, body)
                        is_iri = load8(text, body) == _LESS
                        if is_iri and s_size > 0 and _same(text, body, text, before + s_offset, s_size):
                            s_end = body + s_size
                        else:
                            s, barred = _NOTHING, False
                            if is_iri:
                                s_end = _iri_closes(known, text, body) + 1
                            if s_end <= 0:
                                s_end = node_at(text, body)
                                _learn_host(known, text, body)
                        if s_end >= 0:
                            p_start = skip(text, s_end)
                            before_p = p_start - line_start
                        s_offset, s_size = body - line_start, max(_NOTHING, s_end - body)
                    before = line_start
                if p_start >= 0:
                    place = _of(known, name, NAME_NEXT)
                    if not _is_named(known, place, text, p_start, 0):
                        place = _of(known, name, NAME_OTHER)
                        if not _is_named(known, place, text, p_start, 0):
                            place = np.int64(-1)
                    if place >= 0:
                        p, p_end = _of(known, place, NAME_ID), p_start + _of(known, place, NAME_SIZE)
                    elif load8(text, p_start) == _LESS:
                        p_end = iri_at(text, p_start)
                        if p_end >= 0:
                            p = identity_of(text, p_start, p_end, seed)
                            place = _named(known, p, text, p_start, p_end)
                            _set(known, place, NAME_ASKED, asks_for(rule, p))
                            _set(known, name, NAME_OTHER, _of(known, name, NAME_NEXT))
                            _set(known, name, NAME_NEXT, place)
                    if p_end >= 0:
                        is_asked = _of(known, place, NAME_ASKED) != 0
                        o_start = skip(text, p_end)
                        closes = _closes(known, text, o_start)
                        tail, at = _of(known, place, NAME_TAIL), place * TAIL_STRIDE
                        if closes >= 0 and tail > 0 and _same(text, closes, known.tails, at, tail):
                            next_start = closes + tail
                        if next_start >= 0 and next_start <= size:
                            is_row = True
                        else:
                            stop = _statement_ends(text, o_start)
                            next_start = np.int64(-1)
                            if stop >= 0:
                                is_row = True
                                if closes < 0:
                                    _learn_host(known, text, o_start)
                                elif stop < size and stop - closes < TAIL_ROOM:
                                    tail = stop + 1 - closes
                                    _set(known, place, NAME_TAIL, tail)
                                    _copy(text, closes, known.tails, at, tail)
                if next_start < 0:
                    unsure = stop < 0
                    if unsure:
                        stop = line_feed(text, line_start)
                    if not final and stop >= size:
                        break
                    if unsure:
                        state[BEGIN], state[END] = line_start, stop
                        status = ASK
                        break
                    next_start = stop + 1
            was_found = False
            if is_row:
                if row == 0 or time != last_time:
                    heads[runs] = row
                    times[runs] = time
                    runs += 1
                    last_time = time
                for k in range(rule.shape[0] if is_asked else 0):
                    if rule[k, RULE_P] != 0 and rule[k, RULE_P] != p:
                        continue
                    if rule[k, RULE_S_MASK] >= 0:
                        if s == 0:
                            s = identity_of(text, body, s_end, seed)
                        if not has(tables, rule[k, RULE_S], rule[k, RULE_S_MASK], s):
                            continue
                    if rule[k, RULE_O_MASK] >= 0:
                        if o == 0:
                            o, o_end = _object_id(text, o_start, seed)
                        if not has(tables, rule[k, RULE_O], rule[k, RULE_O_MASK], o):
                            continue
                    if s == 0:
                        s = identity_of(text, body, s_end, seed)
                    if o == 0:
                        o, o_end = _object_id(text, o_start, seed)
                    columns[0, many], columns[1, many], columns[2, many] = s, p, o
                    columns[3, many], columns[4, many] = 0, row
                    spans[:, many] = 0
                    if not is_given:
                        spans[0, many], spans[1, many] = body, s_end
                        spans[2, many], spans[3, many] = p_start, p_end
                        spans[4, many], spans[5, many] = o_start, o_end
                    many += 1
                    was_found = True
                    break
                row += 1
            line_start, name = next_start, max(_NOTHING, place)
            line += 1
        if status == ASK or final:
            break
        behind = room + 1 + WIDTH + kept
        if many - rows_kept > MANY or behind + size + WIDTH > buf.shape[0]:
            status = FULL
            break
        kept += _keep(text, rows_kept, many, spans, behind) - behind
        rows_kept = many
        size = max(_NOTHING, size - line_start)
        _move(text, line_start, text, 0, size)
        line_start = before = time_size = s_size = before_p = _NOTHING
        if size == room or state[AT] >= state[UNTIL]:
            break
        more = _pread(file, text + np.uint64(size), min(room - size, state[UNTIL] - state[AT]), state[AT])
        if more <= 0:  # the caller will find out why
            break
        size += more
        state[AT] += more
    state[_POSITION], state[SIZE], state[LINE], state[ROWS] = line_start, size, line, row
    state[RUNS], state[FOUND], state[KEPT], state[_ROWS_KEPT] = runs, many, kept, rows_kept
    state[_LAST_TIME], state[_LAST_NAME] = last_time, name
    return status
