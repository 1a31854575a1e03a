"""Memory by its address, inside kernels: for rows that lie in one of several arrays.

An address is counted in words of 8 bytes. Nothing is checked: it must be that of an array that is alive.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def address_of(typingctx, array):
    """Where an array of int64 begins."""

    def codegen(context, builder, signature, args):
        data = cgutils.create_struct_proxy(signature.args[0])(context, builder, args[0]).data
        return builder.lshr(builder.ptrtoint(data, ir.IntType(64)), ir.Constant(ir.IntType(64), 3))

    return types.int64(array), codegen


@intrinsic
def load(typingctx, address):
    """The word at an address."""

    def codegen(context, builder, signature, args):
        word = ir.IntType(64)
        pointer = builder.inttoptr(builder.shl(args[0], ir.Constant(word, 3)), word.as_pointer())
        return builder.load(pointer)

    return types.int64(types.int64), codegen
