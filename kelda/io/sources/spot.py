"""Spots: where in a file a chunk stands, for whoever can read the file himself."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from kelda.errors import InputError
from kelda.io.sources.line_kernels import count
from kelda.rdf import wire
from kelda.rdf.framings.base import Chunk, Flow


@wire.plain
@dataclass(frozen=True, slots=True)
class Spot(Chunk):
    """A chunk whose text is still to be loaded. `tail` is the end of that, by which it is known
    again."""

    path: str
    at: int
    size: int
    tail: bytes

    def load(self) -> Chunk:
        """The chunk, read from the file."""
        data, size = bytearray(self.size), 0
        with self.text() as text:
            while more := text.fill(memoryview(data)[size:]):
                size += more
        return Chunk(self.begins_on(), self.ordinal, self.context, bytes(data))

    def begins_on(self) -> int:
        return self.first_line or 1 + lines_before(self.path, self.at)

    @contextmanager
    def text(self) -> Iterator[Flow]:
        file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            yield _FromFile(self, file)
        finally:
            os.close(file)


class _FromFile:
    """The text of a spot, whose file is open."""

    def __init__(self, spot: Spot, file: int) -> None:
        self.spot, self.file, self.at, self.end = spot, file, spot.at, spot.at + spot.size

    def fill(self, buffer: memoryview) -> int:
        left = self.end - self.at
        some = os.preadv(self.file, [buffer[:left]], self.at) if left else 0
        if not some and (left or not self._is_the_same()):
            raise InputError(
                f"{self.spot.path} has changed while it was read: other text stands before byte "
                f"{self.end:,}. Files must stay as they are, or only grow"
            )
        self.at += some
        return some

    def _is_the_same(self) -> bool:
        """Whether the text still ends as it did when it was cut."""
        tail = self.spot.tail
        return os.pread(self.file, len(tail), self.end - len(tail)) == tail


BLOCK = 1 << 20
_counted: dict[tuple[int, ...], tuple[int, int]] = {}  # of a file: a position, and the lines before it
_counting = threading.Lock()


def lines_before(path: str, at: int) -> int:
    """How many lines of a file end before a position. For later and later ones they are counted once."""
    with _counting, open(path, "rb", buffering=0) as file:
        about = os.fstat(file.fileno())
        which = (about.st_dev, about.st_ino, about.st_mtime_ns)
        place, lines = _counted.get(which, (0, 0))
        if place > at:
            place = lines = 0
        file.seek(place)
        while place < at and (block := file.read(min(BLOCK, at - place))):
            lines += int(count(np.frombuffer(block, np.uint8)))
            place += len(block)
        _counted.clear()  # one file after another: what was counted of others is not worth keeping
        _counted[which] = (place, lines)
        return lines
