"""The ids of a few terms, without the kernel: what a first small program needs is not worth compiling.

`term_id` says the same as the kernel of that name. The first terms of a process are taken apart here, if they
are IRIs, blank nodes, strings, integers or booleans; all others, and all that come later, by the kernel.
"""

from __future__ import annotations

import re
import struct
from itertools import count

import numpy as np
import xxhash
from numpy.typing import NDArray

from kelda.rdf import ntriples_kernels as kernels
from kelda.rdf.hash_kernels import PADDING
from kelda.rdf.ntriples_kernels import BOOLEAN, INTEGER, STRING

FEW = 1000  # terms, which take a millisecond here; the kernel is compiled in some seconds, and loaded in 0.1

_Q = 0xD6E8FEB86659FD93  # the multiplier of the check, see hash_kernels
_WORD = 2**64 - 1
_TYPED = re.compile(rb'"([^"]*)"\^\^<http://www\.w3\.org/2001/XMLSchema#(integer|boolean)>')
_IN_A_LANGUAGE = re.compile(rb'"@[A-Za-z0-9-]+\Z')
_CANONICAL = re.compile(rb"0|-?[1-9][0-9]{0,16}")  # 17 digits are less than 2^57

_asked = count()


def term_id(buf: NDArray[np.uint8], seed: int) -> tuple[int, int]:
    """(id, check) of the term whose canonical text `buf` holds, before the padding; check 0 if inline."""
    if next(_asked) < FEW:
        found = plain_id(buf[:-PADDING].tobytes(), seed)
        if found is not None:
            return found
    return kernels.term_id(buf, np.uint64(seed))


def plain_id(text: bytes, seed: int) -> tuple[int, int] | None:
    """The same of a plain text; None for what only the kernel knows."""
    if not text.startswith(b'"'):
        return _hashed(text, seed)
    if text.endswith(b'"'):
        size = len(text) - 2
        if size > 14:  # more than seven characters, even if all are escaped
            return _hashed(text, seed)
        if size > 7 or b"\\" in text or b"\0" in text:
            return None
        return _inline(STRING, int.from_bytes(text[1:-1].ljust(7, b"\0"), "big")), 0
    typed = _TYPED.fullmatch(text)
    if typed is None:
        return _hashed(text, seed) if _IN_A_LANGUAGE.search(text) else None
    lexical, datatype = typed.groups()
    if datatype == b"boolean" and lexical in (b"true", b"false"):
        return _inline(BOOLEAN, lexical == b"true"), 0
    if datatype == b"integer" and _CANONICAL.fullmatch(lexical):
        return _inline(INTEGER, int(lexical)), 0
    return None


def _inline(tag: int, value: int) -> int:
    return -(2**63) | tag << 58 | value & (2**58 - 1)


def _hashed(text: bytes, seed: int) -> tuple[int, int]:
    words = -(-len(text) // 8)
    check = seed ^ _Q
    for word in struct.unpack(f"<{words}Q", text.ljust(8 * words, b"\0")):
        check = (check ^ word) * _Q & _WORD
        check ^= check >> 32
    return xxhash.xxh64_intdigest(text, seed) >> 1 or 1, (check * _Q & _WORD) >> 32
