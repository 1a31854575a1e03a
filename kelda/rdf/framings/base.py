"""What every framing shares: chunks of whole records, and the two things a framing can do.

The law of this folder: *the events do not depend on how the bytes were cut*. A splitter says
where records end and what a later record needs to know of the earlier ones (its context:
prefixes, a CSV header, the active JSON-LD context), so a chunk can be read alone, anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Quad, RdfFormat, parse

from kelda.errors import UsageError
from kelda.rdf import wire
from kelda.rdf.event import Event, Reject
from kelda.rdf.framings.row_kernels import whole_lines

# Bytes of a record, its line break or delimiter with it, if nobody says otherwise. Longer ones are rejected.
# A quoted text that does not close within as many is taken for a forgotten quote: the record is broken, and
# reading goes on at the next one instead of swallowing the whole stream.
MAX_RECORD = 16_000_000
HEAD = 1024  # bytes that are kept of a record that is too long, to show it

BLANK = b" \t\r\n"

_WHERE = re.compile(r"^Parser error at line \d+.*?: ")


class Flow(Protocol):
    """A text as it comes, from its beginning to its end.

    If it stands in a `file` (which is open; -1: it does not), its bytes from `at` to `end` are still to come.
    Whoever reads some of them there himself says so by moving `at`.
    """

    file: int
    at: int
    end: int

    def fill(self, buffer: memoryview) -> int:
        """Put the next bytes into a buffer, which has room for some, and say how many: 0 at the end."""
        ...


class Portions:
    """A text that is in memory."""

    file, at, end = -1, 0, 0

    def __init__(self, data: bytes) -> None:
        self._left = memoryview(data)

    def fill(self, buffer: memoryview) -> int:
        some = self._left[: len(buffer)]
        buffer[: len(some)] = some
        self._left = self._left[len(some) :]
        return len(some)


@wire.plain
@dataclass(frozen=True, slots=True)
class Chunk:
    """Some whole records of a stream, readable alone.

    `first_line` is the line (from 1; 0: see `begins_on`) on which `data` starts, `ordinal` the number of
    records before it, `context` what the earlier records left behind that these need. Of a record that is too
    long `data` is only the beginning, and so many bytes were `left_out`: it is a chunk by itself.
    """

    first_line: int
    ordinal: int
    context: bytes
    data: bytes
    left_out: int = field(default=0, kw_only=True)

    def begins_on(self) -> int:
        """The line on which it starts, counted if need be."""
        return self.first_line

    def load(self) -> Chunk:
        """The chunk with its data, if they were still to be read."""
        return self

    @contextmanager
    def text(self) -> Iterator[Flow]:
        """The text, to be read."""
        yield Portions(self.data)


class Cut(NamedTuple):
    """Where a record ends, and the context from there on. `record` is False for bytes that are no
    record themselves (a header, a context line, the blank tail of a file)."""

    end: int
    context: bytes
    record: bool = True


class Splitter(Protocol):
    """Finds the ends of records in a growing buffer. `context` is what is in force at the start."""

    context: bytes

    def cuts(self, data: bytes, at_end: bool) -> list[Cut]:
        """The cuts in `data`, which starts at a record boundary. What lies behind the last cut
        is incomplete: the caller hands it in again, at the front, with the bytes that follow.
        With `at_end` nothing follows, and every byte belongs to some cut."""
        ...

    def forget(self, size: int) -> int:
        """Of the `size` bytes behind the last cut, more than a record may have: how many need not be
        handed in again, as they are part of one that is too long."""
        ...


@dataclass(frozen=True, slots=True)
class Reading:
    """How the caller wants records read: the same for all chunks of one stream.

    `name` names the stream in rejects and keeps the blank nodes of different streams apart. Records have at
    most `longest` bytes. If an event `needs_time`, one without is rejected.
    """

    name: str
    on_reject: Callable[[Reject], None]
    time_predicate: str | None = None
    mapping: Any = None
    longest: int = MAX_RECORD
    needs_time: bool = False

    def reject(self, line: int, reason: str, record: bytes) -> None:
        self.on_reject(Reject.of(self.name, line, reason, record))

    def event(self, time: int | None, quads: tuple[Quad, ...]) -> Event:
        """The event; RecordError if it has no time and needs one."""
        if time is None and quads and self.needs_time:
            raise RecordError(
                "no time: the event has none, and what arrives here has no arrival time; "
                "name the predicate or the column of the time"
            )
        return Event(time, quads)

    def too_long(self, chunk: Chunk) -> None:
        """Reject a record of which something was left out."""
        size = len(chunk.data) + chunk.left_out
        self.reject(
            chunk.begins_on(),
            f"the record has {size:,} bytes, and at most {self.longest:,} are read (max_record)",
            chunk.data,
        )


class Framing(Protocol):
    """One way to write a stream down."""

    name: str
    about: str
    extensions: tuple[str, ...]

    def prepare(self, mapping: Mapping[str, Any] | None) -> Any:
        """The mapping, checked and made ready for `Reading.mapping`; UsageError if it is no good."""
        ...

    def splitter(self, mapping: Any, longest: int = MAX_RECORD) -> Splitter: ...

    def read(self, chunk: Chunk, how: Reading) -> Iterator[Event]: ...


@runtime_checkable
class Quick(Splitter, Protocol):
    """A splitter that finds many usual records at once."""

    def usual(self, data: NDArray[np.uint8], start: int, most: int, longest: int, at_end: bool) -> Usual:
        """Where the next usual records from `start` on end, at most so many."""
        ...


class RecordError(Exception):
    """A record that cannot be read; its text is the reason. Never leaves a framing."""


def no_mapping(name: str, mapping: Mapping[str, Any] | None) -> None:
    """For framings that are RDF already."""
    if mapping is not None:
        raise UsageError(
            f"format '{name}' takes no mapping: it is RDF already (mappings are for csv, json, ndjsonld)"
        )


def reason_of(error: SyntaxError, first_line: int | None = None) -> str:
    """A parser's complaint without its own line number; with `first_line`, the line in the stream."""
    text = _WHERE.sub("", str(error.msg))
    if first_line is not None and error.lineno is not None:
        return f"line {first_line + error.lineno - 1}: {text}"
    return text


def parsed(text: bytes, format: RdfFormat, first_line: int | None = None, **how: Any) -> list[Quad]:
    """The quads of a text; RecordError with the parser's complaint."""
    try:
        return list(parse(text, format, **how))
    except SyntaxError as error:
        raise RecordError(reason_of(error, first_line)) from error
    except MemoryError as error:
        raise RecordError(f"too long for the RDF parser: {error}") from error


def json_text(line: bytes) -> str:
    """The text of a line of JSON; RecordError if it is not UTF-8, or names a character that is none."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RecordError(f"not UTF-8: {error.reason} at byte {error.start}") from None
    if "\\u" in text and (lone := _lone_surrogate(text)):
        raise RecordError(f"{lone} alone is no character: it is half of a surrogate pair")
    return text


_ESCAPES = re.compile(r"\\\\|\\u(?:[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|([dD][89a-fA-F]\w\w))", re.ASCII)


def _lone_surrogate(text: str) -> str | None:
    return next((found[0] for found in _ESCAPES.finditer(text) if found[1]), None)


Usual = tuple[int, int, int]  # where records end, how many they are, and why no more, see row_kernels

_LINE_END = re.compile(rb"\n")


def line_ends(data: bytes, at_end: bool) -> list[int]:
    """The offset behind each line of `data`; at the end the last line needs no newline."""
    ends = [found.end() for found in _LINE_END.finditer(data)]
    if at_end and data and not data.endswith(b"\n"):
        ends.append(len(data))
    return ends


class LineSplitter:
    """One line, one record; lines know nothing of each other."""

    context = b""

    def forget(self, size: int) -> int:
        return size

    def cuts(self, data: bytes, at_end: bool) -> list[Cut]:
        return [Cut(end, b"") for end in line_ends(data, at_end)]

    def usual(self, data: NDArray[np.uint8], start: int, most: int, longest: int, at_end: bool) -> Usual:
        return whole_lines(data, start, most, longest, at_end)
