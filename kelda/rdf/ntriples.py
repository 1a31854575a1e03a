"""The fast lane: N-Triples and N-Quads text to columns of ids, in one pass over the bytes.

Promises: the lines accepted are those that pyoxigraph accepts, each by itself; the ids are those of
`ids.encode`; every hashed term is in the dictionary afterwards; every other line is in `rejects`, with
pyoxigraph's reason. A line ends with LF, CR LF or CR. Blank lines and comments count as lines, and give
nothing. Lines with a time are those of the format `tsnt`: what they are says `framings/tsnt.py`, and they
end with LF or CR LF.

The kernel reads the common forms, and pyoxigraph the rest, line by line: escapes other than \\n \\r \\" \\\\,
triple terms, IRIs with a user name or characters beyond U+D7FF, language tags with more than script and
region, and blank node labels with a dot or a letter outside ASCII.

Blank node labels are taken as they are written: keeping documents apart is the caller's business.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Quad, RdfFormat, parse

from kelda.rdf import ntriples_kernels as kernels
from kelda.rdf.byte_masks import WIDTH
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.event import Reject
from kelda.rdf.framings.base import RecordError
from kelda.rdf.framings.tsnt import one_quad, timed_line
from kelda.rdf.hash_kernels import COLLISION, NEEDS_ROOM
from kelda.rdf.ids import Term

_BLOCK = 1 << 19
MANY = 32  # terms: for fewer it is not worth to write their text
_PLACE = re.compile(r"^Parser error at line 1 (between )?")


@dataclass(frozen=True, slots=True)
class Columns:
    """Quads as columns of int64 with one row per statement, in the order of the text.

    `g` is 0 in the default graph; `t` is None where lines have no time; `line` counts from `first_line`.
    """

    s: NDArray[np.int64]
    p: NDArray[np.int64]
    o: NDArray[np.int64]
    g: NDArray[np.int64]
    t: NDArray[np.int64] | None
    line: NDArray[np.int64]
    rejects: list[Reject]

    def __len__(self) -> int:
        return len(self.s)


@dataclass(frozen=True, slots=True)
class Block:
    """Some statements, as views that the next block is written over."""

    columns: NDArray[np.int64]  # s, p, o, g, t, line
    rejects: list[Reject]


def blocks(
    data: bytes | bytearray | memoryview,
    dictionary: Dictionary,
    *,
    quads: bool = True,
    timed: bool = False,
    source: str = "",
    first_line: int = 1,
) -> Iterator[Block]:
    """Read whole lines of N-Quads (or, with `quads=False`, of N-Triples), block by block.

    With `timed`, each line starts with its time in milliseconds since 1970 and a tab.
    """
    view = memoryview(data).cast("B")
    read_line = timed_reader(dictionary) if timed else line_reader(dictionary, quads)
    scratch = _scratch(min(len(view), _BLOCK))
    start = 0
    while start < len(view):
        block = view[start : _cut(view, start, _BLOCK)]
        if len(block) > scratch.size:
            scratch = _Scratch.of(len(block))
        columns, slow, next_line = _scan(block, dictionary, quads, timed, first_line, scratch)
        dropped, rejects = [], []
        for row, begin, end in slow.T.tolist():
            line = bytes(block[begin:end])
            ids, reason = read_line(line)
            if ids is not None:
                columns[: len(ids), row] = ids
                continue
            dropped.append(row)
            if reason:
                rejects.append(Reject.of(source, int(columns[5, row]), reason, line))
        if dropped:
            columns = np.delete(columns, dropped, axis=1)
        yield Block(columns, rejects)
        first_line = next_line
        start += len(block)
    _spare.append(scratch)


def read(
    data: bytes | bytearray | memoryview,
    dictionary: Dictionary,
    *,
    quads: bool = True,
    timed: bool = False,
    source: str = "",
    first_line: int = 1,
) -> Columns:
    """As `blocks`, all at once."""
    parts, rejects = [np.empty((6, 0), np.int64)], []
    for block in blocks(data, dictionary, quads=quads, timed=timed, source=source, first_line=first_line):
        parts.append(block.columns.copy())
        rejects += block.rejects
    s, p, o, g, t, lines = np.concatenate(parts, axis=1)
    return Columns(s, p, o, g, t if timed else None, lines, rejects)


def ids_of(terms: Sequence[Term], dictionary: Dictionary) -> list[int]:
    """The ids of terms, which the dictionary knows from now on. Many go as text, six times as fast as one by
    one."""
    if len(terms) >= MANY:
        text = "".join(f"<x:> <x:> {term} .\n" for term in terms).encode()
        found: list[int] = read(text, dictionary, quads=False).o.tolist()
        if len(found) == len(terms):  # else one cannot be written as N-Triples: an IRI that was never checked
            return found
    return [dictionary.encode(term) for term in terms]


def _cut(view: memoryview, start: int, size: int) -> int:
    """Where a block of about `size` bytes ends: after a line feed, or with the text."""
    end = start + size
    if end >= len(view):
        return len(view)
    for reach in (4096, size):
        near = max(start, end - reach)
        found = bytes(view[near:end]).rfind(b"\n")
        if found >= 0:
            return near + found + 1
    return _cut(view, start, 2 * size)


class _Scratch(NamedTuple):
    """Arrays that are used again for each block of up to `size` bytes (fresh memory is slow)."""

    size: int
    buffer: NDArray[np.uint8]
    columns: NDArray[np.int64]
    slow: NDArray[np.int64]

    @classmethod
    def of(cls, size: int) -> _Scratch:
        # A line that is not empty, and so has a row, has two bytes or more; the last may lack its end.
        rows = size // 2 + 1
        return cls(
            size,
            np.zeros(size + 1 + WIDTH, np.uint8),
            np.empty((6, rows), np.int64),
            np.empty((3, rows), np.int64),
        )


_spare: list[_Scratch] = []  # left by readers that are done


def _scratch(size: int) -> _Scratch:
    """One that nobody uses, at least so large."""
    found = _spare.pop() if _spare else None
    return found if found is not None and found.size >= size else _Scratch.of(max(size, _BLOCK))


def _scan(
    block: memoryview,
    dictionary: Dictionary,
    quads: bool,
    timed: bool,
    first_line: int,
    scratch: _Scratch,
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """(columns, slow lines, number of the line after the block), as `kernels.parse` leaves them."""
    _, buffer, columns, slow = scratch
    # A copy, in which the kernel lower-cases language tags; the line feed ends every scan.
    buffer[: len(block)] = block
    buffer[len(block)] = ord("\n")
    state = np.zeros(kernels.STATE_SIZE, np.int64)
    state[kernels.LINE] = first_line
    seed = np.uint64(dictionary.seed)
    syntax, found = (quads, timed), (columns, slow)
    while status := kernels.parse(buffer, len(block), syntax, seed, tuple(dictionary.tables), found, state):
        if status == COLLISION:
            clash = buffer[state[kernels.CLASH_START] : state[kernels.CLASH_END]]
            dictionary.collision(int(state[kernels.CLASH_ENTRY]), clash.tobytes())
        assert status == NEEDS_ROOM
        dictionary.make_room(4, int(state[kernels.LINE_SIZE]))
    return columns[:, : state[kernels.ROWS]], slow[:, : state[kernels.SLOW]], int(state[kernels.LINE])


LineReader = Callable[[bytes], tuple[tuple[int, ...] | None, str]]


def line_reader(dictionary: Dictionary, quads: bool) -> LineReader:
    """A function from one line to (the ids of its statement, ""), or to (None, why there is none)."""
    syntax = RdfFormat.N_QUADS if quads else RdfFormat.N_TRIPLES

    def read_line(line: bytes) -> tuple[tuple[int, ...] | None, str]:
        try:
            found: list[Quad] = list(parse(line, syntax))
        except SyntaxError as error:
            return None, _PLACE.sub("", error.msg)
        except MemoryError as error:  # the parser's own limit
            return None, str(error)
        if not found:
            return None, ""
        (quad,) = found
        return tuple(map(dictionary.encode, quad)), ""

    return read_line


def timed_reader(dictionary: Dictionary) -> LineReader:
    """As `line_reader`, for lines with a time, which comes behind the ids."""

    def read_line(line: bytes) -> tuple[tuple[int, ...] | None, str]:
        try:
            found = timed_line(line)
            if found is None:
                return None, ""
            time, statement = found
            return (*map(dictionary.encode, one_quad(statement)), time), ""
        except RecordError as error:
            return None, str(error)

    return read_line
