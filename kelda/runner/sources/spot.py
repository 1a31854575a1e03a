"""Spots: where in a file a chunk stands, for whoever can read the file himself."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kelda.errors import InputError
from kelda.rdf.framings.base import Chunk, Fill


@dataclass(frozen=True, slots=True)
class Spot(Chunk):
    """A chunk of lines whose text is still to be loaded. `tail` is the end of that, by which it is known
    again."""

    path: str
    at: int
    size: int
    tail: bytes

    def load(self) -> Chunk:
        """The chunk, read from the file."""
        data, size = bytearray(self.size), 0
        with self.text() as fill:
            while more := fill(memoryview(data)[size:]):
                size += more
        return Chunk(self.first_line, self.ordinal, b"", bytes(data))

    @contextmanager
    def text(self) -> Iterator[Fill]:
        at, end = self.at, self.at + self.size
        file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)

        def fill(buffer: memoryview) -> int:
            nonlocal at
            if at == end:
                return 0
            some = os.preadv(file, [buffer[: end - at]], at)
            at += some
            if not some or (at == end and not self._is_tail(file)):
                raise InputError(
                    f"{self.path} has changed while it was read: other text stands before byte "
                    f"{end:,}. Files must stay as they are, or only grow"
                )
            return some

        try:
            yield fill
        finally:
            os.close(file)

    def _is_tail(self, file: int) -> bool:
        size = len(self.tail)
        return os.pread(file, size, self.at + self.size - size) == self.tail
