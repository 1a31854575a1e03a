"""`tsnt`: `epoch-milliseconds TAB N-Triples`, one line, one event of one triple.

A fourth term (N-Quads) is welcome. Blank lines and lines that start with `#` are passed over.
Blank node labels belong to the whole file and stay as they are.

What a line means is decided here, in `timed_line` and `one_quad`. The kernels read the common lines by
themselves, exactly so, and ask here for all others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pyoxigraph import Quad, RdfFormat

from kelda.rdf.event import Event
from kelda.rdf.framings.base import (
    BLANK,
    MAX_RECORD,
    Chunk,
    Framing,
    LineSplitter,
    Reading,
    RecordError,
    no_mapping,
    parsed,
)
from kelda.rdf.times import in_calendar

TIMED = re.compile(rb"[ \t]*(-?[0-9]+) *\t")
_DIGITS = 15  # of the latest time
_USUAL = re.compile(rb"([0-9]{1,14})\t([^\s#][^\r]*)")


def says_nothing(line: bytes) -> bool:
    """Whether a line is blank or a comment."""
    said = line.lstrip(BLANK)
    return not said or said.startswith(b"#")


def timed_line(line: bytes) -> tuple[int, bytes] | None:
    """The time of a line and the statement behind it; None for a blank line or a comment, and RecordError
    for anything else."""
    if says_nothing(line):
        return None
    found = TIMED.match(line)
    if found is None:
        raise RecordError("expected epoch-milliseconds, a TAB and a triple")
    digits = found[1].lstrip(b"-0")
    time = int(found[1]) if len(digits) <= _DIGITS else None
    if time is None or not in_calendar(time):
        raise RecordError(
            f"the time {found[1][:30].decode()} lies outside the years 1 to 9999: "
            "milliseconds since 1970 are expected"
        )
    statement = line[found.end() :].strip(BLANK)
    if not statement or statement.startswith(b"#"):
        raise RecordError("a time with nothing behind it: expected epoch-milliseconds, a TAB and a triple")
    if b"\r" in statement:
        raise RecordError("a carriage return within the line: lines end with LF or CR LF")
    return time, statement


def one_quad(text: bytes) -> Quad:
    """The quad of a statement; RecordError if there is not exactly one."""
    quads = parsed(text, RdfFormat.N_QUADS)
    if len(quads) != 1:
        raise RecordError(f"expected one triple or quad, found {len(quads)}")
    return quads[0]


Timed = tuple[int, bytes, int, bytes]  # line number, the line, its time, its statement


def timed_quads(lines: list[Timed], how: Reading) -> Iterator[Event]:
    """The events of lines with a time.

    All are parsed at once; only when that fails, each alone, to find the broken ones.
    """
    try:
        quads = parsed(b"\n".join(line[3] for line in lines), RdfFormat.N_QUADS)
    except RecordError:
        quads = []
    if len(quads) == len(lines):
        for (_, _, time, _), quad in zip(lines, quads, strict=True):
            yield Event(time, (quad,))
        return
    for number, line, time, statement in lines:
        try:
            event = Event(time, (one_quad(statement),))
        except RecordError as error:
            how.reject(number, str(error), line)
        else:
            yield event


class Tsnt:
    name = "tsnt"
    about = "epoch-milliseconds TAB N-Triples, one triple a line"
    extensions: tuple[str, ...] = ("tsnt", "tsnq")

    def prepare(self, mapping: Mapping[str, Any] | None) -> None:
        no_mapping(self.name, mapping)

    def splitter(self, mapping: Any, longest: int = MAX_RECORD) -> LineSplitter:
        return LineSplitter()

    def read(self, chunk: Chunk, how: Reading) -> Iterator[Event]:
        good: list[Timed] = []
        for number, line in enumerate(chunk.data.split(b"\n"), chunk.first_line):
            usual = _USUAL.fullmatch(line)
            if usual is not None:
                good.append((number, line, int(usual[1]), usual[2]))
                continue
            try:
                found = timed_line(line)
            except RecordError as error:
                yield from timed_quads(good, how)  # before the reject: what happens stays in order
                good = []
                how.reject(number, str(error), line)
            else:
                if found is not None:
                    good.append((number, line, *found))
        yield from timed_quads(good, how)


TSNT: Framing = Tsnt()
