"""Kernels of a members table: (group, value) -> count, and the members of each group as a linked list.

A table is the tuple of

    slots    open addressing, entry + 1, 0 is free
    entries  (FIELDS, room), fields as named below
    spare    a stack of entries given back
    meta     [entries alive, entries ever given, spare]
    head     the first entry of each group, -1 if it has none

Whoever calls `members_step` makes room first: it never runs out of it. A *run* is one group at one instant;
runs of one group are neighbours, in time order, and deltas come in the order of their runs.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from kelda.engine.operators.group_table_kernels import mixed

GROUP, VALUE, COUNT, NEXT, PREVIOUS, KEY, CLASS, STAMP, BEFORE = range(9)
FIELDS = 9
MISSING, OTHER, NUMBER, FLOAT, MOMENT, LOCAL_MOMENT, BOOLEAN, STRING, IRI = range(9)
CLASSES = 9
"""Classes of members: unbound; in need of the term itself; compared by KEY; and, STRING and IRI, by KEY and
then by text, which for hashed ids is in the dictionary's arena."""


@njit(cache=True, inline="always")
def _home(group, value, mask):  # type: ignore[no-untyped-def]
    return np.int64(mixed(mixed(np.uint64(3), group), value) & np.uint64(mask))


@njit(cache=True)
def _find_member(table, group, value):  # type: ignore[no-untyped-def]
    """The entry of a member, a new one with count 0 where there is none."""
    slots, entries, spare, meta, head = table
    mask = np.int64(slots.shape[0] - 1)
    at = _home(group, value, mask)
    while slots[at] != 0:
        e = slots[at] - 1
        if entries[GROUP, e] == group and entries[VALUE, e] == value:
            return e
        at = (at + 1) & mask
    if meta[2] > 0:
        meta[2] -= 1
        e = spare[meta[2]]
    else:
        e = meta[1]
        meta[1] += 1
    meta[0] += 1
    slots[at] = e + 1
    entries[GROUP, e] = group
    entries[VALUE, e] = value
    entries[COUNT, e] = 0
    entries[STAMP, e] = -1
    entries[NEXT, e] = head[group]
    entries[PREVIOUS, e] = -1
    if head[group] >= 0:
        entries[PREVIOUS, head[group]] = e
    head[group] = e
    return e


@njit(cache=True)
def _drop_member(table, e):  # type: ignore[no-untyped-def]
    slots, entries, spare, meta, head = table
    mask = np.int64(slots.shape[0] - 1)
    group = entries[GROUP, e]
    at = _home(group, entries[VALUE, e], mask)
    while slots[at] != e + 1:
        at = (at + 1) & mask
    hole = at
    while True:
        at = (at + 1) & mask
        if slots[at] == 0:
            break
        other = slots[at] - 1
        home = _home(entries[GROUP, other], entries[VALUE, other], mask)
        if (at - home) & mask >= (at - hole) & mask:
            slots[hole] = slots[at]
            hole = at
    slots[hole] = 0
    before, after = entries[PREVIOUS, e], entries[NEXT, e]
    if before >= 0:
        entries[NEXT, before] = after
    else:
        head[group] = after
    if after >= 0:
        entries[PREVIOUS, after] = before
    spare[meta[2]] = e
    meta[2] += 1
    meta[0] -= 1


@njit(cache=True)
def _span(texts, value):  # type: ignore[no-untyped-def]
    """(start, end) of the hashed term's text in the arena; (0, 0) if it is not known."""
    slots, offsets, _ = texts
    mask = slots.shape[0] - 1
    at = value & mask
    while slots[at, 0] != value:
        if slots[at, 0] == 0:
            return np.int64(0), np.int64(0)
        at = (at + 1) & mask
    entry = slots[at, 1] & 0xFFFFFFFF
    return offsets[entry], offsets[entry + 1]


@njit(cache=True, inline="always")
def _byte(arena, at):  # type: ignore[no-untyped-def]
    """(the byte that stands here, where the next one does) with escapes undone."""
    here = np.int64(arena[at])
    if here != 92:
        return here, at + 1
    here = np.int64(arena[at + 1])
    if here == 110:  # LF
        here = np.int64(10)
    elif here == 114:  # CR
        here = np.int64(13)
    return here, at + 2


@njit(cache=True)
def _text_before(texts, a, b):  # type: ignore[no-untyped-def]
    """Whether the text of hashed id a (both strings, or both IRIs) is before that of b."""
    arena = texts[2]
    at, end = _span(texts, a)
    other, other_end = _span(texts, b)
    at, end, other, other_end = at + 1, end - 1, other + 1, other_end - 1  # without quotes or brackets
    while at < end and other < other_end:
        mine, at = _byte(arena, at)
        yours, other = _byte(arena, other)
        if mine != yours:
            return mine < yours
    return at >= end and other < other_end


@njit(cache=True)
def text_classes(texts, ids, key, kind):  # type: ignore[no-untyped-def]
    """Fill in class and key of the hashed ids that are strings (their first 7 bytes) or IRIs (0)."""
    arena = texts[2]
    for i in range(ids.shape[0]):
        if ids[i] <= 0:
            continue
        at, end = _span(texts, ids[i])
        if end == 0:
            continue
        if arena[at] == 60 and arena[at + 1] != 60:
            kind[i] = IRI
        elif arena[at] == 34 and arena[end - 1] == 34:
            kind[i] = STRING
            at += 1
            word = np.int64(0)
            for _ in range(7):
                here = np.int64(0)
                if at < end - 1:
                    here, at = _byte(arena, at)
                word = word << 8 | here
            key[i] = word


@njit(cache=True)
def _better(entries, e, b, sign, texts):  # type: ignore[no-untyped-def]
    """Whether entry e comes before the best one so far, in a total order; among equals as in a scan."""
    if b < 0:
        return True
    if entries[CLASS, e] != entries[CLASS, b]:
        return entries[CLASS, e] < entries[CLASS, b]
    if entries[KEY, e] != entries[KEY, b]:
        return (entries[KEY, e] < entries[KEY, b]) == (sign < 0)
    mine, yours = entries[VALUE, e], entries[VALUE, b]
    if entries[CLASS, e] < STRING:
        return _text_before(texts, mine, yours) if mine > 0 and yours > 0 else mine < yours
    if mine == yours:
        return False
    # A string that is inline is no longer than its key, so it is before all others with that key.
    before = yours > 0 if mine < 0 else yours > 0 and _text_before(texts, mine, yours)
    return before == (sign < 0)


@njit(cache=True)
def insert_members(table, groups, old, kept, places):  # type: ignore[no-untyped-def]
    """Put the `kept` entries of an `old` table into an empty one, under new group numbers.

    `places[o]` becomes the new entry of the old one."""
    _, entries, _, _, _ = table
    for i in range(kept.shape[0]):
        o = kept[i]
        e = _find_member(table, groups[i], old[VALUE, o])
        entries[COUNT, e] = old[COUNT, o]
        entries[KEY, e] = old[KEY, o]
        entries[CLASS, e] = old[CLASS, o]
        places[o] = e


@njit(cache=True)
def members_step(table, classes, best, sign, always, deltas, texts):  # type: ignore[no-untyped-def]
    """Apply deltas to a members table, run by run. `classes` counts the members of each class and group,
    `best` is the entry of the least or greatest member of each group. `deltas` is the tuple of the group of
    each run, and of each delta its run, value, weight, and the key and class to compare it by. Returns

    (changes: [run, value, ±1] of members that came or went, extreme: one value per run,
     snapshot: [run, value, count] of all members of the runs that need the terms themselves)

    `sign` -1 keeps the least member of each group, +1 the greatest, 0 neither; where a group has members
    of several classes, or of OTHER, `extreme` says -1 (which is no id) and the snapshot has the members.
    With `always`, the snapshot has every run.
    """
    _, entries, _, _, head = table
    run_group, run, value, weight, key, kind = deltas
    n, runs = run.shape[0], run_group.shape[0]
    changes = np.empty((3, n), np.int64)
    changed = 0
    extreme = np.zeros(runs, np.int64)
    snapshot = np.empty((3, 1024), np.int64)
    taken = 0
    touched = np.empty(n, np.int64)
    i = 0
    for r in range(runs):
        g = run_group[r]
        many = 0
        while i < n and run[i] == r:
            e = _find_member(table, g, value[i])
            if entries[STAMP, e] != r:
                entries[STAMP, e] = r
                entries[BEFORE, e] = entries[COUNT, e]
                entries[KEY, e] = key[i]
                entries[CLASS, e] = kind[i]
                touched[many] = e
                many += 1
            entries[COUNT, e] += weight[i]
            i += 1
        lost = False
        for j in range(many):
            e = touched[j]
            was, now = entries[BEFORE, e] > 0, entries[COUNT, e] > 0
            if was == now:
                if not now:
                    _drop_member(table, e)
                else:
                    entries[STAMP, e] = -1
                continue
            changes[0, changed] = r
            changes[1, changed] = entries[VALUE, e]
            changes[2, changed] = 1 if now else -1
            changed += 1
            classes[entries[CLASS, e], g] += 1 if now else -1
            if now:
                entries[STAMP, e] = -1
                if sign != 0 and not lost and _better(entries, e, best[g], sign, texts):
                    best[g] = e
            else:
                if best[g] == e:
                    best[g] = -1
                    lost = True
                _drop_member(table, e)
        several = classes[OTHER, g] > 0
        if sign != 0:
            kinds = 0
            for c in range(OTHER, CLASSES):
                if classes[c, g] > 0:
                    kinds += 1
            several = several or kinds > 1
            if lost:
                b = np.int64(-1)
                e = head[g]
                while e >= 0:
                    if _better(entries, e, b, sign, texts):
                        b = e
                    e = entries[NEXT, e]
                best[g] = b
            if classes[MISSING, g] > 0 or best[g] < 0:
                extreme[r] = 0
                several = False
            elif several:
                extreme[r] = -1
            else:
                extreme[r] = entries[VALUE, best[g]]
        if always or (sign != 0 and several):
            e = head[g]
            while e >= 0:
                if taken == snapshot.shape[1]:
                    larger = np.empty((3, 2 * taken), np.int64)
                    larger[:, :taken] = snapshot
                    snapshot = larger
                snapshot[0, taken] = r
                snapshot[1, taken] = entries[VALUE, e]
                snapshot[2, taken] = entries[COUNT, e]
                taken += 1
                e = entries[NEXT, e]
    return changes[:, :changed].copy(), extreme, snapshot[:, :taken].copy()
