"""What an application pushes, as columns: tables of other libraries, and texts of rows or JSON objects.

They mean what `payload.events_of` says that they mean, and are refused with the same words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kelda.io.elements import Columns, Pushed
from kelda.io.frame_cells import Frame, frame_of
from kelda.io.payload import not_taken, table_mapping
from kelda.rdf.columnar import READERS, Found, found_of
from kelda.rdf.columnar.cells import Cells
from kelda.rdf.columnar.program import Program
from kelda.rdf.columnar.weave import Odd, runs, woven
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.event import Event
from kelda.rdf.framing import Chunker, prepare_mapping, read_chunk
from kelda.rdf.framings.base import Reading, RecordError
from kelda.rdf.framings.tabular import object_event
from kelda.rdf.skim import Asked

LEAST = 256  # rows: fewer are sooner read one by one than the kernels are there
LEAST_TEXT = 1 << 14  # bytes
ROWS = 1 << 14  # that are read at once

_TABLES = ("csv", "json", "ndjson")  # formats in which each record says something

_EVERYTHING = Asked.of([(None, None, None)])


def pushed_of(
    data: object,
    at: int | None,
    *,
    format: str | None,
    mapping: Any,
    time_predicate: str | None,
    name: str,
) -> Pushed | None:
    """What is pushed, if it has a way by columns and is large enough to take it."""
    dictionary = Dictionary()
    if isinstance(data, str | bytes):
        if format not in _TABLES or format not in READERS or mapping is None or len(data) < LEAST_TEXT:
            return None
        text = data.encode() if isinstance(data, str) else data
        found = _text(text, format, mapping, time_predicate, name, dictionary)
    else:
        frame = frame_of(data)
        if frame is None or len(frame) < LEAST or not frame.is_usual:
            return None
        ready = table_mapping(mapping, format)
        program = None if ready is None else Program.of(ready)
        if program is None:
            return None
        found = _rows(frame, program, Reading(name, not_taken, time_predicate, ready), dictionary)
    return _together(found, at, dictionary)


def _text(
    text: bytes, format: str, mapping: Any, time_predicate: str | None, name: str, dictionary: Dictionary
) -> list[Found]:
    ready = prepare_mapping(format, mapping)
    how = Reading(name, not_taken, time_predicate, ready.mapping)
    chunker = Chunker(format, mapping=ready)
    parts = []
    header = text.find(b"\n") + 1  # behind it records are cut many at once
    for chunk in [*chunker.feed(text[:header]), *chunker.feed(text[header:]), *chunker.finish()]:
        found = None if chunk.left_out else READERS[format](chunk, how, _EVERYTHING, dictionary)
        if found is None:
            events = read_chunk(
                chunk, format, time_predicate=time_predicate, mapping=ready, on_reject=not_taken, name=name
            )
            found = found_of(list(events), dictionary)
        parts.append(found)
    return parts


def _rows(frame: Frame, program: Program, how: Reading, dictionary: Dictionary) -> list[Found]:
    unsure = np.zeros(len(frame), np.bool_)
    cells = [frame.cells(name, unsure) for name in program.columns]
    parts = []
    for first in range(0, len(frame), ROWS):
        size = min(ROWS, len(frame) - first)
        odd = unsure[first : first + size]
        some = [Cells(c.text, c.start[first : first + size], c.end[first : first + size]) for c in cells]
        found, records = program.run(some, size, odd, how, _EVERYTHING, dictionary, first)
        parts.append(woven(found, records, _odd(frame, first, odd, how), dictionary))
    return parts


def _odd(frame: Frame, first: int, odd: NDArray[np.bool_], how: Reading) -> list[Odd]:
    """Rows that are read one by one."""
    found = []
    for begin, end in runs(odd):
        events: list[Event] = []
        for number, row in enumerate(frame.rows(first + begin, first + end), first + begin):
            try:
                events.append(object_event(row, number, how))
            except RecordError as error:
                how.reject(number + 1, str(error), repr(dict(row)).encode())
        found.append(Odd(begin, events))
    return found


def _together(parts: Sequence[Found], at: int | None, dictionary: Dictionary) -> Pushed:
    counts = [int(part.event[-1]) + 1 if part.size else 0 for part in parts]
    before = np.cumsum([0, *counts])
    event = [part.event + n for part, n in zip(parts, before, strict=False)]
    time = [part.time if at is None else np.full(part.size, at) for part in parts]
    columns = [[part.s for part in parts], [part.p for part in parts], [part.o for part in parts]]
    columns.append([np.zeros(part.size, np.int64) if part.g is None else part.g for part in parts])
    empty = np.zeros(0, np.int64)
    return Pushed(
        Columns(*(np.concatenate([empty, *column]) for column in [*columns, time, event])),
        dictionary,
        int(before[-1]),
    )
