"""`tsnt`: `epoch-milliseconds TAB N-Triples`, one line, one event of one triple.

A fourth term (N-Quads) is welcome. Blank lines and lines that start with `#` are passed over.
Blank node labels belong to the whole file and stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pyoxigraph import Quad, RdfFormat, parse

from kelda.rdf.event import Event
from kelda.rdf.framings.base import (
    Chunk,
    Framing,
    LineSplitter,
    Reading,
    RecordError,
    no_mapping,
    reason_of,
)

# Nineteen digits would not all fit 64 bits.
TIME_AND_REST = re.compile(rb"[ ]*(-?[0-9]{1,18})[ ]*\t[ \t]*([^#\s][^\n]*)")


def one_quad(text: bytes) -> Quad:
    """The quad of a line; RecordError if there is not exactly one."""
    try:
        quads = list(parse(text, RdfFormat.N_QUADS))
    except SyntaxError as error:
        raise RecordError(reason_of(error)) from error
    if len(quads) != 1:
        raise RecordError(f"expected one triple or quad, found {len(quads)}")
    return quads[0]


def timed_quads(lines: list[tuple[int, int, bytes]], how: Reading) -> Iterator[Event]:
    """Events of (line number, time, N-Quads text) triples.

    All are parsed at once; only when that fails, each alone, to find the broken ones.
    """
    try:
        quads = list(parse(b"\n".join(text for _, _, text in lines), RdfFormat.N_QUADS))
    except SyntaxError:
        quads = []
    if len(quads) == len(lines):
        for (_, time, _), quad in zip(lines, quads, strict=True):
            yield Event(time, (quad,))
        return
    for number, time, text in lines:
        try:
            event = Event(time, (one_quad(text),))
        except RecordError as error:
            how.reject(number, str(error), b"%d\t%s" % (time, text))
        else:
            yield event


class Tsnt:
    name = "tsnt"
    about = "epoch-milliseconds TAB N-Triples, one triple a line"
    extensions: tuple[str, ...] = ("tsnt", "tsnq")

    def prepare(self, mapping: Mapping[str, Any] | None) -> None:
        no_mapping(self.name, mapping)

    def splitter(self, mapping: Any) -> LineSplitter:
        return LineSplitter()

    def read(self, chunk: Chunk, how: Reading) -> Iterator[Event]:
        good: list[tuple[int, int, bytes]] = []
        for number, line in enumerate(chunk.data.split(b"\n"), chunk.first_line):
            found = TIME_AND_REST.match(line)
            if found:
                good.append((number, int(found[1]), found[2]))
            elif line.strip() and not line.lstrip().startswith(b"#"):
                yield from timed_quads(good, how)  # before the reject: what happens stays in order
                good = []
                how.reject(number, "expected epoch-milliseconds, a TAB and a triple", line)
        yield from timed_quads(good, how)


TSNT: Framing = Tsnt()
