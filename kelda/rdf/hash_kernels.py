"""Kernels: the hash of a text, and the hash table from ids to texts that a dictionary is made of.

The id of a text is its XXH64 hash without the lowest bit (and 1 instead of 0). Beside it goes a 32-bit
check that has nothing in common with XXH64: each 8 bytes, little endian, the last filled up with zeros,
are xored in, multiplied, and folded. Two texts with one id are told apart by the check. Both are fixed for
ever: ids are written to disk and cross machines.

The inner functions take a text as its address, not as an array: numba counts references to arrays at
every call, and that costs more than the work done here. No address outlives the kernel that took it, and
every buffer must have `PADDING` readable bytes behind its last text.

numba's cache knows a kernel by its own file only: whoever changes this one must delete the cached
kernels (`kelda/rdf/__pycache__/*.nb?`) that have parts of it in them.

The table is open addressing with linear probing over `slots`, one row of two words per slot: the id (0:
free) and `check << 32 | entry`. Entry e has its id in `ids[e]` and its text in
`arena[offsets[e]:offsets[e + 1]]`. `counts` is (entries, arena bytes used). At most half of the slots
are taken; the caller makes room before it interns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

# What only kernels call: compiled without the wrappers that make a function callable from Python.
_WITHOUT_WRAPPERS = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
helper = njit(cache=True, **_WITHOUT_WRAPPERS)
# What is small, or called so often that vectors would be put away around each call.
inlined = njit(cache=True, forceinline=True, **_WITHOUT_WRAPPERS)
# The same for what takes arrays, allocates nothing and keeps nothing: references to them are not counted.
_uncounted = njit(cache=True, forceinline=True, _nrt=False, **_WITHOUT_WRAPPERS)

PADDING = 8

DONE, NEEDS_ROOM, COLLISION = 0, 1, 2

# The primes of XXH64.
_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)
# The odd multiplier of the check.
_Q = np.uint64(0xD6E8FEB86659FD93)
_ONE, _EIGHT, _32 = np.uint64(1), np.uint64(8), np.uint64(32)
_LOW32 = 0xFFFFFFFF


class Tables(NamedTuple):
    """The arrays of a dictionary, as laid out above. Python hands over a plain tuple of them, whose types
    numba finds far sooner than those of a named one."""

    slots: NDArray[np.int64]
    ids: NDArray[np.int64]
    offsets: NDArray[np.int64]
    arena: NDArray[np.uint8]
    counts: NDArray[np.int64]


@intrinsic
def load64(typingctx, text, index):  # type: ignore[no-untyped-def]
    """The eight bytes at `text` + `index` as one little-endian word."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.load(builder.inttoptr(builder.add(*args), ir.IntType(64).as_pointer()), align=1)

    return types.uint64(types.uint64, types.int64), codegen


@intrinsic
def load8(typingctx, text, index):  # type: ignore[no-untyped-def]
    """The byte at `text` + `index`."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        byte = builder.load(builder.inttoptr(builder.add(*args), ir.IntType(8).as_pointer()))
        return builder.zext(byte, ir.IntType(64))

    return types.int64(types.uint64, types.int64), codegen


@intrinsic
def store8(typingctx, text, index, byte):  # type: ignore[no-untyped-def]
    """Make the byte at `text` + `index` another one."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        address = builder.inttoptr(builder.add(args[0], args[1]), ir.IntType(8).as_pointer())
        builder.store(builder.trunc(args[2], ir.IntType(8)), address)
        return context.get_dummy_value()

    return types.void(types.uint64, types.int64, types.int64), codegen


@intrinsic
def store64(typingctx, text, index, word):  # type: ignore[no-untyped-def]
    """Make the eight bytes at `text` + `index` others."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        address = builder.inttoptr(builder.add(args[0], args[1]), ir.IntType(64).as_pointer())
        builder.store(args[2], address, align=1)
        return context.get_dummy_value()

    return types.void(types.uint64, types.int64, types.int64), codegen


@inlined
def _rotate(x, by):  # type: ignore[no-untyped-def]
    return (x << np.uint64(by)) | (x >> np.uint64(64 - by))


@inlined
def _round(x, word):  # type: ignore[no-untyped-def]
    return _rotate(x + word * _P2, 31) * _P1


@inlined
def identity_of(text, start, end, seed):  # type: ignore[no-untyped-def]
    """The id of the bytes from `start` to `end`, in 1 .. 2^63 - 1."""
    i = start
    if end - start >= 32:
        v1, v2, v3, v4 = seed + _P1 + _P2, seed + _P2, seed, seed - _P1
        while i + 32 <= end:
            v1 = _round(v1, load64(text, i))
            v2 = _round(v2, load64(text, i + 8))
            v3 = _round(v3, load64(text, i + 16))
            v4 = _round(v4, load64(text, i + 24))
            i += 32
        x = _rotate(v1, 1) + _rotate(v2, 7) + _rotate(v3, 12) + _rotate(v4, 18)
        x = (x ^ _round(np.uint64(0), v1)) * _P1 + _P4
        x = (x ^ _round(np.uint64(0), v2)) * _P1 + _P4
        x = (x ^ _round(np.uint64(0), v3)) * _P1 + _P4
        x = (x ^ _round(np.uint64(0), v4)) * _P1 + _P4
    else:
        x = seed + _P5
    x += np.uint64(end - start)
    while i + 8 <= end:
        x = _rotate(x ^ _round(np.uint64(0), load64(text, i)), 27) * _P1 + _P4
        i += 8
    if i + 4 <= end:
        x = _rotate(x ^ (load64(text, i) & np.uint64(_LOW32)) * _P1, 23) * _P2 + _P3
        i += 4
    while i < end:
        x = _rotate(x ^ np.uint64(load8(text, i)) * _P5, 11) * _P1
        i += 1
    x = (x ^ (x >> np.uint64(33))) * _P2
    x = (x ^ (x >> np.uint64(29))) * _P3
    x ^= x >> _32
    identity = np.int64(x >> _ONE)
    return identity if identity != 0 else np.int64(1)


@helper
def check_of(text, start, end, seed):  # type: ignore[no-untyped-def]
    """A second hash of the bytes, in 0 .. 2^32 - 1, by which two texts with one id are told apart."""
    check = seed ^ _Q
    i = start
    while i < end:
        word = load64(text, i)
        if end - i < 8:
            word &= (_ONE << (_EIGHT * np.uint64(end - i))) - _ONE
        check = (check ^ word) * _Q
        check ^= check >> _32
        i += 8
    check *= _Q
    return np.int64(check >> _32)


@helper
def hash_span(text, start, end, seed):  # type: ignore[no-untyped-def]
    """(id, check) of the bytes from `start` to `end`."""
    return identity_of(text, start, end, seed), check_of(text, start, end, seed)


@njit(cache=True, nogil=True)
def hash_array(array, seed):  # type: ignore[no-untyped-def]
    """(id, check) of an array of bytes that is followed by the padding."""
    return hash_span(array.ctypes.data, 0, array.shape[0] - PADDING, seed)


@_uncounted
def has_room(tables, entries, size):  # type: ignore[no-untyped-def]
    """Whether `entries` more entries with `size` bytes of text in all fit in."""
    slots, _, _, arena, counts = tables
    return 2 * (counts[0] + entries) <= slots.shape[0] and counts[1] + size + PADDING <= arena.shape[0]


@_uncounted
def intern(tables, identity, check, text, start, end):  # type: ignore[no-untyped-def]
    """Make sure that the text is known under its id; there must be room for it.

    Returns the entry, or -1 - entry where the id belongs to a text with another check.
    """
    slots, ids, offsets, arena, counts = tables
    mask = slots.shape[0] - 1
    slot = identity & mask
    while slots[slot, 0] != 0:
        if slots[slot, 0] == identity:
            held = slots[slot, 1]
            entry = held & _LOW32
            return entry if (held >> 32) & _LOW32 == check else -1 - entry
        slot = (slot + 1) & mask
    entry = counts[0]
    at = counts[1]
    for i in range(start, end):
        arena[at + i - start] = load8(text, i)
    slots[slot, 0] = identity
    slots[slot, 1] = check << 32 | entry
    ids[entry] = identity
    offsets[entry + 1] = at + end - start
    counts[0] = entry + 1
    counts[1] = at + end - start
    return entry


@njit(cache=True)
def intern_array(tables, identity, check, array):  # type: ignore[no-untyped-def]
    """Intern an array of bytes that is followed by the padding: (DONE or NEEDS_ROOM or COLLISION, the entry
    that has its id, if there is room)."""
    tables, size = Tables(*tables), array.shape[0] - PADDING
    if not has_room(tables, 1, size):
        return NEEDS_ROOM, 0
    entry = intern(tables, identity, check, array.ctypes.data, 0, size)
    return (DONE, entry) if entry >= 0 else (COLLISION, -1 - entry)


@njit(cache=True)
def intern_spans(tables, seed, given, buf, starts, ends, first):  # type: ignore[no-untyped-def]
    """Intern spans `first`, `first` + 1, … under the `given` ids.

    Returns (status, position, entry): DONE; or NEEDS_ROOM with the span to go on from; or COLLISION with
    the offending span and the entry that has its id already.
    """
    tables, text = Tables(*tables), buf.ctypes.data
    for i in range(first, given.shape[0]):
        if not has_room(tables, 1, ends[i] - starts[i]):
            return NEEDS_ROOM, i, 0
        check = check_of(text, starts[i], ends[i], seed)
        entry = intern(tables, given[i], check, text, starts[i], ends[i])
        if entry < 0:
            return COLLISION, i, -1 - entry
    return DONE, given.shape[0], 0


@njit(cache=True, nogil=True)
def intern_rows(tables, seed, columns, spans, rows, buf, first):  # type: ignore[no-untyped-def]
    """Intern the terms of some rows, from the row at place `first` on: `columns` has the ids of s, p, o, g,
    `spans` where each begins and ends in `buf` (ends at 0: it is known).

    Returns (status, place, part, entry): as `intern_spans`, with the place of the row and the part of it;
    with NEEDS_ROOM, instead of an entry the bytes that the row needs.
    """
    tables, text = Tables(*tables), buf.ctypes.data
    for i in range(first, rows.shape[0]):
        row = rows[i]
        size = 0
        for part in range(4):  # where there is no text, a span says nothing
            if columns[part, row] > 0 and spans[2 * part + 1, row] > 0:
                size += spans[2 * part + 1, row] - spans[2 * part, row]
        if not has_room(tables, 4, size):
            return NEEDS_ROOM, i, 0, size
        for part in range(4):
            start, end = np.int64(spans[2 * part, row]), np.int64(spans[2 * part + 1, row])
            if columns[part, row] > 0 and end > 0:
                check = check_of(text, start, end, seed)
                entry = intern(tables, columns[part, row], check, text, start, end)
                if entry < 0:
                    return COLLISION, i, part, -1 - entry
    return DONE, rows.shape[0], 0, 0


@njit(cache=True)
def find(slots, wanted):  # type: ignore[no-untyped-def]
    """The entry of each wanted id, -1 where there is none."""
    mask = slots.shape[0] - 1
    entries = np.empty(wanted.shape[0], np.int64)
    for i in range(wanted.shape[0]):
        slot = wanted[i] & mask
        while slots[slot, 0] != 0 and slots[slot, 0] != wanted[i]:
            slot = (slot + 1) & mask
        entries[i] = -1 if slots[slot, 0] == 0 else slots[slot, 1] & _LOW32
    return entries


@njit(cache=True, nogil=True)
def begin(slots, offsets, arena, wanted, byte):  # type: ignore[no-untyped-def]
    """Whether the text of each wanted id is there, and begins with a byte."""
    mask = slots.shape[0] - 1
    found = np.zeros(wanted.shape[0], np.bool_)
    for i in range(wanted.shape[0]):
        if wanted[i] > 0:
            slot = wanted[i] & mask
            while slots[slot, 0] != 0 and slots[slot, 0] != wanted[i]:
                slot = (slot + 1) & mask
            found[i] = slots[slot, 0] != 0 and arena[offsets[slots[slot, 1] & _LOW32]] == byte
    return found


@njit(cache=True)
def distinct(slots, wanted, seen, out):  # type: ignore[no-untyped-def]
    """Write the entries of the wanted ids, each once, in the order in which they are first met; how many.

    `seen` has a place for each entry, and is False everywhere; inline ids and unknown ones have no entry."""
    mask = slots.shape[0] - 1
    count = 0
    for i in range(wanted.shape[0]):
        if wanted[i] > 0:
            slot = wanted[i] & mask
            while slots[slot, 0] != 0 and slots[slot, 0] != wanted[i]:
                slot = (slot + 1) & mask
            if slots[slot, 0] != 0:
                entry = slots[slot, 1] & _LOW32
                if not seen[entry]:
                    seen[entry] = True
                    out[count] = entry
                    count += 1
    return count


@njit(cache=True)
def rehash(old, new):  # type: ignore[no-untyped-def]
    """Move all taken slots of `old` into the larger, empty `new`."""
    mask = new.shape[0] - 1
    for i in range(old.shape[0]):
        if old[i, 0] != 0:
            slot = old[i, 0] & mask
            while new[slot, 0] != 0:
                slot = (slot + 1) & mask
            new[slot, 0] = old[i, 0]
            new[slot, 1] = old[i, 1]


@njit(cache=True)
def gather(arena, starts, ends, out):  # type: ignore[no-untyped-def]
    """The spans one after another."""
    at = 0
    for i in range(len(starts)):
        for j in range(starts[i], ends[i]):
            out[at] = arena[j]
            at += 1
