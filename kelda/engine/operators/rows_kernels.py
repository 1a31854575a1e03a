"""Kernels of the keyed operators: a table of rows on flat arrays, and what the operators do with it.

A table interns rows of int64 columns to slots. A slot is one line of `slots`: the fields below, then the
row. `buckets` is an open-addressing hash table: a word is the high half of a row's hash over its slot
number, and its home is given by its topmost bits, so that probing, growing and closing the gap behind a
released row read `buckets` alone. Slot 0 is nobody: 0 ends a list and marks an empty bucket.

Every operator goes from instant to instant, each in three phases:

    add       the deltas of the instant change the weights; a slot remembers its weight before the instant
    emit      what is different after the instant from before it, once per row of the output
    release   slots whose weight has become 0

Nothing is seen between add and emit: the order of deltas within an instant cannot matter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

# What only kernels call. numba counts references to the arrays at every call, and that costs more than the
# work done here; these functions allocate nothing and keep nothing, so they can do without.
helper = njit(cache=True, _nrt=False)

Ids = NDArray[np.int64]
Words = NDArray[np.uint64]

# Fields of a slot.
WEIGHT = 0  # the row's integrated weight; of a key in an anti-join, that of all right rows with the key
BEFORE = 1  # the weight before instant STAMP
STAMP = 2  # the number of the last instant that touched the slot
KEY, NEXT, PREVIOUS = 3, 4, 5  # of a row: the slot of its key, and its neighbours among the rows of the key
LEFT, RIGHT = 3, 4  # of a key: the first row on either side
LENGTH = 2  # of a key: LEFT + LENGTH and RIGHT + LENGTH say how many rows there are
FIELDS = 7  # here the row's columns begin

# Counters of a table.
FREE = 0  # the first released slot; NEXT leads on
USED = 1  # slots 1..USED have been in use
LIVE = 2  # rows in the table
INSTANTS = 3  # instants so far
SHIFT = 4  # hash >> SHIFT is a row's home bucket
COUNTERS = 5

_HIGH = np.uint64(0xFFFFFFFF00000000)
_LOW = np.uint64(0x00000000FFFFFFFF)
_SEED = np.uint64(0x6A09E667F3BCC909)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_LAST = np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)
_ONE = np.uint64(1)
_NONE = np.uint64(0)


# Records. Python hands over plain tuples, whose types numba finds far sooner than those of named ones. Where
# a loop is hot, they are taken apart before it: a look into a record is not always free, nor a call with it.


class Table(NamedTuple):
    """The arrays of one table."""

    slots: Ids  # (capacity + 1, FIELDS + columns)
    buckets: Words
    counters: Ids


class Changes(NamedTuple):
    """Deltas, in or out: in time order, with a row of `values` for each column."""

    time: Ids
    weight: Ids
    values: Ids


# --- the table -------------------------------------------------------------------------------------------


@helper
def _mixed(h, value):  # type: ignore[no-untyped-def]
    h = (h ^ np.uint64(value)) * _MIX
    return h ^ (h >> _HALF)


@helper
def intern(table, values, i, on):  # type: ignore[no-untyped-def]
    """The slot of the row made of columns `on` of row i; a new one has zeros in all its fields."""
    slots, buckets, counters = table
    h = _SEED
    for k in range(len(on)):
        h = _mixed(h, values[on[k], i])
    h *= _LAST
    mask = np.uint64(len(buckets) - 1)
    at = h >> np.uint64(counters[SHIFT])
    tag = h & _HIGH
    while True:
        word = buckets[at]
        if word == _NONE:
            break
        if word & _HIGH == tag:
            slot = np.int64(word & _LOW)
            same = True
            for k in range(len(on)):
                if slots[slot, FIELDS + k] != values[on[k], i]:
                    same = False
                    break
            if same:
                return slot
        at = (at + _ONE) & mask
    slot = counters[FREE]
    if slot != 0:
        counters[FREE] = slots[slot, NEXT]
    else:
        slot = counters[USED] + 1
        counters[USED] = slot
    counters[LIVE] += 1
    for k in range(FIELDS):
        slots[slot, k] = 0
    for k in range(len(on)):
        slots[slot, FIELDS + k] = values[on[k], i]
    buckets[at] = tag | np.uint64(slot)
    return slot


@helper
def release(table, slot):  # type: ignore[no-untyped-def]
    """Forget a row. Words behind the gap move up, so that no search ends too early and no tombstone stays."""
    slots, buckets, counters = table
    h = _SEED
    for c in range(FIELDS, slots.shape[1]):
        h = _mixed(h, slots[slot, c])
    h *= _LAST
    shift = np.uint64(counters[SHIFT])
    mask = np.uint64(len(buckets) - 1)
    gap = h >> shift
    while buckets[gap] & _LOW != np.uint64(slot):
        gap = (gap + _ONE) & mask
    at = gap
    while True:
        at = (at + _ONE) & mask
        word = buckets[at]
        if word == _NONE:
            break
        if (at - (word >> shift)) & mask >= (at - gap) & mask:
            buckets[gap] = word
            gap = at
    buckets[gap] = _NONE
    slots[slot, NEXT] = counters[FREE]
    counters[FREE] = slot
    counters[LIVE] -= 1


@njit(cache=True)
def rehash(old, new, shift):  # type: ignore[no-untyped-def]
    """Put the words of `old` into the empty, larger `new`."""
    mask = np.uint64(len(new) - 1)
    for word in old:
        if word != _NONE:
            at = word >> np.uint64(shift)
            while new[at] != _NONE:
                at = (at + _ONE) & mask
            new[at] = word


@njit(cache=True)
def live_slots(buckets, count):  # type: ignore[no-untyped-def]
    """The slots in use, ascending; there are so many."""
    found = np.empty(count, np.int64)
    n = 0
    for word in buckets:
        if word != _NONE:
            found[n] = np.int64(word & _LOW)
            n += 1
    found.sort()
    return found


# --- rows by key -----------------------------------------------------------------------------------------


@helper
def _intern_by_key(rows, keys, values, i, every, on, side):  # type: ignore[no-untyped-def]
    """The slot of row i, of which `every` names all columns and `on` those of the key; a new row goes to the
    front of its key's list on this side."""
    slots, k_slots = rows.slots, keys.slots
    row = intern(rows, values, i, every)
    if slots[row, KEY] == 0:
        key = intern(keys, values, i, on)
        first = k_slots[key, side]
        slots[row, KEY] = key
        slots[row, NEXT] = first
        if first != 0:
            slots[first, PREVIOUS] = row
        k_slots[key, side] = row
        k_slots[key, side + LENGTH] += 1
    return row


@helper
def _unlink(rows, keys, row, side):  # type: ignore[no-untyped-def]
    """Take a row out of its key's list and release it; its key."""
    slots, k_slots = rows.slots, keys.slots
    key, after, before = slots[row, KEY], slots[row, NEXT], slots[row, PREVIOUS]
    if before != 0:
        slots[before, NEXT] = after
    else:
        k_slots[key, side] = after
    if after != 0:
        slots[after, PREVIOUS] = before
    k_slots[key, side + LENGTH] -= 1
    release(rows, row)
    return key


@njit(cache=True)
def load(rows, keys, weight, values, on, side):  # type: ignore[no-untyped-def]
    """Fill tables with rows that were there before the next instant."""
    rows, keys = Table(*rows), Table(*keys)
    every = np.arange(values.shape[0])
    for i in range(len(weight)):
        row = _intern_by_key(rows, keys, values, i, every, on, side)
        rows.slots[row, WEIGHT] += weight[i]


@njit(cache=True)
def load_weights(rows, weight, values):  # type: ignore[no-untyped-def]
    """The same for a table without keys."""
    rows = Table(*rows)
    every = np.arange(values.shape[0])
    for i in range(len(weight)):
        row = intern(rows, values, i, every)
        rows.slots[row, WEIGHT] += weight[i]


# --- from instant to instant -----------------------------------------------------------------------------


@helper
def _earlier(left, i, right, j):  # type: ignore[no-untyped-def]
    """The earlier time of change i on the left and change j on the right, of which one is there."""
    if j == len(right) or (i < len(left) and left[i] <= right[j]):
        return left[i]
    return right[j]


@helper
def _begin(table):  # type: ignore[no-untyped-def]
    """The number of a new instant."""
    table.counters[INSTANTS] += 1
    return table.counters[INSTANTS]


@helper
def _touch(slots, slot, weight, now):  # type: ignore[no-untyped-def]
    """Change a weight; True for the first change of the slot in this instant."""
    first = slots[slot, STAMP] != now
    if first:
        slots[slot, STAMP] = now
        slots[slot, BEFORE] = slots[slot, WEIGHT]
    slots[slot, WEIGHT] += weight
    return first


@helper
def _before(slots, slot, now):  # type: ignore[no-untyped-def]
    return slots[slot, BEFORE] if slots[slot, STAMP] == now else slots[slot, WEIGHT]


@njit(cache=True)
def _room(columns, size):  # type: ignore[no-untyped-def]
    """Room for so many changes."""
    return Changes(np.empty(size, np.int64), np.empty(size, np.int64), np.empty((columns, size), np.int64))


@njit(cache=True)
def _grown(out, n, most, limit):  # type: ignore[no-untyped-def]
    """The output's n rows, with room for so many more; not for more than `limit` without need."""
    more = _room(out.values.shape[0], max(min(2 * len(out.time), limit), n + most))
    more.time[:n] = out.time[:n]
    more.weight[:n] = out.weight[:n]
    for c in range(out.values.shape[0]):
        more.values[c, :n] = out.values[c, :n]
    return more


@njit(cache=True)
def _first(out, n):  # type: ignore[no-untyped-def]
    """The output, without the room behind its n rows."""
    return out.time[:n], out.weight[:n], out.values[:, :n]


# --- the operators ---------------------------------------------------------------------------------------


@njit(cache=True)
def distinct(rows, changes):  # type: ignore[no-untyped-def]
    """Rows that came (+1) and rows that went (-1): at most one per delta."""
    rows = Table(*rows)
    slots = rows.slots
    time, weight, values = changes
    count, width = len(time), values.shape[0]
    every, touched = np.arange(width), np.empty(count, np.int64)
    out = _room(width, count)
    n = i = 0
    while i < count:
        t = time[i]
        now = _begin(rows)
        changed = 0
        while i < count and time[i] == t:
            row = intern(rows, values, i, every)
            if _touch(slots, row, weight[i], now):
                touched[changed] = row
                changed += 1
            i += 1
        for k in range(changed):
            row = touched[k]
            w = np.int64(slots[row, WEIGHT] > 0) - np.int64(slots[row, BEFORE] > 0)
            if w != 0:
                out.time[n] = t
                out.weight[n] = w
                for c in range(width):
                    out.values[c, n] = slots[row, FIELDS + c]
                n += 1
            if slots[row, WEIGHT] == 0:
                release(rows, row)
    return _first(out, n)


@helper
def _emit_pairs(a_slots, b_slots, k_slots, touched, right_only, now, t, out, n):  # type: ignore[no-untyped-def]
    """Weight after minus weight before of every pair of which at least one row has changed."""
    a_touched, b_touched = touched
    time, weight, values = out
    width = a_slots.shape[1] - FIELDS
    for a in a_touched:
        after, before = a_slots[a, WEIGHT], a_slots[a, BEFORE]
        if after == before:
            continue
        b = k_slots[a_slots[a, KEY], RIGHT]
        while b != 0:
            w = after * b_slots[b, WEIGHT] - before * _before(b_slots, b, now)
            if w != 0:
                time[n] = t
                weight[n] = w
                for c in range(width):
                    values[c, n] = a_slots[a, FIELDS + c]
                for c in range(len(right_only)):
                    values[width + c, n] = b_slots[b, FIELDS + right_only[c]]
                n += 1
            b = b_slots[b, NEXT]
    for b in b_touched:
        change = b_slots[b, WEIGHT] - b_slots[b, BEFORE]
        if change == 0:
            continue
        a = k_slots[b_slots[b, KEY], LEFT]
        while a != 0:
            # Pairs of which the left row has changed too have been sent above.
            if a_slots[a, WEIGHT] == _before(a_slots, a, now) and a_slots[a, WEIGHT] != 0:
                time[n] = t
                weight[n] = a_slots[a, WEIGHT] * change
                for c in range(width):
                    values[c, n] = a_slots[a, FIELDS + c]
                for c in range(len(right_only)):
                    values[width + c, n] = b_slots[b, FIELDS + right_only[c]]
                n += 1
            a = a_slots[a, NEXT]
    return n


@njit(cache=True)
def join(left, right, keys, left_changes, right_changes, left_on, right_on, right_only, limit):  # type: ignore[no-untyped-def]
    """The deltas of the join of two tables of rows, linked by `keys`; and whether they are all: not if they
    may be more than `limit`."""
    left, right, keys = Table(*left), Table(*right), Table(*keys)
    a_slots, b_slots, k_slots = left.slots, right.slots, keys.slots
    a_time, a_weight, a_values = left_changes
    b_time, b_weight, b_values = right_changes
    a_count, b_count, width = len(a_time), len(b_time), a_values.shape[0]
    a_every, b_every = np.arange(width), np.arange(b_values.shape[0])
    a_touched, b_touched = np.empty(a_count, np.int64), np.empty(b_count, np.int64)
    out = _room(width + len(right_only), max(a_count + b_count, 16))
    n = i = j = 0
    while i < a_count or j < b_count:
        t = _earlier(a_time, i, b_time, j)
        now = _begin(keys)
        a_changed = b_changed = 0
        while i < a_count and a_time[i] == t:
            a = _intern_by_key(left, keys, a_values, i, a_every, left_on, LEFT)
            if _touch(a_slots, a, a_weight[i], now):
                a_touched[a_changed] = a
                a_changed += 1
            i += 1
        while j < b_count and b_time[j] == t:
            b = _intern_by_key(right, keys, b_values, j, b_every, right_on, RIGHT)
            if _touch(b_slots, b, b_weight[j], now):
                b_touched[b_changed] = b
                b_changed += 1
            j += 1
        most = 0
        for k in range(a_changed):
            most += k_slots[a_slots[a_touched[k], KEY], RIGHT + LENGTH]
        for k in range(b_changed):
            most += k_slots[b_slots[b_touched[k], KEY], LEFT + LENGTH]
        if n + most > len(out.time):
            if n + most > limit:
                return _first(out, n), False
            out = _grown(out, n, most, limit)
        touched = (a_touched[:a_changed], b_touched[:b_changed])
        n = _emit_pairs(a_slots, b_slots, k_slots, touched, right_only, now, t, out, n)
        for k in range(a_changed):
            if a_slots[a_touched[k], WEIGHT] == 0:
                key = _unlink(left, keys, a_touched[k], LEFT)
                if k_slots[key, LEFT] == 0 and k_slots[key, RIGHT] == 0:
                    release(keys, key)
        for k in range(b_changed):
            if b_slots[b_touched[k], WEIGHT] == 0:
                key = _unlink(right, keys, b_touched[k], RIGHT)
                if k_slots[key, LEFT] == 0 and k_slots[key, RIGHT] == 0:
                    release(keys, key)
    return _first(out, n), True


@helper
def _emit_shown(a_slots, k_slots, touched, keep_matched, now, t, out, n):  # type: ignore[no-untyped-def]
    """Weight after minus weight before of left rows that changed or whose key gained or lost its match."""
    a_touched, k_touched = touched
    time, weight, values = out
    width = a_slots.shape[1] - FIELDS
    for key in k_touched:
        shown = (k_slots[key, WEIGHT] > 0) == keep_matched
        if shown == ((k_slots[key, BEFORE] > 0) == keep_matched):
            continue
        a = k_slots[key, LEFT]
        while a != 0:
            w = a_slots[a, WEIGHT] if shown else -_before(a_slots, a, now)
            if w != 0:
                time[n] = t
                weight[n] = w
                for c in range(width):
                    values[c, n] = a_slots[a, FIELDS + c]
                n += 1
            a = a_slots[a, NEXT]
    for a in a_touched:
        key = a_slots[a, KEY]
        shown = (k_slots[key, WEIGHT] > 0) == keep_matched
        shown_before = (k_slots[key, BEFORE] > 0) == keep_matched
        w = a_slots[a, WEIGHT] - a_slots[a, BEFORE]
        if shown and shown_before and w != 0:
            time[n] = t
            weight[n] = w
            for c in range(width):
                values[c, n] = a_slots[a, FIELDS + c]
            n += 1
    return n


@njit(cache=True)
def antijoin(left, keys, left_changes, right_changes, left_on, right_on, keep_matched, limit):  # type: ignore[no-untyped-def]
    """The deltas of the left rows whose key has a match (`keep_matched`), or has none; and whether they are
    all: not if they may be more than `limit`."""
    left, keys = Table(*left), Table(*keys)
    a_slots, k_slots = left.slots, keys.slots
    a_time, a_weight, a_values = left_changes
    b_time, b_weight, b_values = right_changes
    a_count, b_count, width = len(a_time), len(b_time), a_values.shape[0]
    every = np.arange(width)
    a_touched, k_touched = np.empty(a_count, np.int64), np.empty(a_count + b_count, np.int64)
    out = _room(width, max(a_count + b_count, 16))
    n = i = j = 0
    while i < a_count or j < b_count:
        t = _earlier(a_time, i, b_time, j)
        now = _begin(keys)
        a_changed = k_changed = 0
        while i < a_count and a_time[i] == t:
            a = _intern_by_key(left, keys, a_values, i, every, left_on, LEFT)
            if _touch(a_slots, a, a_weight[i], now):
                a_touched[a_changed] = a
                a_changed += 1
                key = a_slots[a, KEY]
                if _touch(k_slots, key, 0, now):
                    k_touched[k_changed] = key
                    k_changed += 1
            i += 1
        while j < b_count and b_time[j] == t:
            key = intern(keys, b_values, j, right_on)
            if _touch(k_slots, key, b_weight[j], now):
                k_touched[k_changed] = key
                k_changed += 1
            j += 1
        most = a_changed
        for k in range(k_changed):
            most += k_slots[k_touched[k], LEFT + LENGTH]
        if n + most > len(out.time):
            if n + most > limit:
                return _first(out, n), False
            out = _grown(out, n, most, limit)
        touched = (a_touched[:a_changed], k_touched[:k_changed])
        n = _emit_shown(a_slots, k_slots, touched, keep_matched, now, t, out, n)
        for k in range(a_changed):
            if a_slots[a_touched[k], WEIGHT] == 0:
                _unlink(left, keys, a_touched[k], LEFT)
        for k in range(k_changed):
            if k_slots[k_touched[k], WEIGHT] == 0 and k_slots[k_touched[k], LEFT] == 0:
                release(keys, k_touched[k])
    return _first(out, n), True
