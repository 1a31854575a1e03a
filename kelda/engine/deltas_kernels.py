"""Adding up deltas of one instant and one row."""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def net(time, weight, values, kept, total):
    """Sum the weights of equal rows of one time, for deltas in time order.

    Writes the positions of one delta of each (time, row) whose sum is not 0 to `kept`, in time order,
    and the sums to `total`; gives their number."""
    rows = len(time)
    width = values.shape[0]
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
        size = end - begin
        hashes = np.empty(size, np.uint64)
        for i in range(size):
            h = np.uint64(0x51_7C_C1_B7_27_22_0A_95)
            for c in range(width):
                h = (h ^ np.uint64(values[c, begin + i])) * np.uint64(0x9E3779B97F4A7C15)
                h ^= h >> np.uint64(29)
            hashes[i] = h
        if size <= 24:
            order = np.arange(size)
            for i in range(1, size):
                j = i
                while j > 0 and hashes[order[j]] < hashes[order[j - 1]]:
                    order[j], order[j - 1] = order[j - 1], order[j]
                    j -= 1
        else:
            order = np.argsort(hashes)
        first = found
        run = 0
        for i in range(size):
            here = begin + order[i]
            if i == 0 or hashes[order[i]] != hashes[order[i - 1]]:
                run = found  # results from here on have this hash
            at = run
            while at < found:
                same = True
                for c in range(width):
                    if values[c, here] != values[c, kept[at]]:
                        same = False
                        break
                if same:
                    break
                at += 1
            if at == found:
                kept[found] = here
                total[found] = weight[here]
                found += 1
            else:
                total[at] += weight[here]
        left = first
        for i in range(first, found):
            if total[i] != 0:
                kept[left] = kept[i]
                total[left] = total[i]
                left += 1
        found = left
        begin = end
    return found
