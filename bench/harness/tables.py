"""Results as tables on the terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bench.experiments.base import heading, shown
from bench.harness.report import Report, Result

DASH = "–"
WIDE = 160  # figures are never cut off; a narrower terminal wraps the lines


def grid(result: Result) -> tuple[list[str], list[list[str]]]:
    """Headings and cells of a result: label, our figures, the paper's figures, what is to be noted."""
    rows = result.rows
    labels = list(dict.fromkeys(key for row in rows for key in row["label"]))
    figures = [c for c in result.columns if any(row.get("figures", {}).get(c) is not None for row in rows)]
    papers = list(dict.fromkeys(key for row in rows for key in row["paper"]))
    notes = any(note(row) for row in rows)
    heads = [*map(heading, labels), *map(heading, figures), *papers, *(["note"] if notes else [])]
    cells = []
    for row in rows:
        found = row.get("figures", {})
        cells.append(
            [shown(key, row["label"].get(key)) for key in labels]
            + [shown(key, found.get(key)) or DASH for key in figures]
            + [shown(key, row["paper"].get(key)) or DASH for key in papers]
            + ([note(row)] if notes else [])
        )
    return heads, cells


def note(row: dict[str, Any]) -> str:
    """What a reader must know about a row."""
    return str(row.get("problem") or row.get("figures", {}).get("note") or "")


def show(result: Result, console: Console) -> None:
    """The result as a table, with what is to be said about it above and below."""
    console.print(Text.assemble("\n", (result.name, "bold cyan"), "  ", (result.title, "bold")))
    if result.paper:
        console.print(Text(f"paper: {result.paper}, on {result.hardware}", "dim"))
    if result.setup:
        console.print(Text(f"there: {result.setup}", "dim"))
    if result.differs:
        console.print(Text(f"here: {result.differs}", "dim"))
    if result.missing:
        console.print(Text(f"not available: {result.missing}", "yellow"))
        return
    heads, cells = grid(result)
    table = Table(box=None, pad_edge=False, header_style="bold")
    numbers = [
        all(not c[i] or c[i] == DASH or c[i][0] in "-0123456789" for c in cells) for i in range(len(heads))
    ]
    for head, is_number in zip(heads, numbers, strict=True):
        table.add_column(_in_two(head), justify="right" if is_number else "left", no_wrap=True)
    for row in cells:
        table.add_row(*(Text(cell, _style(cell)) for cell in row))
    wide = Console(file=console.file, width=max(console.width, WIDE), highlight=False)
    (wide if console.width < WIDE else console).print(table)


def _in_two(head: str) -> str:
    """A long heading in two lines."""
    cut = head.find(" ", len(head) // 3)
    return head if len(head) < 12 or cut < 0 else head[:cut] + "\n" + head[cut + 1 :]


def _style(cell: str) -> str:
    return "bold red" if cell.startswith("DIFFERS") else ""


def summary(report: Report) -> str:
    """The report in one line."""
    rows = [row for result in report.results for row in result.rows]
    measured = [row["figures"] for row in rows if "figures" in row]
    checked = [f["checked_equal"] for f in measured if "checked_equal" in f]
    parts = [
        f"{len(measured)} of {len(rows)} cases measured",
        f"{sum(checked)} of {len(checked)} checked by definition and equal",
    ]
    absent = [result.name for result in report.results if result.missing]
    if absent:
        parts.append("not available: " + ", ".join(absent))
    return "; ".join(parts)


def wrong(report: Report) -> list[str]:
    """The cases whose answers differ from those by definition."""
    return [
        f"{result.name} {row['label']}: {row['figures']['checked']}"
        for result in report.results
        for row in result.rows
        if row.get("figures", {}).get("checked_equal") is False
    ] + [
        f"{result.name} {row['label']}: {row['figures']['answers']}, and the other has "
        f"{row['figures'].get('theirs_answers')}"
        for result in report.results
        for row in result.rows
        if row.get("figures", {}).get("same_answers") is False
    ]
