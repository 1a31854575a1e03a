"""Passes over the columns of one step: their order, which of them match, when they stand in a window."""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np
from numba import njit

FOREVER = np.int64(2**63 - 1)
ENDLESS = np.int64(-1)  # as a width: the window lets nothing go


@njit(cache=True)
def falls(times):
    """Whether some time is before the one that came before it."""
    found = False
    for i in range(1, len(times)):
        found |= times[i] < times[i - 1]
    return found


@njit(cache=True)
def numbered(event, first):
    """Numbers for runs of one event, from `first` on."""
    out = np.empty(len(event), np.int64)
    number = first
    for i in range(len(event)):
        if i > 0 and event[i] != event[i - 1]:
            number += 1
        out[i] = number
    return out


@njit(cache=True, inline="always")
def _stay(time, width, slide, until, t0):
    """[enter, leave) of an element; a `slide` of 0: the window moves with each instant."""
    enter = time + until
    leave = FOREVER if width == ENDLESS else enter + width
    if slide > 0:
        enter += (t0 - enter) % slide
        if width != ENDLESS:
            leave += (t0 - leave) % slide
    return enter, leave


@njit(cache=True)
def stays(times, width, slide, until, t0):
    """(enter, leave) of elements, and whether each of them is inside at some instant."""
    enter, leave = np.empty(len(times), np.int64), np.empty(len(times), np.int64)
    seen = True
    for i in range(len(times)):
        if i > 0 and times[i] == times[i - 1]:
            enter[i], leave[i] = enter[i - 1], leave[i - 1]
        else:
            enter[i], leave[i] = _stay(times[i], width, slide, until, t0)
            seen &= enter[i] < leave[i]
    return enter, leave, seen


@njit(cache=True)
def distinct_stays(times, width, slide, until, t0):
    """As `stays`, for ascending times: each stay once, those at no instant left out."""
    enter, leave = np.empty(len(times), np.int64), np.empty(len(times), np.int64)
    found = 0
    for i in range(len(times)):
        if i > 0 and times[i] == times[i - 1]:
            continue
        a, b = _stay(times[i], width, slide, until, t0)
        if a < b and (slide == 0 or found == 0 or a != enter[found - 1] or b != leave[found - 1]):
            enter[found], leave[found] = a, b
            found += 1
    return enter[:found].copy(), leave[:found].copy()


@njit(cache=True)
def matching(s, p, o, wanted, given):
    """The positions of the triples that have the wanted ids where one is given."""
    out = np.empty(len(s), np.int64)
    found = 0
    if given[1] and not given[0] and not given[2]:
        predicate = wanted[1]
        for i in range(len(p)):
            out[found] = i
            found += p[i] == predicate
    else:
        for i in range(len(p)):
            out[found] = i
            found += (
                (not given[0] or s[i] == wanted[0])
                and (not given[1] or p[i] == wanted[1])
                and (not given[2] or o[i] == wanted[2])
            )
    return out[:found].copy()


@njit(cache=True)
def merged(enters, leaves, until):
    """The distinct instants up to `until` of two ascending arrays, ascending."""
    out = np.empty(len(enters) + len(leaves), np.int64)
    found = i = j = 0
    while True:
        if i < len(enters) and (j == len(leaves) or enters[i] <= leaves[j]):
            instant = enters[i]
            i += 1
        elif j < len(leaves):
            instant = leaves[j]
            j += 1
        else:
            break
        if instant > until:
            break
        if found == 0 or instant != out[found - 1]:
            out[found] = instant
            found += 1
    return out[:found].copy()


@njit(cache=True)
def grid(moments, inside, visited, never, until, t0, every):
    """The instants t0 + k*every in (visited, until]: after each of the moments at which windows change, all
    of them up to the next while something is inside, else the first one. `inside` tells that of `visited`
    and of each moment; if nothing was visited yet (`never`), nothing before the first moment counts."""
    out = np.empty(16, np.int64)
    found = 0
    last = visited
    for k in range(1 if visited == never else 0, len(moments) + 1):
        start = visited if k == 0 else moments[k - 1]
        end = moments[k] if k < len(moments) else until
        instant = start + (t0 - start) % every
        if not inside[k]:
            end = min(end, instant)
        while instant <= end and instant <= until:
            if instant > last:
                if found == len(out):
                    more = np.empty(2 * found, np.int64)
                    more[:found] = out
                    out = more
                out[found] = instant
                found += 1
                last = instant
            instant += every
    return out[:found].copy()
