"""Answers that are columns as the bytes of a format, without making them.

Each distinct term of a block is spelled once (`kelda.io.spelling`); a row is a lead, which says what is the
same for all of an instant, and the texts of its terms. The bytes are those that the formats make of answers
that are objects (`kelda.io.formats`), which is the definition.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kelda.engine.block import Block, Rows
from kelda.io import written_kernels as kernels
from kelda.io.spelling import (
    CSV,
    JSON,
    NTRIPLES,
    NTRIPLES_IN_JSON,
    Spelling,
    Texts,
    csv_field,
    in_json,
)
from kelda.io.written_kernels import SIGN, TIME
from kelda.lang import algebra as A
from kelda.rdf.hash_kernels import PADDING, gather
from kelda.rdf.ids import padded
from kelda.rdf.times import FIRST_MS, LAST_MS

Array = NDArray[Any]


class Lead(NamedTuple):
    """What stands before a row: parts, and the fields between them."""

    parts: Array
    ends: Array
    fields: Array


def lead(*parts: str | int) -> Lead:
    """Of texts and fields by turns; a text first and last."""
    texts = [part.encode() for part in parts if isinstance(part, str)]
    fields = [part for part in parts if isinstance(part, int)]
    ends = np.cumsum([len(text) for text in texts])
    return Lead(padded(b"".join(texts)), ends, np.array(fields, np.int64))


NOTHING = lead("")


def _plain(array: Array) -> Array:
    """As kernels are compiled for."""
    return np.require(array, np.int64, ["C", "W"])


def _labels(labels: Iterable[str]) -> tuple[Array, Array]:
    texts = [label.encode() for label in labels]
    return padded(b"".join(texts)), np.cumsum([0, *map(len, texts)])


# ---------------------------------------------------------------------------------- rows


def json_lines(block: Block, *, before: str = "", after: str = "\n") -> memoryview:
    """Answers as `Answer.to_json` has them, each with something before and after."""
    beginning = f'{before}{{"query": "{in_json(block.name)}", "time": '
    match block.query.form:
        case A.Form.ASK:
            first = lead(beginning, TIME, ', "sign": "', SIGN, '", "boolean": ')
            return _rows(block.rows, _truths(block.rows), BOOLEANS, ("",), first, 0, "}" + after)
        case A.Form.CONSTRUCT:
            first = lead(beginning, TIME, ', "sign": "', SIGN, '", "triples": "')
            return _view(_statements(block.rows, NTRIPLES_IN_JSON, first, dot=" .\\n", tail='"}' + after)[0])
    first = lead(beginning, TIME, ', "sign": "', SIGN, '", "bindings": {')
    cells = block.rows.cells()
    labels = [f', "{in_json(name)}": ' for name in block.rows.columns]
    texts = JSON.texts(cells.ids, block.rows.dictionary)
    return _rows(block.rows, cells.numbers, texts, labels, first, 2, "}}" + after)


def csv_rows(block: Block, columns: Sequence[str]) -> memoryview:
    """Rows of SELECT and ASK, with a field for each of some columns."""
    rows = block.rows
    first = lead(csv_field(block.name) + ",", TIME, ",", SIGN, "")
    if block.query.form is A.Form.ASK:
        numbers, texts = _truths(rows), BOOLEANS
    else:
        cells = rows.cells()
        numbers, texts = cells.numbers, CSV.texts(cells.ids, rows.dictionary)
    none = np.zeros(numbers.shape[1], numbers.dtype)
    shown = [numbers[rows.columns.index(name)] if name in rows.columns else none for name in columns]
    ordered = np.array(shown, np.int32).reshape(len(columns), len(none))
    return _rows(rows, ordered, texts, ["," for _ in columns], first, 0, "\n")


def _rows(
    rows: Rows,
    numbers: Array,
    texts: Texts,
    labels: Iterable[str],
    first: Lead,
    omitted: int,
    tail: str,
) -> memoryview:
    of = (_plain(rows.time), _plain(rows.sign), _plain(rows.which))
    found = kernels.rows(
        of, numbers, tuple(texts), _labels(labels), tuple(first), omitted, padded(tail.encode())
    )
    return _view(found)


_WORDS = np.frombuffer(b"falsetrue" + bytes(PADDING), np.uint8)
BOOLEANS = Texts(_WORDS.copy(), np.array([0, 0, 5]), np.array([0, 5, 9]))


def _truths(rows: Rows) -> Array:
    return (rows.values != 0).astype(np.int32) + np.int32(1)


# ---------------------------------------------------------------------------------- triples


def events(
    block: Block, sign: str, predicate: int, first: Lead, *, graph: Lead = NOTHING, tail: str = ""
) -> memoryview | None:
    """The triples of each answer behind its lead, if it is plain that each can be an event, whose time the
    predicate with this id says; else None."""
    rows = block.rows
    wanted = 1 if sign == "+" else -1
    fits = (
        block.query.form is A.Form.CONSTRUCT
        and not (rows.sign != wanted).any()
        and not (rows.values[1] == predicate).any()
        and (not len(rows.time) or (rows.time.min() >= FIRST_MS and rows.time.max() <= LAST_MS))
    )
    if not fits:
        return None
    return _view(_statements(rows, NTRIPLES, first, graph=graph, dot=" .\n", tail=tail)[0])


def _statements(
    rows: Rows, spelling: Spelling, first: Lead, *, graph: Lead = NOTHING, dot: str, tail: str = ""
) -> tuple[Array, Array]:
    assert rows.answer is not None
    cells = rows.cells()
    texts = spelling.texts(cells.ids, rows.dictionary)
    starts = np.flatnonzero(np.diff(rows.answer, prepend=-1))
    ends = np.append(starts[1:], len(rows.answer))
    answers = (_plain(rows.time[starts]), _plain(rows.sign[starts]), ends[: len(starts)])
    return kernels.statements(
        answers,
        cells.numbers,
        tuple(texts),
        tuple(first),
        tuple(graph),
        padded(dot.encode()),
        padded(tail.encode()),
    )


def _view(found: Array) -> memoryview:
    return found.data


def bound(block: Block) -> list[str]:
    """The columns that the answers fill, in the order in which they first do."""
    rows = block.rows
    if not len(rows.time):
        return []
    if block.query.form is not A.Form.SELECT:
        return ["boolean" if block.query.form is A.Form.ASK else "triples"]
    filled = {name: rows.values[i] != 0 for i, name in enumerate(rows.columns)}
    first = {name: int(some[rows.which].argmax()) for name, some in filled.items() if some.any()}
    return sorted(first, key=lambda name: first[name])


# ---------------------------------------------------------------------------------- tables


def shown(name: str) -> str:
    """What a variable's column is called in a table that has a time and a sign of its own."""
    return f"?{name}" if name in ("time", "sign") else name


def parquet_table(block: Block, columns: Sequence[str]) -> Any:
    """Time, sign, and each of some columns as N-Triples text (of ASK, as booleans)."""
    rows, form = block.rows, block.query.form
    if form is A.Form.CONSTRUCT:
        return _table_of_triples(rows, columns)
    table = _times(rows.time, rows.sign)
    if form is A.Form.ASK:
        asked = pa.array((rows.values[0] != 0)[rows.which])
        return pa.table(table | dict.fromkeys(columns, asked))
    cells = rows.cells()
    distinct = _strings(NTRIPLES.texts(cells.ids, rows.dictionary))
    none = np.zeros(cells.numbers.shape[1], np.int32)
    for name in columns:
        numbers = cells.numbers[rows.columns.index(name)] if name in rows.columns else none
        numbers = numbers[rows.which]
        indices = pa.array(numbers, mask=numbers == 0)
        table[shown(name)] = pa.DictionaryArray.from_arrays(indices, distinct)
    return pa.table(table)


def _table_of_triples(rows: Rows, columns: Sequence[str]) -> Any:
    assert rows.answer is not None
    first = np.flatnonzero(np.diff(rows.answer, prepend=-1))
    texts, offsets = _statements(rows, NTRIPLES, NOTHING, dot=" .\n")
    said = pa.LargeStringArray.from_buffers(len(first), pa.py_buffer(offsets), pa.py_buffer(texts))
    table = _times(rows.time[first], rows.sign[first])
    for name in columns:
        table[shown(name)] = said if name == "triples" else pa.nulls(len(first), pa.string())
    return pa.table(table)


def _times(time: Array, sign: Array) -> dict[str, Any]:
    signs = pa.DictionaryArray.from_arrays(pa.array((sign < 0).astype(np.int8)), pa.array(["+", "-"]))
    return {"time": pa.array(time), "sign": signs}


def _strings(texts: Texts) -> Any:
    offsets = np.zeros(len(texts.starts) + 1, np.int64)
    np.cumsum(texts.ends - texts.starts, out=offsets[1:])
    found = np.empty(offsets[-1], np.uint8)
    gather(texts.bytes, texts.starts, texts.ends, found)
    return pa.LargeStringArray.from_buffers(len(texts.starts), pa.py_buffer(offsets), pa.py_buffer(found))
