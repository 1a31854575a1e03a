"""Answers for programs: what a query's columns are, and its answers as bytes that can be appended.

A file of answers is `head()` once, then the `body` of one batch after the other, so a file that ends
behind any batch is whole. The RDF formats (N-Quads, RDF Messages) are for CONSTRUCT and DESCRIBE: an
answer becomes one event of a stream that `kelda.rdf.framing` reads back, with its time and its bounds.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote

from pyoxigraph import Literal, NamedNode, Quad, Triple

from kelda.engine.answer import Answer, Value
from kelda.engine.columnar import blocks_in
from kelda.engine.report import output_of
from kelda.errors import UsageError
from kelda.io import written
from kelda.io.spelling import bare
from kelda.io.spelling import exact as exact_term
from kelda.io.written_kernels import INSTANT, TIME
from kelda.lang import algebra as A
from kelda.lang.scope import selected
from kelda.rdf.framings.eventtime import TIME_PREDICATES, to_ms
from kelda.rdf.ids import encode
from kelda.rdf.times import XSD, ms_to_literal

TIME_PREDICATE = TIME_PREDICATES[0]  # what a reader looks for first when nobody names a predicate

Cell = Value | bool | tuple[Triple | Quad, ...]
Bytes = bytes | memoryview


@dataclass(frozen=True, slots=True)
class Shape:
    """What a writer knows of a query before its first answer: its columns and prefixes, what kind of
    answers it gives, and which differences it sends (None: not told)."""

    columns: tuple[str, ...]
    prefixes: tuple[tuple[str, str], ...] = ()
    form: A.Form | None = None
    output: A.Output | None = None


def shape_of(query: A.Query, output: A.Output | None = None) -> Shape:
    """The shape of a query. Its columns are its variables, or `triples` or `boolean`; `output` is what
    it was told to send at registration."""
    match query.form:
        case A.Form.ASK:
            columns: tuple[str, ...] = ("boolean",)
        case A.Form.CONSTRUCT | A.Form.DESCRIBE:
            columns = ("triples",)
        case A.Form.SELECT:
            columns = selected(query.pattern)
    return Shape(columns, query.prefixes, query.form, output or output_of(query))


def cells_of(answer: Answer) -> Mapping[str, Cell]:
    """What the answer puts in which column."""
    if answer.bindings is not None:
        return answer.bindings
    if answer.triples is not None:
        return {"triples": answer.triples}
    return {"boolean": bool(answer.boolean)}


def plain(value: Cell) -> str:
    """The bare text of a value: an IRI without brackets, a literal without its type."""
    match value:
        case bool():
            return "true" if value else "false"
        case tuple():
            return "\n".join(f"{t} ." for t in value)
    return bare(value)


def exact(value: Cell) -> str:
    """The N-Triples text of a value."""
    match value:
        case bool():
            return "true" if value else "false"
        case tuple():
            return "".join(f"{t} .\n" for t in value)
    return exact_term(value)


# ---------------------------------------------------------------------------------- formats


class Format(Protocol):
    """A way to write answers. `columns` is None where they are yet to be learnt from the first answers;
    a format without columns has none to learn, and says ()."""

    suffix: str
    columns: tuple[str, ...] | None

    def head(self) -> bytes:
        """What a file begins with."""
        ...

    def body(self, answers: Sequence[Answer]) -> Bytes:
        """The answers, to be put behind what is there."""
        ...


def _together(parts: Sequence[Bytes]) -> Bytes:
    return parts[0] if len(parts) == 1 else b"".join(parts)


def columns_in(answers: Sequence[Answer]) -> tuple[str, ...]:
    """The columns that these answers fill, in order of appearance."""
    if (blocks := blocks_in(answers)) is not None:
        return tuple(dict.fromkeys(name for block in blocks for name in written.bound(block)))
    return tuple(dict.fromkeys(name for answer in answers for name in cells_of(answer)))


def check_columns(columns: tuple[str, ...], answers: Sequence[Answer]) -> None:
    """Refuse answers with a variable that has no column: it would be lost."""
    missing = set(columns_in(answers)) - set(columns)
    if missing:
        raise UsageError(
            f"no column for ?{', ?'.join(sorted(missing))}: the columns are {', '.join(columns) or 'none'}, "
            "as the first answers had them; open the sink with shape=shape_of(query), which knows all"
        )


class Ndjson:
    """One `Answer.to_json()` a line."""

    suffix = ".ndjson"
    columns: tuple[str, ...] | None = ()

    def head(self) -> bytes:
        return b""

    def body(self, answers: Sequence[Answer]) -> Bytes:
        if (blocks := blocks_in(answers)) is not None:
            return _together([written.json_lines(block) for block in blocks])
        return "".join([answer.to_json() + "\n" for answer in answers]).encode()


def json_array(answers: Sequence[Answer]) -> Bytes:
    """The answers as they stand in an array, each behind a comma and on a line of its own."""
    if (blocks := blocks_in(answers)) is not None:
        return _together([written.json_lines(block, before=",\n", after="") for block in blocks])
    return "".join([",\n" + answer.to_json() for answer in answers]).encode()


CSV_FIXED = ("query", "time", "sign")


def csv_row(answer: Answer, columns: Iterable[str]) -> list[object]:
    """query, time (ms), sign, then the columns; values as SPARQL 1.1 CSV has them."""
    cells = cells_of(answer)
    values = [plain(cells[c]) if c in cells else "" for c in columns]
    return [answer.query, answer.time, answer.sign, *values]


class Csv:
    """A header, then a row an answer."""

    suffix = ".csv"

    def __init__(self, columns: tuple[str, ...] | None) -> None:
        self.columns = columns

    def head(self) -> bytes:
        return self._text([[*CSV_FIXED, *(self.columns or ())]])

    def body(self, answers: Sequence[Answer]) -> Bytes:
        columns = self.columns or ()
        check_columns(columns, answers)
        blocks = blocks_in(answers)
        if blocks is not None and all(block.query.form is not A.Form.CONSTRUCT for block in blocks):
            return _together([written.csv_rows(block, columns) for block in blocks])
        return self._text(csv_row(answer, columns) for answer in answers)

    @staticmethod
    def _text(rows: Iterable[Sequence[object]]) -> bytes:
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(rows)
        return out.getvalue().encode()


class Parquet:
    """A table: `time` (int64, ms), `sign`, then a column for each variable, as N-Triples text, null where
    unbound; `triples` as N-Triples text, `boolean` as a boolean. A body is a whole file: for folders.

    A variable that is itself called `time` or `sign` has the column `?time` or `?sign`.
    """

    suffix = ".parquet"

    def __init__(self, columns: tuple[str, ...] | None, form: A.Form | None = None) -> None:
        self.columns, self._form = columns, form

    def head(self) -> bytes:
        return b""

    def body(self, answers: Sequence[Answer]) -> Bytes:
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns = self.columns or ()
        check_columns(columns, answers)
        blocks = blocks_in(answers)
        if blocks is not None:
            tables = [written.parquet_table(block, columns) for block in blocks]
            table = pa.concat_tables(tables)
        else:
            table = self._table(answers, columns)
        out = io.BytesIO()
        # Without Arrow's own schema: a column is a string column to readers, however it was written.
        pq.write_table(table, out, compression="zstd", store_schema=False, write_statistics=["time"])
        return out.getbuffer()

    def _table(self, answers: Sequence[Answer], columns: tuple[str, ...]) -> Any:
        import pyarrow as pa

        cells = [cells_of(answer) for answer in answers]
        texts: dict[Cell, str] = {}  # terms come again and again
        table: dict[str, object] = {
            "time": pa.array([answer.time for answer in answers], pa.int64()),
            "sign": pa.array([answer.sign for answer in answers], pa.string()),
        }
        asks = self._form is A.Form.ASK or any(answer.boolean is not None for answer in answers)
        for column in columns:
            values = [row.get(column) for row in cells]
            if asks:
                table[column] = pa.array(values, pa.bool_())
                continue
            for value in values:
                if value is not None and value not in texts:
                    texts[value] = exact(value)
            texts_of = [None if v is None else texts[v] for v in values]
            table[written.shown(column)] = pa.array(texts_of, pa.string())
        return pa.table(table)


class _Events:
    """Answers as events: what N-Quads and RDF Messages have in common."""

    def __init__(self, *, sign: str = "+", time_predicate: str = TIME_PREDICATE) -> None:
        self._sign, self._predicate = sign, NamedNode(time_predicate)

    def _of_columns(self, answers: Sequence[Answer]) -> Bytes | None:
        """Answers that are columns, if nothing about them is to be refused."""
        predicate, found = encode(self._predicate), []
        for block in blocks_in(answers) or ():
            texts = written.events(
                block, self._sign, predicate, self._time(block.name), **self._more(block.name)
            )
            if texts is None:
                return None
            found.append(texts)
        return _together(found) if found else None

    def _time(self, query: str) -> written.Lead:
        """The line that says the time of an answer."""
        iri = f"<{event_iri(query, '')}"
        said = f'"^^<{XSD}dateTime> .\n'
        return written.lead(iri, TIME, f'> {self._predicate} "', INSTANT, said)

    def _more(self, query: str) -> dict[str, Any]:
        return {}


class NQuads(_Events):
    """Standard N-Quads. The triples of an answer are a named graph, and its time is said of that graph. What
    the query itself puts into a graph stands in that one; the time of the answer is then not said of it."""

    suffix = ".nq"
    columns: tuple[str, ...] | None = ()

    def head(self) -> bytes:
        return b""

    def body(self, answers: Sequence[Answer]) -> Bytes:
        if (found := self._of_columns(answers)) is not None:
            return found
        lines: list[str] = []
        for answer in answers:
            triples = event_of(answer, self._sign, self._predicate)
            graph = NamedNode(event_iri(answer.query, answer.time))
            lines.append(f"{time_triple(answer, self._predicate)} .\n")
            lines += [f"{t} .\n" if isinstance(t, Quad) else f"{t} {graph} .\n" for t in triples]
        return "".join(lines).encode()

    def _more(self, query: str) -> dict[str, Any]:
        return {"graph": written.lead(f" <{event_iri(query, '')}", TIME, ">")}


class Messages(_Events):
    """RDF Messages in N-Triples (N-Quads, where the query puts triples into graphs): an answer is a message,
    the first triple of it says its time."""

    suffix = ".messages"
    columns: tuple[str, ...] | None = ()

    def head(self) -> bytes:
        return b'VERSION "1.2-messages"\n'

    def body(self, answers: Sequence[Answer]) -> Bytes:
        if (found := self._of_columns(answers)) is not None:
            return found
        lines: list[str] = []
        for answer in answers:
            triples = event_of(answer, self._sign, self._predicate)
            lines.append(f"{time_triple(answer, self._predicate)} .\n")
            lines += [f"{triple} .\n" for triple in triples]
            lines.append("MESSAGE\n")
        return "".join(lines).encode()

    def _more(self, query: str) -> dict[str, Any]:
        return {"tail": "MESSAGE\n"}


# ----------------------------------------------------------------------- answers as events


def event_iri(query: str, time: int | str) -> str:
    """The name of what a query said at an instant.

    >>> event_iri("http://ex/jam", 1500)
    'urn:kelda:answer:http%3A%2F%2Fex%2Fjam:1500'
    """
    return f"urn:kelda:answer:{quote(query, safe='')}:{time}"


def time_triple(answer: Answer, predicate: NamedNode) -> Triple:
    """The triple that says the time of an answer."""
    return Triple(NamedNode(event_iri(answer.query, answer.time)), predicate, ms_to_literal(answer.time))


def event_of(answer: Answer, sign: str, time_predicate: NamedNode) -> tuple[Triple | Quad, ...]:
    """The triples of an answer, if they can be an event of a stream and be read back with its time."""
    if answer.triples is None:
        raise UsageError(_not_triples(answer.query))
    if answer.sign != sign:
        raise UsageError(_two_signs(answer.query))
    for triple in answer.triples:
        if triple.predicate == time_predicate:
            said = to_ms(triple.object.value) if isinstance(triple.object, Literal) else None
            if said is None or said > answer.time:
                raise UsageError(
                    f"query '{answer.query}' says {triple} at {answer.time}, and whoever reads its answers "
                    "as a stream would take that for their time; name another time_predicate for the sink"
                )
    return answer.triples


def sign_of_events(query: str, shape: Shape | None) -> str:
    """The sign of the answers that are the events of a stream: "-" for DSTREAM, else "+".

    Refuses, before there are answers, queries whose answers cannot be events.
    """
    if shape is None:
        return "+"
    if shape.form in (A.Form.SELECT, A.Form.ASK):
        raise UsageError(_not_triples(query))
    if shape.output is A.Output.CHANGES:
        raise UsageError(_two_signs(query))
    return "-" if shape.output is A.Output.DSTREAM else "+"


def _not_triples(query: str) -> str:
    return (
        f"query '{query}' answers with rows, and an RDF stream is made of triples: "
        "write a CONSTRUCT query, or write the answers as ndjson, csv or parquet"
    )


def _two_signs(query: str) -> str:
    return (
        f"query '{query}' sends what is new and what is gone, and a stream cannot tell them apart: "
        "let it send one of them (istream, dstream) or all (rstream), or write ndjson, csv or parquet"
    )
