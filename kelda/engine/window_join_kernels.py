"""Kernels of the multiway window join: records of rows, chains by key, depth-first probing.

Each leaf has its rows in a ring of its own, in the order in which they entered. A row number never
changes (it grows for ever, leaf by leaf); where the row's record lies is `address(leaf, row)`. The records
of all leaves are parts of one array, `cells`. A record holds the row's times, then its values, then for each
index of its leaf the row before it with the same key: a probe touches one place for all of them.

The rows of a leaf may also be facts of the store (`kelda.store.tables_kernels`): its records and indexes
serve as they are, up to the row that this join has come to. So a record is named by its address in memory.

An index has a hash table from key to the newest row with it. The tables of all indexes are parts of one
array, `slots`, with hash and row side by side. Rows that have left are not taken out: a walk along a chain
stops at the first one, since within a leaf older rows have left, too; a slot whose newest row has left is
free for another key.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kelda.rdf.memory import address_of, load
from kelda.rdf.prefetch import prefetch
from kelda.store.moments import BITS, LAST
from kelda.store.tables_kernels import (
    BY_OBJECT,
    BY_SUBJECT,
    OBJECT,
    SINCE,
    SUBJECT,
    UNTIL,
    before,
    hash_of_pair,
    pair_slot,
    place,
)
from kelda.store.tables_kernels import newest as newest_fact

Ids = NDArray[np.int64]

EMPTY = np.int64(-1)
FOREVER = np.int64(2**63 - 1)
LONG = np.int64(1 << 40)
BLOCK = 32

# A record: when the row enters; when it really leaves; when it leaves by its window alone, which is not
# later than for those behind it; what the window counts. Values follow, then chains.
ENTER, LEAVE, FADES, UNIT, VALUES = range(5)
# A leaf: its part of `cells`, the first row that has not left, the first that is not joined, the one behind
# the last; the index on all its columns if it reads a graph, else -1; if it reads facts, their table, and the
# subject and object that they must have (0: any); how many indexes it has. They follow.
BASE, MASK, STRIDE, OLDEST, JOINED, END, COPIES, TABLE, FIXED, HELD, INDEXES = (*range(9), 10, 11)
# An index: its leaf, its part of `slots`, slots in use, where in a record its chain is, the length of its
# key. The places of the key in a record follow.
LEAF, START, SIZE, USED, CHAIN, WIDTH, KEYS = range(7)
# A step of a plan: the leaf to visit, the index to probe, the length of its key. For each part of the key
# follow its place in the visited record, and the leaf and the place that it must be equal to. Behind the last
# leaf are constants. Facts are probed by one of the store's indexes, or all are looked at.
OTHER, INDEX, COUNT, EQUAL = range(4)
OF_SUBJECT, OF_OBJECT, OF_PAIR, EVERY = -1, -2, -3, -4


# Records. Python hands over plain tuples, whose types numba finds far sooner than those of named ones.


class Tables(NamedTuple):
    """All that a join holds, but for its results."""

    cells: Ids
    leaves: Ids  # one a row, as laid out above
    indexes: Ids
    slots: Ids
    facts: Ids  # the heap of the store
    halves: NDArray[np.int32]  # the same
    constants: Ids


class Results(NamedTuple):
    """Results of a join: the row of each leaf, since when it stands, and whether it was told."""

    rows: Ids
    start: Ids
    sent: NDArray[np.bool_]


@njit(cache=True, inline="always")
def inside(leaves, j, row):
    """Where in `cells` the record of a row begins."""
    return leaves[j, BASE] + (row & leaves[j, MASK]) * leaves[j, STRIDE]


@njit(cache=True, inline="always")
def address(cells, facts, leaves, j, row):
    """Where in memory the record of a row begins."""
    if leaves[j, TABLE]:
        return address_of(facts) + place(facts, leaves[j, TABLE], row)
    return address_of(cells) + inside(leaves, j, row)


@njit(cache=True, inline="always")
def enter_of(leaves, j, here):
    """When a row enters, given where it lies."""
    if leaves[j, TABLE]:
        return (load(here + SINCE) + LAST) >> BITS
    return load(here + ENTER)


@njit(cache=True, inline="always")
def leave_of(leaves, j, here):
    """When a row leaves, given where it lies."""
    if leaves[j, TABLE]:
        until = load(here + UNTIL)
        return until if until == FOREVER else (until + LAST) >> BITS
    return load(here + LEAVE)


@njit(cache=True, inline="always")
def _fits(leaves, j, here):
    """Whether a fact has the subject and the object that its leaf wants."""
    s, o = leaves[j, FIXED], leaves[j, FIXED + 1]
    return (s == 0 or load(here + SUBJECT) == s) and (o == 0 or load(here + OBJECT) == o)


@njit(cache=True, inline="always")
def mix(h, value):
    """Add a value to a hash."""
    h = (h ^ np.uint64(value)) * np.uint64(0x9E3779B97F4A7C15)
    return h ^ (h >> np.uint64(32))


@njit(cache=True, inline="always")
def newest(slots, start, size, h):
    """The newest row with hash h in a table, or -1."""
    at = np.int64(h) & (size - 1)
    while True:
        row = slots[start + at, 1]
        if row == EMPTY or slots[start + at, 0] == np.int64(h):
            return row
        at = (at + 1) & (size - 1)


@njit(cache=True, inline="always")
def put(slots, start, size, h, row, oldest):
    """Make `row` the newest of its key; gives (the row before it or -1, whether a slot more is in use).

    `oldest`: rows below it are gone, and so are keys whose newest row is such."""
    at = np.int64(h) & (size - 1)
    free = np.int64(-1)
    head = slots[start + at, 1]
    while head != EMPTY and slots[start + at, 0] != np.int64(h):
        if free < 0 and head < oldest:
            free = at
        at = (at + 1) & (size - 1)
        head = slots[start + at, 1]
    more = 0
    if head == EMPTY:
        if free < 0:
            more = 1
        else:
            at = free
        slots[start + at, 0] = np.int64(h)
    slots[start + at, 1] = row
    return (head if head >= oldest else EMPTY), more


@njit(cache=True)
def live_keys(slots, start, size, oldest):
    """How many keys of a table still have a row."""
    found = 0
    for i in range(start, start + size):
        found += slots[i, 1] >= oldest
    return found


@njit(cache=True)
def rehash(slots, start, size, into, oldest):
    """Move the keys that still have a row into a new table; gives their number."""
    used = 0
    for i in range(start, start + size):
        if slots[i, 1] < oldest:
            continue
        at = slots[i, 0] & (len(into) - 1)
        while into[at, 1] != EMPTY:
            at = (at + 1) & (len(into) - 1)
        into[at, 0] = slots[i, 0]
        into[at, 1] = slots[i, 1]
        used += 1
    return used


@njit(cache=True)
def append(cells, leaves, j, values, enter, leave, unit):
    """Write new rows behind the last of a leaf; gives how long they stay, all together."""
    row = leaves[j, END]
    stay = 0.0
    for i in range(len(enter)):
        at = inside(leaves, j, row + i)
        cells[at + ENTER] = enter[i]
        cells[at + LEAVE] = leave[i]
        cells[at + FADES] = leave[i]
        cells[at + UNIT] = unit[i]
        for c in range(values.shape[0]):
            cells[at + VALUES + c] = values[c, i]
        stay += min(leave[i], enter[i] + LONG) - enter[i]
    leaves[j, END] = row + len(enter)
    return stay


@njit(cache=True, inline="always")
def _key(cells, here, indexes, d):
    """The hash of a row's key in index d."""
    h = np.uint64(d + 1)
    for c in range(KEYS, KEYS + indexes[d, WIDTH]):
        h = mix(h, cells[here + indexes[d, c]])
    return h


@njit(cache=True)
def fill(first, end, d, cells, leaves, indexes, slots):
    """Put the rows [first, end) of its leaf into an index.

    In blocks: the slots of a block are asked for before the first is needed, so that memory fetches all of
    them at once."""
    j = indexes[d, LEAF]
    start, size, chain = indexes[d, START], indexes[d, SIZE], indexes[d, CHAIN]
    base, mask, stride, oldest = leaves[j, BASE], leaves[j, MASK], leaves[j, STRIDE], leaves[j, OLDEST]
    hashes = np.empty(BLOCK, np.uint64)
    used = 0
    while first < end:
        count = min(BLOCK, end - first)
        for i in range(count):
            hashes[i] = _key(cells, base + ((first + i) & mask) * stride, indexes, d)
            prefetch(slots, 2 * (start + (np.int64(hashes[i]) & (size - 1))))
        for i in range(count):
            earlier, more = put(slots, start, size, hashes[i], first + i, oldest)
            cells[base + ((first + i) & mask) * stride + chain] = earlier
            used += more
        first += count
    indexes[d, USED] += used


@njit(cache=True, inline="always")
def _insert(cells, leaves, indexes, slots, j, row, here):
    """Put a row into the indexes of its leaf; in a graph, it ends the stay of its earlier copy."""
    for n in range(INDEXES, INDEXES + leaves[j, HELD]):
        d = leaves[j, n]
        h = _key(cells, here, indexes, d)
        earlier, more = put(slots, indexes[d, START], indexes[d, SIZE], h, row, leaves[j, OLDEST])
        indexes[d, USED] += more
        cells[here + indexes[d, CHAIN]] = earlier
        if d == leaves[j, COPIES] and earlier != EMPTY:
            there = inside(leaves, j, earlier)
            same = True
            for c in range(KEYS, KEYS + indexes[d, WIDTH]):
                if cells[here + indexes[d, c]] != cells[there + indexes[d, c]]:
                    same = False
                    break
            if same and cells[there + LEAVE] > cells[here + ENTER]:
                cells[there + LEAVE] = cells[here + ENTER]


@njit(cache=True, inline="always")
def _turn(cells, facts, leaves):
    """The leaf whose next row enters first (-1: there is none), and up to which instant its rows come
    before those of all others."""
    first = -1
    earliest = FOREVER
    for j in range(leaves.shape[0]):
        if leaves[j, JOINED] < leaves[j, END]:
            enter = enter_of(leaves, j, address(cells, facts, leaves, j, leaves[j, JOINED]))
            if first < 0 or enter < earliest:
                first = j
                earliest = enter
    limit = FOREVER
    for j in range(leaves.shape[0]):
        if j != first and leaves[j, JOINED] < leaves[j, END]:
            enter = enter_of(leaves, j, address(cells, facts, leaves, j, leaves[j, JOINED]))
            limit = min(limit, enter if j > first else enter - 1)
    return first, limit


@njit(cache=True, inline="always")
def _first_fact(facts, halves, table, kind, s, o, joined):
    """The newest fact that a probe may find, or -1; `s` is the first part of its key."""
    if kind == EVERY:
        return joined - 1
    if kind == OF_PAIR:
        return pair_slot(facts, halves, table, hash_of_pair(s, o), s, o)[1]
    if kind == OF_SUBJECT:
        return newest_fact(facts, halves, table, facts[table + BY_SUBJECT], SUBJECT, s)
    return newest_fact(facts, halves, table, facts[table + BY_OBJECT], OBJECT, s)


@njit(cache=True, inline="always")
def _next_fact(facts, halves, table, kind, row):
    """The next one, or -1."""
    if kind == EVERY:
        return row - 1
    return before(halves, place(facts, table, row), OBJECT if kind == OF_OBJECT else SUBJECT)


@njit(cache=True)
def join(tables, plan, results, found, probes, again):
    """Insert the rows that are not joined yet, one by one in the order in which they enter, and find every
    result that each completes. A result is a row per leaf; it stands from the last `enter` to the first
    `leave` of them, if that is any time at all.

    They are written to `results` behind the first `found`. Gives (results there, whether it
    stopped): it stops when they cannot hold the results of one more row; the caller makes room and goes on,
    with `again`: that row is in the indexes already. `probes` counts rows looked at, for the planner."""
    cells, leaves, indexes, slots, facts, halves, constants = Tables(*tables)
    rows, start, _ = Results(*results)
    count = leaves.shape[0]
    steps = count - 1
    capacity = len(start)
    candidates = np.empty(count, np.int64)  # per step, the next row of the chain
    bound = np.empty(count, np.int64)  # per leaf, the row chosen
    places = np.empty(count + 1, np.int64)  # and where it lies
    places[count] = address_of(constants)
    starts = np.empty(count, np.int64)
    ends = np.empty(count, np.int64)
    while True:
        j, limit = _turn(cells, facts, leaves)
        if j < 0:
            return found, False
        row = leaves[j, JOINED]
        while row < leaves[j, END]:
            here = address(cells, facts, leaves, j, row)
            begin = enter_of(leaves, j, here)
            if begin > limit:
                break
            is_fact = leaves[j, TABLE] > 0
            if not again and not is_fact:
                _insert(cells, leaves, indexes, slots, j, row, inside(leaves, j, row))
            again = False
            kept = found
            full = False
            stop = leave_of(leaves, j, here)
            if begin >= stop or (is_fact and not _fits(leaves, j, here)):
                pass
            elif steps == 0:
                full = found == capacity
                if not full:
                    rows[found, 0] = row
                    start[found] = begin
                    found += 1
            else:
                bound[j] = row
                places[j] = here
                starts[0] = begin
                ends[0] = stop
                depth = 0
                enters = True  # the chain of this step is not entered yet
                while depth >= 0:
                    other = plan[j, depth, OTHER]
                    d = plan[j, depth, INDEX]
                    table = leaves[other, TABLE]
                    if enters:
                        enters = False
                        if table:
                            s = o = np.int64(0)
                            if plan[j, depth, COUNT] > 0:
                                s = load(places[plan[j, depth, EQUAL + 1]] + plan[j, depth, EQUAL + 2])
                            if plan[j, depth, COUNT] > 1:
                                o = load(places[plan[j, depth, EQUAL + 4]] + plan[j, depth, EQUAL + 5])
                            candidates[depth] = _first_fact(
                                facts, halves, table, d, s, o, leaves[other, JOINED]
                            )
                        else:
                            h = np.uint64(d + 1)
                            for c in range(EQUAL, EQUAL + 3 * plan[j, depth, COUNT], 3):
                                h = mix(h, load(places[plan[j, depth, c + 1]] + plan[j, depth, c + 2]))
                            candidates[depth] = newest(slots, indexes[d, START], indexes[d, SIZE], h)
                    candidate = candidates[depth]
                    if candidate < leaves[other, OLDEST]:
                        depth -= 1
                        continue
                    there = address(cells, facts, leaves, other, candidate)
                    probes[j, depth] += 1
                    if table:
                        candidates[depth] = _next_fact(facts, halves, table, d, candidate)
                        if candidate >= leaves[other, JOINED] or not _fits(leaves, other, there):
                            continue
                    else:
                        if load(there + FADES) <= starts[depth]:  # it has left, and with it all before it
                            depth -= 1
                            continue
                        candidates[depth] = load(there + indexes[d, CHAIN])
                    equal = True
                    for c in range(EQUAL, EQUAL + 3 * plan[j, depth, COUNT], 3):
                        wanted = load(places[plan[j, depth, c + 1]] + plan[j, depth, c + 2])
                        if load(there + plan[j, depth, c]) != wanted:
                            equal = False
                            break
                    if not equal:
                        continue
                    if d == OF_PAIR and table:  # those before it have ended before it began
                        candidates[depth] = EMPTY
                    begin = max(starts[depth], enter_of(leaves, other, there))
                    stop = min(ends[depth], leave_of(leaves, other, there))
                    if begin >= stop:
                        continue
                    bound[other] = candidate
                    if depth + 1 < steps:
                        depth += 1
                        places[other] = there
                        starts[depth] = begin
                        ends[depth] = stop
                        enters = True
                        continue
                    if found == capacity:
                        full = True
                        break
                    for i in range(count):
                        rows[found, i] = bound[i]
                    start[found] = begin
                    found += 1
            if full:
                return kept, True
            row += 1
            leaves[j, JOINED] = row


@njit(cache=True)
def alone(tables, results, found):
    """`join` for one leaf, whose rows are the results: less to compile, for queries of one pattern. Gives
    (results there, whether it stopped)."""
    cells, leaves, indexes, slots, _, _, _ = Tables(*tables)
    rows, start, _ = Results(*results)
    for row in range(leaves[0, JOINED], leaves[0, END]):
        if found == len(start):
            return found, True
        here = inside(leaves, 0, row)
        _insert(cells, leaves, indexes, slots, 0, row, here)
        if cells[here + ENTER] < cells[here + LEAVE]:
            rows[found, 0] = row
            start[found] = cells[here + ENTER]
            found += 1
        leaves[0, JOINED] = row + 1
    return found, False


@njit(cache=True)
def gather(rows, cells, facts, leaves, homes):
    """The columns of results; `homes` has the leaf and the place in its record of each."""
    out = np.empty((len(homes), len(rows)), np.int64)
    for c in range(len(homes)):
        j, at = homes[c]
        for r in range(len(rows)):
            out[c, r] = load(address(cells, facts, leaves, j, rows[r, j]) + at)
    return out


@njit(cache=True, inline="always")
def _end(rows, r, cells, facts, leaves):
    """When a result ends by its rows."""
    end = FOREVER
    for j in range(leaves.shape[0]):
        end = min(end, leave_of(leaves, j, address(cells, facts, leaves, j, rows[r, j])))
    return end


@njit(cache=True)
def ends_of(rows, cells, facts, leaves):
    """When results end."""
    out = np.empty(len(rows), np.int64)
    for r in range(len(rows)):
        out[r] = _end(rows, r, cells, facts, leaves)
    return out


@njit(cache=True)
def sweep(cells, leaves, until):
    """Let go of the rows of each leaf that have left by `until`."""
    for j in range(leaves.shape[0]):
        if leaves[j, TABLE]:
            continue
        row = leaves[j, OLDEST]
        while row < leaves[j, JOINED] and cells[inside(leaves, j, row) + LEAVE] <= until:
            row += 1
        leaves[j, OLDEST] = row


@njit(cache=True)
def tell(results, bounds, until, cells, facts, leaves, homes):
    """The changes of results up to `until`: (time, weight, columns, whether in time order, results kept).

    If there are `bounds`, results end there at the latest. What stands longer than `until` is kept: moved to
    the front. Rows that have left by then are let go."""
    rows, start, sent = Results(*results)
    ends = np.empty(len(start), np.int64)
    coming = going = 0
    for r in range(len(start)):
        ends[r] = _end(rows, r, cells, facts, leaves)
        if len(bounds):
            ends[r] = min(ends[r], bounds[r])
        if start[r] < ends[r]:
            coming += not sent[r] and start[r] <= until
            going += ends[r] <= until
    time = np.empty(coming + going, np.int64)
    weight = np.empty(coming + going, np.int64)
    values = np.empty((len(homes), coming + going), np.int64)
    a, b, kept = 0, coming, 0
    for r in range(len(start)):
        if start[r] >= ends[r]:
            continue
        comes = not sent[r] and start[r] <= until
        goes = ends[r] <= until
        if comes or goes:
            for c in range(len(homes)):
                j = homes[c, 0]
                value = load(address(cells, facts, leaves, j, rows[r, j]) + homes[c, 1])
                if comes:
                    values[c, a] = value
                if goes:
                    values[c, b] = value
        if comes:
            time[a] = start[r]
            weight[a] = 1
            a += 1
        if goes:
            time[b] = ends[r]
            weight[b] = -1
            b += 1
            continue
        if kept < r:
            for j in range(rows.shape[1]):
                rows[kept, j] = rows[r, j]
            start[kept] = start[r]
        sent[kept] = sent[r] or comes
        kept += 1
    ordered = True
    for i in range(1, len(time)):
        ordered &= time[i - 1] <= time[i]
    sweep(cells, leaves, until)
    return time, weight, values, ordered, kept
