"""Kernels of the multiway window join: one table of rows, chains by key, depth-first probing.

Rows of all leaves lie in one table in the order in which they arrived. A row number never changes
(it grows for ever); its position in the arrays is `place(row)`: stored rows, which never leave, come
first, the others go round a ring.

An index has a hash table from key to the newest row with it, and for each row the row before it with
the same key. Rows that have left are not taken out: a walk along a chain stops at the first one, since
within a leaf older rows have left, too; a table slot whose newest row has left is free for another key.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np
from numba import njit

EMPTY = np.int64(-1)


@njit(cache=True, inline="always")
def place(row, stored, mask):
    """The position of a row in the arrays."""
    return row if row < stored else stored + ((row - stored) & mask)


@njit(cache=True, inline="always")
def mix(h, value):
    """Add a value to a hash."""
    h = (h ^ np.uint64(value)) * np.uint64(0x9E3779B97F4A7C15)
    return h ^ (h >> np.uint64(32))


@njit(cache=True, inline="always")
def slot_of(hashes, heads, h):
    """The slot that holds hash h, or -1."""
    size = len(heads)
    at = np.int64(h & np.uint64(size - 1))
    while True:
        if heads[at] == EMPTY:
            return np.int64(-1)
        if hashes[at] == h:
            return at
        at = (at + 1) & (size - 1)


@njit(cache=True)
def put(hashes, heads, h, row, oldest, used):
    """Make `row` the newest of its key; gives (the row before it or -1, slots in use).

    `oldest`: rows below it (stored ones apart) are gone, and so are keys whose newest row is such."""
    size = len(heads)
    at = np.int64(h & np.uint64(size - 1))
    free = np.int64(-1)
    while heads[at] != EMPTY:
        if hashes[at] == h:
            before = heads[at]
            heads[at] = row
            return (before if before >= oldest else EMPTY), used
        if free < 0 and heads[at] < oldest:
            free = at
        at = (at + 1) & (size - 1)
    if free < 0:
        free = at
        used += 1
    hashes[free] = h
    heads[free] = row
    return EMPTY, used


@njit(cache=True)
def rehash(hashes, heads, new_hashes, new_heads, oldest):
    """Move the keys that still have a row into a new table; gives their number."""
    size = len(new_heads)
    used = 0
    for i in range(len(heads)):
        if heads[i] == EMPTY or heads[i] < oldest:
            continue
        at = np.int64(hashes[i] & np.uint64(size - 1))
        while new_heads[at] != EMPTY:
            at = (at + 1) & (size - 1)
        new_hashes[at] = hashes[i]
        new_heads[at] = heads[i]
        used += 1
    return used


@njit(cache=True)
def join(
    first,  # the first row to insert and probe with
    first_is_in,  # it was inserted already: this goes on where the output was full
    end,  # the row behind the last
    values,  # (columns, places)
    leaf,  # which leaf a row belongs to
    enter,
    leave,  # when the row really leaves
    fades,  # when it leaves by its window alone: not later than those behind it
    stored,
    mask,
    oldest,
    copies,  # per leaf, the index on all its columns if it reads a graph window, else -1
    # indexes: one row of these per index
    index_leaf,
    index_keys,  # (indexes, widest key) columns of the leaf that form the key, -1 behind the last
    table_start,
    table_size,
    hashes,
    heads,
    used,
    before,  # (indexes, places)
    # plans: for a new row of leaf j, the leaves to visit in order
    plan_leaf,  # (leaves, steps)
    plan_index,  # (leaves, steps) the index to probe, or -1: walk all rows of the leaf by chain of index
    plan_from,  # (leaves, steps, widest key, 2): (leaf, column) that gives each key value
    check_count,  # (leaves, steps)
    check,  # (leaves, steps, checks, 3): (column of the visited leaf, leaf, column) that must be equal
    # output
    out_rows,  # (capacity, leaves)
    out_start,
    stack_row,  # scratch, one per step
    bound,  # scratch, the row chosen for each leaf
    starts,
    ends,
    probes,  # (leaves, steps) rows looked at, for the planner
):
    """Insert the rows [first, end) one by one and find every result that each completes.

    Gives (the row to go on with, results written, whether that row is inserted already): it stops when
    the output cannot hold the results of one more row; the caller makes room and goes on. A result is a
    row per leaf; it stands from the last `enter` to the first `leave` of them, if that is any time at all."""
    leaves = plan_leaf.shape[0]
    steps = leaves - 1
    capacity = len(out_start)
    found = 0
    row = first
    while row < end:
        here = place(row, stored, mask)
        j = leaf[here]
        if row > first or not first_is_in:
            for d in range(len(index_leaf)):
                if index_leaf[d] != j:
                    continue
                h = np.uint64(d + 1)
                for k in range(index_keys.shape[1]):
                    column = index_keys[d, k]
                    if column < 0:
                        break
                    h = mix(h, values[column, here])
                a = table_start[d]
                b = a + table_size[d]
                gone = 0 if row < stored else oldest
                before[d, here], used[d] = put(hashes[a:b], heads[a:b], h, row, gone, used[d])
            d = copies[j]
            if d >= 0 and before[d, here] != EMPTY:
                # In a graph, a copy ends the stay of the copy before it at the instant it enters.
                there = place(before[d, here], stored, mask)
                same = True
                for k in range(index_keys.shape[1]):
                    column = index_keys[d, k]
                    if column < 0:
                        break
                    if values[column, here] != values[column, there]:
                        same = False
                        break
                if same and leave[there] > enter[here]:
                    leave[there] = enter[here]
        if enter[here] >= leave[here]:
            row += 1
            continue
        kept = found
        if steps == 0:
            if found == capacity:
                return row, found, True
            out_rows[found, 0] = row
            out_start[found] = enter[here]
            found += 1
            row += 1
            continue
        bound[j] = row
        depth = 0
        starts[0] = enter[here]
        ends[0] = leave[here]
        stack_row[0] = np.int64(-2)  # -2: the chain of this step is not entered yet
        full = False
        while depth >= 0:
            other = plan_leaf[j, depth]
            d = plan_index[j, depth]
            if stack_row[depth] == -2:
                h = np.uint64(d + 1)
                for k in range(index_keys.shape[1]):
                    if index_keys[d, k] < 0:
                        break
                    source = place(bound[plan_from[j, depth, k, 0]], stored, mask)
                    h = mix(h, values[plan_from[j, depth, k, 1], source])
                a = table_start[d]
                b = a + table_size[d]
                slot = slot_of(hashes[a:b], heads[a:b], h)
                stack_row[depth] = EMPTY if slot < 0 else heads[a + slot]
            candidate = stack_row[depth]
            if candidate == EMPTY or (candidate >= stored and candidate < oldest):
                depth -= 1
                continue
            there = place(candidate, stored, mask)
            probes[j, depth] += 1
            if fades[there] <= starts[depth]:  # it has left, and with it all before it
                depth -= 1
                continue
            stack_row[depth] = before[d, there]
            start = max(starts[depth], enter[there])
            stop = min(ends[depth], leave[there])
            if start >= stop:
                continue
            equal = True
            for c in range(check_count[j, depth]):
                source = place(bound[check[j, depth, c, 1]], stored, mask)
                if values[check[j, depth, c, 0], there] != values[check[j, depth, c, 2], source]:
                    equal = False
                    break
            if not equal:
                continue
            bound[other] = candidate
            if depth + 1 < steps:
                depth += 1
                starts[depth] = start
                ends[depth] = stop
                stack_row[depth] = np.int64(-2)
                continue
            if found == capacity:
                full = True
                break
            for i in range(leaves):
                out_rows[found, i] = bound[i]
            out_start[found] = start
            found += 1
        if full:
            return row, kept, True
        row += 1
    return row, found, False


@njit(cache=True)
def fill(first, end, d, of_leaf, keys, values, leaf, stored, mask, oldest, hashes, heads, before, used):
    """Put the rows [first, end) of one leaf into a new index; gives its slots in use."""
    for row in range(first, end):
        here = place(row, stored, mask)
        if leaf[here] != of_leaf:
            continue
        h = np.uint64(d + 1)
        for k in range(len(keys)):
            if keys[k] < 0:
                break
            h = mix(h, values[keys[k], here])
        gone = 0 if row < stored else oldest
        before[d, here], used = put(hashes, heads, h, row, gone, used)
    return used


@njit(cache=True)
def first_live(oldest, end, leave, stored, mask, until):
    """The first row from `oldest` on that has not left by `until`."""
    row = oldest
    while row < end and leave[place(row, stored, mask)] <= until:
        row += 1
    return row
