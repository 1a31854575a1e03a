"""Kernels of the store's tables: facts in the order in which they came, and hash indexes over them.

A table has the facts of one predicate in one graph. A record is written once, apart from its end:

    since, until    the moments from which and until which the fact is there
    s, o            its subject and object
    chains          two halves: the record before it with the same subject, and with the same object

Records lie in extents that double in size, so that none ever moves. An index is a block of int32: the newest
record (plus 1) of each key, by hash; when it is full, a larger block takes its place, which one cell tells.
So who reads while another writes sees records up to a number that it has read before, and ends where there
is none: nobody waits.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np
from numba import njit
from numba.cpython.unsafe.numbers import leading_zeros

from kelda.rdf.prefetch import prefetch

FOREVER = np.int64(2**63 - 1)

# A record.
SINCE, UNTIL, SUBJECT, OBJECT, CHAINS, RECORD = range(6)
# The description of a table: what it is; how many records, and how many of them have ended; the last moment;
# where the blocks of its indexes are (0: there is none), and the list of records that have ended with its
# capacity; for how many records there is room. Extents follow.
GRAPH, PREDICATE, ROWS, GONE, LATEST, BY_PAIR, BY_SUBJECT, BY_OBJECT, ENDED, ENDED_ROOM, ROOM, EXTENTS = (
    range(12)
)
DESCRIPTION = 40  # cells, with room for the extents of two thousand million records
FIRST = 64  # records in the first extent
# A block of an index: how many slots, how many are taken; then the slots, two a cell.
SLOTS, TAKEN, BEGIN = range(3)
# What the header of the heap tells: the list of all tables, how many there are and how many it has room for,
# and where they are found by name: a block of (graph, predicate, table). A table is where its description is.
LIST, TABLES, TABLES_ROOM, NAMES, NAMES_ROOM = 1, 2, 3, 4, 5

DONE, NEEDS_TABLE, NEEDS_ROOM = range(3)
BLOCK = 32


@njit(cache=True, inline="always")
def mix(h, value):
    """Add a value to a hash."""
    h = (h ^ np.uint64(value)) * np.uint64(0x9E3779B97F4A7C15)
    return h ^ (h >> np.uint64(32))


@njit(cache=True, inline="always")
def place(cells, table, row):
    """Where a record lies; `table` is where the table's description is."""
    q = np.uint64((row >> 6) + 1)
    k = np.int64(63) - np.int64(leading_zeros(q))
    return cells[table + EXTENTS + k] + (row - (((np.int64(1) << k) - 1) << 6)) * RECORD


@njit(cache=True, inline="always")
def hash_of_pair(s, o):
    return mix(mix(np.uint64(1), s), o)


@njit(cache=True, inline="always")
def hash_of(key):
    return mix(np.uint64(2), key)


@njit(cache=True, inline="always")
def find_name(cells, graph, predicate):
    """Where the description of a table is, or 0; and its slot among the names."""
    names, room = cells[NAMES], cells[NAMES_ROOM]
    at = np.int64(hash_of_pair(graph, predicate)) & (room - 1)
    while True:
        slot = names + 3 * at
        table = cells[slot + 2]
        if table == 0 or (cells[slot] == graph and cells[slot + 1] == predicate):
            return table, slot
        at = (at + 1) & (room - 1)


@njit(cache=True, inline="always")
def pair_slot(cells, halves, table, h, s, o):
    """The half in the index of pairs where a pair is, or would be; and its newest record, or -1."""
    block = cells[table + BY_PAIR]
    mask = cells[block + SLOTS] - 1
    at = np.int64(h) & mask
    while True:
        slot = 2 * (block + BEGIN) + at
        row = np.int64(halves[slot]) - 1
        if row < 0:
            return slot, row
        here = place(cells, table, row)
        if cells[here + SUBJECT] == s and cells[here + OBJECT] == o:
            return slot, row
        at = (at + 1) & mask


@njit(cache=True, inline="always")
def newest(cells, halves, table, block, column, key):
    """The newest record whose `column` is `key`, by an index; or -1."""
    mask = cells[block + SLOTS] - 1
    at = np.int64(hash_of(key)) & mask
    while True:
        row = np.int64(halves[2 * (block + BEGIN) + at]) - 1
        if row < 0 or cells[place(cells, table, row) + column] == key:
            return row
        at = (at + 1) & mask


@njit(cache=True, inline="always")
def before(halves, here, column):
    """The record before one with the same subject (or object), or -1; `here` is where that one lies."""
    return np.int64(halves[2 * (here + CHAINS) + (column - SUBJECT)]) - 1


@njit(cache=True, inline="always")
def link(cells, halves, table, block, column, row, here):
    """Make a record the newest of its key."""
    key = cells[here + column]
    mask = cells[block + SLOTS] - 1
    at = np.int64(hash_of(key)) & mask
    while True:
        slot = 2 * (block + BEGIN) + at
        head = np.int64(halves[slot]) - 1
        if head < 0 or cells[place(cells, table, head) + column] == key:
            break
        at = (at + 1) & mask
    halves[2 * (here + CHAINS) + (column - SUBJECT)] = head + 1
    halves[slot] = row + 1
    if head < 0:
        cells[block + TAKEN] += 1


@njit(cache=True)
def fill(cells, halves, table, column, block, first):
    """Put the records from `first` on into an empty block, the index by `column`, until it is full; gives the
    first that is not in it."""
    rows = cells[table + ROWS]
    for begin in range(first, rows, BLOCK):
        end = min(begin + BLOCK, rows)
        if 3 * (cells[block + TAKEN] + BLOCK) > 2 * cells[block + SLOTS]:
            return begin
        for row in range(begin, end):
            slot = np.int64(hash_of(cells[place(cells, table, row) + column])) & (cells[block + SLOTS] - 1)
            prefetch(cells, block + BEGIN + (slot >> 1))
        for row in range(begin, end):
            link(cells, halves, table, block, column, row, place(cells, table, row))
    return rows


@njit(cache=True)
def name(cells, names, room, tables):
    """Fill in an empty block of names."""
    for table in tables:
        at = np.int64(hash_of_pair(cells[table + GRAPH], cells[table + PREDICATE])) & (room - 1)
        while cells[names + 3 * at + 2]:
            at = (at + 1) & (room - 1)
        cells[names + 3 * at] = cells[table + GRAPH]
        cells[names + 3 * at + 1] = cells[table + PREDICATE]
        cells[names + 3 * at + 2] = table


@njit(cache=True)
def move_pairs(cells, halves, table, old, block):
    """Put what an index of pairs has into a larger block."""
    mask = cells[block + SLOTS] - 1
    for i in range(cells[old + SLOTS]):
        half = halves[2 * (old + BEGIN) + i]
        if half:
            here = place(cells, table, np.int64(half) - 1)
            at = np.int64(hash_of_pair(cells[here + SUBJECT], cells[here + OBJECT])) & mask
            while halves[2 * (block + BEGIN) + at]:
                at = (at + 1) & mask
            halves[2 * (block + BEGIN) + at] = half
    cells[block + TAKEN] = cells[old + TAKEN]


@njit(cache=True)
def move_keys(cells, halves, table, column, old, block):
    """Put what an index by a column has into a larger block."""
    mask = cells[block + SLOTS] - 1
    for i in range(cells[old + SLOTS]):
        half = halves[2 * (old + BEGIN) + i]
        if half:
            key = cells[place(cells, table, np.int64(half) - 1) + column]
            at = np.int64(hash_of(key)) & mask
            while halves[2 * (block + BEGIN) + at]:
                at = (at + 1) & mask
            halves[2 * (block + BEGIN) + at] = half
    cells[block + TAKEN] = cells[old + TAKEN]


@njit(cache=True, inline="always")
def _full(cells, block):
    """Whether a block has no room for one more key."""
    return block > 0 and 3 * (cells[block + TAKEN] + 1) > 2 * cells[block + SLOTS]


@njit(cache=True)
def apply(cells, halves, graph, s, p, o, moment, sign, made, i):
    """Carry out changes from number i on, until room is needed. Gives (what is needed, the number of the
    change that needs it); `made` tells which have made a difference."""
    tables = np.empty(BLOCK, np.int64)
    hashes = np.empty(BLOCK, np.uint64)
    while i < len(s):
        count = min(BLOCK, len(s) - i)
        for b in range(count):  # memory fetches the slots of a block all at once
            if b and graph[i + b] == graph[i + b - 1] and p[i + b] == p[i + b - 1]:
                tables[b] = tables[b - 1]
            else:
                tables[b], _ = find_name(cells, graph[i + b], p[i + b])
            if tables[b]:
                hashes[b] = hash_of_pair(s[i + b], o[i + b])
                block = cells[tables[b] + BY_PAIR]
                at = np.int64(hashes[b]) & (cells[block + SLOTS] - 1)
                prefetch(cells, block + BEGIN + (at >> 1))
        for b in range(count):
            table = tables[b]
            if sign[i] < 0:
                if table:
                    slot, row = pair_slot(cells, halves, table, hashes[b], s[i], o[i])
                    if row >= 0:
                        here = place(cells, table, row)
                        if cells[here + UNTIL] == FOREVER:
                            if cells[table + GONE] == cells[table + ENDED_ROOM]:
                                return NEEDS_ROOM, i
                            cells[here + UNTIL] = moment[i]
                            cells[cells[table + ENDED] + cells[table + GONE]] = row
                            cells[table + GONE] += 1
                            cells[table + LATEST] = moment[i]
                            made[i] = True
                i += 1
                continue
            if not table:
                return NEEDS_TABLE, i
            slot, row = pair_slot(cells, halves, table, hashes[b], s[i], o[i])
            again = row >= 0
            if again and cells[place(cells, table, row) + UNTIL] == FOREVER:
                i += 1
                continue
            row = cells[table + ROWS]
            if row == cells[table + ROOM] or _full(cells, cells[table + BY_PAIR]):
                return NEEDS_ROOM, i
            if _full(cells, cells[table + BY_SUBJECT]) or _full(cells, cells[table + BY_OBJECT]):
                return NEEDS_ROOM, i
            here = place(cells, table, row)
            cells[here + SINCE] = moment[i]
            cells[here + UNTIL] = FOREVER
            cells[here + SUBJECT] = s[i]
            cells[here + OBJECT] = o[i]
            if cells[table + BY_SUBJECT]:
                link(cells, halves, table, cells[table + BY_SUBJECT], SUBJECT, row, here)
            if cells[table + BY_OBJECT]:
                link(cells, halves, table, cells[table + BY_OBJECT], OBJECT, row, here)
            halves[slot] = row + 1
            if not again:
                cells[cells[table + BY_PAIR] + TAKEN] += 1
            cells[table + LATEST] = moment[i]
            cells[table + ROWS] = row + 1
            made[i] = True
            i += 1
    return DONE, i


# ------------------------------------------------------------------------------ reading


@njit(cache=True)
def scan(cells, table, rows, at):
    """Subjects and objects of the first `rows` records that are there at a moment."""
    s, o = np.empty(rows, np.int64), np.empty(rows, np.int64)
    n = 0
    for row in range(rows):
        here = place(cells, table, row)
        if cells[here + SINCE] <= at < cells[here + UNTIL]:
            s[n] = cells[here + SUBJECT]
            o[n] = cells[here + OBJECT]
            n += 1
    return s[:n], o[:n]


@njit(cache=True)
def any_there(cells, table, rows, at):
    """Whether any of the first `rows` records is there at a moment."""
    for i in range(rows):
        here = place(cells, table, rows - 1 - i)
        if cells[here + SINCE] <= at < cells[here + UNTIL]:
            return True
    return False


@njit(cache=True)
def probe(cells, halves, table, block, column, rows, at, keys):
    """For each fact at a moment whose `column` is one of `keys`: which key, and its other column."""
    other = SUBJECT + OBJECT - column
    which = np.empty(len(keys) + 8, np.int64)
    values = np.empty(len(keys) + 8, np.int64)
    n = 0
    for begin in range(0, len(keys), BLOCK):
        end = min(begin + BLOCK, len(keys))
        for i in range(begin, end):
            slot = np.int64(hash_of(keys[i])) & (cells[block + SLOTS] - 1)
            prefetch(cells, block + BEGIN + (slot >> 1))
        for i in range(begin, end):
            slot = np.int64(hash_of(keys[i])) & (cells[block + SLOTS] - 1)
            row = np.int64(halves[2 * (block + BEGIN) + slot]) - 1
            if row >= 0:
                prefetch(cells, place(cells, table, row) + SUBJECT)
        for i in range(begin, end):
            row = newest(cells, halves, table, block, column, keys[i])
            while row >= 0:
                here = place(cells, table, row)
                if row < rows and cells[here + SINCE] <= at < cells[here + UNTIL]:
                    if n == len(which):
                        which = np.concatenate((which, np.empty(n, np.int64)))
                        values = np.concatenate((values, np.empty(n, np.int64)))
                    which[n] = i
                    values[n] = cells[here + other]
                    n += 1
                row = before(halves, here, column)
    return which[:n], values[:n]


@njit(cache=True)
def holds(cells, halves, table, rows, at, s, o, out):
    """Which pairs are facts at a moment: 1, 0; 2 where an earlier record has to be looked for."""
    unsure = False
    block = cells[table + BY_PAIR]
    for begin in range(0, len(s), BLOCK):
        end = min(begin + BLOCK, len(s))
        for i in range(begin, end):
            slot = np.int64(hash_of_pair(s[i], o[i])) & (cells[block + SLOTS] - 1)
            prefetch(cells, block + BEGIN + (slot >> 1))
        for i in range(begin, end):
            _, row = pair_slot(cells, halves, table, hash_of_pair(s[i], o[i]), s[i], o[i])
            out[i] = 0
            if row >= 0:
                here = place(cells, table, row)
                if row < rows and cells[here + SINCE] <= at:
                    out[i] = at < cells[here + UNTIL]
                else:
                    out[i] = 2
                    unsure = True
    return unsure


@njit(cache=True)
def earlier(cells, halves, table, block, rows, at, s, o, out):
    """Where `holds` gave 2: by the index of subjects."""
    for i in range(len(s)):
        if out[i] != 2:
            continue
        out[i] = 0
        row = newest(cells, halves, table, block, SUBJECT, s[i])
        while row >= 0 and not out[i]:
            here = place(cells, table, row)
            if (
                row < rows
                and cells[here + OBJECT] == o[i]
                and cells[here + SINCE] <= at < cells[here + UNTIL]
            ):
                out[i] = 1
            row = before(halves, here, SUBJECT)


@njit(cache=True)
def begun(cells, table, rows, moment):
    """How many of the first `rows` records begin by a moment: they do so in order."""
    low, high = 0, rows
    if rows and cells[place(cells, table, rows - 1) + SINCE] <= moment:
        return rows
    while low < high:
        middle = (low + high) // 2
        if cells[place(cells, table, middle) + SINCE] <= moment:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True)
def ended(cells, table, moment):
    """How many records have ended by a moment: the list of them is in that order."""
    low, high = 0, cells[table + GONE]
    begin = cells[table + ENDED]
    while low < high:
        middle = (low + high) // 2
        if cells[place(cells, table, cells[begin + middle]) + UNTIL] <= moment:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True)
def news(cells, table, first, rows, gone_first, gone):
    """What has changed in a table: (subjects, objects, moments, signs) of the records [first, rows) that have
    come, and of the numbers [gone_first, gone) in the list of those that have ended."""
    size = rows - first + gone - gone_first
    s, o, moment, sign = (
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
    )
    for i in range(size):
        comes = i < rows - first
        row = first + i if comes else cells[cells[table + ENDED] + gone_first + i - (rows - first)]
        here = place(cells, table, row)
        s[i] = cells[here + SUBJECT]
        o[i] = cells[here + OBJECT]
        moment[i] = cells[here + (SINCE if comes else UNTIL)]
        sign[i] = 1 if comes else -1
    return s, o, moment, sign


@njit(cache=True)
def sample(cells, table, column, rows, size):
    """A column of some records, evenly spread."""
    out = np.empty(size, np.int64)
    for i in range(size):
        out[i] = cells[place(cells, table, i * rows // size) + column]
    return out
