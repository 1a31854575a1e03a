"""Kernels of SUM and AVG: exact sums of doubles, quotients, and the ids and texts of what comes out."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from kelda.rdf.hash_kernels import PADDING
from kelda.rdf.ntriples_kernels import term_id

LIMBS = 70
"""32-bit digits of an exact sum of doubles; digit 0 has the weight 2^-1152."""
LOWEST = 1152

_TAIL = np.frombuffer(b'"^^<http://www.w3.org/2001/XMLSchema#decimal>', np.uint8)
DECIMAL_ROOM = 48 + len(_TAIL) + PADDING


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
