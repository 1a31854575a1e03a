"""What all sources of streams share: the pieces they hand out, and how they are asked for them.

The law of this folder: *what lies between two offsets is the same whenever it is asked for*, after a
crash as well, and every record lies between exactly two of them. A source that cannot be read twice
(a socket, the application itself) writes what arrives to a spool first and is read from there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from kelda.rdf import wire
from kelda.rdf.framings.base import Chunk

# Plain JSON. Every offset has `pieces` and `records` (how many lie before it); the rest is the source's own.
Offset = dict[str, Any]

Now = Callable[[], float]

_SINCE_1970 = time.time() - time.monotonic()


def wall() -> float:
    """Seconds since 1970, by a clock that is never set back."""
    return _SINCE_1970 + time.monotonic()


@wire.plain
@dataclass(frozen=True, slots=True)
class Piece:
    """Whole records of one stream, or a word about its time.

    Numbers grow along a stream. The last piece of a stream `ends` it, and may have no records. A
    piece with a `heartbeat` promises that nothing at or before that instant will come any more. An
    `idle` piece promises nothing: the stream has been silent for as long as its `idle_ms`, and does not
    hold back the clock of the others until its next piece with records; what that brings may be late.

    A piece with a `lane` is of that lane of its stream alone (`kelda.engine.clock`), which the stream has and
    waits for from then on.
    """

    stream: int  # its place in the job
    number: int
    chunk: Chunk | None
    records: int
    bytes: int  # of the source as it is stored
    ends: bool = False
    heartbeat: int | None = None
    idle: bool = False
    name: str = ""  # of the file in which the lines are counted; empty: the source itself
    format: str = ""  # of the chunk
    arrived: int | None = None  # when (ms), for events that say no time; None: such events are rejected
    lane: int | None = None

    def loaded(self) -> Piece:
        """With its text."""
        return self if self.chunk is None else replace(self, chunk=self.chunk.load())


class Reader(Protocol):
    """A stream that is read piece by piece. Only the driver has one; pieces may go anywhere."""

    format: str  # the name of the framing of the chunks

    def start(self) -> Offset:
        """The offset of the beginning."""
        ...

    def latest(self, at: Offset, max_records: int | None = None) -> Offset:
        """Where a batch from `at` on ends, with what is there now; `at` itself if nothing is.

        A batch has at most `max_records` records, unless its only piece has more.
        """
        ...

    def pieces(self, begin: Offset, end: Offset) -> list[Piece]:
        """The pieces between two offsets that `latest` gave, in order. The same whenever asked again."""
        ...

    def commit(self, end: Offset) -> None:
        """What lies before `end` is not asked for again."""
        ...

    def finished(self, at: Offset) -> bool:
        """Whether nothing can come behind `at`."""
        ...

    def part(self, at: Offset) -> float:
        """How much of what is there lies before `at`, from 0 to 1."""
        ...

    def close(self) -> None:
        """Let go of files, connections and threads."""
        ...


class Around:
    """Another reader, which does the reading; who stands around it changes what is said of that."""

    def __init__(self, reader: Reader) -> None:
        self.reader, self.format = reader, reader.format

    def start(self) -> Offset:
        return self.reader.start()

    def latest(self, at: Offset, max_records: int | None = None) -> Offset:
        return self.reader.latest(at, max_records)

    def pieces(self, begin: Offset, end: Offset) -> list[Piece]:
        return self.reader.pieces(begin, end)

    def commit(self, end: Offset) -> None:
        self.reader.commit(end)

    def finished(self, at: Offset) -> bool:
        return self.reader.finished(at)

    def part(self, at: Offset) -> float:
        return self.reader.part(at)

    def close(self) -> None:
        self.reader.close()
