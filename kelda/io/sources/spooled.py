"""A reader over a spool: what streams share that cannot be read twice."""

from __future__ import annotations

from pathlib import Path

from kelda.io.elements import ELEMENTS
from kelda.io.job import StreamSource
from kelda.io.sources.cutter import Cutter, Place
from kelda.io.sources.reader import Now, Offset, Piece, wall
from kelda.io.sources.spool import Spool
from kelda.io.sources.text import Portions
from kelda.rdf.framing import RECORDS, prepare_mapping


class SpooledReader:
    """Hands out what was spooled. An offset counts the entries of the spool."""

    def __init__(
        self,
        source: StreamSource,
        number: int,
        *,
        format: str,
        spool: Path,
        piece_records: int = RECORDS,
        now: Now = wall,
    ) -> None:
        self.source, self.number, self.format = source, number, format
        self._mapping = None if format == ELEMENTS else prepare_mapping(format, source.mapping)
        self._piece_records = piece_records
        self._spool = Spool(spool, number, format, now=now)

    def start(self) -> Offset:
        return self._spool.start()

    def latest(self, at: Offset, max_records: int | None = None) -> Offset:
        return self._spool.latest(at, max_records)

    def pieces(self, begin: Offset, end: Offset) -> list[Piece]:
        return self._spool.pieces(begin, end)

    def commit(self, end: Offset) -> None:
        self._spool.commit(end)

    def finished(self, at: Offset) -> bool:
        return bool(at["ended"])

    def part(self, at: Offset) -> float:
        return 1.0 if at["ended"] else self._spool.part(at)

    def close(self) -> None:
        self._spool.close()

    def _document(self) -> Document:
        """A text that begins now: a connection, or a push."""
        return Document(
            self._spool,
            Cutter(
                self.format,
                self._mapping,
                max_records=self._piece_records,
                max_record=self.source.max_record,
            ),
        )


class Document:
    """Text that arrives in portions, cut into entries of the spool as soon as records are whole.

    Prefixes and headers hold within one document; lines and records are counted through all of them.
    """

    def __init__(self, spool: Spool, cutter: Cutter) -> None:
        self._spool, self._cutter = spool, cutter
        self._text = Portions()
        self._place = Place(0, spool.place.line, spool.place.records)

    def add(self, data: bytes, *, complete: bool = False) -> int:
        """More text. `complete`: that was all of it. Returns how many records were spooled."""
        self._text.add(data)
        records = 0
        while (step := self._cutter.next(self._text, self._place, complete=complete)) is not None:
            if step.records:
                self._spool.append(step)
                records += step.records
            self._place = step.place
            self._text.drop(self._place.at)
            if step.last:
                break
        self._text.drop(self._cutter.needs(self._text, self._place))
        return records
