"""Answers on the screen: a table a batch, or lines."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from kelda.engine.answer import Answer
from kelda.errors import UsageError
from kelda.io.formats import Ndjson, Shape
from kelda.io.sinks.content import Held
from kelda.io.sinks.ledger import Ledger
from kelda.io.tables import table

STYLES = ("table", "ndjson")
BLOCK_ROWS = 500  # a table has no more rows than that, and is noted when it is out


def check_style(style: str) -> None:
    """Refuse what is no way to show answers."""
    if style not in STYLES:
        raise UsageError(f"the console shows answers as {' or '.join(STYLES)}, not as '{style}'")


class ConsoleSink:
    """Prints answers. What is on the screen stays there, so a crash may show the last table again; with a
    `ledger` never more than that."""

    def __init__(
        self,
        *,
        query: str,
        shape: Shape | None = None,
        style: str = "table",
        out: TextIO | None = None,
        ledger: Path | None = None,
        run: str = "",
    ) -> None:
        check_style(style)
        self._query, self._shape, self._style = query, shape or Shape(()), style
        self._out = out
        self._ledger = Ledger(ledger, run)

    @property
    def held(self) -> Held:
        return self._ledger.held

    def write(self, batch: int, answers: Sequence[Answer], *, content: str | None = None) -> None:
        untold = self._ledger.untold(batch, answers, content)
        for start in range(0, len(untold), BLOCK_ROWS):
            block = untold[start : start + BLOCK_ROWS]
            self._print(block)
            self._ledger.note(len(block))
        if untold:
            self._ledger.sync()

    def _print(self, answers: Sequence[Answer]) -> None:
        out = self._out or sys.stdout
        if self._style == "ndjson":
            out.write(bytes(Ndjson().body(answers)).decode())
        else:
            from rich.console import Console

            # Away from a terminal nothing is gained by folding lines, and `grep` loses by it.
            console = Console(file=out, highlight=False, width=None if out.isatty() else 10_000)
            console.print(table(self._query, answers, self._shape))
            console.print()
        out.flush()

    def close(self) -> None:
        self._ledger.close()
