"""The terms of a mapping, made for all rows of a table at once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import BlankNode, Literal, NamedNode

from kelda.rdf import ids as term_ids
from kelda.rdf.arrow_kernels import inline_texts
from kelda.rdf.columnar import text_kernels as kernels
from kelda.rdf.columnar import value_kernels
from kelda.rdf.columnar.cells import MISSING, Cells, addressed
from kelda.rdf.columnar.found import NO_TIME, Ids
from kelda.rdf.columnar.moment_kernels import date_times
from kelda.rdf.columnar.moments import Moments
from kelda.rdf.framings.mapping import (
    DATATYPES,
    XSD,
    BlankMaker,
    Constant,
    IriMaker,
    LiteralMaker,
    Template,
    TermMaker,
)
from kelda.rdf.hash_kernels import PADDING

_NO_TEXT = np.zeros(PADDING, np.uint8)
_NONE = np.zeros(0, np.int64)


class Column(NamedTuple):
    """A term of each row: its id (0: the row has none), and where in `text` its canonical text is, unless the
    id says it all."""

    ids: Ids
    text: NDArray[np.uint8] = _NO_TEXT
    begins: Ids = _NONE
    ends: Ids = _NONE


@dataclass
class Batch:
    """Rows of a table: a column each of `cells`, with values that are missing marked so. Terms that cannot be
    made for sure make their rows `odd`. Row i is record `number` + i of what `scope` names."""

    cells: Sequence[Cells]
    size: int
    odd: NDArray[np.bool_]
    seed: int
    scope: bytes
    number: int
    texts: NDArray[np.uint64] = field(init=False)
    starts: Ids = field(init=False)
    ends: Ids = field(init=False)

    def __post_init__(self) -> None:
        shape = (len(self.cells), self.size)
        self.texts = np.array([c.text.ctypes.data for c in self.cells], np.uint64)
        self.starts = np.array([c.start for c in self.cells], np.int64).reshape(shape)
        self.ends = np.array([c.end for c in self.cells], np.int64).reshape(shape)
        self.starts[:, self.odd] = MISSING

    def column(self, number: int) -> Cells:
        return Cells(self.cells[number].text, self.starts[number], self.ends[number])


class Term(Protocol):
    """Makes a term for each row."""

    def made(self, batch: Batch, wanted: bool) -> Column:
        """Its column. If nobody wants it, ids other than 0 say nothing, and there are no texts."""
        ...


class Text(Protocol):
    """What a literal says, before it is one."""

    def cells(self, batch: Batch) -> Cells: ...


# --------------------------------------------------------------------------------- templates


class Joined:
    """Text from a template: literal parts and values of columns, put down one way or another."""

    def __init__(self, parts: Sequence[tuple[int, int | bytes]]) -> None:
        """A part is how it is put down, and its own text or the number of its column (-1: of none)."""
        rows, self._literals, self.columns = [], b"", []
        for how, what in parts:
            if isinstance(what, bytes):
                rows.append([how, -1, len(self._literals), len(self._literals) + len(what)])
                self._literals += what
            else:
                rows.append([how, what, 0, 0])
                if what >= 0:
                    self.columns.append(what)
        self._parts = np.array(rows, np.int64).reshape(-1, kernels.PART_SIZE)
        self._padded = term_ids.padded(self._literals)

    def cells(self, batch: Batch) -> Cells:
        out = np.empty(self._room(batch), np.uint8)
        begins, ends = np.empty(batch.size, np.int64), np.empty(batch.size, np.int64)
        cells = (batch.texts, batch.starts, batch.ends)
        kernels.joined(self._parts, self._padded, cells, batch.number, batch.odd, out, begins, ends)
        return Cells(out, begins, ends)

    def _room(self, batch: Batch) -> int:
        """More bytes than all rows need."""
        size = batch.size * (len(self._literals) + kernels.DIGITS) + 2 * PADDING + 64
        for how, column, _, _ in self._parts.tolist():
            if column >= 0:
                there = (batch.starts[column] != MISSING) & ~batch.odd
                size += int(kernels.MOST[how] * (batch.ends[column] - batch.starts[column])[there].sum())
        return size

    def present(self, batch: Batch) -> Ids:
        """1 for the rows that have all values, 0 for the others."""
        return (batch.starts[self.columns] != MISSING).all(axis=0).astype(np.int64)


class Cell:
    """Text from one column, as it is."""

    def __init__(self, column: int) -> None:
        self._column = column

    def cells(self, batch: Batch) -> Cells:
        return batch.column(self._column)


# --------------------------------------------------------------------------------- terms


class TheSame:
    """One term for every row."""

    def __init__(self, term: NamedNode | BlankNode | Literal) -> None:
        self.term = term
        self._text = term_ids.padded(term_ids.text(term).encode())

    def made(self, batch: Batch, wanted: bool) -> Column:
        id = term_ids.encode(self.term, batch.seed) if wanted else 1
        ids = np.full(batch.size, id)
        if id < 0 or not wanted:
            return Column(ids)
        size = len(self._text) - PADDING
        return Column(ids, self._text, np.zeros(batch.size, np.int64), np.full(batch.size, size))


class Written:
    """A term whose canonical text is put together: an IRI, a literal without a datatype to check."""

    def __init__(self, text: Joined, what: int) -> None:
        self._text, self._what = text, what

    def made(self, batch: Batch, wanted: bool) -> Column:
        if not wanted and self._what != kernels.IRI:
            return Column(self._text.present(batch))
        return _known(self._text.cells(batch), self._what, batch)


class Blank:
    """A blank node of the row."""

    def __init__(self, parts: Sequence[tuple[int, int | bytes]]) -> None:
        self._parts = parts
        self._text = Joined(parts)

    def made(self, batch: Batch, wanted: bool) -> Column:
        if not wanted:
            return Column(self._text.present(batch))
        scope: list[tuple[int, int | bytes]] = [(kernels.LITERAL, b"_:" + batch.scope), (kernels.NUMBER, -1)]
        label = Joined([*scope, (kernels.LITERAL, b"b"), *self._parts])
        return _known(label.cells(batch), kernels.ANY, batch)


class Value:
    """A literal with a datatype that its text is checked against."""

    def __init__(self, text: Text, datatype: str) -> None:
        self._text = text
        name = datatype.removeprefix(XSD)
        self._shape = _SHAPES.get(name, value_kernels.OTHER)
        self._check = DATATYPES[datatype] if self._shape == value_kernels.OTHER else None
        low, high = _BOUNDS.get(name, (None, None))
        least, most = -(2**63), 2**63 - 1
        word = int.from_bytes(name.encode(), "little") if name in _INLINE else 0
        self._datatype = (
            self._shape,
            least if low is None else low,
            most if high is None else min(high, most),
            np.uint64(word),
            term_ids.padded(f'"^^<{datatype}>'.encode()),
        )
        self._behind = len(self._datatype[4]) - PADDING

    def made(self, batch: Batch, wanted: bool) -> Column:
        wanted = wanted or self._check is not None
        cells = self._text.cells(batch)
        ids, begins, ends = (np.empty(batch.size, np.int64) for _ in range(3))
        room = 0
        if wanted:
            there = cells.start != MISSING
            room = batch.size * (self._behind + 1) + int((cells.end - cells.start)[there].sum())
        out = np.empty(room + 2 * PADDING, np.uint8)
        found = (ids, out, begins, ends)
        value_kernels.valued(
            addressed(cells), self._datatype, wanted, np.uint64(batch.seed), batch.odd, found
        )
        made = Column(ids, out, begins, ends)
        if self._check is not None:
            self._look_at_each(made, batch.odd)
        return made

    def _look_at_each(self, made: Column, odd: NDArray[np.bool_]) -> None:
        """Check what the kernel has no way to: each text once."""
        assert self._check is not None
        rows = np.flatnonzero((made.ids != 0) & ~odd)
        _, first, which = np.unique(made.ids[rows], return_index=True, return_inverse=True)
        bad = np.zeros(len(first), np.bool_)
        for place, row in enumerate(rows[first].tolist()):
            text = made.text[made.begins[row] + 1 : made.ends[row] - self._behind].tobytes()
            bad[place] = not self._check(text.decode("utf-8", "replace"))
        odd[rows[bad[which]]] = True


class Instant:
    """An xsd:dateTime from a column of times that are written in another way."""

    def __init__(self, text: Text, moments: Moments, datatype: str) -> None:
        self._text, self._moments = text, moments
        # Only the datatype that times have of themselves has ids that say it all.
        self._other = None if datatype == XSD + "dateTime" else f'"^^<{datatype}>'.encode()

    def times(self, batch: Batch) -> Ids:
        return self._moments.read(self._text.cells(batch), batch.odd)

    def made(self, batch: Batch, wanted: bool) -> Column:
        ms = self.times(batch)
        ids = np.empty(batch.size, np.int64)
        ms[batch.odd] = NO_TIME
        date_times(ms, ids)
        if not wanted or self._other is None:
            return Column(ids)
        there = np.flatnonzero(ids)
        text, offsets = inline_texts(ids[there], False)
        start, end = np.full(batch.size, MISSING), np.zeros(batch.size, np.int64)
        start[there], end[there] = offsets[:-1], offsets[1:]
        cells = Cells(np.concatenate([text, _NO_TEXT]), start, end)
        lexical = Batch([cells], batch.size, batch.odd, batch.seed, b"", 0)
        parts: list[tuple[int, int | bytes]] = [
            (kernels.LITERAL, b'"'),
            (kernels.PLAIN, 0),
            (kernels.LITERAL, self._other),
        ]
        return _known(Joined(parts).cells(lexical), kernels.ANY, batch)


def _known(cells: Cells, what: int, batch: Batch) -> Column:
    ids = np.empty(batch.size, np.int64)
    kernels.known_by(cells.text, cells.start, cells.end, what, np.uint64(batch.seed), batch.odd, ids)
    return Column(ids, *cells)


_INLINE = frozenset(["integer", "boolean", "decimal", "double", "float", "dateTime"])
_BOUNDS: dict[str, tuple[int | None, int | None]] = {
    "integer": (None, None),
    "long": (-(2**63), 2**63 - 1),
    "int": (-(2**31), 2**31 - 1),
    "short": (-(2**15), 2**15 - 1),
    "byte": (-128, 127),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
    "unsignedLong": (0, 2**64 - 1),
    "unsignedInt": (0, 2**32 - 1),
    "unsignedShort": (0, 2**16 - 1),
    "unsignedByte": (0, 255),
}
_SHAPES = dict.fromkeys(_BOUNDS, value_kernels.INTEGER) | {
    "boolean": value_kernels.BOOLEAN,
    "decimal": value_kernels.DECIMAL,
    "double": value_kernels.FLOATING,
    "float": value_kernels.FLOATING,
    "dateTime": value_kernels.DATE_TIME,
    "dateTimeStamp": value_kernels.STAMP,
    "date": value_kernels.DATE,
    "time": value_kernels.TIME,
}

# --------------------------------------------------------------------------------- compile

# Behind such a beginning, whatever is percent-encoded is part of an IRI.
_INSIDE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?://[^/?#]*[/?#]|(?!//)).*", re.DOTALL)


def parts_of(
    template: Template, columns: dict[str, int], encoded: int, plain: int
) -> list[tuple[int, int | bytes]]:
    """The parts of a template, its values put down in one way or, where they are to be as they are, in
    another."""
    parts: list[tuple[int, int | bytes]] = []
    for part in template.parts:
        if isinstance(part, tuple):
            name, as_it_is = part
            parts.append((plain if as_it_is else encoded, columns[name]))
        elif part:
            parts.append((kernels.LITERAL, part.encode()))
    return parts


def text_of(template: Template, columns: dict[str, int]) -> Text:
    """What a template says, without any encoding."""
    parts = parts_of(template, columns, kernels.PLAIN, kernels.PLAIN)
    if len(parts) == 1 and isinstance(parts[0][1], int):
        return Cell(parts[0][1])
    return Joined(parts)


def term_of(maker: TermMaker, columns: dict[str, int]) -> Term | None:
    """What makes the same terms as the maker does, by columns; None if nothing does."""
    if isinstance(maker, Constant):
        return TheSame(maker.term)
    if isinstance(maker, IriMaker):
        parts = parts_of(maker.template, columns, kernels.ENCODED, kernels.PLAIN)
        first = maker.template.parts[0]
        sure = isinstance(first, str) and _INSIDE.fullmatch(first) is not None
        sure = sure and not any(p[1] if isinstance(p, tuple) else "%" in p for p in maker.template.parts)
        joined = Joined([(kernels.LITERAL, b"<"), *parts, (kernels.LITERAL, b">")])
        return Written(joined, kernels.ANY if sure else kernels.IRI)
    if isinstance(maker, BlankMaker):
        hexed = [
            (how, what.hex().encode() if isinstance(what, bytes) else what)
            for how, what in parts_of(maker.template, columns, kernels.HEX, kernels.HEX)
        ]
        return Blank(hexed)
    if not isinstance(maker, LiteralMaker):
        return None
    if maker.time is not None:
        return Instant(text_of(maker.template, columns), Moments(maker.time), maker.datatype)
    if maker.check is not None and not maker.language:
        return Value(text_of(maker.template, columns), maker.datatype)
    # The text of the datatype or language, as it stands behind that of the literal.
    empty = Literal("", language=maker.language) if maker.language else Literal("", datatype=maker.node)
    behind = term_ids.text(empty)[1:].encode()
    text: list[tuple[int, int | bytes]] = [
        (kernels.LITERAL, term_ids.text(Literal(what.decode()))[1:-1].encode())
        if isinstance(what, bytes)
        else (how, what)
        for how, what in parts_of(maker.template, columns, kernels.ESCAPED, kernels.ESCAPED)
    ]
    joined = Joined([(kernels.LITERAL, b'"'), *text, (kernels.LITERAL, behind)])
    return Written(joined, kernels.STRING if behind == b'"' else kernels.ANY)
