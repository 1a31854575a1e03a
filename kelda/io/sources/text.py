"""The text of a file by position: unpacked on the way, and seekable where it lies there plain."""

from __future__ import annotations

import os
from bisect import bisect_left
from pathlib import Path
from typing import BinaryIO, Protocol

from kelda.errors import InputError
from kelda.rdf.compression import open_bytes

BLOCK = 1 << 20  # bytes that are unpacked at a time

_PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd")


class Text(Protocol):
    """Bytes that can be read at any position; going forward is cheap. One that `only_grows` never changes
    where it was read."""

    only_grows: bool

    def read(self, at: int, size: int) -> bytes:
        """`size` bytes from position `at` on; fewer only where the text ends."""
        ...

    def at_end(self, at: int) -> bool:
        """Whether no byte lies at position `at` or behind it."""
        ...

    def stored(self, at: int) -> int:
        """How many bytes of the file hold the text before `at`, which was read already."""
        ...

    def close(self) -> None: ...


class PlainText:
    """A file as it is."""

    only_grows = False

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = _open(path)

    def read(self, at: int, size: int) -> bytes:
        data = os.pread(self._file, size, at)
        while 0 < len(data) < size and (more := os.pread(self._file, size - len(data), at + len(data))):
            data += more
        return data

    def at_end(self, at: int) -> bool:
        return at >= os.fstat(self._file).st_size

    def stored(self, at: int) -> int:
        return at

    def replaced(self) -> bool:
        """Whether another file bears the name now, or none."""
        try:
            now = self.path.stat()
        except FileNotFoundError:
            return True
        return not os.path.samestat(now, os.fstat(self._file))

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class PackedText:
    """A compressed file. Going back means unpacking it again from its start.

    It is always unpacked in blocks of one size, so that `stored` says the same in every run.
    """

    only_grows = False

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: BinaryIO | None = None
        self._open()

    def _open(self) -> None:
        self.close()
        self._taken = 0
        self._file = open_bytes(self.path, on_bytes=self._count)
        self._buffer, self._begin, self._ended = bytearray(), 0, False
        self._blocks: list[tuple[int, int]] = [(0, 0)]  # ends of blocks: in the text, in the file

    def _count(self, more: int) -> None:
        self._taken += more

    @property
    def taken(self) -> int:
        """How many bytes of the file were read."""
        return self._taken

    def _unpack(self, until: int) -> None:
        """Have the text up to `until` in the buffer, or all of it."""
        assert self._file is not None
        while not self._ended and self._blocks[-1][0] < until:
            block = self._file.read(BLOCK)
            self._ended = not block
            if block:
                self._buffer += block
                self._blocks.append((self._blocks[-1][0] + len(block), self._taken))

    def read(self, at: int, size: int) -> bytes:
        if at < self._begin:
            self._open()
        while True:
            drop = min(at - self._begin, len(self._buffer))
            del self._buffer[:drop]
            self._begin += drop
            if self._begin == at or self._ended:
                break
            self._unpack(self._blocks[-1][0] + 1)
        self._unpack(at + size)
        return bytes(self._buffer[:size]) if self._begin == at else b""

    def at_end(self, at: int) -> bool:
        self._unpack(at + 1)
        return at >= self._blocks[-1][0]

    def stored(self, at: int) -> int:
        place = bisect_left(self._blocks, (at, -1))
        if place == 0 or place == len(self._blocks):
            return self._blocks[min(place, len(self._blocks) - 1)][1]
        (text, file), (next_text, next_file) = self._blocks[place - 1], self._blocks[place]
        return file + (at - text) * (next_file - file) // (next_text - text)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class Portions:
    """Text that arrives in portions and is let go once it was cut."""

    only_grows = True

    def __init__(self, data: bytes = b"") -> None:
        self._data, self._begin = bytearray(data), 0

    def add(self, data: bytes) -> None:
        self._data += data

    def drop(self, before: int) -> None:
        """Forget what lies before a position."""
        if before > self._begin:
            del self._data[: before - self._begin]
            self._begin = before

    def read(self, at: int, size: int) -> bytes:
        with memoryview(self._data) as view:
            return bytes(view[at - self._begin : at - self._begin + size])

    def at_end(self, at: int) -> bool:
        return at >= self._begin + len(self._data)

    def stored(self, at: int) -> int:
        return at

    def close(self) -> None:
        self._data.clear()


def is_packed(path: Path) -> bool:
    """Whether a file is compressed, by its first bytes."""
    file = _open(path)
    try:
        return os.pread(file, 6, 0).startswith(_PACKED)
    finally:
        os.close(file)


def open_text(path: Path) -> PlainText | PackedText:
    """The text of a file, compressed or not."""
    return PackedText(path) if is_packed(path) else PlainText(path)


def _open(path: Path) -> int:
    if path.is_dir():
        raise InputError(f"{path} is a folder; write folder:{path} to read the files in it")
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as problem:
        raise InputError(f"cannot read {path}: {problem.strerror or problem}") from problem
