"""Bytes from anywhere, decompressed on the way: gzip, bzip2, xz and zstd, known by their first bytes."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, cast

from kelda.errors import InputError

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

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        try:
            data = self._inner.read(len(buffer))
        except _BROKEN as error:
            raise InputError(
                f"{self._name or 'the input'}: broken {self._kind} data ({error}); fetch the file again"
            ) from error
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._inner.close()
            self._raw.close()
        super().close()


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
    raw = _Raw(opened, opened is not source, on_bytes)
    magic = raw.look(6)
    buffered = cast(BinaryIO, io.BufferedReader(raw, 1 << 18))
    inner: object
    if magic.startswith(b"\x1f\x8b"):
        kind, inner = "gzip", gzip.GzipFile(fileobj=buffered)
    elif magic.startswith(b"BZh"):
        kind, inner = "bzip2", bz2.BZ2File(buffered)
    elif magic.startswith(b"\xfd7zXZ\x00"):
        kind, inner = "xz", lzma.LZMAFile(buffered)  # noqa: SIM115
    elif magic.startswith(b"\x28\xb5\x2f\xfd"):
        kind = "zstd"
        inner = _zstd(buffered)
    else:
        return buffered
    return cast(BinaryIO, io.BufferedReader(_Explained(cast(BinaryIO, inner), raw, kind, name), 1 << 18))
