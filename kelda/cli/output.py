"""Answers on paper: NDJSON, CSV, JSON, and tables that a person can read.

A writer takes answers as they come and is closed at the end; `writer_for` knows them by name.
"""

from __future__ import annotations

import codecs
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from io import TextIOWrapper
from typing import Protocol, TextIO

from kelda.engine.answer import Answer
from kelda.engine.block import Block
from kelda.engine.columnar import Columnar
from kelda.io.formats import Bytes, Csv, Format, Ndjson, Shape, json_array
from kelda.io.tables import table

BLOCK_SECONDS = 1.0  # a table gathers rows for this long before it is printed
BLOCK_ROWS = 500


class Writer(Protocol):
    """Takes answers; `idle` may be called at any time between them, `close` once, after the last."""

    def write(self, answers: Sequence[Answer]) -> None: ...
    def idle(self) -> None: ...
    def close(self) -> None: ...


def writer_for(
    format: str,
    out: TextIO,
    shapes: Mapping[str, Shape],
    before_print: Callable[[], None],
    *,
    header: bool = True,
    timed: bool = True,
) -> Writer:
    """The writer of a format. `shapes` are the queries by name; `before_print` is called before a
    table is written (to take a progress line out of its way). Without `header` a CSV goes on where
    an earlier one ended; without `timed`, tables tell answers that hold now, whose time is no news."""
    match format:
        case "ndjson":
            return LineWriter(out, Ndjson())
        case "json":
            return JsonWriter(out)
        case "csv":
            columns = dict.fromkeys(column for shape in shapes.values() for column in shape.columns)
            return LineWriter(out, Csv(tuple(columns)), header)
        case _:
            return TableWriter(out, shapes, before_print, timed=timed)


# ------------------------------------------------------------------------------- for programs


class LineWriter:
    """Answers in a format that can be appended to."""

    def __init__(self, out: TextIO, format: Format, header: bool = True) -> None:
        self.out, self.format = out, format
        if header:
            out.write(format.head().decode())

    def write(self, answers: Sequence[Answer]) -> None:
        put(self.out, self.format.body(answers))

    def idle(self) -> None:
        self.out.flush()

    def close(self) -> None:
        self.out.flush()


def put(out: TextIO, data: Bytes) -> None:
    """Write text that is bytes already, as such where that is the same."""
    if isinstance(out, TextIOWrapper) and codecs.lookup(out.encoding).name == "utf-8":
        out.flush()
        out.buffer.write(data)
    else:
        out.write(bytes(data).decode())


class JsonWriter:
    """One array of all answers."""

    def __init__(self, out: TextIO) -> None:
        self.out, self.before = out, "["

    def write(self, answers: Sequence[Answer]) -> None:
        if len(answers):
            self.out.write(self.before)
            put(self.out, memoryview(json_array(answers))[1:])  # without the comma before the first
            self.before = ","

    def idle(self) -> None:
        self.out.flush()

    def close(self) -> None:
        self.out.write("[]\n" if self.before == "[" else "\n]\n")
        self.out.flush()


# -------------------------------------------------------------------------------- from an engine


class Paper:
    """What an engine's threads answer, gathered and written in blocks. If it is `lasting`, what was taken is
    out of our hands when `take` returns."""

    def __init__(self, writer: Writer, out: TextIO, *, lasting: bool = False) -> None:
        self.count = 0
        self._writer, self._out, self._lasting = writer, out, lasting
        self._taken: list[Block] = []
        self._waiting = 0
        self._lock = threading.Lock()
        self._problem: OSError | None = None
        self._closed = False

    def take(self, block: Block) -> None:
        """Some more, from any thread."""
        with self._lock:
            self._taken.append(block)
            self._waiting += len(block)
            self.count += len(block)
            if self._lasting or self._waiting >= BLOCK_ROWS:
                self._write()

    def idle(self) -> None:
        """There is time to write. Raises what writing failed with: nobody reads on, the disk is full."""
        with self._lock:
            self._write()
            if self._problem is None:
                self._writer.idle()
        if self._problem is not None:
            raise self._problem

    def close(self) -> None:
        """Write the rest: what was answered before a failure is still an answer."""
        with self._lock:
            self._write()
            if self._problem is None and not self._closed:
                self._closed = True
                self._writer.close()

    def _write(self) -> None:
        taken, self._taken, self._waiting = self._taken, [], 0
        if not taken or self._problem is not None:
            return
        try:
            self._writer.write(Columnar(taken))
            if self._lasting:
                self._out.flush()
        except OSError as problem:
            self._problem = problem


# --------------------------------------------------------------------------------- for people


class TableWriter:
    """Tables by query. Rows are gathered for a second, then printed: live, but not line by line."""

    def __init__(
        self,
        out: TextIO,
        shapes: Mapping[str, Shape],
        before_print: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
        *,
        timed: bool = True,
    ) -> None:
        from rich.console import Console

        # Away from a terminal nothing is gained by folding lines, and `grep` loses by it.
        self.console = Console(file=out, highlight=False, width=None if out.isatty() else 10_000)
        self.shapes, self.before_print, self.clock, self.timed = shapes, before_print, clock, timed
        self.gathered: dict[str, list[Answer]] = {}
        self.rows = 0
        self.since = clock()

    def write(self, answers: Sequence[Answer]) -> None:
        for answer in answers:
            if not self.rows:
                self.since = self.clock()
            self.gathered.setdefault(answer.query, []).append(answer)
            self.rows += 1
            if self.rows >= BLOCK_ROWS:
                self.print()
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
            shape = self.shapes.get(name, Shape(()))
            self.console.print(table(name if self.timed else "", answers, shape, timed=self.timed))
            self.console.print()
        self.console.file.flush()
        self.gathered, self.rows = {}, 0
