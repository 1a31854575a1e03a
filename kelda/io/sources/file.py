"""`file:path`, or just the path: a file, from its beginning to its end.

A plain file is gone on with at the very byte after a restart; a compressed one is unpacked again up to there.
"""

from __future__ import annotations

import threading
import zlib
from pathlib import Path
from typing import NamedTuple

from kelda.errors import InputError
from kelda.io.job import StreamSource
from kelda.io.sources.cutter import TAIL, Cutter, Place, Step
from kelda.io.sources.reader import Offset, Piece
from kelda.io.sources.spot import Spot
from kelda.io.sources.text import PackedText, PlainText, open_text
from kelda.rdf.framing import RECORDS

KEPT = 1 << 26  # bytes of pieces that are kept from `latest` for `pieces`
SMALL = 256  # bytes of a piece without its text, about


class Taken(NamedTuple):
    """A piece and the offset behind it."""

    piece: Piece
    end: Offset


class FileReader:
    """Reads one file. An offset is a place in it, with a mark of what stands right before.

    With `spots`, chunks of lines in a plain file are spots in it: who gets them can open it himself."""

    complete = True

    def __init__(
        self,
        path: Path,
        source: StreamSource,
        number: int,
        *,
        format: str,
        piece_records: int = RECORDS,
        spots: bool = False,
    ) -> None:
        self.path, self.number, self.format = path, number, format
        self._text = self._open()
        spots_in = path if spots and isinstance(self._text, PlainText) else None
        self._cutter = Cutter(
            format,
            source.mapping,
            max_records=piece_records,
            spots_in=spots_in,
            max_record=source.max_record,
        )
        self._lock = threading.Lock()  # for who reads ahead
        self._size = path.stat().st_size
        self._reached = 0  # the position up to which this reader has seen the text itself
        self._kept: dict[int, Taken] = {}
        self._kept_bytes = 0

    def _open(self) -> PlainText | PackedText:
        return open_text(self.path)

    def start(self) -> Offset:
        return {
            "pieces": 0,
            "records": 0,
            "bytes": 0,
            "line": 1,
            "context": "",
            "mark": [0, 0],
            "ended": False,
        }

    def latest(self, at: Offset, max_records: int | None = None) -> Offset:
        records = 0
        while (taken := self.take(at)) is not None:
            if records and max_records is not None and records + taken.piece.records > max_records:
                break
            records += taken.piece.records
            at = taken.end
        return at

    def pieces(self, begin: Offset, end: Offset) -> list[Piece]:
        pieces: list[Piece] = []
        at = begin
        while (at["bytes"], at["ended"]) != (end["bytes"], end["ended"]):
            taken = self.take(at, end)
            if taken is None or taken.end["bytes"] > end["bytes"]:
                raise self._changed("the batch that was read from it does not end where it did")
            pieces.append(taken.piece)
            at = taken.end
        return pieces

    def commit(self, end: Offset) -> None:
        with self._lock:
            self._kept = {begin: taken for begin, taken in self._kept.items() if begin >= end["bytes"]}
            self._kept_bytes = sum(_size(taken.piece) for taken in self._kept.values())

    def finished(self, at: Offset) -> bool:
        return bool(at["ended"])

    def part(self, at: Offset) -> float:
        if at["ended"] or not self._size:
            return 1.0
        return min(1.0, self._text.stored(at["bytes"]) / self._size)

    def close(self) -> None:
        self._text.close()

    # ------------------------------------------------------------------ one piece

    def take(self, at: Offset, until: Offset | None = None) -> Taken | None:
        """The piece at `at`, not beyond `until`; None if there is no more, or not yet."""
        if at["ended"]:
            return None
        with self._lock:
            kept = self._kept.get(at["bytes"])
            if kept is not None and kept.piece.number == at["pieces"] and _within(kept, until):
                return kept
            self._check(at)
            taken = self._next(at, until)
            if taken is None:
                return None
            self._reached = taken.end["bytes"]
            if self.complete and self._kept_bytes < KEPT:
                self._kept[at["bytes"]] = taken
                self._kept_bytes += _size(taken.piece)
            return taken

    def _next(self, at: Offset, until: Offset | None) -> Taken | None:
        # A growing text is cut where it ended that time; so is one that was cut into other pieces.
        limit = None if until is None or until["ended"] else until["bytes"]
        step = self._cutter.next(self._text, place_of(at), complete=self.complete, limit=limit)
        return None if step is None else self._taken(at, step)

    def _taken(self, at: Offset, step: Step) -> Taken:
        size = self._size if step.last else self._text.stored(step.place.at)
        piece = Piece(
            stream=self.number,
            number=at["pieces"],
            chunk=step.chunk,
            records=step.records,
            bytes=max(0, size - self._text.stored(at["bytes"])),
            ends=step.last,
            format=self.format,
        )
        end = {
            **at,
            "pieces": at["pieces"] + 1,
            "records": step.place.records,
            "bytes": step.place.at,
            "line": step.place.line,
            "context": step.place.context.decode("latin-1"),  # any bytes, as JSON
            "mark": mark_of(step) if step.chunk and step.place.at != at["bytes"] else at["mark"],
            "ended": step.last,
        }
        return Taken(piece, end)

    # ------------------------------------------------------------------ is it still the same file?

    def _check(self, at: Offset) -> None:
        """Before going on where somebody else stopped: what stands there must be what stood there."""
        if at["bytes"] == self._reached:
            return
        length, crc = at["mark"]
        position = at["bytes"] - length
        if position < 0 or zlib.crc32(self._text.read(position, length)) != crc:
            raise self._changed(
                "it is shorter now"
                if self._text.at_end(max(0, at["bytes"] - 1))
                else f"other text stands before byte {at['bytes']:,}"
            )

    def _changed(self, how: str) -> InputError:
        return InputError(
            f"{self.path} has changed since the checkpoint was written: {how}. "
            "Restore the file, or start again with another checkpoint folder"
        )


def _size(piece: Piece) -> int:
    return SMALL + len(piece.chunk.data) if piece.chunk else SMALL


def _within(taken: Taken, until: Offset | None) -> bool:
    return until is None or taken.end["bytes"] <= until["bytes"]


def place_of(at: Offset) -> Place:
    """The place that an offset of a text stands for."""
    return Place(at["bytes"], at["line"], at["records"], at["context"].encode("latin-1"))


def mark_of(step: Step) -> list[int]:
    """By what a text is known again: how many bytes were looked at, and their checksum."""
    tail = step.tail
    if tail is None:
        assert step.chunk is not None
        tail = step.chunk.tail if isinstance(step.chunk, Spot) else step.chunk.data[-TAIL:]
    return [len(tail), zlib.crc32(tail)]
