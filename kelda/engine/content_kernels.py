"""What a query has at each of many instants, from the changes between them."""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np
from numba import njit

from kelda.engine.deltas_kernels import hash_of_row, same_row

_NONE = -1


@njit(cache=True)
def numbered_rows(values):
    """A number for each row, from 0, equal for equal rows; and the first row of each number."""
    rows = values.shape[1]
    slots = 4
    while slots < 2 * rows:
        slots *= 2
    table = np.full(slots, _NONE)
    numbers, first, found = np.empty(rows, np.int64), np.empty(rows, np.int64), 0
    for row in range(rows):
        at = np.int64(hash_of_row(values, row) & np.uint64(slots - 1))
        while table[at] != _NONE and not same_row(values, row, first[table[at]]):
            at = (at + 1) & (slots - 1)
        if table[at] == _NONE:
            table[at] = found
            first[found] = row
            found += 1
        numbers[row] = table[at]
    return numbers, first[:found]


@njit(cache=True)
def contents(time, weight, numbers, held, instants):
    """The content at each instant, in ascending order: the sum of the first `held` deltas, whose times do not
    matter, and of the others, in time order, up to the instant; no sum is below 0 there.

    Gives (numbers of rows, their instants), each row as often as it is there, those that came first before
    the others; and then what is there at last: (numbers, how often)."""
    count = np.zeros(numbers.max() + 1 if len(numbers) else 0, np.int64)
    size, total, at = 0, 0, 0
    for i in range(held):
        total += weight[i]
    for instant in instants:
        while held + at < len(time) and time[held + at] <= instant:
            total += weight[held + at]
            at += 1
        size += total
    rows, times = np.empty(size, np.int64), np.empty(size, np.int64)
    # Rows that are there are a list, in the order in which they came: before and behind each, another.
    before, behind = np.full(len(count), _NONE), np.full(len(count), _NONE)
    head, tail = _NONE, _NONE
    filled, at = 0, 0
    for k in range(-1, len(instants)):
        while at < len(time) and (at < held or (k >= 0 and time[at] <= instants[k])):
            number = numbers[at]
            was = count[number]
            count[number] += weight[at]
            if was == 0 and count[number] != 0:
                before[number], behind[number] = tail, _NONE
                if tail == _NONE:
                    head = number
                else:
                    behind[tail] = number
                tail = number
            elif was != 0 and count[number] == 0:
                if before[number] == _NONE:
                    head = behind[number]
                else:
                    behind[before[number]] = behind[number]
                if behind[number] == _NONE:
                    tail = before[number]
                else:
                    before[behind[number]] = before[number]
            at += 1
        number = head
        while k >= 0 and number != _NONE:
            for _ in range(count[number]):
                rows[filled] = number
                times[filled] = instants[k]
                filled += 1
            number = behind[number]
    left = np.empty(len(count), np.int64)
    found, number = 0, head
    while number != _NONE:
        left[found] = number
        found += 1
        number = behind[number]
    return rows, times, left[:found], count[left[:found]]
