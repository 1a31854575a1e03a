"""Bytes from anywhere, decompressed on the way: gzip, bzip2, xz and zstd, known by their first bytes.

A compressed file is unpacked by a thread of its own, a few blocks ahead of who reads it. What is read, what
is told of it and where an error comes are the same as without.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import queue
import stat
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from kelda.errors import InputError

BLOCK = 1 << 20  # bytes that are unpacked at a time
AHEAD = 4  # blocks that are unpacked before somebody asks for them, at the most

SUFFIXES = (".gz", ".bz2", ".xz", ".zst")

Source = str | Path | bytes | BinaryIO

_BROKEN = (EOFError, OSError, zlib.error, lzma.LZMAError)


def without_suffix(path: str | Path) -> Path:
    """The path without .gz, .bz2, .xz or .zst: the name that says what is inside."""
    path = Path(path)
    return path.with_suffix("") if path.suffix.lower() in SUFFIXES else path


def name_of(source: Source) -> str:
    """What to call a source in messages; empty for bytes."""
    if isinstance(source, bytes):
        return ""
    if isinstance(source, (str, Path)):
        return str(source)
    return str(getattr(source, "name", ""))


class _Raw(io.RawIOBase):
    """The source as it is: a first look put back in front, bytes counted, whatever is there handed on."""

    def __init__(self, source: BinaryIO, owned: bool, on_bytes: Callable[[int], None] | None) -> None:
        self._source, self._owned, self._on_bytes = source, owned, on_bytes
        # read1 gives what has arrived; read would wait until a whole block is there.
        self._read = getattr(source, "read1", source.read)
        self._front = b""

    def say_to(self, on_bytes: Callable[[int], None] | None) -> None:
        """Who is told of bytes from now on."""
        self._on_bytes = on_bytes

    def look(self, size: int) -> bytes:
        while len(self._front) < size and (more := self._take(size - len(self._front))):
            self._front += more
        return self._front

    def _take(self, size: int) -> bytes:
        data = self._read(size) or b""
        if data and self._on_bytes is not None:
            self._on_bytes(len(data))
        return data

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        data = self._front[: len(buffer)]
        self._front = self._front[len(data) :]
        data = data or self._take(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if self._owned and not self.closed:
            self._source.close()
        super().close()


class _Explained(io.RawIOBase):
    """A decompressing reader whose failures say which file is broken."""

    def __init__(self, inner: BinaryIO, raw: _Raw, kind: str, name: str) -> None:
        self._inner, self._raw, self._kind, self._name = inner, raw, kind, name

    def readable(self) -> bool:
        return True

    def take(self, size: int) -> bytes:
        """The next bytes, so many at the most; none at the end."""
        try:
            return self._inner.read(size)
        except _BROKEN as error:
            raise InputError(
                f"{self._name or 'the input'}: broken {self._kind} data ({error}); fetch the file again"
            ) from error

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        data = self.take(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._inner.close()
            self._raw.close()
        super().close()


class _Block(NamedTuple):
    """Some text (none: it ends here, with an error if there is one), and how many bytes of the file were
    taken for it."""

    data: bytes
    taken: int
    error: BaseException | None = None


class _Ahead(io.RawIOBase):
    """Another reader, which is read ahead of who asks; by a thread, from the second block on.

    `taken` tells how many bytes of the file were taken since it was asked before.
    """

    def __init__(
        self, inner: _Explained, taken: Callable[[], int], on_bytes: Callable[[int], None] | None
    ) -> None:
        self._inner, self._taken, self._on_bytes = inner, taken, on_bytes
        self._blocks: queue.Queue[_Block] = queue.Queue(AHEAD)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._begun = False
        self._last: _Block | None = None
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        if not self._left and self._last is None:
            block = self._next()
            if self._on_bytes is not None and block.taken:
                self._on_bytes(block.taken)
            self._left = memoryview(block.data)
            self._last = None if block.data else block
        if self._last is not None and self._last.error is not None:
            raise self._last.error
        some = self._left[: len(buffer)]
        buffer[: len(some)] = some
        self._left = self._left[len(some) :]
        return len(some)

    def _next(self) -> _Block:
        if not self._begun:  # what is small needs no thread
            self._begun = True
            return _unpacked(self._inner, self._taken)
        if self._thread is None:
            what = (
                self._inner,
                self._taken,
                self._blocks,
                self._stop,
            )  # not self, which is to be let go of
            self._thread = threading.Thread(target=_unpack, args=what, name="kelda-unpack", daemon=True)
            self._thread.start()
        return self._blocks.get()

    def close(self) -> None:
        if not self.closed:
            self._stop.set()
            if self._thread is not None:
                while not self._blocks.empty():  # it may wait for room
                    self._blocks.get_nowait()
                self._thread.join()
            self._inner.close()
        super().close()


def _unpack(
    inner: _Explained, taken: Callable[[], int], blocks: queue.Queue[_Block], stop: threading.Event
) -> None:
    """Unpack one block after another, to the end or until it is to stop."""
    while not stop.is_set():
        block = _unpacked(inner, taken)
        blocks.put(block)
        if not block.data:
            return


def _unpacked(inner: _Explained, taken: Callable[[], int]) -> _Block:
    try:
        data = inner.take(BLOCK)
    except BaseException as error:  # noqa: BLE001  (told to who reads)
        return _Block(b"", taken(), error)
    return _Block(data, taken())


class _Counted:
    """How many bytes were taken since it was asked before."""

    def __init__(self) -> None:
        self._bytes = 0

    def add(self, more: int) -> None:
        self._bytes += more

    def __call__(self) -> int:
        taken, self._bytes = self._bytes, 0
        return taken


def _zstd(source: BinaryIO) -> BinaryIO:
    """Zstd frames one after another, unpacked no further than is asked for: 45 kB of them can be gigabytes.

    Arrow's reader, for it notices a truncated file, which that of `zstandard` does not.
    """
    import pyarrow as pa

    return cast(BinaryIO, pa.CompressedInputStream(pa.PythonFile(source, mode="r"), "zstd"))


def open_bytes(source: Source, *, on_bytes: Callable[[int], None] | None = None) -> BinaryIO:
    """A reader of the decompressed bytes of a path, of bytes, or of a binary file object.

    `on_bytes` is told how many bytes were taken from the source as it is stored, so that progress
    can be measured against the size of the file. Closing the reader leaves a file object of the caller open.
    """
    name = name_of(source)
    if isinstance(source, bytes):
        opened: BinaryIO = io.BytesIO(source)
    elif isinstance(source, (str, Path)):
        try:
            opened = Path(source).open("rb")  # noqa: SIM115  (closed with the reader)
        except OSError as error:
            raise InputError(f"cannot read {name}: {error.strerror or error}") from error
    else:
        opened = source
    counted = _Counted()
    is_file = isinstance(source, (str, Path)) and stat.S_ISREG(os.fstat(opened.fileno()).st_mode)
    raw = _Raw(opened, opened is not source, counted.add)
    magic = raw.look(6)
    buffered = cast(BinaryIO, io.BufferedReader(raw, 1 << 18))
    kind, inner = "", cast(object, None)
    if magic.startswith(b"\x1f\x8b"):
        kind, inner = "gzip", gzip.GzipFile(fileobj=buffered)
    elif magic.startswith(b"BZh"):
        kind, inner = "bzip2", bz2.BZ2File(buffered)
    elif magic.startswith(b"\xfd7zXZ\x00"):
        kind, inner = "xz", lzma.LZMAFile(buffered)  # noqa: SIM115
    elif magic.startswith(b"\x28\xb5\x2f\xfd"):
        kind, inner = "zstd", _zstd(buffered)
    if inner is None or not is_file:
        raw.say_to(on_bytes)
        if on_bytes is not None and magic:
            on_bytes(counted())
    if inner is None:
        return buffered
    explained = _Explained(cast(BinaryIO, inner), raw, kind, name)
    reader = _Ahead(explained, counted, on_bytes) if is_file else explained
    return cast(BinaryIO, io.BufferedReader(reader, 1 << 18))
