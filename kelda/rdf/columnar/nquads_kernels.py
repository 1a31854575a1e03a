"""Kernel: of N-Quads, which lines are one event, when it happened, and the ids of what is asked for.

Lines about the same thing (the graph name, or else the subject) are one event, a record; so is a line with a
time: see `framings/nquads.py`, which says what each line means. The kernel judges the common lines by itself,
exactly so. A line that it is not sure about is told to the caller, who says what it is about; the record that
it lies in is *odd*, and of an odd record nothing is kept but where it stands.

What the lines of a record have in common is not looked at twice: subject and graph are compared with those of
the line before, and a predicate with the one that came behind the one before it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kelda.rdf.byte_masks import WIDTH, differing, first_bit
from kelda.rdf.hash_kernels import (
    COLLISION,
    NEEDS_ROOM,
    Tables,
    check_of,
    has_room,
    helper,
    identity_of,
    inlined,
    intern,
    load8,
)
from kelda.rdf.keyset_kernels import has
from kelda.rdf.ntriples_kernels import (
    _datetime as datetime_id,
)
from kelda.rdf.ntriples_kernels import (
    _digits as digits_of,
)
from kelda.rdf.ntriples_kernels import (
    ends,
    ends_with_feed,
    iri_at,
    line_feed,
    node_at,
    object_at,
    skip,
    special_in_quotes,
    time_at,
)
from kelda.rdf.skim_kernels import RULE_O, RULE_O_MASK, RULE_P, RULE_S, RULE_S_MASK, asks_for
from kelda.rdf.times import FIRST_MS, LAST_MS

# What `read` keeps in its state between calls. The first are for the caller to read: the rows, how many of
# them were asked for, the events, the records, the lines.
ROWS, FOUND, EVENTS, RECORDS, LINES = range(5)
# A line that the kernel is not sure about, or an odd record: where it begins and ends, on which line the
# record begins (from 0), and its number. NEEDS_ROOM and COLLISION have theirs in BEGIN and END, too.
BEGIN, END, FIRST_LINE, RECORD = range(5, 9)
# What the caller found on the line: a verdict, and where the thing that it is about begins, and its size.
VERDICT, THING, THING_SIZE = range(9, 12)
# The rest is its own.
_POSITION, _OPEN, _ODD, _RECORD_BEGIN, _RECORD_LINE, _FIRST_ROW, _FIRST_FOUND, _NAME = range(12, 20)
_THING_BEGIN, _THING_END, _STRANGE, _CLOSED = range(20, 24)
_BEST = 24  # the latest time that each of the time predicates gave in the record: NO_TIME if none
MOST_PREDICATES = 4
STATE_SIZE = _BEST + MOST_PREDICATES

END_OF_TEXT, ASK, ODD = 0, 3, 4  # what it returns, beside NEEDS_ROOM (1) and COLLISION (2)
NONE, NOTHING, TIMED, PLAIN, BROKEN = range(5)  # verdicts
SHORTEST = 12  # bytes of a line with a statement: fewer than any has, but the last

# Predicates that were met, by the low bits of their ids: id, where one stands, its size, the place of the one
# that came behind it, whether some rule asks for it, whether the dictionary knows it, which of the
# time predicates it is (-1: none).
NAMES = 256
_ID, _START, _SIZE, _NEXT, _ASKED, _IS_KNOWN, _RANK = range(7)
NAME_COLUMNS = 8

NO_TIME = -(2**63)
_SINCE_YEAR_1 = 62_135_596_800_000
_LF, _CR, _SPACE, _TAB, _QUOTE, _HASH, _DOT, _LESS = 10, 13, 32, 9, 34, 35, 46, 60
_0 = np.int64(0)


class Found(NamedTuple):
    """What `read` writes: of all rows their times and events; of those that are asked for s, p, o, g and row;
    of each event the number of its record."""

    times: NDArray[np.int64]
    events: NDArray[np.int64]
    columns: NDArray[np.int64]
    records: NDArray[np.int64]


@inlined
def _same(text, i, k, size):  # type: ignore[no-untyped-def]
    """Whether `size` bytes, at least one, are the same at both places."""
    while size > WIDTH:
        if differing(text, i, text, k) != 0:
            return False
        i += WIDTH
        k += WIDTH
        size -= WIDTH
    return differing(text, i, text, k) << np.uint64(WIDTH - size) == 0


@inlined
def _again(text, i, start, end):  # type: ignore[no-untyped-def]
    """Whether the IRI or blank node from `start` to `end` stands at `i` too."""
    if end == start or not _same(text, i, start, end - start):
        return False
    behind = load8(text, i + end - start)
    return load8(text, i) == _LESS or behind in (_SPACE, _TAB)


@helper
def _milliseconds(text, start):  # type: ignore[no-untyped-def]
    """(the time that the literal at `start` says, True); False where one has to look closer."""
    start += 1
    end = start
    mask = special_in_quotes(text, end)
    while mask == 0:
        end += WIDTH
        mask = special_in_quotes(text, end)
    end += first_bit(mask)
    if load8(text, end) != _QUOTE or end == start:
        return _0, False
    if end - start <= 15:
        value = digits_of(text, start, end)
        return value, FIRST_MS <= value <= LAST_MS and value >= 0
    id = datetime_id(text, start, end)
    if id == 0:
        return _0, False
    zone = id & 127
    offset = (zone - 58) * 15 if zone > 1 else _0
    return ((id & ((1 << 58) - 1)) >> 9) - _SINCE_YEAR_1 - offset * 60_000, True


@helper
def _rank_of(id, time_ids):  # type: ignore[no-untyped-def]
    for rank in range(time_ids.shape[0]):
        if time_ids[rank] == id:
            return rank
    return -1


@helper
def _is_another(text, begin, end, state):  # type: ignore[no-untyped-def]
    """Whether the thing from `begin` to `end` is not the one that the record is about."""
    thing, size = state[_THING_BEGIN], state[_THING_END] - state[_THING_BEGIN]
    return end - begin != size or not _same(text, begin, thing, size)


@helper
def _intern(tables, id, text, start, end, seed, state):  # type: ignore[no-untyped-def]
    """Have the dictionary know a term; False if it knows another one by that id."""
    if id <= 0:
        return True
    entry = intern(tables, id, check_of(text, start, end, seed), text, start, end)
    if entry >= 0:
        return True
    state[BEGIN], state[END], state[RECORD] = start, end, -1 - entry
    return False


@helper
def _close(state, stop, needs_time, is_named, found):  # type: ignore[no-untyped-def]
    """The record ends at `stop`, on the line of the state; whether it is odd."""
    times, events, _, records = found
    time = np.int64(NO_TIME)
    for rank in range(MOST_PREDICATES):
        if time == NO_TIME:
            time = state[_BEST + rank]
        state[_BEST + rank] = NO_TIME
    begin, line, row, first = state[_RECORD_BEGIN], state[_RECORD_LINE], state[ROWS], state[_FIRST_ROW]
    odd = state[_ODD] != 0 or (time == NO_TIME and (needs_time or is_named) and row > first)
    if odd:
        state[BEGIN], state[END], state[FIRST_LINE], state[RECORD] = begin, stop, line, state[RECORDS]
        state[ROWS], state[FOUND] = first, state[_FIRST_FOUND]
    else:
        event = state[EVENTS]
        for i in range(first, row):
            times[i], events[i] = time, event
        records[event] = state[RECORDS]
        state[EVENTS] = event + 1
    _begin(state, stop)
    return odd


@helper
def _begin(state, at):  # type: ignore[no-untyped-def]
    """What comes from here on is another record."""
    state[RECORDS] += 1
    state[_OPEN] = state[_ODD] = state[_STRANGE] = 0
    state[_FIRST_ROW], state[_FIRST_FOUND] = state[ROWS], state[FOUND]
    state[_RECORD_BEGIN], state[_RECORD_LINE] = at, state[LINES]


@njit(cache=True, nogil=True)
def read(buf, size, rules, time_ids, needs_time, is_named, names, seed, tables, found, state):  # type: ignore[no-untyped-def]
    """Read lines of `buf[:size]`, with a line feed at `size` and `WIDTH` bytes behind it.

    `rules` (of `skim.Asked`) say what is asked for. The time predicates are `time_ids`, the first that gives
    one counts; if it `is_named`, each event must have one; if it `needs_time`, that must come from somewhere.
    Returns END_OF_TEXT; ASK at a line that it is not sure about: the caller puts the verdict into the state;
    ODD for a record that is; NEEDS_ROOM for the entries of a line; COLLISION with the entry in RECORD. Then
    to be called again.
    """
    text = buf.ctypes.data
    rule, sets = rules
    tables = Tables(*tables)
    times, events, columns, records = found
    found = Found(times, events, columns, records)
    at, name = state[_POSITION], state[_NAME]
    s_begin = s_end = g_begin = g_end = _0
    s = g = _0
    s_known = g_known = False
    while at < size:
        row, many = state[ROWS], state[FOUND]
        verdict = np.int64(NONE)
        p_begin = p_end = o_begin = o_end = stop = np.int64(-1)
        time = inline = _0
        has_graph = False
        thing_begin = thing_end = _0
        odd = is_timed = False
        if state[VERDICT] != NONE:
            verdict, odd, stop = state[VERDICT], True, line_feed(text, at)
            thing_begin = state[THING]
            thing_end = thing_begin + state[THING_SIZE]
            state[VERDICT] = NONE
        else:
            body = skip(text, at)
            if load8(text, body) == _HASH:
                verdict, stop = np.int64(NOTHING), line_feed(text, body)
                odd = ends_with_feed(text, body) < 0  # a carriage return in it
            elif ends(text, body):
                stop = ends_with_feed(text, body)
                if stop >= 0:
                    verdict = np.int64(NOTHING)
            else:
                after, time = time_at(text, at)
                is_timed = after >= 0
                if is_timed:
                    body = skip(text, after)
                if not _again(text, body, s_begin, s_end):
                    s, s_known = _0, False
                    s_end = node_at(text, body)
                else:
                    s_end = body + s_end - s_begin
                s_begin = body
                if s_end < 0:
                    s_end = s_begin
                else:
                    p_begin = skip(text, s_end)
                place = names[name, _NEXT]
                if p_begin >= 0 and load8(text, p_begin) == _LESS:
                    p_size = names[place, _SIZE]
                    if p_size > 0 and _same(text, p_begin, names[place, _START], p_size):
                        p_end = p_begin + p_size
                    else:
                        p_end = np.int64(iri_at(text, p_begin))
                        if p_end >= 0:
                            p = identity_of(text, p_begin, p_end, seed)
                            place = p & (NAMES - 1)
                            if names[place, _ID] != p:
                                names[place, _ID], names[place, _IS_KNOWN] = p, 0
                                names[place, _ASKED] = asks_for(rule, p)
                                names[place, _RANK] = _rank_of(p, time_ids)
                                names[place, _SIZE] = p_end - p_begin
                            names[place, _START] = p_begin
                            names[name, _NEXT] = place
                if p_end >= 0:
                    name = place
                    o_begin = skip(text, p_end)
                    after, o_end, inline = object_at(text, o_begin, names[place, _ASKED] != 0)
                    if after >= 0:
                        stop = skip(text, after)
                if stop >= 0 and load8(text, stop) != _DOT:
                    has_graph = True
                    if not _again(text, stop, g_begin, g_end):
                        g, g_known = _0, False
                        g_end = node_at(text, stop)
                    else:
                        g_end = stop + g_end - g_begin
                    g_begin = stop
                    stop = np.int64(-1)
                    if g_end < 0:
                        g_end = g_begin
                    else:
                        stop = skip(text, g_end)
                if stop >= 0 and load8(text, stop) == _DOT:
                    stop = skip(text, stop + 1)
                    stop = np.int64(ends_with_feed(text, stop)) if ends(text, stop) else np.int64(-1)
                else:
                    stop = np.int64(-1)
                if stop >= 0:
                    verdict = np.int64(TIMED if is_timed else PLAIN)
                    thing_begin, thing_end = (g_begin, g_end) if has_graph else (s_begin, s_end)
            if verdict == NONE:
                state[BEGIN], state[END] = at, line_feed(text, at)
                state[_POSITION], state[_NAME] = at, name
                return ASK
        ends_record = verdict == TIMED
        if verdict == PLAIN:
            ends_record = _is_another(text, thing_begin, thing_end, state)
        if state[_OPEN] and ends_record and _close(state, at, needs_time, is_named, found):
            if odd:  # the line will be told again
                state[VERDICT] = verdict
            state[_POSITION], state[_NAME] = at, name
            return ODD
        if verdict == NOTHING:
            if odd:
                state[_ODD if state[_OPEN] else _STRANGE] = 1
        elif verdict == BROKEN:
            if not state[_OPEN]:
                state[_THING_BEGIN] = state[_THING_END] = 0
            state[_OPEN] = state[_ODD] = 1
        else:
            if verdict == PLAIN:
                state[_THING_BEGIN], state[_THING_END] = thing_begin, thing_end
                if not state[_OPEN] and state[_STRANGE]:
                    odd = True
                state[_OPEN] = 1
            if odd:
                state[_ODD] = 1
            elif state[_ODD] == 0:
                rank = names[name, _RANK]
                if rank >= 0 and not is_timed:
                    if load8(text, o_begin) == _QUOTE:
                        said, is_sure = _milliseconds(text, o_begin)
                        if is_sure:
                            state[_BEST + rank] = max(state[_BEST + rank], said)
                        else:
                            state[_ODD] = 1
                    elif is_named:
                        state[_ODD] = 1
                p, o = names[name, _ID], inline
                for k in range(rule.shape[0] if names[name, _ASKED] else 0):
                    if rule[k, RULE_P] != 0 and rule[k, RULE_P] != p:
                        continue
                    if s == 0:
                        s = identity_of(text, s_begin, s_end, seed)
                    mask = rule[k, RULE_S_MASK]
                    if mask >= 0 and not has(sets, rule[k, RULE_S], mask, s):
                        continue
                    if o == 0:
                        o = identity_of(text, o_begin, o_end, seed)
                    mask = rule[k, RULE_O_MASK]
                    if mask >= 0 and not has(sets, rule[k, RULE_O], mask, o):
                        continue
                    if not has_room(tables, 4, stop - at):
                        state[BEGIN], state[END] = at, stop
                        state[_POSITION], state[_NAME] = at, name
                        return NEEDS_ROOM
                    if has_graph and g == 0:
                        g = identity_of(text, g_begin, g_end, seed)
                    fits = _intern(tables, o, text, o_begin, o_end, seed, state)
                    if fits and not s_known:
                        fits = _intern(tables, s, text, s_begin, s_end, seed, state)
                        s_known = True
                    if fits and not names[name, _IS_KNOWN]:
                        fits = _intern(tables, p, text, p_begin, p_end, seed, state)
                        names[name, _IS_KNOWN] = 1
                    if fits and has_graph and not g_known:
                        fits = _intern(tables, g, text, g_begin, g_end, seed, state)
                        g_known = True
                    if not fits:
                        return COLLISION
                    columns[0, many], columns[1, many], columns[2, many] = s, p, o
                    columns[3, many], columns[4, many] = g if has_graph else _0, row
                    state[FOUND] = many + 1
                    break
                state[ROWS] = row + 1
        at = min(stop + 1, size)
        state[LINES] += 1
        if verdict == TIMED:
            state[_BEST] = time
            if _close(state, at, False, False, found):
                state[_POSITION], state[_NAME] = at, name
                return ODD
    state[_POSITION], state[_NAME] = at, name
    if state[_OPEN] and _close(state, size, needs_time, is_named, found):
        return ODD
    return END_OF_TEXT
