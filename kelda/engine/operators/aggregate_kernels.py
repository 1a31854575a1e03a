"""Kernels of GROUP BY: tables of groups, multisets of members, exact sums of doubles, texts of decimals.

A *group table* numbers rows of ids densely; numbers are used again once a group is gone:

    slots    open addressing, group + 1, 0 is free        keys     (columns, room) the ids of each group
    spare    a stack of numbers given back                meta     [groups alive, numbers ever given, spare]

A *members table* holds (group, value) -> count, and the members of each group as a linked list:

    slots    open addressing, entry + 1, 0 is free        entries  (FIELDS, room), fields as named below
    spare    a stack of entries given back                meta     [entries alive, entries ever given, spare]

Whoever calls `members_step` makes room first: it never runs out of it. A *run* is one group at one instant;
runs of one group are neighbours, in time order, and deltas come in the order of their runs.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from kelda.rdf.hash_kernels import PADDING
from kelda.rdf.ntriples_kernels import term_id

GROUP, VALUE, COUNT, NEXT, PREVIOUS, KEY, CLASS, STAMP, BEFORE = range(9)
FIELDS = 9
MISSING, OTHER, NUMBER, FLOAT, MOMENT, LOCAL_MOMENT, BOOLEAN, STRING, IRI = range(9)
CLASSES = 9
"""Classes of members: unbound; in need of the term itself; compared by KEY; and, STRING and IRI, by KEY and
then by text, which for hashed ids is in the dictionary's arena."""

LIMBS = 70
"""32-bit digits of an exact sum of doubles; digit 0 has the weight 2^-1152."""
LOWEST = 1152

_MIX = np.uint64(0x9E3779B97F4A7C15)
_TAIL = np.frombuffer(b'"^^<http://www.w3.org/2001/XMLSchema#decimal>', np.uint8)
DECIMAL_ROOM = 48 + len(_TAIL) + PADDING


@njit(cache=True, inline="always")
def _mixed(state, value):  # type: ignore[no-untyped-def]
    state = (state ^ np.uint64(value)) * _MIX
    return state ^ (state >> np.uint64(29))


# ------------------------------------------------------------------------------ groups


@njit(cache=True)
def _key_hash(keys, g):  # type: ignore[no-untyped-def]
    state = np.uint64(7)
    for k in range(keys.shape[0]):
        state = _mixed(state, keys[k, g])
    return state


@njit(cache=True)
def find_groups(slots, keys, spare, meta, rows):  # type: ignore[no-untyped-def]
    """The group number of each row (a column of `rows`), a new one where there is none yet.

    Of fewer rows, where there is no room for a new one."""
    n = rows.shape[1]
    width = rows.shape[0]
    mask = np.int64(slots.shape[0] - 1)
    found = np.empty(n, np.int64)
    for i in range(n):
        at = np.int64(_key_hash(rows, i) & np.uint64(mask))
        while True:
            g = slots[at] - 1
            if g < 0:
                if meta[2] > 0:
                    meta[2] -= 1
                    g = spare[meta[2]]
                elif meta[1] < spare.shape[0]:
                    g = meta[1]
                    meta[1] += 1
                else:
                    return found[:i]
                meta[0] += 1
                for k in range(width):
                    keys[k, g] = rows[k, i]
                slots[at] = g + 1
                break
            same = True
            for k in range(width):
                if keys[k, g] != rows[k, i]:
                    same = False
                    break
            if same:
                break
            at = (at + 1) & mask
        found[i] = g
    return found


@njit(cache=True)
def place_groups(slots, keys, numbers):  # type: ignore[no-untyped-def]
    """Enter groups into empty slots."""
    mask = np.int64(slots.shape[0] - 1)
    for i in range(numbers.shape[0]):
        at = np.int64(_key_hash(keys, numbers[i]) & np.uint64(mask))
        while slots[at] != 0:
            at = (at + 1) & mask
        slots[at] = numbers[i] + 1


@njit(cache=True)
def drop_groups(slots, keys, spare, meta, gone):  # type: ignore[no-untyped-def]
    """Give the numbers of these groups back."""
    mask = np.int64(slots.shape[0] - 1)
    for i in range(gone.shape[0]):
        g = gone[i]
        at = np.int64(_key_hash(keys, g) & np.uint64(mask))
        while slots[at] != g + 1:
            at = (at + 1) & mask
        # Close the gap: whoever was pushed past it moves up.
        hole = at
        while True:
            at = (at + 1) & mask
            if slots[at] == 0:
                break
            home = np.int64(_key_hash(keys, slots[at] - 1) & np.uint64(mask))
            if (at - home) & mask >= (at - hole) & mask:
                slots[hole] = slots[at]
                hole = at
        slots[hole] = 0
        spare[meta[2]] = g
        meta[2] += 1
        meta[0] -= 1


@njit(cache=True)
def by_group(groups, room):  # type: ignore[no-untyped-def]
    """Positions in the order of groups (of first appearance), in the given order within each group."""
    n = groups.shape[0]
    local = np.full(room, -1, np.int64)
    counts = np.zeros(n + 1, np.int64)
    number = np.empty(n, np.int64)
    seen = 0
    for i in range(n):
        g = groups[i]
        if local[g] < 0:
            local[g] = seen
            seen += 1
        number[i] = local[g]
        counts[local[g] + 1] += 1
    for j in range(seen):
        counts[j + 1] += counts[j]
    order = np.empty(n, np.int64)
    for i in range(n):
        order[counts[number[i]]] = i
        counts[number[i]] += 1
    return order


@njit(cache=True)
def by_number(numbers, many):  # type: ignore[no-untyped-def]
    """Positions in the order of numbers below `many`, in the given order where they are equal."""
    counts = np.zeros(many + 1, np.int64)
    for i in range(numbers.shape[0]):
        counts[numbers[i] + 1] += 1
    for j in range(many):
        counts[j + 1] += counts[j]
    order = np.empty(numbers.shape[0], np.int64)
    for i in range(numbers.shape[0]):
        order[counts[numbers[i]]] = i
        counts[numbers[i]] += 1
    return order


# ------------------------------------------------------------------------------ members


@njit(cache=True, inline="always")
def _home(group, value, mask):  # type: ignore[no-untyped-def]
    return np.int64(_mixed(_mixed(np.uint64(3), group), value) & np.uint64(mask))


@njit(cache=True)
def _find_member(slots, entries, spare, meta, head, group, value):  # type: ignore[no-untyped-def]
    """The entry of a member, a new one with count 0 where there is none."""
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
def _drop_member(slots, entries, spare, meta, head, e):  # type: ignore[no-untyped-def]
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
def insert_members(slots, entries, spare, meta, head, groups, old, kept, places):  # type: ignore[no-untyped-def]
    """Put the `kept` entries of an `old` table into an empty one, under new group numbers.

    `places[o]` becomes the new entry of the old one."""
    for i in range(kept.shape[0]):
        o = kept[i]
        e = _find_member(slots, entries, spare, meta, head, groups[i], old[VALUE, o])
        entries[COUNT, e] = old[COUNT, o]
        entries[KEY, e] = old[KEY, o]
        entries[CLASS, e] = old[CLASS, o]
        places[o] = e


@njit(cache=True)
def members_step(  # type: ignore[no-untyped-def]
    slots,
    entries,
    spare,
    meta,
    head,
    classes,
    best,
    sign,
    always,
    run_group,
    run,
    value,
    weight,
    key,
    kind,
    texts,
):
    """Apply deltas to a members table, run by run. Returns

    (changes: [run, value, ±1] of members that came or went, extreme: one value per run,
     snapshot: [run, value, count] of all members of the runs that need the terms themselves)

    `sign` -1 keeps the least member of each group, +1 the greatest, 0 neither; where a group has members
    of several classes, or of OTHER, `extreme` says -1 (which is no id) and the snapshot has the members.
    With `always`, the snapshot has every run.
    """
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
            e = _find_member(slots, entries, spare, meta, head, g, value[i])
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
                    _drop_member(slots, entries, spare, meta, head, e)
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
                _drop_member(slots, entries, spare, meta, head, e)
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


# ------------------------------------------------------------------------------ sums of doubles


@njit(cache=True)
def _add_double(total, number, weight):  # type: ignore[no-untyped-def]
    mantissa, exponent = math.frexp(number)
    whole = np.int64(mantissa * 9007199254740992.0)  # 53 bits
    sign = 1
    if whole < 0:
        sign = -1
        whole = -whole
    place = exponent - 53 + LOWEST
    limb, shift = place // 32, place % 32
    low = (whole & 0xFFFFFFFF) << shift  # below 2^64: taken as two digits
    high = (whole >> 32) << shift
    step = sign * weight
    total[limb] += (low & 0xFFFFFFFF) * step
    total[limb + 1] += (((low >> 32) & 0xFFFFFFFF) + (high & 0xFFFFFFFF)) * step
    total[limb + 2] += (high >> 32) * step


@njit(cache=True)
def _rounded(total, digits):  # type: ignore[no-untyped-def]
    """The double nearest to an exact sum (to even between two); `digits` is room to work in."""
    carry = np.int64(0)
    for k in range(LIMBS):
        here = total[k] + carry
        digits[k] = here & 0xFFFFFFFF
        carry = here >> 32
    negative = carry < 0
    if negative:  # two's complement: the magnitude is ~x + 1
        carry = np.int64(1)
        for k in range(LIMBS):
            here = (digits[k] ^ 0xFFFFFFFF) + carry
            digits[k] = here & 0xFFFFFFFF
            carry = here >> 32
    top = LIMBS - 1
    while top >= 0 and digits[top] == 0:
        top -= 1
    if top < 0:
        return 0.0
    bits = 0
    while digits[top] >> bits != 0:
        bits += 1
    # The lowest bit that the result keeps, counted from that of digit 0.
    last = max(32 * top + bits - 53, LOWEST - 1074)
    limb, shift = last // 32, last % 32
    kept = np.int64(0)
    for k in range(min(top, limb + 2), limb - 1, -1):
        if k == limb:
            kept = (kept << (32 - shift)) | (digits[k] >> shift)
        else:
            kept = (kept << 32) | digits[k]
    half = last - 1
    up = False
    if half >= 0 and (digits[half // 32] >> (half % 32)) & 1:
        up = (kept & 1) == 1 or (digits[half // 32] & ((np.int64(1) << (half % 32)) - 1)) != 0
        k = half // 32 - 1
        while not up and k >= 0:
            up = digits[k] != 0
            k -= 1
    if up:
        kept += 1
    result = math.ldexp(np.float64(kept), last - LOWEST)
    return -result if negative else result


@njit(cache=True)
def double_sums(totals, run_group, run, number, weight, wanted):  # type: ignore[no-untyped-def]
    """Add finite doubles to the exact sums `totals[group]`; the rounded sum after each `wanted` run."""
    n, runs = run.shape[0], run_group.shape[0]
    sums = np.zeros(runs)
    digits = np.empty(LIMBS, np.int64)
    i = 0
    for r in range(runs):
        total = totals[run_group[r]]
        while i < n and run[i] == r:
            if number[i] != 0.0:
                _add_double(total, number[i], weight[i])
            i += 1
        if wanted[r]:
            sums[r] = _rounded(total, digits)
    return sums


# ------------------------------------------------------------------------------ decimals


@njit(cache=True)
def quotients(whole, fraction, count):  # type: ignore[no-untyped-def]
    """(whole + fraction / 10^18) / count of numbers that are not negative, to 18 places, cut off."""
    n = whole.shape[0]
    out_whole, out_fraction = np.empty(n, np.int64), np.empty(n, np.int64)
    for i in range(n):
        by = count[i]
        out_whole[i] = whole[i] // by
        rest = whole[i] % by
        below = fraction[i]
        unit = np.int64(100_000_000_000_000_000)
        digits = np.int64(0)
        for _ in range(18):
            rest = rest * 10 + below // unit
            below %= unit
            unit //= 10
            digits = digits * 10 + rest // by
            rest %= by
            if unit == 0:
                unit = np.int64(1)
        out_fraction[i] = digits
    return out_whole, out_fraction


@njit(cache=True)
def decimal_ids(negative, whole, fraction, seed):  # type: ignore[no-untyped-def]
    """Ids and texts of the xsd:decimals ±(whole + fraction / 10^18): (ids, texts, starts, ends)."""
    n = whole.shape[0]
    ids, starts, ends = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    texts = np.zeros(n * DECIMAL_ROOM + PADDING, np.uint8)
    digits = np.empty(20, np.uint8)
    for i in range(n):
        start = i * DECIMAL_ROOM
        at = start
        texts[at] = 34
        at += 1
        if negative[i] and (whole[i] != 0 or fraction[i] != 0):
            texts[at] = 45
            at += 1
        left, many = whole[i], 0
        while left > 0 or many == 0:
            digits[many] = 48 + left % 10
            left //= 10
            many += 1
        for k in range(many):
            texts[at] = digits[many - 1 - k]
            at += 1
        below, places = fraction[i], 18
        if below > 0:
            while below % 10 == 0:
                below //= 10
                places -= 1
            texts[at] = 46
            at += 1
            for k in range(places - 1, -1, -1):
                texts[at + k] = 48 + below % 10
                below //= 10
            at += places
        for k in range(_TAIL.shape[0]):
            texts[at] = _TAIL[k]
            at += 1
        starts[i], ends[i] = start, at
        ids[i] = term_id(texts[start : at + PADDING], seed)[0]
    return ids, texts, starts, ends


@njit(cache=True)
def text_ids(texts, starts, ends, seed):  # type: ignore[no-untyped-def]
    """The ids of the terms with these texts, each followed by the padding."""
    ids = np.empty(starts.shape[0], np.int64)
    for i in range(starts.shape[0]):
        ids[i] = term_id(texts[starts[i] : ends[i] + PADDING], seed)[0]
    return ids
