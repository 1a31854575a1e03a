"""Kernels: the hash of a text, and the hash table from ids to texts that a dictionary is made of.

The hash is fixed for ever (ids are written to disk and cross machines): 8 bytes at a time, little
endian, the last word filled up with zeros, into two accumulators that share nothing but the input. One
gives the 63-bit id, the other a 32-bit check. Two texts with one id are told apart by the check.

Every byte buffer handed to a kernel must have `PADDING` readable bytes behind its last text.

The table is open addressing with linear probing over `slots`, one row of two words per slot: the id (0:
free) and `check << 32 | entry`. Entry e has its id in `ids[e]` and its text in
`arena[offsets[e]:offsets[e + 1]]`. `counts` is (entries, arena bytes used). At most half of the slots
are taken; the caller makes room before it interns.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

PADDING = 8

DONE, NEEDS_ROOM, COLLISION = 0, 1, 2

_M1 = np.uint64(0x9F4A7C15D1B54A35)
_M2 = np.uint64(0xC3A5C85C97CB3127)
_M3 = np.uint64(0xE7037ED1A0B428DB)
_M4 = np.uint64(0xB492B66FBE98F273)
_A = np.uint64(0x2545F4914F6CDD1D)
_ONE = np.uint64(1)
_EIGHT = np.uint64(8)
_LOW32 = 0xFFFFFFFF


@intrinsic
def load64(typingctx, buf, index):  # type: ignore[no-untyped-def]
    """The eight bytes of `buf` at `index` as one little-endian word; no bounds check, any alignment."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        array = cgutils.create_struct_proxy(signature.args[0])(context, builder, args[0])
        word = builder.bitcast(builder.gep(array.data, [args[1]]), ir.IntType(64).as_pointer())
        return builder.load(word, align=1)

    return types.uint64(buf, types.int64), codegen


@njit(cache=True, nogil=True)
def _rotate(x, left, right):  # type: ignore[no-untyped-def]
    return (x << left) | (x >> right)


@njit(cache=True, nogil=True)
def _finish(x):  # type: ignore[no-untyped-def]
    x ^= x >> np.uint64(32)
    x *= _M3
    x ^= x >> np.uint64(29)
    x *= _M1
    x ^= x >> np.uint64(32)
    return x


@njit(cache=True, nogil=True)
def hash_span(buf, start, end, seed):  # type: ignore[no-untyped-def]
    """(id, check) of the text `buf[start:end]`. The id is in 1 .. 2^63 - 1, the check in 0 .. 2^32 - 1."""
    length = np.uint64(end - start)
    a = _finish(seed + _A) ^ (length * _M4)
    b = (seed ^ _M2) + length * _M1
    i = start
    while i < end:
        word = load64(buf, i)
        if end - i < 8:
            word &= (_ONE << (_EIGHT * np.uint64(end - i))) - _ONE
        mixed = _rotate(word * _M1, np.uint64(31), np.uint64(33)) * _M2
        a = _rotate(a ^ mixed, np.uint64(27), np.uint64(37)) * _M3 + _A
        b = (b ^ word) * _M4
        b ^= b >> np.uint64(31)
        i += 8
    identity = np.int64(_finish(a) >> _ONE)
    if identity == 0:
        identity = np.int64(1)
    return identity, np.int64(_finish(b) >> np.uint64(32))


@njit(cache=True, nogil=True)
def has_room(slots, arena, counts, entries, size):  # type: ignore[no-untyped-def]
    """Whether `entries` more entries with `size` bytes of text in all fit in."""
    return 2 * (counts[0] + entries) <= slots.shape[0] and counts[1] + size + PADDING <= arena.shape[0]


@njit(cache=True, nogil=True)
def intern(slots, ids, offsets, arena, counts, identity, check, buf, start, end):  # type: ignore[no-untyped-def]
    """Make sure that the text is known under its id; there must be room for it.

    Returns the entry, or -1 - entry where the id belongs to a text with another check.
    """
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
        arena[at + i - start] = buf[i]
    slots[slot, 0] = identity
    slots[slot, 1] = check << 32 | entry
    ids[entry] = identity
    offsets[entry + 1] = at + end - start
    counts[0] = entry + 1
    counts[1] = at + end - start
    return entry


@njit(cache=True, nogil=True)
def intern_spans(slots, ids, offsets, arena, counts, seed, given, buf, starts, ends, first):  # type: ignore[no-untyped-def]
    """Intern spans `first`, `first` + 1, … under the `given` ids.

    Returns (status, position, entry): DONE; or NEEDS_ROOM with the span to go on from; or COLLISION with
    the offending span and the entry that has its id already.
    """
    for i in range(first, given.shape[0]):
        if not has_room(slots, arena, counts, 1, ends[i] - starts[i]):
            return NEEDS_ROOM, i, 0
        _, check = hash_span(buf, starts[i], ends[i], seed)
        entry = intern(slots, ids, offsets, arena, counts, given[i], check, buf, starts[i], ends[i])
        if entry < 0:
            return COLLISION, i, -1 - entry
    return DONE, given.shape[0], 0


@njit(cache=True, nogil=True)
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
