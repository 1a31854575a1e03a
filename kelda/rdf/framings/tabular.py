"""`csv` and `json`: rows of a table, or JSON objects one a line, made RDF by a mapping.

One row is one event. What a mapping looks like says `kelda.rdf.framings.mapping`.

CSV has a header (unless the mapping names the `columns`), quotes with `"`, and may have line
breaks inside quotes. A row with more or fewer cells than the header is rejected.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kelda.errors import UsageError
from kelda.rdf.event import Event
from kelda.rdf.framings.base import (
    MAX_RECORD,
    Chunk,
    Cut,
    Framing,
    LineSplitter,
    Reading,
    RecordError,
    Usual,
    json_text,
    line_ends,
)
from kelda.rdf.framings.blanks import scope_of
from kelda.rdf.framings.eventtime import event_time
from kelda.rdf.framings.mapping import Each, Row, TableMapping, compile_mapping
from kelda.rdf.framings.row_kernels import UNSURE, whole_rows

csv.field_size_limit(max(csv.field_size_limit(), 1 << 30))  # how long a row may be is said elsewhere

_INSIDE_QUOTES = re.compile(rb'[^"]*(?:""[^"]*)*"(?!")')


def _prepared(name: str, mapping: Mapping[str, Any] | None) -> TableMapping:
    if mapping is None:
        raise UsageError(
            f"format '{name}' needs a mapping that says which triples a row makes (docs/streams.md)"
        )
    return compile_mapping(mapping)


def row_event(row: Row, ordinal: int, how: Reading, each: Each | None = None) -> Event:
    """The event of a row; RecordError if it makes none."""
    mapping: TableMapping = how.mapping
    quads = mapping.quads(row, scope_of(how.name, ordinal), each)
    time = mapping.time(row)
    return how.event(event_time(quads, how.time_predicate) if mapping.time_column is None else time, quads)


# ------------------------------------------------------------------------------------- csv


class RowSplitter:
    """Rows end at line breaks outside quotes. The first row is the header, unless it is known.

    A quote that does not close within the bytes that a row may have is a forgotten one: it opens nothing. A
    row that is longer ends with the line in which it became so.
    """

    def __init__(self, delimiter: str, header_known: bool, longest: int = MAX_RECORD) -> None:
        self.context = b""
        self._delimiter = delimiter.encode()
        self._header_due = not header_known
        self._longest = longest
        self._inside = False  # a row that is too long, whose beginning is gone

    def forget(self, size: int) -> int:
        self._inside = True
        return size

    def usual(self, data: NDArray[np.uint8], start: int, most: int, longest: int, at_end: bool) -> Usual:
        if self._header_due or self._inside:
            return start, 0, UNSURE
        return whole_rows(data, start, ord(self._delimiter), most, len(data), longest, at_end)

    def cuts(self, data: bytes, at_end: bool) -> list[Cut]:
        cuts: list[Cut] = []
        start, quote = 0, -2  # -2: not looked for yet; -1: there is none
        while start < len(data):
            end = at = start
            latest = start + self._longest  # it ends here at the latest, or is too long
            known = at_end or len(data) > latest  # whether no quote can close any more
            while not self._inside:
                end = data.find(b"\n", at) + 1
                if quote != -1 and quote < at:
                    quote = data.find(b'"', at)
                if quote == -1 or 0 < end <= quote:
                    break
                # A quote opens a quoted cell only where a cell starts.
                if quote > start and data[quote - 1 : quote] != self._delimiter:
                    at = quote + 1
                    continue
                closing = _INSIDE_QUOTES.match(data, quote + 1)
                if closing is not None and closing.end() <= latest:
                    if closing.end() == len(data) and not at_end:
                        return cuts  # the next byte may be a second quote
                    at = closing.end()
                    continue
                if closing is None and not known:
                    return cuts
                end = data.find(b"\n", quote) + 1  # never closed: the row is broken, the next line a new one
                break
            too_long = self._inside or (end or len(data)) > latest
            if too_long:
                end = data.find(b"\n", start if self._inside else latest) + 1
            if end == 0:
                if not at_end:
                    return cuts
                end = len(data)
            self._inside = False
            row = data[start:end]
            if too_long:
                cuts.append(Cut(end, self.context))
            elif self._header_due and not row.isspace():
                self.context, self._header_due = row, False
                cuts.append(Cut(end, self.context, record=False))
            else:
                cuts.append(Cut(end, self.context, record=not row.isspace()))
            start = end
        return cuts


def _cells(row: bytes, delimiter: str) -> list[str]:
    try:
        text = row.decode("utf-8").removesuffix("\n").rstrip("\r")
        if '"' not in text:
            if "\r" in text:
                raise RecordError("a carriage return within the row: rows end with LF or CR LF")
            return text.split(delimiter)
        return next(csv.reader([text], delimiter=delimiter, strict=True))
    except UnicodeDecodeError as error:
        raise RecordError(f"not UTF-8: {error.reason} at byte {error.start}") from None
    except csv.Error as error:
        raise RecordError(f"broken quotes: {error}") from None


class Csv:
    name = "csv"
    about = "comma-separated values with a header, and a mapping"
    extensions: tuple[str, ...] = ("csv",)

    def prepare(self, mapping: Mapping[str, Any] | None) -> TableMapping:
        return _prepared(self.name, mapping)

    def splitter(self, mapping: TableMapping, longest: int = MAX_RECORD) -> RowSplitter:
        return RowSplitter(mapping.delimiter, mapping.header is not None, longest)

    def read(self, chunk: Chunk, how: Reading) -> Iterator[Event]:
        mapping: TableMapping = how.mapping
        header = header_of(chunk, mapping)
        position = {name: place for place, name in enumerate(header)}
        start, line, ordinal = 0, chunk.first_line, chunk.ordinal
        splitter = RowSplitter(mapping.delimiter, header_known=True, longest=how.longest)
        for cut in splitter.cuts(chunk.data, at_end=True):
            row = chunk.data[start : cut.end]
            if cut.record:
                try:
                    cells = _cells(row, mapping.delimiter)
                    if len(cells) != len(header):
                        raise RecordError(f"the row has {len(cells)} cells, the header {len(header)}")

                    def value(column: str, cells: list[str] = cells) -> str | None:
                        text = cells[position[column]]
                        return None if not text.strip() or text in mapping.missing else text

                    event = row_event(value, ordinal, how)
                except RecordError as error:
                    how.reject(line, str(error), row)
                else:
                    yield event
                ordinal += 1
            start, line = cut.end, line + row.count(b"\n")


def header_of(chunk: Chunk, mapping: TableMapping) -> tuple[str, ...]:
    """The names of the columns of a chunk of CSV; UsageError if the mapping uses others."""
    header = mapping.header
    if header is None:
        try:
            header = tuple(name.strip() for name in _cells(chunk.context, mapping.delimiter))
        except RecordError as error:
            raise UsageError(f"the CSV header cannot be read: {error}") from None
    for name in mapping.columns:
        if name not in header:
            raise UsageError(f"the mapping uses column '{name}', but the header has: {', '.join(header)}")
    return header


# ------------------------------------------------------------------------------------ json


class JsonLines:
    name = "json"
    about = "JSON objects, one a line, and a mapping"
    extensions: tuple[str, ...] = ("json", "ndjson", "jsonl")

    def prepare(self, mapping: Mapping[str, Any] | None) -> TableMapping:
        return _prepared(self.name, mapping)

    def splitter(self, mapping: TableMapping, longest: int = MAX_RECORD) -> LineSplitter:
        return LineSplitter()

    def read(self, chunk: Chunk, how: Reading) -> Iterator[Event]:
        start = 0
        for offset, end in enumerate(line_ends(chunk.data, at_end=True)):
            line = chunk.data[start:end]
            start = end
            if line.isspace():
                continue
            try:
                event = object_event(_object(line), chunk.ordinal + offset, how)
            except RecordError as error:
                how.reject(chunk.first_line + offset, str(error), line)
            else:
                yield event


def object_event(found: Mapping[str, Any], ordinal: int, how: Reading) -> Event:
    """The event of a JSON object, or of a dictionary of Python values; RecordError if it makes none."""
    missing = how.mapping.missing

    def value(column: str) -> str | None:
        text = text_in(found, column)
        return None if text is None or not text.strip() or text in missing else text

    try:
        return row_event(value, ordinal, how)
    except _Several:
        return row_event(value, ordinal, how, partial(_combinations, found, missing))


class _Number(str):
    """A number as it was written: 7.40 stays 7.40."""


def _object(line: bytes) -> dict[str, Any]:
    text = json_text(line)
    try:
        found = json.loads(text, parse_float=_Number, parse_int=_Number)
    except ValueError as error:
        raise RecordError(f"not a JSON object: {error}") from None
    except RecursionError:
        raise RecordError("the JSON object is nested too deeply") from None
    if not isinstance(found, dict):
        raise RecordError("expected one JSON object a line")
    return found


def text_in(found: Mapping[str, Any], column: str) -> str | None:
    """The text of a member by its name, or along a path `a.b.c`."""
    value: Any = found.get(column)
    if value is None and "." in column and column not in found:
        value = found
        for step in column.split("."):
            if isinstance(value, list):
                break
            value = value.get(step) if isinstance(value, dict) else None
    if isinstance(value, list):
        raise _Several(f"'{column}' holds an array, where one value is needed")
    return _text_of(value, column)


def _text_of(value: Any, column: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return {"nan": "NaN", "inf": "INF", "-inf": "-INF"}.get(str(value), str(value))
    if isinstance(value, int | Decimal):
        return format(value, "f") if isinstance(value, Decimal) else str(value)
    if isinstance(value, date):  # datetimes are dates
        return value.isoformat().replace("+00:00", "Z")
    if hasattr(value, "item") and getattr(value, "size", 1) == 1:  # a number of NumPy's
        return _text_of(value.item(), column)
    raise RecordError(f"'{column}' holds an object, not a value")


class _Several(RecordError):
    """A column has several values."""


MOST = 100_000  # combinations of values that a row may have for a triple

Chosen = dict[tuple[str, ...], int]  # of each array on the way to a value, which element


def _combinations(found: Mapping[str, Any], missing: frozenset[str], columns: Sequence[str]) -> Iterator[Row]:
    """A row for each combination of the columns' values. Columns inside the same array go together: with
    `items.name` and `items.price`, each item has its own price."""
    rows: list[tuple[Chosen, dict[str, str]]] = [({}, {})]
    for column in dict.fromkeys(columns):
        options = [
            (chosen, text)
            for chosen, text in _values(found, column)
            if text is not None and text.strip() and text not in missing
        ]
        rows = [
            (before | chosen, values | {column: text})
            for before, values in rows
            for chosen, text in options
            if all(before.get(array, place) == place for array, place in chosen.items())
        ]
        if len(rows) > MOST:
            raise RecordError(f"the arrays in {', '.join(columns)} make more than {MOST:,} combinations")
    return (values.get for _, values in rows)


def _values(found: Mapping[str, Any], column: str) -> Iterator[tuple[Chosen, str | None]]:
    """All values of a column, each with the elements of arrays that lead to it."""

    def along(value: Any, path: tuple[str, ...], steps: list[str]) -> Iterator[tuple[Chosen, str | None]]:
        if isinstance(value, list):
            for place, element in enumerate(value):
                if isinstance(element, list):
                    raise RecordError(f"'{column}' holds an array in an array")
                for chosen, text in along(element, path, steps):
                    yield {path: place} | chosen, text
        elif steps:
            inner = value.get(steps[0]) if isinstance(value, dict) else None
            yield from along(inner, (*path, steps[0]), steps[1:])
        else:
            yield {}, _text_of(value, column)

    steps = [column] if column in found else column.split(".")
    return along(found, (), steps)


CSV: Framing = Csv()
JSON: Framing = JsonLines()
