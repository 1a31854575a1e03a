"""What a query has at each of many instants, from the changes between them: how long each row stays."""

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
def new_in_runs(run, values):
    """Of rows in runs, the rows of a run one after another: which are the first in their run to be as they
    are."""
    longest, begin = 0, 0
    for row in range(len(run)):
        if run[row] != run[begin]:
            begin = row
        longest = max(longest, row - begin + 1)
    slots = 4
    while slots < 2 * longest:
        slots *= 2
    table = np.full(slots, _NONE)
    new, found, begin = np.empty(len(run), np.int64), 0, 0
    for row in range(len(run)):
        if run[row] != run[begin]:
            begin = row
        at = np.int64(hash_of_row(values, row) & np.uint64(slots - 1))
        while table[at] >= begin and not same_row(values, row, table[at]):  # those before are of another run
            at = (at + 1) & (slots - 1)
        if table[at] < begin:
            table[at] = row
            new[found] = row
            found += 1
    return new[:found]


@njit(cache=True)
def stays(time, weight, numbers, held, instants):
    """From when to when rows are there, seen at some instants, in ascending order. At each the content is the
    sum of the first `held` deltas, whose times do not matter, and of the others, in time order, up to the
    instant; no sum is below 0 there.

    Gives the stays (number of the row, first and last instant, as their places), one that is there twice as
    two, in the order in which they came; and what is there at last (numbers, how often), in that order.
    """
    many = numbers.max() + 1 if len(numbers) else 0
    # Of each row: how often it is there, since when (which instant), and which of all that came it is.
    count, since, came = np.zeros(many, np.int64), np.zeros(many, np.int64), np.zeros(many, np.int64)
    until = held
    while until < len(time) and len(instants) and time[until] <= instants[-1]:
        until += 1
    room = 0  # each change ends all stays of its row, and so does the end
    for i in range(until):
        room += max(0, count[numbers[i]])
        count[numbers[i]] += weight[i]
    found = np.empty((4, room + np.maximum(0, count).sum()), np.int64)
    count[:] = 0
    comers = np.empty(until, np.int64)
    size, coming, k = 0, 0, 0
    for i in range(until):
        while i >= held and time[i] > instants[k]:
            k += 1
        number = numbers[i]
        was = count[number]
        size = _ended(found, size, number, since[number], k - 1, came[number], was)
        count[number] += weight[i]
        since[number] = k
        if was == 0 and count[number] != 0:
            came[number], comers[coming] = coming, number
            coming += 1
    left = 0
    for i in range(coming):
        number = comers[i]
        if came[number] == i and count[number] != 0:
            size = _ended(found, size, number, since[number], len(instants) - 1, i, count[number])
            comers[left] = number
            left += 1
    found = found[:, _in_order(found[3, :size], coming)]
    return found[0], found[1], found[2], comers[:left], count[comers[:left]]


@njit(cache=True)
def _ended(found, size, number, first, last, came, how_often):
    """Write down stays of a row, unless there was no instant between."""
    if first <= last:
        for _ in range(how_often):
            found[0, size], found[1, size], found[2, size], found[3, size] = number, first, last, came
            size += 1
    return size


@njit(cache=True)
def _in_order(key, many):
    """What sorts keys from 0 to less than `many`, and leaves equal ones as they are."""
    place = np.zeros(many + 1, np.int64)
    for k in key:
        place[k + 1] += 1
    place = np.cumsum(place)
    order = np.empty(len(key), np.int64)
    for i in range(len(key)):
        order[place[key[i]]] = i
        place[key[i]] += 1
    return order


@njit(cache=True)
def one_by_one(first, last, many):
    """Stays from one place to another, of `many`, once for each place between: (which stay, which place), by
    places, and at each in their order."""
    place = np.zeros(many + 1, np.int64)
    for i in range(len(first)):
        for k in range(first[i], last[i] + 1):
            place[k + 1] += 1
    place = np.cumsum(place)
    which, where = np.empty(place[-1], np.int64), np.empty(place[-1], np.int64)
    for i in range(len(first)):
        for k in range(first[i], last[i] + 1):
            which[place[k]], where[place[k]] = i, k
            place[k] += 1
    return which, where
