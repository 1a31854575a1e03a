"""Spots: where in a file a chunk stands, for whoever can read the file himself."""

from __future__ import annotations

import os
from dataclasses import dataclass

from kelda.errors import InputError
from kelda.rdf.framings.base import Chunk


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
        file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            data = os.pread(file, self.size, self.at)
            while 0 < len(data) < self.size:
                more = os.pread(file, self.size - len(data), self.at + len(data))
                if not more:
                    break
                data += more
        finally:
            os.close(file)
        if len(data) < self.size or not data.endswith(self.tail):
            raise InputError(
                f"{self.path} has changed while it was read: other text stands before byte "
                f"{self.at + self.size:,}. Files must stay as they are, or only grow"
            )
        return Chunk(self.first_line, self.ordinal, b"", data)
