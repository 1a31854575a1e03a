"""`csv` by columns: cells found by a kernel, made RDF by the program of the mapping."""

from __future__ import annotations

import numpy as np

from kelda.rdf.byte_masks import WIDTH
from kelda.rdf.columnar.cells import Cells
from kelda.rdf.columnar.csv_kernels import BEGIN, END, LINE, ROW_SIZE, TOO_LONG, rows_of
from kelda.rdf.columnar.found import Found, Ids
from kelda.rdf.columnar.program import Program
from kelda.rdf.columnar.weave import Odd, runs, woven
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.framings.base import Chunk, Reading
from kelda.rdf.framings.mapping import TableMapping
from kelda.rdf.framings.tabular import CSV, header_of
from kelda.rdf.skim import Asked


def read(chunk: Chunk, how: Reading, asked: Asked, dictionary: Dictionary) -> Found | None:
    """A chunk of rows."""
    mapping: TableMapping = how.mapping
    program = Program.of(mapping)
    if program is None or mapping.delimiter == "\0":
        return None
    header = header_of(chunk, mapping)
    position = {name: place for place, name in enumerate(header)}
    places = np.full(len(header), -1)
    for number, name in enumerate(program.columns):
        places[position[name]] = number
    buffer = np.frombuffer(bytearray(chunk.data + b"\n" + bytes(WIDTH)), np.uint8)
    most = chunk.data.count(b"\n") + 1
    rows = np.empty((ROW_SIZE, most), np.int64)
    starts, ends = np.zeros((2, len(program.columns), most), np.int64)
    odd = np.zeros(most, np.bool_)
    delimiter = ord(mapping.delimiter)
    size = rows_of(buffer, len(chunk.data), delimiter, places, how.longest, rows, starts, ends, odd)
    if size == TOO_LONG:
        return None
    rows, odd = rows[:, :size], odd[:size]
    cells = [Cells(buffer, start[:size], end[:size]) for start, end in zip(starts, ends, strict=True)]
    found, records = program.run(cells, size, odd, how, asked, dictionary, chunk.ordinal)
    if not odd.any():
        return found
    read_rows = [_odd(chunk, how, rows, first, end) for first, end in runs(odd)]
    return woven(found, records, read_rows, dictionary)


def _odd(chunk: Chunk, how: Reading, rows: Ids, first: int, end: int) -> Odd:
    """Rows that the framing reads."""
    data = chunk.data[rows[BEGIN, first] : rows[END, end - 1]]
    line = chunk.first_line + int(rows[LINE, first])
    some = Chunk(line, chunk.ordinal + first, chunk.context, data)
    return Odd(first, list(CSV.read(some, how)))
