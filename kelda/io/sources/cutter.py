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

from kelda.io.sources.line_kernels import behind, count, first_long
from kelda.io.sources.runs import last_cut
from kelda.io.sources.spot import Spot, lines_before
from kelda.io.sources.text import Text
from kelda.rdf.framing import BOM, RECORDS, checked_length, framing_of, prepare_mapping
from kelda.rdf.framings import document_kernels as documents
from kelda.rdf.framings.base import HEAD, Chunk, LineSplitter, Splitter
from kelda.rdf.framings.mapping import TableMapping
from kelda.rdf.framings.messages import MessageSplitter
from kelda.rdf.framings.ndjsonld import ContextLineSplitter, context_line
from kelda.rdf.framings.nquads import RunSplitter
from kelda.rdf.framings.row_kernels import FULL, whole_rows
from kelda.rdf.framings.tabular import RowSplitter
from kelda.rdf.messages import walk

PIECE_BYTES = 1 << 18  # a piece of the usual lines is then some thousand records
MOST_TIMES = (
    60  # that a piece may be larger, if it may have so many more records: as large as a record may be
)

LOOK = 1 << 16  # bytes at both ends of a large piece, by which its lines are estimated
TAIL = 64  # bytes of a chunk by which it is known again
SCAN = 1 << 20  # bytes in which the end of a record that is too long is looked for


class Place(NamedTuple):
    """A boundary between records: the position in the text, its line (0: not counted), the records before
    it (then about so many), and what the records behind it need of them (prefixes, a CSV header)."""

    at: int = 0
    line: int = 1
    records: int = 0
    context: bytes = b""


class Step(NamedTuple):
    """From one place to the next. `last`: the text ends there, and nothing will be added. `tail` is the end
    of the text before it where the chunk does not have that."""

    chunk: Chunk | None
    records: int
    place: Place
    last: bool
    tail: bytes | None = None


class Cutter:
    """Cuts texts of one format into pieces.

    `limit` is a place at which an earlier cut fell because there was no more text then.
    Unless it is to be `exact`, the lines of N-Quads are counted as records, which is much faster.
    `complete`: the text ends where it ends; otherwise it may grow, and its last record may be half written.
    With `spots_in`, the file that the text is of, chunks of lines are spots in that. A record of more than
    `max_record` bytes is a piece by itself, whose chunk leaves nearly all of it out: it is never held.
    """

    def __init__(
        self,
        format: str,
        mapping: Any = None,
        *,
        max_records: int = RECORDS,
        exact: bool = False,
        spots_in: Path | None = None,
        max_record: int | None = None,
    ) -> None:
        self.longest = checked_length(format, max_record)
        self._ready = prepare_mapping(format, mapping)
        self._framing = framing_of(format)
        self.max_records = max_records
        # Larger pieces have more room in bytes, too.
        self.piece_bytes = PIECE_BYTES * max(1, min(max_records // RECORDS, MOST_TIMES))
        splitter = self._framing.splitter(self._ready.mapping, self.longest)
        self._any_length = self.longest >= self.piece_bytes  # of what fits into a piece, nothing is too long
        self.by_line = isinstance(splitter, LineSplitter)
        self._by_run = isinstance(splitter, RunSplitter) and not exact and self._any_length
        self._by_row = isinstance(splitter, RowSplitter) and self._any_length
        self._by_document = isinstance(splitter, ContextLineSplitter) and self._any_length
        if self._by_run:  # a line more is looked at, in which nothing must be too long either
            self.piece_bytes = min(self.piece_bytes, self.longest * 4 // 5)
        self._by_message = isinstance(splitter, MessageSplitter)
        self._first_context = splitter.context
        self._spots_in = None if spots_in is None else str(spots_in.absolute())
        # What is read of timestamped N-Triples does not depend on how many records came before.
        self._uncounted = (
            spots_in is not None and format == "tsnt" and self.piece_bytes >= 8 * LOOK and self._any_length
        )
        self._window: _Window | None = None
        self._passing: _Passing | None = None

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
        begins = place.at == 0 and not complete and self.needs(text, place) == 0
        if begins and len(text.read(0, len(BOM))) < len(BOM):
            return None  # it may begin with a byte order mark
        if self.by_line:
            return self._lines(text, place, complete, limit, most)
        inside = self._window is not None and self._window.is_inside(text, place)
        by_row = self._by_row and not inside and limit is None
        if by_row and (step := self._rows(text, place, complete, most)) is not None:
            self._window = None
            return step
        by_document = self._by_document and not inside and limit is None
        if by_document and (step := self._documents(text, place, complete, most)) is not None:
            self._window = None
            return step
        if self._by_run and not inside and (place.at or text.read(0, len(BOM)) != BOM):
            return self._runs(text, place, complete, limit, most)
        if self._by_message and not (self._window and self._window.is_amid(text, place, complete)):
            return self._messages(text, place, complete, limit, most)
        return self._records(text, place, complete, limit, most)

    def needs(self, text: Text, place: Place) -> int:
        """From where on the text is still needed, if it is cut next at `place`."""
        if self._passing is not None and self._passing.text is text and self._passing.place == place:
            return self._passing.at
        if self._window is not None and self._window.is_inside(text, place):
            return self._window.known
        return place.at

    # ------------------------------------------------------------------ one line, one record

    def _lines(self, text: Text, place: Place, complete: bool, limit: int | None, most: int) -> Step | None:
        size = self.piece_bytes
        passing, self._passing = self._passing, None
        if passing is not None and passing.text is text and passing.place == place:
            return self._pass_over(passing, complete)
        if self._uncounted and complete and (step := self._by_size(text, place, limit, most)) is not None:
            return step
        while True:
            data = text.read(place.at, size if limit is None else min(size, limit - place.at))
            end = data.rfind(b"\n") + 1
            if end or len(data) < size or size > self.longest:
                break
            size *= 2  # one line longer than a piece
        if size > self.piece_bytes:
            end = data.find(b"\n") + 1
        mark = len(BOM) if place.at == 0 and data.startswith(BOM) else 0
        if not self._any_length or size > self.piece_bytes:
            seen = data[:end] if end and size > self.piece_bytes else data
            long = int(first_long(np.frombuffer(seen, np.uint8)[mark:], self.longest))
            if long == 0:
                begin = place.at + mark
                head = data[mark : mark + min(HEAD, self.longest)]
                return self._pass_over(_Passing(text, place, begin, head, begin + self.longest), complete)
            if long > 0:  # a piece by itself: this one ends before it
                data, end = data[: long + mark], long + mark
                size = len(data)
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
        if self._spots_in is not None and not mark:
            tail = data[max(0, end - TAIL) : end]
            spot = Spot(place.line, place.records, b"", b"", self._spots_in, place.at, end, tail)
            return Step(spot, lines, after, last)
        said = data if end == len(data) else data[:end]
        chunk = Chunk(place.line, place.records, b"", said[mark:] if mark else said)
        return Step(chunk, lines, after, last)

    def _pass_over(self, passing: _Passing, complete: bool) -> Step | None:
        """The piece that is a line too long; None if its end is not there yet."""
        text, place, begin, head, at = passing[:5]
        tail = passing.tail
        while True:
            block = text.read(at, SCAN)
            feed = block.find(b"\n") + 1
            tail = (tail + (block[:feed] if feed else block))[-TAIL:]
            at += feed or len(block)
            if feed or (complete and len(block) < SCAN and text.at_end(at)):
                break
            if len(block) < SCAN:
                self._passing = passing._replace(at=at, tail=tail)
                return None
        line = place.line or 1 + lines_before(self._spots_in or "", place.at)
        chunk = Chunk(line, place.records, b"", head, left_out=at - begin - len(head))
        after = Place(at, place.line and place.line + (feed > 0), place.records + 1)
        return Step(chunk, 1, after, complete and text.at_end(at), tail)

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
        lines = _lines_in(data, end)
        records = lines + (data[end - 1] != ord("\n"))
        after = place._replace(at=place.at + end, line=place.line + lines, records=place.records + records)
        last = complete and text.at_end(after.at)
        if self._spots_in is not None:
            tail = data[max(0, end - TAIL) : end]
            spot = Spot(place.line, place.records, b"", b"", self._spots_in, place.at, end, tail)
            return Step(spot, records, after, last)
        said = data if end == len(data) else data[:end]
        return Step(Chunk(place.line, place.records, b"", said), records, after, last)

    def _chunk(self, line: int, records: int, context: bytes, data: bytes, at: int) -> Chunk:
        """A chunk whose text stands in the file at `at`: itself, or where it is."""
        if self._spots_in is None:
            return Chunk(line, records, context, data)
        return Spot(line, records, context, b"", self._spots_in, at, len(data), data[-TAIL:])

    # ------------------------------------------------------------------ rows

    def _rows(self, text: Text, place: Place, complete: bool, most: int) -> Step | None:
        """The piece, if it is of usual rows; None if the splitter has to look at them."""
        data = text.read(place.at, self.piece_bytes + LOOK)
        at_end = complete and text.at_end(place.at + len(data))
        begin, context = 0, place.context
        mapping: TableMapping = self._ready.mapping
        if place.at == 0 and data.startswith(BOM):
            begin = len(BOM)
        if mapping.header is None and not context:
            end = data.find(b"\n", begin) + 1
            context = data[begin:end]
            if not end or b'"' in context or context.isspace() or len(context) > self.longest:
                return None
            begin = end
        array = np.frombuffer(data, np.uint8)
        delimiter = ord(mapping.delimiter)
        found = whole_rows(array, begin, delimiter, most, self.piece_bytes, self.longest, at_end)
        end, records, why = map(int, found)
        if not records or why != FULL:
            return None
        first = place.line + data.count(b"\n", 0, begin)
        line = first + data.count(b"\n", begin, end)
        after = Place(place.at + end, line, place.records + records, context)
        chunk = self._chunk(first, place.records, context, data[begin:end], place.at + begin)
        return Step(chunk, records, after, complete and text.at_end(after.at))

    # ------------------------------------------------------------------ documents, and contexts between them

    def _documents(self, text: Text, place: Place, complete: bool, most: int) -> Step | None:
        """The piece; None if more of the text has to be seen than usual."""
        data = text.read(place.at, self.piece_bytes + LOOK)
        at_end = complete and text.at_end(place.at + len(data))
        begin = end = len(BOM) if place.at == 0 and data.startswith(BOM) else 0
        context = place.context if place.at else self._first_context
        array, records = np.frombuffer(data, np.uint8), 0
        while True:
            found = documents.whole_documents(
                array, end, most - records, self.piece_bytes, records > 0, self.longest, at_end
            )
            end, more, why = map(int, found)
            records += more
            if why != documents.UNSURE:
                break
            behind_line = data.find(b"\n", end) + 1 or len(data) * at_end
            line = data[end:behind_line]
            if not behind_line or len(line) > self.longest:
                return None
            said = context_line(line, self._ready.mapping)
            is_record = said is None and not line.isspace()
            if records and (not is_record or behind_line > self.piece_bytes):
                why = documents.FULL
                break
            end = behind_line
            records += is_record
            if not is_record:
                begin, context = end, context if said is None else said
        if not records or why != documents.FULL:
            return None
        first = place.line + data.count(b"\n", 0, begin)
        line_behind = first + data.count(b"\n", begin, end)
        after = Place(place.at + end, line_behind, place.records + records, context)
        chunk = self._chunk(first, place.records, context, data[begin:end], place.at + begin)
        return Step(chunk, records, after, complete and text.at_end(after.at))

    # ------------------------------------------------------------------ messages

    def _messages(
        self, text: Text, place: Place, complete: bool, limit: int | None, most: int
    ) -> Step | None:
        begin, context = place.at, place.context if place.at else self._first_context
        if place.at == 0 and text.read(0, len(BOM)) == BOM:
            begin = len(BOM)
        until = place.at + self.piece_bytes
        data = text.read(begin, self.piece_bytes + self.piece_bytes // 4)
        seen = begin + len(data)
        ends_here = text.at_end(seen)
        walked = walk(data, context, self.longest, at_end=complete and ends_here)
        ends = walked.ends[: len(walked.ends) - walked.tail]
        too_long = np.flatnonzero(np.diff(ends, prepend=0) > self.longest)
        if len(too_long):
            ends = ends[: too_long[0]]
        fit = max(1, int(np.searchsorted(ends, until - begin, "right")))
        if limit is not None:
            fit = min(fit, int(np.searchsorted(ends, limit - begin, "right")))
        records = min(fit, most, len(ends))
        full = records < len(ends) or records == most or len(too_long) > 0 or begin + walked.open_at >= until
        if not records and not complete and ends_here and seen < until and len(data) <= self.longest:
            return None  # the first message is not there yet
        if not records or not (full or ends_here):  # what goes on here may be very long
            return self._records(text, place, complete, limit, most)
        end = int(ends[records - 1])
        chunk = self._chunk(place.line, place.records, context, data[:end], begin)
        after = [context for first, context in walked.contexts if first <= records][-1]
        there = Place(begin + end, place.line + _lines_in(data, end), place.records + records, after)
        return Step(chunk, records, there, complete and text.at_end(there.at))

    # ------------------------------------------------------------------ any records

    def _records(self, text: Text, place: Place, complete: bool, limit: int | None, most: int) -> Step | None:
        window = self._window
        if window is None or not window.goes_on(text, place, complete):
            window = self._window = _Window(text, place, self._splitter(place), complete, self.longest)
        until = place.at + self.piece_bytes
        index = records = lines = (
            0  # lines: of what was passed over before the chunk, and is not in the window
        )
        end = max(place.at, window.begin)
        begin_mark = end_mark = 0
        context = after = place.context if place.at else self._first_context
        long: _Long | None = None
        # A piece is full only when the record that does not fit has been seen: otherwise where it ends
        # would depend on how much of the text was looked at.
        while index < len(window.cuts) or (records < most and window.more()):
            if index == len(window.cuts):
                continue
            here, context_here, is_record, size, too_long = window.cuts[index]
            if limit is not None and here > limit:
                break
            if records and (not is_record or too_long or records == most or here > until):
                break
            end, end_mark, index = here, end_mark + size, index + 1
            before, after = after, context_here
            if too_long is not None and is_record:
                long, context, records = too_long, before, 1
                break
            if is_record:
                records += 1
            else:
                begin_mark, context = end_mark, after
                lines += too_long.lines if too_long else 0
        if not records and not (complete and window.reaches_end and limit is None):
            return None
        # Behind the last record there may be blank lines or comments: they end with the text.
        first_line = place.line + lines + window.lines(begin_mark)
        line = place.line + lines + window.lines(end_mark)
        chunk, tail = None, None
        if long is not None:
            chunk = Chunk(first_line, place.records, context, long.head, left_out=long.size - len(long.head))
            line, tail = line + long.lines, long.tail
        elif records:
            chunk = Chunk(first_line, place.records, context, window.between(begin_mark, end_mark))
        window.advance(end, end_mark, index)
        return Step(
            chunk,
            records,
            Place(end, line, place.records + records, after),
            complete and (not records or text.at_end(end)),
            tail,
        )

    def _splitter(self, place: Place) -> Splitter:
        mapping = self._ready.mapping
        splitter = self._framing.splitter(mapping, self.longest)
        if place.at == 0:
            return splitter
        if isinstance(splitter, MessageSplitter):
            return MessageSplitter(place.context, self.longest)
        if isinstance(splitter, ContextLineSplitter):
            return ContextLineSplitter(place.context, mapping, self.longest)
        if isinstance(splitter, RowSplitter):
            known = mapping.header is not None or bool(place.context)
            rows = RowSplitter(mapping.delimiter, header_known=known, longest=self.longest)
            rows.context = place.context
            return rows
        return splitter


class _Passing(NamedTuple):
    """A line that is too long, whose end was not found yet before `at`."""

    text: Text
    place: Place
    begin: int
    head: bytes
    at: int
    tail: bytes = b""


class _Long(NamedTuple):
    """What stays of a record that is too long: its beginning, its end, how many bytes and line feeds."""

    head: bytes
    tail: bytes
    size: int
    lines: int


# Where in the text a record ends, the context from there on, whether it is one; how many bytes of the window
# it has; and what stays of it if it is too long. (A named tuple is slower to make.)
_Cut = tuple[int, bytes, bool, int, _Long | None]
_NOTHING = _Long(b"", b"", 0, 0)


class _Window:
    """The part of a text that was split and not cut into pieces yet."""

    def __init__(self, text: Text, place: Place, splitter: Splitter, complete: bool, longest: int) -> None:
        self._text, self._splitter, self._complete, self._longest = text, splitter, complete, longest
        self._at = place.at
        self.begin = place.at
        if place.at == 0 and text.read(0, len(BOM)) == BOM:
            self.begin = len(BOM)
        self.known = self.begin  # the text was read up to here
        self._split = self.begin  # the end of the last cut that was found
        self._data = b""  # of the records that were found
        self._rest = b""  # what is behind them
        self._gone = _NOTHING  # of a record that is too long, what is not in the rest any more
        self.cuts: list[_Cut] = []
        self.reaches_end = False

    def goes_on(self, text: Text, place: Place, complete: bool) -> bool:
        """Whether the next piece is the one at `place`. What reached the end may have grown since."""
        if text is not self._text or place.at != self._at:
            return False
        if self.reaches_end and not self._complete and text.only_grows:
            self.reaches_end, self._complete = False, complete
        return complete == self._complete and (complete or not self.reaches_end)

    def is_inside(self, text: Text, place: Place) -> bool:
        """Whether the record at `place` is so long that its beginning was let go."""
        return text is self._text and place.at == self._at and bool(self._gone.size) and not self.cuts

    def is_amid(self, text: Text, place: Place, complete: bool) -> bool:
        """Whether the record at `place` is so long that a good part of it was looked at already."""
        return not self.cuts and self.goes_on(text, place, complete)

    def more(self) -> bool:
        """Look further; False if the text ends."""
        if self.reaches_end:
            return False
        # As much again, so that a record of any size is not looked at too often.
        block = self._text.read(self.known, max(PIECE_BYTES, len(self._rest)))
        self.known += len(block)
        self.reaches_end = self._text.at_end(self.known)
        data = self._rest + block
        done = kept = 0
        at_end = self.reaches_end and self._complete
        for end, context, record in self._splitter.cuts(data, at_end):
            size, gone = self._gone.size + end - done, self._gone
            if gone.size or (record and size > self._longest):
                self._data += data[kept:done]
                kept = end
                self._split += size
                self.cuts.append((self._split, context, record, 0, self._longer(gone, data[done:end])))
                self._gone = _NOTHING
            else:
                self._split += size
                self.cuts.append((self._split, context, record, size, None))
            done = end
        self._data += data[kept:done]
        self._rest = data[done:]
        if self._gone.size + len(self._rest) > self._longest and not at_end:
            gone_now = self._splitter.forget(len(self._rest))
            if gone_now:
                self._gone = self._longer(self._gone, self._rest[:gone_now])
                self._rest = self._rest[gone_now:]
        if at_end and self._gone.size:
            last = self._longer(self._gone, self._rest)
            self._split += last.size
            self.cuts.append((self._split, self._splitter.context, True, 0, last))
            self._gone, self._rest = _NOTHING, b""
        return True

    def _longer(self, gone: _Long, more: bytes) -> _Long:
        return _Long(
            (gone.head + more[:HEAD])[: min(HEAD, self._longest)],
            (gone.tail + more[-TAIL:])[-TAIL:],
            gone.size + len(more),
            gone.lines + more.count(b"\n"),
        )

    def between(self, begin: int, end: int) -> bytes:
        return self._data[begin:end]

    def lines(self, before: int) -> int:
        return self._data.count(b"\n", 0, before)

    def advance(self, to: int, size: int, index: int) -> None:
        """The piece that ends at `to`, with the first `index` cuts and so many bytes, was taken."""
        del self.cuts[:index]
        self._data = self._data[size:]
        self.begin = self._at = to


def _lines_in(data: bytes, end: int) -> int:
    """The line feeds before `end`."""
    return int(count(np.frombuffer(data, np.uint8, end))) if end else 0


def _behind_line(data: bytes, number: int) -> int:
    """Where that many lines have ended."""
    return int(behind(np.frombuffer(data, np.uint8), number))
