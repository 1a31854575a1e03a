"""Answers on paper: NDJSON, CSV, JSON, and tables that a person can read.

A writer takes answers one by one and is closed at the end; `writer_for` knows them by name.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Mapping
from typing import Protocol, TextIO

from kelda.engine.answer import Answer
from kelda.io.formats import CSV_FIXED, Shape, csv_row, shape_of
from kelda.io.tables import short, short_iri, short_name, table

__all__ = [
    "FORMATS",
    "Shape",
    "Writer",
    "shape_of",
    "short",
    "short_iri",
    "short_name",
    "table",
    "writer_for",
]

FORMATS = ("table", "ndjson", "csv", "json")

BLOCK_SECONDS = 1.0  # a table gathers rows for this long before it is printed
BLOCK_ROWS = 500


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
            self.rows.writerow([*CSV_FIXED, *self.columns])

    def write(self, answer: Answer) -> None:
        self.rows.writerow(csv_row(answer, self.columns))

    def idle(self) -> None:
        self.out.flush()

    def close(self) -> None:
        self.out.flush()


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
