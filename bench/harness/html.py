"""A report as one HTML file that needs nothing else: what was measured, tables, drawings."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from bench.experiments.base import heading
from bench.harness import plot
from bench.harness.report import Report, Result
from bench.harness.tables import DASH, grid, summary

STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #777; --code: #8882; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { margin-bottom: 0 } h2 { margin-top: 2.5rem; border-top: 1px solid var(--line); padding-top: 1rem }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; display: block; overflow-x: auto }
th, td { padding: .25rem .7rem; text-align: left; border-bottom: 1px solid var(--line); white-space: nowrap }
td.n, th.n { text-align: right } p.about { color: var(--soft); margin: .2rem 0 }
code { background: var(--code); padding: .1rem .3rem; border-radius: 3px }
svg { max-width: 42rem; width: 100%; margin-top: 1rem } svg text { font-size: 11px; fill: currentColor }
svg .grid { stroke: var(--line) } .bad { color: #c00; font-weight: bold } .missing { color: #b58900 }
"""


def write(report: Report, path: Path) -> None:
    """Write the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(report), encoding="utf-8")


def page(report: Report) -> str:
    """The whole text."""
    machine = report.machine
    facts = {
        "command": f"<code>{escape(report.command)}</code>",
        "machine": escape(
            f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB, "
            f"{machine['system']}; load at the beginning {machine['load'][0]}"
        ),
        "versions": escape(", ".join(f"{k} {v}" for k, v in report.versions.items())),
        "commit": escape(report.commit or "none"),
        "started": escape(report.started),
        "cases": escape(summary(report)),
    }
    rows = "".join(f"<tr><th>{key}</th><td>{value}</td></tr>" for key, value in facts.items())
    links = " · ".join(f'<a href="#{escape(n)}">{escape(n)}</a>' for n in report.names)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Kelda benchmarks</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>'
        f"<h1>Kelda benchmarks</h1><p>{links}</p><table>{rows}</table>"
        + "".join(section(result) for result in report.results)
        + "</body></html>\n"
    )


def section(result: Result) -> str:
    """One experiment."""
    parts = [f'<h2 id="{escape(result.name)}">{escape(result.title)}</h2>']
    parts.append(
        f'<p class="about"><code>kelda bench {escape(result.name)}</code>, {result.seconds:.0f} s</p>'
    )
    if result.paper:
        parts.append(f'<p class="about">Paper: {escape(result.paper)}, on {escape(result.hardware)}.</p>')
    if result.setup:
        parts.append(f'<p class="about">There: {escape(result.setup)}</p>')
    if result.differs:
        parts.append(f'<p class="about">Here: {escape(result.differs)}</p>')
    if result.missing:
        return "".join(parts) + f'<p class="missing">Not available: {escape(result.missing)}</p>'
    return "".join(parts) + _table(result) + "".join(_drawn(result, wanted) for wanted in result.plots)


def _table(result: Result) -> str:
    heads, cells = grid(result)
    numbers = [
        all(not row[i] or row[i] == DASH or row[i][0] in "-0123456789" for row in cells)
        for i in range(len(heads))
    ]
    kinds = [' class="n"' if n else "" for n in numbers]
    head = "".join(f"<th{k}>{escape(h)}</th>" for k, h in zip(kinds, heads, strict=True))
    body = "".join(
        "<tr>" + "".join(_cell(k, c) for k, c in zip(kinds, row, strict=True)) + "</tr>" for row in cells
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(kind: str, text: str) -> str:
    return (
        f'<td class="bad">{escape(text)}</td>'
        if text.startswith("DIFFERS")
        else f"<td{kind}>{escape(text)}</td>"
    )


def _drawn(result: Result, wanted: dict[str, Any]) -> str:
    """A plot of the rows that have its figures; nothing if none has."""
    x, y, by = wanted["x"], wanted["y"], wanted["lines"]
    rows = [
        (row["label"] | row["figures"], row["figures"][y])
        for row in result.rows
        if row.get("figures", {}).get(y) is not None
    ]
    if not rows:
        return ""
    if all(isinstance(label.get(x), int | float) for label, _ in rows):
        series: plot.Series = {}
        for label, value in rows:
            series.setdefault(str(label.get(by, "")), []).append((float(label[x]), float(value)))
        return plot.lines(series, x=heading(x), y=heading(y), log=wanted["log"])
    names = list(dict.fromkeys(str(label.get(x)) for label, _ in rows))
    bars: dict[str, list[float | None]] = {}
    for label, value in rows:
        some = bars.setdefault(str(label.get(by, "")), [None] * len(names))
        some[names.index(str(label.get(x)))] = float(value)
    return plot.bars(names, bars, y=heading(y), log=wanted["log"])
