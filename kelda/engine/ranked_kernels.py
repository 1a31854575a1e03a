"""Kernels of rows in order: a skip list over the slots of a table of rows, and what its front shows.

A row's keys are compared one after another, by labels in the order of the terms (`kelda.engine.labels`),
and then the rows themselves. Only the first `depth` keys have labels: where two rows are equal in these and
not in the next, whoever calls has to make labels for that one, and go on.

`links` has for each slot the next one on each level, then the one before. Slot 0 is the head: its next ones
are the first, and 0 is behind the last.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np
from numba import njit

from kelda.engine.operators.rows_kernels import FIELDS, WEIGHT, helper, intern, release

LEVELS = 12  # each has a quarter of the rows of the one below
UNKNOWN = 2  # what two rows are to each other by labels that are not there
# Counters: of the random numbers that say how high a row is; the highest level in use.
RANDOM, HIGHEST, COUNTERS = range(3)
# How far a report has come: the instant, the change, whether this instant has had any; how many rows were
# shown last; why it stopped.
INSTANT, CHANGE, CHANGED, MANY, STOPPED, PLACES = range(6)
NO_LABELS, NO_ROOM = 1, 2
# What is sent: when, whether it is new (1) or gone (-1), and from here on the row.
TIME, SIGN, SENT = range(3)
# What is sent: all that is shown, what is new, what is gone.
WHOLE, NEW, GONE = 1, 2, 4


@helper
def _compare(slots, keys, which, depth, a, b):
    """-1: slot a is before b; 1: behind it; 0: they are one row; UNKNOWN."""
    for k in range(len(which)):
        if k < depth:
            if keys[a, k] != keys[b, k]:
                return -1 if keys[a, k] < keys[b, k] else 1
        elif slots[a, FIELDS + which[k]] != slots[b, FIELDS + which[k]]:
            return UNKNOWN
    for c in range(FIELDS, slots.shape[1]):
        if slots[a, c] != slots[b, c]:
            return -1 if slots[a, c] < slots[b, c] else 1
    return 0


@helper
def _height(counters):
    """How many levels a new row is on."""
    x = np.uint64(counters[RANDOM])
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    counters[RANDOM] = np.int64(x)
    height = 1
    while height < LEVELS and x & np.uint64(3) == np.uint64(0):
        height += 1
        x >>= np.uint64(2)
    return height


@helper
def _put_in(slots, keys, links, heights, counters, path, which, depth, slot):
    """Put a slot into its place; whether that could be told."""
    at = 0
    for level in range(counters[HIGHEST] - 1, -1, -1):
        after = links[at, level]
        while after != 0:
            found = _compare(slots, keys, which, depth, after, slot)
            if found == UNKNOWN:
                return False
            if found > 0:
                break
            at = after
            after = links[at, level]
        path[level] = at
    height = _height(counters)
    while counters[HIGHEST] < height:
        path[counters[HIGHEST]] = 0
        counters[HIGHEST] += 1
    heights[slot] = height
    for level in range(height):
        before = path[level]
        after = links[before, level]
        links[slot, level] = after
        links[slot, LEVELS + level] = before
        links[before, level] = slot
        if after != 0:
            links[after, LEVELS + level] = slot
    return True


@helper
def _take_out(links, heights, slot):
    for level in range(heights[slot]):
        before, after = links[slot, LEVELS + level], links[slot, level]
        links[before, level] = after
        if after != 0:
            links[after, LEVELS + level] = before


@njit(cache=True)
def change(table, order, changes, begin, end):
    """Apply the changes from `begin` to `end`; gives the first that was not, for want of labels."""
    slots = table[0]
    keys, links, heights, counters, which, every = order
    weights, values, labels, depth = changes
    path = np.empty(LEVELS, np.int64)
    for i in range(begin, end):
        slot = intern(table, values, i, every)
        before = slots[slot, WEIGHT]
        after = before + weights[i]
        if before == 0:
            for k in range(depth):
                keys[slot, k] = labels[k, i]
            if not _put_in(slots, keys, links, heights, counters, path, which, depth, slot):
                return i
        slots[slot, WEIGHT] = after
        if after == 0:
            _take_out(links, heights, slot)
            release(table, slot)
    return end


@njit(cache=True)
def relabel(table, order, which, labels, k):
    """New labels of key k for some slots."""
    keys = order[0]
    for i in range(len(which)):
        keys[which[i], k] = labels[i]


@helper
def _hash(rows, r):
    h = np.uint64(0x51_7C_C1_B7_27_22_0A_95)
    for c in range(rows.shape[1]):
        h = (h ^ np.uint64(rows[r, c])) * np.uint64(0x9E3779B97F4A7C15)
        h ^= h >> np.uint64(29)
    return h


@helper
def _same(rows, a, b):
    same = True
    for c in range(rows.shape[1]):
        same &= rows[a, c] == rows[b, c]
    return same


@helper
def _first_like(rows, r, heads, mask):
    """The first row that was asked for and is equal to row r; itself, if there was none."""
    at = np.int64(_hash(rows, r) & np.uint64(mask))
    while heads[at] >= 0:
        if _same(rows, heads[at], r):
            return heads[at]
        at = (at + 1) & mask
    heads[at] = r
    return r


@helper
def _front(slots, links, rows, begin, most, distinct, heads):
    """Write the first `most` solutions (-1: all) to `rows`, from `begin` on; gives where they end."""
    n, at = begin, links[0, 0]
    mask = len(heads) - 1
    if distinct:
        for i in range(len(heads)):
            heads[i] = -1
    while at != 0:
        times = min(slots[at, WEIGHT], 1) if distinct else slots[at, WEIGHT]
        for _ in range(times):
            if n - begin == most or n == len(rows):
                return n
            for c in range(rows.shape[1]):
                rows[n, c] = slots[at, FIELDS + c]
            if not distinct or _first_like(rows, n, heads, mask) == n:
                n += 1
        at = links[at, 0]
    return n


@helper
def _put_out(out, n, sign, rows, r):
    """Write a row to what is sent."""
    out[n, SIGN] = sign
    for c in range(rows.shape[1]):
        out[n, SENT + c] = rows[r, c]


@helper
def _differences(out, n, wanted, rows, was, middle, end, scratch):
    """Write what is gone from the rows [was, middle), in their order, and what is new in [middle, end), in
    its order; of a repeated row the last ones are new. Gives where that ends."""
    heads, first, count = scratch[0], scratch[1], scratch[2]
    many = 4
    while many < 2 * (end - was):
        many *= 2
    for i in range(many):
        heads[i] = -1
    for r in range(was, end):
        count[r] = 0
        first[r] = _first_like(rows, r, heads, many - 1)
        count[first[r]] += 1 if r < middle else -1
    if wanted & GONE:
        for r in range(was, middle):
            while count[r] > 0:
                _put_out(out, n, -1, rows, r)
                count[r] -= 1
                n += 1
    if wanted & NEW:
        for r in range(end - 1, middle - 1, -1):
            is_new = count[first[r]] < 0
            count[first[r]] += is_new
            first[r] = is_new
        for r in range(middle, end):
            if first[r]:
                _put_out(out, n, 1, rows, r)
                n += 1
    return n


@njit(cache=True)
def report(table, order, changes, cuts, instants, shown, wanted, rows, scratch, out, progress):
    """Go from instant to instant: apply the changes up to its cut, and tell what the slice `shown` (offset,
    end, whether solutions are distinct) has then, or how it differs from the one before.

    `rows` begins with those that were shown last, as many as `progress` says, and has room for twice as many
    as there can be, with what is before the slice; so has `scratch`, twice. Stops behind the last instant, or
    where `out` has no room or labels are missing; `progress` says where. Gives how many are sent."""
    slots, links = table[0], order[1]
    offset, end, distinct = shown
    n = 0
    while progress[INSTANT] < len(instants):
        k = progress[INSTANT]
        begin = progress[CHANGE]
        if begin < cuts[k]:
            progress[CHANGED] = 1
            progress[CHANGE] = change(table, order, changes, begin, cuts[k])
            if progress[CHANGE] < cuts[k]:
                progress[STOPPED] = NO_LABELS
                return n
        first, was = n, progress[MANY]
        behind = was
        if progress[CHANGED]:
            behind = _front(slots, links, rows, was, end, distinct, scratch[0])
        middle = min(was + offset, behind)
        if n + was + behind - middle > len(out):
            progress[STOPPED] = NO_ROOM
            return n
        if progress[CHANGED]:
            equal = behind - middle == was
            for r in range(was if equal else 0):
                if not _same(rows, r, middle + r):
                    equal = False
                    break
            if not equal and not wanted & WHOLE:
                if offset:  # what is before the slice is skipped
                    for r in range(behind - middle):
                        for c in range(rows.shape[1]):
                            rows[was + r, c] = rows[middle + r, c]
                n = _differences(out, n, wanted, rows, 0, was, was + behind - middle, scratch)
                middle, behind = was, was + behind - middle
            if not equal:
                for r in range(behind - middle):
                    for c in range(rows.shape[1]):
                        rows[r, c] = rows[middle + r, c]
                progress[MANY] = behind - middle
        if wanted & WHOLE:
            for r in range(progress[MANY]):
                _put_out(out, n, 1, rows, r)
                n += 1
        for i in range(first, n):
            out[i, TIME] = instants[k]
        progress[CHANGED] = 0
        progress[INSTANT] = k + 1
    return n
