"""The fast lane: N-Triples and N-Quads text to columns of ids, in one pass over the bytes.

Promises: the lines accepted are those that pyoxigraph accepts, each by itself; the ids are those of
`ids.encode`; every hashed term is in the dictionary afterwards; every other line is in `rejects`, with
pyoxigraph's reason. A line ends with LF, CR LF or CR. Blank lines and comments count as lines, and give
nothing.

The kernel reads the common forms, and pyoxigraph the rest, line by line: escapes other than \\n \\r \\" \\\\,
triple terms, IRIs with a user name or characters beyond U+D7FF, language tags with more than script and
region, and blank node labels with a dot or a letter outside ASCII.

Blank node labels are taken as they are written: keeping documents apart is the caller's business.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Quad, RdfFormat, parse

from kelda.rdf import ntriples_kernels as kernels
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.event import Reject
from kelda.rdf.hash_kernels import COLLISION, NEEDS_ROOM, PADDING

_SHOWN = 200
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


def read(
    data: bytes | bytearray | memoryview,
    dictionary: Dictionary,
    *,
    quads: bool = True,
    timed: bool = False,
    source: str = "",
    first_line: int = 1,
) -> Columns:
    """Read whole lines of N-Quads (or, with `quads=False`, of N-Triples).

    With `timed`, each line starts with its time in milliseconds since 1970 and a tab.
    """
    text = np.frombuffer(data, np.uint8)
    # A copy, since the kernel lower-cases language tags in place; the line feed ends every scan.
    buffer = np.zeros(text.size + 1 + PADDING, np.uint8)
    buffer[: text.size] = text
    buffer[text.size] = ord("\n")
    most = np.count_nonzero(text == ord("\n")) + np.count_nonzero(text == ord("\r")) + 1
    columns = np.empty((6, most), np.int64)
    slow = np.empty((4, most), np.int64)
    state = np.zeros(kernels.STATE_SIZE, np.int64)
    state[kernels.LINE] = first_line
    seed = np.uint64(dictionary.seed)
    while status := kernels.parse(
        buffer, text.size, quads, timed, seed, *dictionary.tables, columns, slow, state
    ):
        if status == COLLISION:
            clash = buffer[state[kernels.CLASH_START] : state[kernels.CLASH_END]]
            dictionary.collision(int(state[kernels.CLASH_ENTRY]), clash.tobytes())
        assert status == NEEDS_ROOM
        dictionary.make_room(4, int(state[kernels.LINE_SIZE]))
    columns = columns[:, : state[kernels.ROWS]]
    rejects: list[Reject] = []
    if state[kernels.SLOW]:
        read_line = _line_reader(dictionary, quads)
        keep = np.ones(columns.shape[1], np.bool_)
        for row, start, end, why in slow[:, : state[kernels.SLOW]].T.tolist():
            line_text = text[start:end].tobytes()
            ids, reason = read_line(line_text) if why == kernels.UNSURE else (None, _BAD_TIME)
            if ids is not None:
                columns[:4, row] = ids
                continue
            keep[row] = False
            if reason:
                shown = line_text.decode(errors="replace")
                shown = shown if len(shown) <= _SHOWN else shown[: _SHOWN - 1] + "…"
                rejects.append(Reject(source, int(columns[5, row]), reason, shown))
        if not keep.all():
            columns = columns[:, keep]
    s, p, o, g, t, line = columns
    return Columns(s, p, o, g, t if timed else None, line, rejects)


_BAD_TIME = "a line must start with its time in milliseconds since 1970 (a whole number) and a tab"


def _line_reader(dictionary: Dictionary, quads: bool) -> Callable[[bytes], tuple[tuple[int, ...] | None, str]]:
    """A function from one line to (the ids of its statement, ""), or to (None, why there is none)."""
    syntax = RdfFormat.N_QUADS if quads else RdfFormat.N_TRIPLES
    encode = dictionary.encode

    def read_line(line: bytes) -> tuple[tuple[int, ...] | None, str]:
        try:
            found: list[Quad] = list(parse(line, syntax))
        except SyntaxError as error:
            return None, _PLACE.sub("", error.msg)
        if not found:
            return None, ""
        (quad,) = found
        return (
            encode(quad.subject),
            encode(quad.predicate),
            encode(quad.object),
            encode(quad.graph_name),
        ), ""

    return read_line
