"""Kernels: expressions over ids, row by row, as far as ids decide them.

Truth is a number, so that logic is arithmetic: `&&` is the minimum, `||` the maximum, `!x` is 2 - x.

    FALSE 0    ERROR 1    TRUE 2    UNSURE 3: ids do not tell, ask the general evaluator

An argument of length 1 stands for every row. What a hashed id stands for is read off the first and last
byte of its text in the dictionary's tables (`slots`, `offsets`, `arena`).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from kelda.engine.deltas_kernels import hash_of_row
from kelda.rdf.ntriples_kernels import (
    BOOLEAN,
    DATETIME,
    DECIMAL,
    DOUBLE,
    DOUBLE_E,
    FLOAT,
    FLOAT_E,
    INTEGER,
    STRING,
)

FALSE, ERROR, TRUE, UNSURE = 0, 1, 2, 3

# Classes of ids: the kinds of inline ids (below 16), and these.
NOTHING, IRI, BLANK, TRIPLE, TEXT, TAGGED, TYPED, UNKNOWN = 0, 16, 17, 18, 19, 20, 21, 22

EQUAL, LESS, GREATER, AT_MOST, AT_LEAST = 0, 1, 2, 3, 4
ADD, SUBTRACT, MULTIPLY, DIVIDE, KEEP, NEGATE = 0, 1, 2, 3, 4, 5

# Sorts of values as float64: none, an integer or decimal exactly, an xsd:double, a decimal rounded.
NO_NUMBER, EXACT, A_DOUBLE, ROUNDED = 0, 1, 2, 3

_QUOTE, _LESS, _GREATER, _UNDERSCORE = 34, 60, 62, 95
_INTEGER_LIMIT = 2**57
_DECIMAL_LIMIT = 10**15
_WHOLE_LIMIT = 2.0**53  # up to here every whole number is a float64
_MOST_DIVIDED = 10**17
_SAFE = 4.0e18  # below 2^62: a product or sum of this estimate is exact in int64
_MILLISECOND_SHIFT = 9
_POWERS = 10.0 ** np.arange(33)
_WHOLE_POWERS = 10 ** np.arange(19)
_LOW32 = 0xFFFFFFFF


@njit(cache=True, nogil=True)
def _entry(id, slots):  # type: ignore[no-untyped-def]
    """The entry of a hashed id in the dictionary, -1 if it has none."""
    mask = slots.shape[0] - 1
    slot = id & mask
    while slots[slot, 0] != id:
        if slots[slot, 0] == 0:
            return np.int64(-1)
        slot = (slot + 1) & mask
    return slots[slot, 1] & _LOW32


@njit(cache=True, nogil=True)
def _is_empty(id, slots, offsets, arena):  # type: ignore[no-untyped-def]
    """Whether the text of a hashed literal is empty."""
    return arena[offsets[_entry(id, slots)] + 1] == _QUOTE


@njit(cache=True, nogil=True)
def _class(id, slots, offsets, arena):  # type: ignore[no-untyped-def]
    if id < 0:
        return (id >> 58) & 31
    if id == 0:
        return NOTHING
    entry = _entry(id, slots)
    if entry < 0:
        return UNKNOWN
    start, end = offsets[entry], offsets[entry + 1]
    if arena[start] == _LESS:
        return TRIPLE if arena[start + 1] == _LESS else IRI
    if arena[start] == _UNDERSCORE:
        return BLANK
    if arena[end - 1] == _QUOTE:
        return TEXT
    return TYPED if arena[end - 1] == _GREATER else TAGGED


@njit(cache=True, nogil=True)
def classes(ids, slots, offsets, arena):  # type: ignore[no-untyped-def]
    """The class of each id."""
    out = np.empty(ids.shape[0], np.uint8)
    for i in range(ids.shape[0]):
        out[i] = _class(ids[i], slots, offsets, arena)
    return out


@njit(cache=True, nogil=True)
def _is_number(kind):  # type: ignore[no-untyped-def]
    return kind in (INTEGER, DECIMAL) or (kind >= DOUBLE and kind <= FLOAT_E)


@njit(cache=True, nogil=True)
def _float(id, kind):  # type: ignore[no-untyped-def]
    """The value of an inline number, rounded once (as `ids.numeric_values`)."""
    if kind == INTEGER:
        return float(id << 6 >> 6)
    if kind in (DOUBLE_E, FLOAT_E):
        power = (id << 6 >> 58) - (id >> 48 & 15)
        value = float(id << 16 >> 16)
        value = value * _POWERS[power] if power >= 0 else value / _POWERS[-power]
    else:
        value = (id << 10 >> 10) / _POWERS[id >> 54 & 15]
    return float(np.float32(value)) if kind >= FLOAT else value


@njit(cache=True, nogil=True)
def _holds(order, op):  # type: ignore[no-untyped-def]
    """Whether values in this order (-1, 0, 1) satisfy the operator."""
    if op == EQUAL:
        held = order == 0
    elif op == LESS:
        held = order < 0
    elif op == GREATER:
        held = order > 0
    elif op == AT_MOST:
        held = order <= 0
    else:
        held = order >= 0
    return TRUE if held else FALSE


@njit(cache=True, nogil=True)
def _compare_numbers(a, b, kind_a, kind_b, op):  # type: ignore[no-untyped-def]
    if kind_a == INTEGER and kind_b == INTEGER:
        x, y = a << 6 >> 6, b << 6 >> 6
        return _holds(-1 if x < y else 1 if x > y else 0, op)
    u, v = _float(a, kind_a), _float(b, kind_b)
    # Promotion rounds a decimal to a double, and either exact type to a float: near means unsure.
    low, high = min(kind_a, kind_b), max(kind_a, kind_b)
    slack = 0.0
    if high >= FLOAT and low <= DECIMAL:
        slack = 1e-6
    elif high >= DOUBLE and low == DECIMAL:
        slack = 1e-12
    if slack > 0 and abs(u - v) <= slack * max(abs(u), abs(v)):
        return UNSURE
    return _holds(-1 if u < v else 1 if u > v else 0, op)


@njit(cache=True, nogil=True)
def _clock(id):  # type: ignore[no-untyped-def]
    """Milliseconds in UTC (or of the local time, without a zone) since 0001."""
    zone = id & 127
    clock = (id & ((1 << 58) - 1)) >> _MILLISECOND_SHIFT
    return clock - (zone - 58) * 900_000 if zone > 1 else clock


@njit(cache=True, nogil=True)
def _compare_inline(a, b, op):  # type: ignore[no-untyped-def]
    kind_a, kind_b = (a >> 58) & 31, (b >> 58) & 31
    if _is_number(kind_a) and _is_number(kind_b):
        return _compare_numbers(a, b, kind_a, kind_b, op)
    if kind_a != kind_b:
        return FALSE if op == EQUAL else ERROR
    if kind_a == DATETIME:
        if (a & 127 == 0) != (b & 127 == 0):
            return UNSURE
        x, y = _clock(a), _clock(b)
        return _holds(-1 if x < y else 1 if x > y else 0, op)
    # Strings and booleans are in the order of their ids.
    return _holds(-1 if a < b else 1 if a > b else 0, op)


@njit(cache=True, nogil=True)
def compare(left, right, op, slots, offsets, arena):  # type: ignore[no-untyped-def]
    """The truth of `left op right`."""
    n = left.shape[0] if left.shape[0] != 1 else right.shape[0]
    step_left, step_right = int(left.shape[0] != 1), int(right.shape[0] != 1)
    out = np.empty(n, np.uint8)
    last, last_class = np.int64(0), NOTHING
    for i in range(n):
        a, b = left[i * step_left], right[i * step_right]
        if a == 0 or b == 0:
            out[i] = ERROR
            continue
        if a < 0 and b < 0:
            out[i] = _compare_inline(a, b, op)
            continue
        # The right one first, and once for a run: it is often a constant.
        if b != last:
            last, last_class = b, _class(b, slots, offsets, arena)
        class_b = last_class
        if op != EQUAL:
            if a > 0 and b > 0:
                out[i] = UNSURE
                continue
            class_h = class_b if b > 0 else _class(a, slots, offsets, arena)
            plain = class_h in (IRI, BLANK, TAGGED, TRIPLE)
            if class_h == TEXT:
                plain = (class_b if a > 0 else (a >> 58) & 31) != STRING
            out[i] = ERROR if plain else UNSURE
            continue
        if a == b:
            out[i] = UNSURE if class_b in (TYPED, TRIPLE, UNKNOWN) else TRUE
            continue
        if class_b in (IRI, BLANK, TAGGED):
            out[i] = FALSE
            continue
        class_a = _class(a, slots, offsets, arena)
        if class_a in (IRI, BLANK, TAGGED):
            out[i] = FALSE
        elif class_a < TYPED and class_b < TYPED and class_a != TRIPLE and class_b != TRIPLE:
            out[i] = FALSE  # a long string and something else than it
        else:
            out[i] = UNSURE
    return out


@njit(cache=True, nogil=True)
def effective(ids, slots, offsets, arena):  # type: ignore[no-untyped-def]
    """The effective boolean value of each term."""
    out = np.empty(ids.shape[0], np.uint8)
    for i in range(ids.shape[0]):
        id = ids[i]
        kind = _class(id, slots, offsets, arena)
        if kind in (BOOLEAN, INTEGER, STRING):
            out[i] = TRUE if id & ((1 << 58) - 1) else FALSE
        elif kind in (DECIMAL, DOUBLE, FLOAT):
            out[i] = TRUE if id << 10 >> 10 else FALSE
        elif kind in (DOUBLE_E, FLOAT_E):
            out[i] = TRUE if id << 16 >> 16 else FALSE
        elif kind == TEXT:
            out[i] = TRUE
        elif kind == TAGGED:
            out[i] = FALSE if _is_empty(id, slots, offsets, arena) else TRUE
        elif kind in (TYPED, UNKNOWN):
            out[i] = UNSURE
        else:
            out[i] = ERROR
    return out


@njit(cache=True, nogil=True)
def arithmetic(left, right, op):  # type: ignore[no-untyped-def]
    """(ids, unsure) of what inline integers and decimals give, exactly: of sums, differences and products,
    and of quotients that come to an end."""
    n = left.shape[0] if left.shape[0] != 1 else right.shape[0]
    step_left, step_right = int(left.shape[0] != 1), int(right.shape[0] != 1)
    out, unsure = np.zeros(n, np.int64), np.zeros(n, np.bool_)
    for i in range(n):
        a, b = left[i * step_left], right[i * step_right]
        if a == 0 or b == 0:
            continue
        kind_a, kind_b = (a >> 58) & 31, (b >> 58) & 31
        decimal = kind_a == DECIMAL or kind_b == DECIMAL
        exact = kind_a in (INTEGER, DECIMAL) and kind_b in (INTEGER, DECIMAL)
        if a > 0 or b > 0 or not exact:
            unsure[i] = True
            continue
        x, y = a << 6 >> 6, b << 6 >> 6
        scale_a, scale_b = 0, 0
        if kind_a == DECIMAL:
            x, scale_a = a << 10 >> 10, a >> 54 & 15
        if kind_b == DECIMAL:
            y, scale_b = b << 10 >> 10, b >> 54 & 15
        if op == MULTIPLY:
            scale = scale_a + scale_b
            if scale > 18 or abs(float(x)) * abs(float(y)) > _SAFE:
                unsure[i] = True
                continue
            value = x * y
        elif op == DIVIDE:
            decimal = True
            scale = scale_a - scale_b
            value = abs(x)
            while y != 0 and value % abs(y) != 0 and value < _MOST_DIVIDED:
                value *= 10
                scale += 1
            if y == 0 or value % abs(y) != 0 or scale < -15:
                unsure[i] = True
                continue
            value //= abs(y)
            if value != 0 and scale < 0:
                if float(value) * _WHOLE_POWERS[-scale] > _SAFE:
                    unsure[i] = True
                    continue
                value *= _WHOLE_POWERS[-scale]
            scale = max(scale, 0)
            if (x < 0) != (y < 0):
                value = -value
        else:
            scale = max(scale_a, scale_b)
            up_a, up_b = _WHOLE_POWERS[scale - scale_a], _WHOLE_POWERS[scale - scale_b]
            if abs(float(x)) * up_a + abs(float(y)) * up_b > _SAFE:
                unsure[i] = True
                continue
            value = x * up_a + y * up_b if op == ADD else x * up_a - y * up_b
        if not decimal:
            unsure[i] = abs(value) >= _INTEGER_LIMIT
            out[i] = np.int64(-(2**63)) | np.int64(INTEGER) << 58 | (value & ((1 << 58) - 1))
            continue
        while scale > 0 and value % 10 == 0:
            value //= 10
            scale -= 1
        unsure[i] = abs(value) >= _DECIMAL_LIMIT or scale > 15
        body = np.int64(scale) << 54 | (value & ((1 << 54) - 1))
        out[i] = np.int64(-(2**63)) | np.int64(DECIMAL) << 58 | body
    return out, unsure


# ---------------------------------------------------------------------------- doubles
#
# Arithmetic with an xsd:double in it is that of float64: integers and decimals are promoted, rounded once.


@njit(cache=True, nogil=True)
def numbers(ids):  # type: ignore[no-untyped-def]
    """(values, sorts) of inline integers, decimals and doubles."""
    n = ids.shape[0]
    values, sorts = np.zeros(n, np.float64), np.zeros(n, np.uint8)
    for i in range(n):
        id = ids[i]
        kind = (id >> 58) & 31
        if id >= 0:
            continue
        if kind == INTEGER:
            values[i] = float(id << 6 >> 6)
            if abs(values[i]) < _WHOLE_LIMIT:
                sorts[i] = EXACT
        elif kind == DECIMAL:
            values[i] = _float(id, kind)
            fives = 5 ** (id >> 54 & 15)
            sorts[i] = EXACT if (id << 10 >> 10) % fives == 0 else ROUNDED
        elif kind in (DOUBLE, DOUBLE_E):
            values[i], sorts[i] = _float(id, kind), A_DOUBLE
    return values, sorts


@njit(cache=True, nogil=True, error_model="numpy")
def reckon(left, sorts_left, right, sorts_right, op):  # type: ignore[no-untyped-def]
    """(values, sorts) of `left op right`, or of the sign `op` before `right`."""
    n = left.shape[0] if left.shape[0] != 1 else right.shape[0]
    step_left, step_right = int(left.shape[0] != 1), int(right.shape[0] != 1)
    values, sorts = np.zeros(n, np.float64), np.zeros(n, np.uint8)
    for i in range(n):
        x, y = left[i * step_left], right[i * step_right]
        sort_x, sort_y = sorts_left[i * step_left], sorts_right[i * step_right]
        if sort_x == NO_NUMBER or sort_y == NO_NUMBER:
            continue
        if op == KEEP:
            values[i], sorts[i] = y, sort_y
            continue
        if op == NEGATE:  # there is a -0 among doubles, and none among integers and decimals
            values[i], sorts[i] = -y if sort_y == A_DOUBLE else 0.0 - y, sort_y
            continue
        if op == ADD:
            value = x + y
        elif op == SUBTRACT:
            value = x - y
        elif op == MULTIPLY:
            value = x * y
        else:
            value = x / y
        if sort_x == A_DOUBLE or sort_y == A_DOUBLE:
            values[i], sorts[i] = value, A_DOUBLE
        elif sort_x == EXACT and sort_y == EXACT and op != DIVIDE and x == np.floor(x) and y == np.floor(y):
            # Of whole numbers this is exact; other decimals are left to who knows their digits.
            values[i], sorts[i] = value + 0.0, EXACT if abs(value) < _WHOLE_LIMIT else NO_NUMBER
    return values, sorts


@njit(cache=True, nogil=True)
def compare_numbers(left, sorts_left, right, sorts_right, op):  # type: ignore[no-untyped-def]
    """The truth of `left op right` where float64 decides it."""
    n = left.shape[0] if left.shape[0] != 1 else right.shape[0]
    step_left, step_right = int(left.shape[0] != 1), int(right.shape[0] != 1)
    out = np.empty(n, np.uint8)
    for i in range(n):
        x, y = left[i * step_left], right[i * step_right]
        a, b = sorts_left[i * step_left], sorts_right[i * step_right]
        rounded = (a == ROUNDED or b == ROUNDED) and a != A_DOUBLE and b != A_DOUBLE
        if a == NO_NUMBER or b == NO_NUMBER or (rounded and x == y):
            out[i] = UNSURE
        elif x != x or y != y:
            out[i] = FALSE
        else:
            out[i] = _holds(-1 if x < y else 1 if x > y else 0, op)
    return out


# ---------------------------------------------------------------------------- combinations


@njit(cache=True, nogil=True)
def number_combinations(keys, slots, table, count, out):  # type: ignore[no-untyped-def]
    """Number the distinct columns of `keys` (shape k × n) in the order in which they are first seen.

    `table[e]` is combination e, `slots` finds it (e + 1; 0 is free; at most half taken). There must be room
    for n more. Returns the new count.
    """
    width, n = keys.shape
    mask = slots.shape[0] - 1
    for i in range(n):
        slot = np.int64(hash_of_row(keys, i) & np.uint64(mask))
        while True:
            entry = slots[slot] - 1
            if entry < 0:
                for k in range(width):
                    table[count, k] = keys[k, i]
                entry = count
                slots[slot] = entry + 1
                count += 1
                break
            same = True
            for k in range(width):
                if table[entry, k] != keys[k, i]:
                    same = False
                    break
            if same:
                break
            slot = (slot + 1) & mask
        out[i] = entry
    return count
