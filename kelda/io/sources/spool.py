"""The spool: pieces on disk, for streams that cannot be asked to say something again.

Entries are appended to segment files, each with its length and a checksum, and numbered from 0. What
`commit` names is let go, a segment at a time; the newest segment always stays, so that the numbers go
on after a restart. An entry that was being written when the process died was never handed out, and is
cut off.
"""

from __future__ import annotations

import json
import os
import struct
import threading
import zlib
from bisect import bisect_left, bisect_right
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from kelda.durable import sync
from kelda.errors import InputError
from kelda.io.sources.cutter import Place, Step
from kelda.io.sources.reader import Now, Offset, Piece, wall
from kelda.kept import reading, writing
from kelda.rdf.framings.base import Chunk

SEGMENT = 1 << 24  # bytes of a segment

_FRAME = struct.Struct("<II")  # length and checksum of what follows


class _Entry(NamedTuple):
    segment: Path
    at: int
    size: int
    records: int  # in this and all entries before it
    ends: bool


class Spool:
    """Entries of one stream. Safe to use from several threads."""

    def __init__(
        self, folder: Path, number: int, format: str, *, segment: int = SEGMENT, now: Now = wall
    ) -> None:
        self._now = now
        self.folder, self.number, self.format, self._segment_size = folder, number, format, segment
        self.changed = threading.Condition()
        self.place = Place()  # where the next record stands: its line and its number
        self._first = 0  # number of the first entry that is still here
        self._entries: list[_Entry] = []
        self._file, self._at = -1, 0  # the segment that is written, and where it ends
        self._synced = True
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        self._committed = 0  # records
        self._open()

    # ------------------------------------------------------------------ as a reader

    def start(self) -> Offset:
        return {"pieces": 0, "records": 0, "ended": False}

    def latest(self, at: Offset, max_records: int | None = None) -> Offset:
        """The entries from `at` on, on disk before this returns."""
        with self.changed:
            begin = number = at["pieces"]
            if not self._first <= begin <= self._next:
                raise self._lost(begin)
            if max_records is None:
                number = self._next
            elif begin < self._next:
                most = at["records"] + max_records
                number = self._first + bisect_right(
                    self._entries, most, lo=begin - self._first, key=lambda entry: entry.records
                )
                number = max(begin + 1, number)
            if number == begin:
                return at
            self._sync()
            last = self._entries[number - 1 - self._first]
            return {**at, "pieces": number, "records": last.records, "ended": last.ends}

    def pieces(self, begin: Offset, end: Offset) -> list[Piece]:
        with self.changed:
            if begin["pieces"] < end["pieces"] and not (
                self._first <= begin["pieces"] and end["pieces"] <= self._next
            ):
                raise self._lost(begin["pieces"])
            entries = self._entries[begin["pieces"] - self._first : end["pieces"] - self._first]
        return [self._read(begin["pieces"] + i, entry) for i, entry in enumerate(entries)]

    def commit(self, end: Offset) -> None:
        with self.changed:
            index = end["pieces"] - self._first
            if not 0 < index <= len(self._entries):
                return
            self._committed = self._entries[index - 1].records
            stays = self._entries[min(index, len(self._entries) - 1)].segment
            gone = bisect_left(self._entries, stays, key=lambda entry: entry.segment)
            for segment in dict.fromkeys(entry.segment for entry in self._entries[:gone]):
                segment.unlink(missing_ok=True)
            del self._entries[:gone]
            self._first += gone
            self.changed.notify_all()

    def part(self, at: Offset) -> float:
        return at["records"] / max(1, self.place.records)

    @property
    def waiting(self) -> int:
        """Records that were not committed yet."""
        return (self._entries[-1].records if self._entries else 0) - self._committed

    @property
    def entries(self) -> int:
        """How many there are, from the first that ever was."""
        return self._next

    @property
    def ended(self) -> bool:
        return bool(self._entries) and self._entries[-1].ends

    @property
    def _next(self) -> int:
        return self._first + len(self._entries)

    # ------------------------------------------------------------------ writing

    def append(
        self,
        step: Step | None,
        *,
        ends: bool = False,
        heartbeat: int | None = None,
        format: str | None = None,
    ) -> None:
        """Write an entry: the records of a step (in the stream's format, unless another is told), or none."""
        with self.changed:
            after = self.place if step is None else Place(0, step.place.line, step.place.records)
            chunk = step.chunk if step is not None and step.chunk is not None else Chunk(0, 0, b"", b"")
            records = step.records if step is not None else 0
            about = {
                "number": self._next,
                "records": records,
                "first_line": chunk.first_line,
                "ordinal": chunk.ordinal,
                "context": len(chunk.context),
                "left_out": chunk.left_out,
                "line": after.line,
                "so_far": after.records,
                "ends": ends,
                "heartbeat": heartbeat,
                "format": format or self.format,
                "arrived": int(self._now() * 1000),
            }
            body = json.dumps(about).encode() + b"\n" + chunk.context + chunk.data
            self._write(_FRAME.pack(len(body), zlib.crc32(body)) + body)
            entry = _Entry(self._segment, self._at, len(body), after.records, ends)
            self._entries.append(entry)
            self.place = after
            self._at += _FRAME.size + len(body)
            self.changed.notify_all()

    def _write(self, data: bytes) -> None:
        try:
            if self._file < 0 or self._at >= self._segment_size:
                self._new_segment()
            left, at = memoryview(data), self._at
            while left:
                wrote = os.pwrite(self._file, left, at)
                left, at = left[wrote:], at + wrote
        except OSError as problem:
            raise self._cannot_write(problem) from problem
        self._synced = False

    def _new_segment(self) -> None:
        self._close_segment()
        segment = self.folder / f"{self._next:020}.spool"
        self._file = os.open(segment, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._segment, self._at = segment, 0
        sync(self.folder)

    def _close_segment(self) -> None:
        if self._file >= 0:
            self._sync()
            os.close(self._file)
            self._file = -1

    def _sync(self) -> None:
        if not self._synced:
            try:
                os.fsync(self._file)
            except OSError as problem:
                raise self._cannot_write(problem) from problem
            self._synced = True

    def _cannot_write(self, problem: OSError) -> InputError:
        return InputError(
            f"cannot write the spool {self.folder}: {problem.strerror or problem}. "
            "Make room for it and start again"
        )

    def close(self) -> None:
        with self.changed:
            self._close_segment()

    # ------------------------------------------------------------------ reading

    def _read(self, number: int, entry: _Entry) -> Piece:
        try:
            with entry.segment.open("rb") as file:
                file.seek(entry.at + _FRAME.size)
                body = file.read(entry.size)
        except OSError as problem:
            raise self._lost(number) from problem
        about, chunk = _unpacked(body)
        return Piece(
            stream=self.number,
            number=number,
            chunk=chunk if about["records"] else None,
            records=about["records"],
            bytes=len(chunk.data),
            ends=about["ends"],
            heartbeat=about["heartbeat"],
            format=about["format"],
            arrived=about["arrived"],
        )

    def _open(self) -> None:
        """Find what an earlier process left."""
        segments = sorted(self.folder.glob("*.spool"))
        for segment in segments:
            with reading(segment), segment.open("rb") as file:
                at = 0
                while body := _body(file.read(_FRAME.size), file):
                    about, _ = _unpacked(body)
                    if not self._entries:
                        self._first = about["number"]
                        self._committed = about["so_far"] - about["records"]
                    self._entries.append(_Entry(segment, at, len(body), about["so_far"], about["ends"]))
                    self.place = Place(0, about["line"], about["so_far"])
                    at += _FRAME.size + len(body)
                size = segment.stat().st_size
            if at < size:
                if segment != segments[-1] or _goes_on(segment, at, size):
                    raise InputError(
                        f"{segment} is broken at byte {at:,}: restore it, or delete the whole spool"
                    )
                os.truncate(segment, at)
            if segment == segments[-1]:
                self._segment, self._at = segment, at
                self._file = os.open(segment, os.O_RDWR | os.O_CLOEXEC)

    def _lost(self, number: int) -> InputError:
        return InputError(
            f"the spool {self.folder} has the entries {self._first:,} to {self._next:,}, and the checkpoint "
            f"goes on at {number:,}: they do not belong together. Restore the spool, or start again with "
            "another checkpoint folder and an empty spool"
        )


def _body(frame: bytes, file: BinaryIO) -> bytes | None:
    if len(frame) < _FRAME.size:
        return None
    size, crc = _FRAME.unpack(frame)
    body = file.read(size)
    return body if len(body) == size and zlib.crc32(body) == crc else None


def _goes_on(segment: Path, at: int, size: int) -> bool:
    """Whether something follows the entry at `at`, which is not whole: then it was not being written."""
    with segment.open("rb") as file:
        file.seek(at)
        frame = file.read(_FRAME.size)
    return len(frame) == _FRAME.size and at + _FRAME.size + int(_FRAME.unpack(frame)[0]) < size


def _unpacked(body: bytes) -> tuple[dict[str, Any], Chunk]:
    head, _, rest = body.partition(b"\n")
    about = json.loads(head)
    cut = about["context"]
    return about, Chunk(
        about["first_line"], about["ordinal"], rest[:cut], rest[cut:], left_out=about["left_out"]
    )
