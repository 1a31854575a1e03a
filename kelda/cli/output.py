"""Answers on paper: NDJSON, CSV, JSON, and tables that a person can read.

A writer takes answers one by one and is closed at the end; `writer_for` knows them by name.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TextIO

from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from kelda.engine.answer import Answer, Value
from kelda.lang import algebra as A
from kelda.rdf.times import ms_to_iso

if TYPE_CHECKING:
    from rich.table import Table

FORMATS = ("table", "ndjson", "csv", "json")

BLOCK_SECONDS = 1.0  # a table gathers rows for this long before it is printed
BLOCK_ROWS = 500
XSD = "http://www.w3.org/2001/XMLSchema#"
PLAIN_TYPES = frozenset(
    XSD + t for t in ("string", "integer", "decimal", "double", "boolean", "float", "int", "long")
)


@dataclass(frozen=True, slots=True)
class Shape:
    """What a writer knows of a query before its first answer: its columns and its prefixes."""

    columns: tuple[str, ...]
    prefixes: tuple[tuple[str, str], ...] = ()


def shape_of(query: A.Query) -> Shape:
    """The columns of a query: its variables, or `triples` or `boolean`."""
    match query.form:
        case A.Form.ASK:
            columns: tuple[str, ...] = ("boolean",)
        case A.Form.CONSTRUCT | A.Form.DESCRIBE:
            columns = ("triples",)
        case A.Form.SELECT:
            columns = selected(query.pattern)
    return Shape(columns, query.prefixes)


def selected(pattern: A.Pattern) -> tuple[str, ...]:
    """The variables of the outermost projection."""
    while not isinstance(pattern, A.Project):
        inner = getattr(pattern, "pattern", None)
        if not isinstance(inner, A.Pattern):
            return ()
        pattern = inner
    return tuple(v.name for v in pattern.vars if not v.name.startswith("."))


class Writer(Protocol):
    """Takes answers; `idle` may be called at any time between them, `close` once, after the last."""

    def write(self, answer: Answer) -> None: ...
    def idle(self) -> None: ...
    def close(self) -> None: ...


def writer_for(
    format: str,
    out: TextIO,
    shapes: Mapping[str, Shape],
    before_print: Callable[[], None],
    *,
    header: bool = True,
) -> Writer:
    """The writer of a format. `shapes` are the queries by name; `before_print` is called before a
    table is written (to take a progress line out of its way). Without `header` a CSV goes on where
    an earlier one ended."""
    match format:
        case "ndjson":
            return NdjsonWriter(out)
        case "json":
            return JsonWriter(out)
        case "csv":
            return CsvWriter(out, shapes, header)
        case _:
            return TableWriter(out, shapes, before_print)


# ------------------------------------------------------------------------------- for programs


class NdjsonWriter:
    """One `Answer.to_json()` a line."""

    def __init__(self, out: TextIO) -> None:
        self.out = out

    def write(self, answer: Answer) -> None:
        self.out.write(answer.to_json() + "\n")

    def idle(self) -> None:
        self.out.flush()

    def close(self) -> None:
        self.out.flush()


class JsonWriter:
    """One array of all answers."""

    def __init__(self, out: TextIO) -> None:
        self.out, self.before = out, "["

    def write(self, answer: Answer) -> None:
        self.out.write(f"{self.before}\n{answer.to_json()}")
        self.before = ","

    def idle(self) -> None:
        self.out.flush()

    def close(self) -> None:
        self.out.write("[]\n" if self.before == "[" else "\n]\n")
        self.out.flush()


class CsvWriter:
    """query, time (ms), sign, then the variables of all queries; values as SPARQL 1.1 CSV has them."""

    def __init__(self, out: TextIO, shapes: Mapping[str, Shape], header: bool = True) -> None:
        self.out = out
        self.columns = list(dict.fromkeys(c for shape in shapes.values() for c in shape.columns))
        self.rows = csv.writer(out, lineterminator="\n")
        if header:
            self.rows.writerow(["query", "time", "sign", *self.columns])

    def write(self, answer: Answer) -> None:
        cells = {name: plain(value) for name, value in cells_of(answer).items()}
        self.rows.writerow(
            [answer.query, answer.time, answer.sign, *(cells.get(c, "") for c in self.columns)]
        )

    def idle(self) -> None:
        self.out.flush()

    def close(self) -> None:
        self.out.flush()


Cell = Value | bool | tuple[Triple, ...]


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
        case Triple():
            return str(value)
        case BlankNode():
            return f"_:{value.value}"
    return value.value


# --------------------------------------------------------------------------------- for people


class TableWriter:
    """Tables by query. Rows are gathered for a second, then printed: live, but not line by line."""

    def __init__(
        self,
        out: TextIO,
        shapes: Mapping[str, Shape],
        before_print: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        from rich.console import Console

        # Away from a terminal nothing is gained by folding lines, and `grep` loses by it.
        self.console = Console(file=out, highlight=False, width=None if out.isatty() else 10_000)
        self.shapes, self.before_print, self.clock = shapes, before_print, clock
        self.gathered: dict[str, list[Answer]] = {}
        self.rows = 0
        self.since = clock()

    def write(self, answer: Answer) -> None:
        if not self.rows:
            self.since = self.clock()
        self.gathered.setdefault(answer.query, []).append(answer)
        self.rows += 1
        if self.rows >= BLOCK_ROWS:
            self.print()
        else:
            self.idle()

    def idle(self) -> None:
        if self.rows and self.clock() - self.since >= BLOCK_SECONDS:
            self.print()

    def close(self) -> None:
        self.print()

    def print(self) -> None:
        if not self.rows:
            return
        self.before_print()
        for name, answers in self.gathered.items():
            self.console.print(table(name, answers, self.shapes.get(name, Shape(()))))
            self.console.print()
        self.console.file.flush()
        self.gathered, self.rows = {}, 0


def table(name: str, answers: Sequence[Answer], shape: Shape, *, timed: bool = True) -> Table:
    """The answers of one query as a rich table: time, sign, then the columns. What is gone is red."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    columns = list(shape.columns) or list(dict.fromkeys(c for a in answers for c in cells_of(a)))
    out = Table(
        title=Text(short_name(name, shape.prefixes), "bold cyan") if name else None,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=(0, 1, 0, 0),
    )
    if timed:
        out.add_column("time", style="dim", no_wrap=True)
        out.add_column("")
    for column in columns:
        values = [cells_of(a).get(column) for a in answers]
        out.add_column(
            Text(column), justify="right" if all(map(is_number, values)) else "left", overflow="fold"
        )
    for answer in answers:
        cells = cells_of(answer)
        shown = [Text(short(cells[c], shape.prefixes) if c in cells else "") for c in columns]
        if timed:
            gone = answer.sign == "-"
            shown = [Text(ms_to_iso(answer.time)), Text(answer.sign, "red" if gone else "green"), *shown]
        out.add_row(*shown)
    return out


def is_number(value: Cell | None) -> bool:
    """Whether a column that holds it may be set flush right."""
    numbers = ("integer", "decimal", "double", "float", "int", "long")
    return value is None or (
        isinstance(value, Literal) and value.datatype.value in {XSD + n for n in numbers}
    )


def short(value: Cell, prefixes: Sequence[tuple[str, str]]) -> str:
    """A value as a person would say it: IRIs by the query's prefixes, numbers and strings bare.

    >>> short(NamedNode("http://ex/lab"), [("", "http://ex/")])
    ':lab'
    >>> short(Literal("chat", language="fr"), [])
    'chat@fr'
    """
    match value:
        case NamedNode():
            return short_iri(value.value, prefixes)
        case Literal():
            if value.language:
                return f"{value.value}@{value.language}"
            kind = value.datatype.value
            if kind in (XSD + "decimal", XSD + "double", XSD + "float"):
                return short_number(value.value)
            return (
                value.value
                if kind in PLAIN_TYPES or kind.startswith(XSD + "date")
                else (f'"{value.value}"^^{short_iri(kind, [("xsd", XSD), *prefixes])}')
            )
        case Triple():
            return (
                "<< "
                + " ".join(short(t, prefixes) for t in (value.subject, value.predicate, value.object))
                + " >>"
            )
        case tuple():
            return "\n".join(
                " ".join(short(part, prefixes) for part in (t.subject, t.predicate, t.object)) + " ."
                for t in value
            )
    return plain(value)


def short_iri(iri: str, prefixes: Sequence[tuple[str, str]]) -> str:
    """The IRI by the longest prefix that fits and leaves a simple name, else in brackets."""
    fitting = [(name, start) for name, start in prefixes if start and iri.startswith(start)]
    for name, start in sorted(fitting, key=lambda p: -len(p[1])):
        rest = iri[len(start) :]
        if not any(c in "/#?" for c in rest):
            return f"{name.removesuffix(':')}:{rest}"
    return f"<{iri}>"


def short_name(name: str, prefixes: Sequence[tuple[str, str]]) -> str:
    """The name of a query, which may be an IRI.

    >>> short_name("http://ex/jam", [("", "http://ex/")]), short_name("jam", [])
    (':jam', 'jam')
    """
    return short_iri(name, prefixes).removeprefix("<").removesuffix(">")


def short_number(text: str) -> str:
    """At most six digits behind the point: what a table has room for.

    >>> short_number("21.333333333333332"), short_number("4.0"), short_number("NaN"), short_number("1e30")
    ('21.333333', '4.0', 'NaN', '1e30')
    """
    _, point, digits = text.partition(".")
    if not point or len(digits) <= 6 or not digits.isdigit():
        return text
    return f"{float(text):.6f}".rstrip("0").rstrip(".") if 1e-3 < abs(float(text)) < 1e15 else text
