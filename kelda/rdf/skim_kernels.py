"""Kernel: of text with times, what somebody asks for.

Every line is checked as `ntriples_kernels.parse` checks it, but only of statements that are asked for are the
ids made. What lines have in common is not looked at twice: a time and a subject that are those of the line
before, and a predicate that comes where it came the last time (behind the same other predicate), are known
by comparing bytes.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from kelda.rdf.byte_masks import WIDTH, differing
from kelda.rdf.hash_kernels import helper, identity_of, load8
from kelda.rdf.keyset_kernels import has
from kelda.rdf.ntriples_kernels import (
    BAD_TIME,
    UNSURE,
    end_of_line,
    ends,
    iri_at,
    next_line,
    node_at,
    object_at,
    skip,
    time_at,
)

# What `skim` keeps in its state between calls. The first are for the caller to read and to set.
POSITION, LINE, ROWS, RUNS, FOUND = range(5)
# A line that the kernel is not sure about: where it says its statement, where it ends, why; and what the
# caller found there.
BEGIN, END, WHY, VERDICT, SUBJECT, PREDICATE, OBJECT = range(5, 12)
# The rest is its own: the time of the last row, the time of the unsure line, the last predicate's place.
_LAST_TIME, _THIS_TIME, _LAST_NAME = range(12, 15)
STATE_SIZE = 15

DONE, ASK = 0, 1  # what it returns
NONE, STATEMENT, NO_STATEMENT = 0, 1, 2  # verdicts

# Columns of the rules: predicate (0: any), and where in the tables the set of subjects and that of objects
# begins, with its size less one (-1: any will do).
RULE_P, RULE_S, RULE_S_MASK, RULE_O, RULE_O_MASK = range(5)
RULE_SIZE = 5

# Predicates that are remembered, by the low bits of their ids: the text, and its size (0: too long, or none),
# the id, and the place of the one that came behind it.
NAMES, NAME_ROOM = 64, 128
NAME_ID, NAME_SIZE, NAME_NEXT = range(3)

_LESS, _DOT, _CR = 60, 46, 13


@helper
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
def _remember(names, known, id, text, start, end):  # type: ignore[no-untyped-def]
    """The place of a predicate, which is known there from now on."""
    place = id & (NAMES - 1)
    if known[place, NAME_ID] != id:
        known[place, NAME_ID] = id
        known[place, NAME_SIZE] = 0
        if end - start <= NAME_ROOM:
            known[place, NAME_SIZE] = end - start
            for i in range(end - start):
                names[place, i] = load8(text, start + i)
    return place


@njit(cache=True, nogil=True)
def skim(buf, size, final, seed, rules, tables, names, known, columns, spans, heads, times, state):  # type: ignore[no-untyped-def]
    """Read lines of `buf[:size]` from state[POSITION] on; unless the text is `final`, its last line may go on
    and is left. `buf` has a line feed at `size`.

    Every statement is a row. Where a run of rows with one time begins is in `heads`, and that time in
    `times`; rows that match one of the rules are in `columns` (s, p, o, 0, row), and in `spans` where their
    terms begin and end (as `Dictionary.add_rows` wants it). Returns DONE, or ASK at a line that it is not
    sure about: the caller is to put what it is into the state, and to call again.
    """
    text, name_texts = buf.ctypes.data, names.ctypes.data
    line_start, line, row = state[POSITION], state[LINE], state[ROWS]
    runs, found = state[RUNS], state[FOUND]
    last_time, name = state[_LAST_TIME], state[_LAST_NAME]
    stride = names.shape[1]
    status = DONE
    # The time and the subject of the line before, as text; of no size at first.
    time, time_start, time_size = np.int64(0), line_start, np.int64(0)
    s, s_start, s_size = np.int64(0), line_start, np.int64(0)
    while line_start < size:
        p = o = np.int64(0)
        s_end = p_start = p_end = o_start = o_end = np.int64(0)
        is_row = False
        why = UNSURE
        if state[VERDICT] != NONE:
            body, stop, time, time_size = state[BEGIN], state[END], state[_THIS_TIME], np.int64(0)
            s, p, o, s_size = state[SUBJECT], state[PREDICATE], state[OBJECT], np.int64(0)
            is_row = state[VERDICT] == STATEMENT
        else:
            stop = np.int64(-1)
            if time_size > 0 and _same(text, line_start, text, time_start, time_size):
                body = line_start + time_size
            else:
                body, time = time_at(text, line_start)
                time_start, time_size = line_start, body - line_start
            if body < 0:
                why = BAD_TIME
                body, time_size = line_start, np.int64(0)
            body = skip(text, body)
            if ends(text, body):
                stop = end_of_line(text, body)
            elif why == UNSURE:
                if s_size > 0 and _same(text, body, text, s_start, s_size):
                    s_end = body + s_size
                else:
                    s_end = node_at(text, body)
                    s = np.int64(0)
                    s_size = s_end - body if load8(text, body) == _LESS else np.int64(0)
                s_start = body
                if s_end >= 0:
                    p_start = skip(text, s_end)
                    next_name = known[name, NAME_NEXT]
                    p_size = known[next_name, NAME_SIZE]
                    if p_size > 0 and _same(text, p_start, name_texts, next_name * stride, p_size):
                        p_end = p_start + p_size
                        name = next_name
                        p = known[name, NAME_ID]
                    elif load8(text, p_start) == _LESS:
                        p_end = iri_at(text, p_start)
                        if p_end >= 0:
                            p = identity_of(text, p_start, p_end, seed)
                            next_name = _remember(names, known, p, text, p_start, p_end)
                            known[name, NAME_NEXT] = next_name
                            name = next_name
                if p != 0:
                    o_start = skip(text, p_end)
                    after, o_end, _ = object_at(text, o_start, False)
                    if after >= 0:
                        at = skip(text, after)
                        if load8(text, at) != _DOT:  # a graph, whose name nobody asks for
                            at = node_at(text, at)
                            if at >= 0:
                                at = skip(text, at)
                        if at >= 0 and load8(text, at) == _DOT:
                            at = skip(text, at + 1)
                            if ends(text, at):
                                stop = end_of_line(text, at)
                                is_row = True
            unsure = stop < 0
            if unsure:
                stop = end_of_line(text, line_start)
            if not final and (stop >= size or (stop == size - 1 and load8(text, stop) == _CR)):
                break
            if unsure:
                state[BEGIN], state[END], state[WHY], state[_THIS_TIME] = body, stop, why, time
                status = ASK
                break
        if is_row:
            if row == 0 or time != last_time:
                heads[runs] = row
                times[runs] = time
                runs += 1
                last_time = time
            for k in range(rules.shape[0]):
                if rules[k, RULE_P] != 0 and rules[k, RULE_P] != p:
                    continue
                if rules[k, RULE_S_MASK] >= 0:
                    if s == 0:
                        s = identity_of(text, body, s_end, seed)
                    if not has(tables, rules[k, RULE_S], rules[k, RULE_S_MASK], s):
                        continue
                if rules[k, RULE_O_MASK] >= 0:
                    if o == 0:
                        o = object_at(text, o_start, True)[2]
                    if o == 0:
                        o = identity_of(text, o_start, o_end, seed)
                    if not has(tables, rules[k, RULE_O], rules[k, RULE_O_MASK], o):
                        continue
                given = state[VERDICT] == STATEMENT
                if s == 0:
                    s = identity_of(text, body, s_end, seed)
                if o == 0:
                    o = object_at(text, o_start, True)[2]
                if o == 0:
                    o = identity_of(text, o_start, o_end, seed)
                columns[0, found], columns[1, found], columns[2, found] = s, p, o
                columns[3, found], columns[4, found] = 0, row
                spans[0, found], spans[1, found] = (0, 0) if given else (body, s_end)
                spans[2, found], spans[3, found] = p_start, p_end
                spans[4, found], spans[5, found] = o_start, o_end
                spans[6, found], spans[7, found] = 0, 0
                found += 1
                break
            row += 1
        state[VERDICT] = NONE
        line_start = next_line(text, stop)
        line += 1
    state[POSITION], state[LINE], state[ROWS] = line_start, line, row
    state[RUNS], state[FOUND] = runs, found
    state[_LAST_TIME], state[_LAST_NAME] = last_time, name
    return status
