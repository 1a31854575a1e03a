"""Answers for people: tables with times as dates, IRIs by their prefixes, numbers cut to six decimals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import chain, islice
from typing import TYPE_CHECKING

from pyoxigraph import Literal, NamedNode, Triple

from kelda.engine.answer import Answer
from kelda.engine.block import Block
from kelda.io.formats import Cell, Shape, cells_of, plain
from kelda.rdf.times import ms_to_iso
from kelda.words import count

if TYPE_CHECKING:
    from rich.table import Table

XSD = "http://www.w3.org/2001/XMLSchema#"
PLAIN_TYPES = frozenset(
    XSD + t for t in ("string", "integer", "decimal", "double", "boolean", "float", "int", "long")
)


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
        shown = [Text(cell) for cell in _shown(answer, columns, shape.prefixes)]
        if timed:
            gone = answer.sign == "-"
            shown = [Text(ms_to_iso(answer.time)), Text(answer.sign, "red" if gone else "green"), *shown]
        out.add_row(*shown)
    return out


def html_table(name: str, blocks: Sequence[Block], shape: Shape, limit: int = 20) -> str:
    """The first answers of a query as a small HTML table, for notebooks."""
    answers = list(islice(chain.from_iterable(block.first(limit) for block in blocks), limit))
    total = sum(map(len, blocks))
    columns = list(shape.columns) or list(dict.fromkeys(c for a in answers for c in cells_of(a)))
    said = count(total, "answer") + (f", the first {limit:,} here" if total > len(answers) else "")
    head = _html_row("th", ["time", "", *columns])
    return (
        f"<table><caption>{escape(short_name(name, shape.prefixes))}: {said}</caption>"
        f"<thead>{head}</thead><tbody>"
        + "".join(
            _html_row("td", [ms_to_iso(a.time), a.sign, *_shown(a, columns, shape.prefixes)]) for a in answers
        )
        + "</tbody></table>"
    )


def _shown(answer: Answer, columns: Sequence[str], prefixes: Sequence[tuple[str, str]]) -> Iterable[str]:
    cells = cells_of(answer)
    return (short(cells[column], prefixes) if column in cells else "" for column in columns)


def _html_row(kind: str, cells: Iterable[str]) -> str:
    lines = (escape(cell).replace("\n", "<br>") for cell in cells)
    return "<tr>" + "".join(f"<{kind}>{cell}</{kind}>" for cell in lines) + "</tr>"


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
