"""Spots: where in a file a chunk stands, for whoever can read the file himself."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kelda.errors import InputError
from kelda.rdf.framings.base import Chunk, Fill
from kelda.runner.sources.mapped import mapped


@dataclass(frozen=True, slots=True)
class Spot(Chunk):
    """A chunk of lines whose text is still to be loaded. `tail` is the end of that, by which it is known
    again. Files that are `steady` are not written to any more."""

    path: str
    at: int
    size: int
    tail: bytes
    steady: bool = False

    def load(self) -> Chunk:
        """The chunk, read from the file."""
        data, size = bytearray(self.size), 0
        with self.text() as fill:
            while more := fill(memoryview(data)[size:]):
                size += more
        return Chunk(self.first_line, self.ordinal, b"", bytes(data))

    def look(self, behind: int) -> NDArray[np.uint8] | None:
        if not self.steady:
            return None
        with self._open() as file:
            seen = mapped(file, self.at, self.size, behind=behind)
        if seen is not None and seen[self.size - len(self.tail) : self.size].tobytes() != self.tail:
            raise self._changed()
        return seen

    @contextmanager
    def _open(self) -> Iterator[int]:
        file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            yield file
        finally:
            os.close(file)

    @contextmanager
    def text(self) -> Iterator[Fill]:
        at, end = self.at, self.at + self.size
        with self._open() as file:

            def fill(buffer: memoryview) -> int:
                nonlocal at
                if at == end:
                    return 0
                some = os.preadv(file, [buffer[: end - at]], at)
                at += some
                if not some or (at == end and not self._is_tail(file)):
                    raise self._changed()
                return some

            yield fill

    def _changed(self) -> InputError:
        return InputError(
            f"{self.path} has changed while it was read: other text stands before byte "
            f"{self.at + self.size:,}. Files must stay as they are, or only grow"
        )

    def _is_tail(self, file: int) -> bool:
        size = len(self.tail)
        return os.pread(file, size, self.at + self.size - size) == self.tail
