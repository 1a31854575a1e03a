"""Where pieces end: the same places in every run, from any place on.

A piece begins at a place in the text and takes as many whole records as fit into a number of records
and a number of bytes (one record, if that one is larger). So where it ends follows from where it begins, and
the text need not be cut from its beginning to go on after a restart: a place knows what the
records behind it need of the earlier ones.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kelda.rdf.framing import RECORDS, framing_of, prepare_mapping
from kelda.rdf.framings.base import Chunk, LineSplitter, Splitter
from kelda.rdf.framings.messages import MessageSplitter
from kelda.rdf.framings.ndjsonld import ContextLineSplitter
from kelda.rdf.framings.nquads import RunSplitter
from kelda.rdf.framings.tabular import RowSplitter
from kelda.runner.sources.line_kernels import behind, count
from kelda.runner.sources.runs import last_cut
from kelda.runner.sources.spot import Spot
from kelda.runner.sources.text import Text

PIECE_BYTES = 1 << 18  # a piece of the usual lines is then some thousand records
MOST_TIMES = 64  # that a piece may be larger, if it may have so many more records

LOOK = 1 << 16  # bytes at both ends of a large piece, by which its lines are estimated
TAIL = 64  # bytes of a chunk by which it is known again

_BOM = b"\xef\xbb\xbf"


class Place(NamedTuple):
    """A boundary between records: the position in the text, its line (0: not counted), the records before
    it (then about so many), and what the records behind it need of them (prefixes, a CSV header)."""

    at: int = 0
    line: int = 1
    records: int = 0
    context: bytes = b""


class Step(NamedTuple):
    """From one place to the next. `last`: the text ends there, and nothing will be added."""

    chunk: Chunk | None
    records: int
    place: Place
    last: bool


class Cutter:
    """Cuts texts of one format into pieces.

    `limit` is a place at which an earlier cut fell because there was no more text then.
    Unless it is to be `exact`, the lines of N-Quads are counted as records, which is much faster.
    `complete`: the text ends where it ends; otherwise it may grow, and its last record may be half written.
    With `spots_in`, the file that the text is of, chunks of lines are spots in that.
    """

    def __init__(
        self,
        format: str,
        mapping: Any = None,
        *,
        max_records: int = RECORDS,
        exact: bool = False,
        spots_in: Path | None = None,
    ) -> None:
        self._ready = prepare_mapping(format, mapping)
        self._framing = framing_of(format)
        self.max_records = max_records
        # Larger pieces have more room in bytes, too.
        self.piece_bytes = PIECE_BYTES * max(1, min(max_records // RECORDS, MOST_TIMES))
        splitter = self._framing.splitter(self._ready.mapping)
        self.by_line = isinstance(splitter, LineSplitter)
        self._by_run = isinstance(splitter, RunSplitter) and not exact
        self._first_context = splitter.context
        self._spots_in = None if spots_in is None else str(spots_in.absolute())
        # What is read of timestamped N-Triples does not depend on how many records came before.
        self._uncounted = spots_in is not None and format == "tsnt" and self.piece_bytes >= 8 * LOOK
        self._window: _Window | None = None

    def next(
        self,
        text: Text,
        place: Place,
        *,
        complete: bool,
        limit: int | None = None,
        max_records: int | None = None,
    ) -> Step | None:
        """The piece that begins at `place`; None if there is no whole record yet."""
        most = self.max_records if max_records is None else max_records
        if self.by_line:
            return self._lines(text, place, complete, limit, most)
        if self._by_run and (place.at or text.read(0, len(_BOM)) != _BOM):
            return self._runs(text, place, complete, limit, most)
        return self._records(text, place, complete, limit, most)

    # ------------------------------------------------------------------ one line, one record

    def _lines(self, text: Text, place: Place, complete: bool, limit: int | None, most: int) -> Step | None:
        size = self.piece_bytes
        if self._uncounted and complete and (step := self._by_size(text, place, limit, most)) is not None:
            return step
        while True:
            data = text.read(place.at, size if limit is None else min(size, limit - place.at))
            end = data.rfind(b"\n") + 1
            if end or len(data) < size:
                break
            size *= 2  # one line longer than a piece
        if size > self.piece_bytes:
            end = data.find(b"\n") + 1
        at_end = complete and len(data) < size and text.at_end(place.at + len(data))
        lines = _lines_in(data, end)
        if at_end and end < len(data):
            end, lines = len(data), lines + 1
        if lines > most:
            end, lines = _behind_line(data, most), most
        if not end:
            return Step(None, 0, place, True) if at_end else None
        line = place.line and place.line + lines
        after = place._replace(at=place.at + end, line=line, records=place.records + lines)
        last = complete and text.at_end(after.at)
        if self._spots_in is not None and (place.at or not data.startswith(_BOM)):
            tail = data[max(0, end - TAIL) : end]
            spot = Spot(place.line, place.records, b"", b"", self._spots_in, place.at, end, tail)
            return Step(spot, lines, after, last)
        said = data if end == len(data) else data[:end]
        chunk = Chunk(place.line, place.records, b"", _without_mark(said, place))
        return Step(chunk, lines, after, last)

    def _by_size(self, text: Text, place: Place, limit: int | None, most: int) -> Step | None:
        """The piece, without a look at all of it: it ends with the last line that ends within its bytes. How
        many lines these are is estimated, and on which line the next piece begins is left open. None if that
        will not do: near the end of the text, or where lines are too long or too many."""
        end = place.at + self.piece_bytes
        if place.at == 0 or (limit is not None and limit < end) or text.at_end(end):
            return None
        begins, ends = text.read(place.at, LOOK), text.read(end - LOOK, LOOK)
        cut = ends.rfind(b"\n") + 1
        size = self.piece_bytes - LOOK + cut
        lines = (_lines_in(begins, LOOK) + _lines_in(ends, LOOK)) * size // (2 * LOOK)
        if not cut or not 0 < lines <= most:
            return None
        tail = ends[max(0, cut - TAIL) : cut]
        spot = Spot(place.line, place.records, b"", b"", self._spots_in or "", place.at, size, tail)
        return Step(spot, lines, Place(place.at + size, 0, place.records + lines), False)

    # ------------------------------------------------------------------ some lines, one record

    def _runs(self, text: Text, place: Place, complete: bool, limit: int | None, most: int) -> Step | None:
        and_a_line = self.piece_bytes + self.piece_bytes // 4
        data = text.read(place.at, and_a_line)
        at_end = complete and text.at_end(place.at + len(data))
        if limit is not None:
            data = data[: limit - place.at]
        end = min(self.piece_bytes, len(data))
        if _lines_in(data, end) > most:
            end = _behind_line(data, most)
        known = end == len(data) and (at_end or (limit is not None and place.at + end == limit))
        if not known:
            end = last_cut(data, end, at_end)
        if not end:  # one event is longer than that, or nothing is left
            return self._records(text, place, complete, limit, 1)
        said = data[:end]
        lines = _lines_in(said, len(said))
        records = lines + (not said.endswith(b"\n"))
        after = place._replace(at=place.at + end, line=place.line + lines, records=place.records + records)
        return Step(
            Chunk(place.line, place.records, b"", said), records, after, complete and text.at_end(after.at)
        )

    # ------------------------------------------------------------------ any records

    def _records(self, text: Text, place: Place, complete: bool, limit: int | None, most: int) -> Step | None:
        window = self._window
        if window is None or not window.goes_on(text, place, complete):
            window = self._window = _Window(text, place, self._splitter(place), complete)
        until = place.at + self.piece_bytes
        index = records = 0
        begin = end = max(place.at, window.begin)
        context = after = place.context if place.at else self._first_context
        # A piece is full only when the record that does not fit has been seen: otherwise where it ends
        # would depend on how much of the text was looked at.
        while index < len(window.cuts) or (records < most and window.more()):
            if index == len(window.cuts):
                continue
            here, context_here, is_record = window.cuts[index]
            if limit is not None and here > limit:
                break
            if records and (not is_record or records == most or here > until):
                break
            end, after = here, context_here
            if is_record:
                records += 1
            else:
                begin, context = end, after
            index += 1
        if not records and not (complete and window.reaches_end and limit is None):
            return None
        # Behind the last record there may be blank lines or comments: they end with the text.
        lines = place.line + window.lines(begin)
        chunk = Chunk(lines, place.records, context, window.between(begin, end)) if records else None
        line = place.line + window.lines(end)
        window.advance(end, index)
        return Step(
            chunk,
            records,
            Place(end, line, place.records + records, after),
            complete and (not records or text.at_end(end)),
        )

    def _splitter(self, place: Place) -> Splitter:
        mapping = self._ready.mapping
        splitter = self._framing.splitter(mapping)
        if place.at == 0:
            return splitter
        if isinstance(splitter, MessageSplitter):
            return MessageSplitter(place.context)
        if isinstance(splitter, ContextLineSplitter):
            return ContextLineSplitter(place.context)
        if isinstance(splitter, RowSplitter):
            rows = RowSplitter(mapping.delimiter, header_known=True)
            rows.context = place.context
            return rows
        return splitter


class _Window:
    """The part of a text that was split and not cut into pieces yet. Cuts are positions in the text."""

    def __init__(self, text: Text, place: Place, splitter: Splitter, complete: bool) -> None:
        self._text, self._splitter, self._complete = text, splitter, complete
        self._at = place.at
        self.begin = place.at
        if place.at == 0 and text.read(0, len(_BOM)) == _BOM:
            self.begin = len(_BOM)
        self._data = b""
        self._split = self.begin  # the end of the last cut that was found
        self.cuts: list[tuple[int, bytes, bool]] = []  # as Cut, which is slower to make
        self.reaches_end = False

    def goes_on(self, text: Text, place: Place, complete: bool) -> bool:
        """Whether the next piece is the one at `place`. What reached the end may have grown since."""
        return (
            text is self._text
            and place.at == self._at
            and complete == self._complete
            and (complete or not self.reaches_end)
        )

    def more(self) -> bool:
        """Look further; False if the text ends."""
        if self.reaches_end:
            return False
        known = self.begin + len(self._data)
        # As much again, so that a record of any size is not looked at too often.
        block = self._text.read(known, max(PIECE_BYTES, known - self._split))
        self._data += block
        self.reaches_end = self._text.at_end(known + len(block))
        rest = self._data[self._split - self.begin :]
        cuts = self._splitter.cuts(rest, self.reaches_end and self._complete)
        split = self._split
        self.cuts += [(split + end, context, record) for end, context, record in cuts]
        if cuts:
            self._split = self.cuts[-1][0]
        return True

    def between(self, begin: int, end: int) -> bytes:
        return self._data[begin - self.begin : end - self.begin]

    def lines(self, before: int) -> int:
        return self._data.count(b"\n", 0, before - self.begin)

    def advance(self, to: int, index: int) -> None:
        """The piece that ends at `to`, with the first `index` cuts, was taken."""
        del self.cuts[:index]
        self._data = self._data[to - self.begin :]
        self.begin = self._at = to


def _lines_in(data: bytes, end: int) -> int:
    """The line feeds before `end`."""
    return int(count(np.frombuffer(data, np.uint8, end))) if end else 0


def _behind_line(data: bytes, number: int) -> int:
    """Where that many lines have ended."""
    return int(behind(np.frombuffer(data, np.uint8), number))


def _without_mark(data: bytes, place: Place) -> bytes:
    """The text without the byte order mark that it may begin with."""
    return data.removeprefix(_BOM) if place.at == 0 else data
