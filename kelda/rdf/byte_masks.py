"""Text looked at 64 bytes at a time: which of them are special, as the bits of a word.

LLVM makes of each mask what the processor has: one instruction per comparison with AVX-512, two with AVX2,
four with SSE2 or NEON. All read 64 bytes from where they begin, so every buffer must have `WIDTH` readable
bytes behind its last text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

WIDTH = 64

_VECTOR = ir.VectorType(ir.IntType(8), WIDTH)


def _load(builder: Any, address: Any) -> Any:
    return builder.load(builder.inttoptr(address, _VECTOR.as_pointer()), align=1)


def _each(byte: int) -> Any:
    return ir.Constant(_VECTOR, [byte] * WIDTH)


def among(*ranges: tuple[int, int]) -> Callable[[int, int], int]:
    """A function for kernels, from an address and an index: bit i says whether byte i lies in one of the
    ranges (the last byte of a range is in it)."""
    return _mask(ranges, negated=False)


def not_among(*ranges: tuple[int, int]) -> Callable[[int, int], int]:
    """As `among`: whether it lies in none of them."""
    return _mask(ranges, negated=True)


def _mask(ranges: tuple[tuple[int, int], ...], negated: bool) -> Callable[[int, int], int]:
    @intrinsic
    def mask(typingctx, text, index):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            some = _load(builder, builder.add(*args))
            found = None
            for first, last in ranges:
                if first == last:
                    one = builder.icmp_unsigned("==", some, _each(first))
                else:
                    moved = builder.sub(some, _each(first))
                    one = builder.icmp_unsigned("<=", moved, _each(last - first))
                found = one if found is None else builder.or_(found, one)
            return builder.bitcast(builder.not_(found) if negated else found, ir.IntType(WIDTH))

        return types.uint64(types.uint64, types.int64), codegen

    chosen: Callable[[int, int], int] = mask
    return chosen


@intrinsic
def differing(typingctx, text, index, other, place):  # type: ignore[no-untyped-def]
    """Bit i says whether byte i at `text` + `index` is another than that at `other` + `place`."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        one, two = _load(builder, builder.add(*args[:2])), _load(builder, builder.add(*args[2:]))
        return builder.bitcast(builder.icmp_unsigned("!=", one, two), ir.IntType(WIDTH))

    return types.uint64(types.uint64, types.int64, types.uint64, types.int64), codegen


@intrinsic
def move(typingctx, text, index, other, place):  # type: ignore[no-untyped-def]
    """Write the 64 bytes at `text` + `index` to `other` + `place`."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        some = _load(builder, builder.add(*args[:2]))
        builder.store(some, builder.inttoptr(builder.add(*args[2:]), _VECTOR.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(types.uint64, types.int64, types.uint64, types.int64), codegen


@intrinsic
def first_bit(typingctx, mask):  # type: ignore[no-untyped-def]
    """The number of the lowest bit that is set; the mask must not be 0."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), codegen


@intrinsic
def bits(typingctx, mask):  # type: ignore[no-untyped-def]
    """How many bits are set."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.ctpop(args[0])

    return types.int64(types.uint64), codegen
