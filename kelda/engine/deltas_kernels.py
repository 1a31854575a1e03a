"""Adding up deltas of one instant and one row."""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, inline="always")
def hash_of_row(values, row):
    h = np.uint64(0x51_7C_C1_B7_27_22_0A_95)
    for c in range(values.shape[0]):
        h = (h ^ np.uint64(values[c, row])) * np.uint64(0x9E3779B97F4A7C15)
        h ^= h >> np.uint64(29)
    return h


@njit(cache=True, inline="always")
def same_row(values, row, other):
    same = True
    for c in range(values.shape[0]):
        same &= values[c, row] == values[c, other]
    return same


@njit(cache=True)
def net(time, weight, values, kept, total):
    """Sum the weights of equal rows of one time, for deltas in time order.

    Writes the positions of one delta of each (time, row) whose sum is not 0 to `kept`, in time order,
    and the sums to `total`; gives their number."""
    rows = len(time)
    table = np.empty(0, np.int64)  # which result has this hash, of one time; -1: none
    found = 0
    begin = 0
    while begin < rows:
        end = begin + 1
        while end < rows and time[end] == time[begin]:
            end += 1
        if end - begin == 1:
            if weight[begin] != 0:
                kept[found] = begin
                total[found] = weight[begin]
                found += 1
            begin = end
            continue
        slots = 4
        while slots < 2 * (end - begin):
            slots *= 2
        if len(table) < slots:
            table = np.empty(slots, np.int64)
        table[:slots] = -1
        first = found
        for here in range(begin, end):
            at = np.int64(hash_of_row(values, here) & np.uint64(slots - 1))
            while table[at] >= 0 and not same_row(values, here, kept[table[at]]):
                at = (at + 1) & (slots - 1)
            if table[at] < 0:
                table[at] = found
                kept[found] = here
                total[found] = weight[here]
                found += 1
            else:
                total[table[at]] += weight[here]
        left = first
        for i in range(first, found):
            if total[i] != 0:
                kept[left] = kept[i]
                total[left] = total[i]
                left += 1
        found = left
        begin = end
    return found


@njit(cache=True)
def told(time, values, kept, total, gone, new):
    """What netted deltas say: rows `kept` of `values`, each as often as the size of its `total` says, and of
    one time those that go before those that come; `gone`, `new`: whether these are wanted at all. Gives
    (time, sign, columns)."""
    many = 0
    for weight in total:
        if weight > 0 and new:
            many += weight
        elif weight < 0 and gone:
            many -= weight
    times, signs = np.empty(many, np.int64), np.empty(many, np.int64)
    columns = np.empty((values.shape[0], many), np.int64)
    at = 0
    begin = 0
    while begin < len(kept):
        now = time[kept[begin]]
        end = begin + 1
        while end < len(kept) and time[kept[end]] == now:
            end += 1
        for sign in (-1, 1):
            if not (gone if sign < 0 else new):
                continue
            for i in range(begin, end):
                for _ in range(total[i] * sign):
                    times[at] = now
                    signs[at] = sign
                    for c in range(values.shape[0]):
                        columns[c, at] = values[c, kept[i]]
                    at += 1
        begin = end
    return times, signs, columns


@njit(cache=True)
def next_of(instants, times):
    """For each of some times, which ascend, the first instant that is not before it; there is one."""
    out = np.empty(len(times), np.int64)
    k = 0
    for i in range(len(times)):
        while instants[k] < times[i]:
            k += 1
        out[i] = instants[k]
    return out
