"""Two reports, case by case: how much more CPU time the new one takes for the same work."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bench.experiments.base import COSTS
from bench.harness.report import Report


@dataclass(frozen=True)
class Compared:
    """One case in both reports. `ratio`: CPU time now to then, both in units of the machine's speed."""

    name: str
    label: str
    old: float
    new: float
    ratio: float

    def worse(self, tolerance: float) -> bool:
        """Slower by more than is allowed."""
        return self.ratio > 1 + tolerance


@dataclass(frozen=True)
class Comparison:
    """All cases that are in both, and what is in the old report alone or differs in its answers."""

    cases: list[Compared]
    gone: list[str]
    changed: list[str]


def compare(old: Report, new: Report) -> Comparison:
    """Case by case. CPU times are divided by how long the same fixed piece of work took beside each."""
    before, after = _by_case(old), _by_case(new)
    cases, gone, changed = [], [], []
    for key, then in before.items():
        now = after.get(key)
        name = f"{key[0]} {_plain(key[1])}"
        if now is None:
            gone.append(name)
            continue
        cost = next((c for c in COSTS if c in then and c in now), None)
        if cost is None:
            continue
        speed = now.get("calibration_s", 1.0) / then.get("calibration_s", 1.0)
        cases.append(
            Compared(
                key[0], _plain(key[1]), then[cost], now[cost], now[cost] / max(then[cost], 1e-12) / speed
            )
        )
        same_input = then.get("triples") == now.get("triples")
        if same_input and then.get("answers") != now.get("answers"):
            changed.append(f"{name}: {then.get('answers')} answers then, {now.get('answers')} now")
    return Comparison(cases, gone, changed)


def show(compared: Comparison, tolerance: float, console: Console) -> bool:
    """Print the ratios, the worst first; whether all is well."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head, justify in (("benchmark", "left"), ("case", "left"), ("then", "right"), ("now", "right")):
        table.add_column(head, justify=justify)  # type: ignore[arg-type]
    table.add_column("ratio", justify="right")
    for case in sorted(compared.cases, key=lambda c: -c.ratio):
        bad = case.worse(tolerance)
        style = "bold red" if bad else ("green" if case.ratio < 1 - tolerance else "")
        mark = f"{case.ratio:.2f}" + (" slower" if bad else "")
        table.add_row(case.name, case.label, f"{case.old:,.2f}", f"{case.new:,.2f}", Text(mark, style))
    console.print(Text("CPU time per unit of work, now to then, in units of the machine's speed", "bold"))
    console.print(table)
    for line in compared.gone:
        console.print(Text(f"measured then, not now: {line}", "yellow"))
    for line in compared.changed:
        console.print(Text(f"other answers: {line}", "bold red"))
    bad = [case for case in compared.cases if case.worse(tolerance)]
    console.print(
        f"{len(compared.cases)} compared, {len(bad)} slower by more than {tolerance:.0%}, "
        f"{len(compared.changed)} with other answers"
    )
    return not bad and not compared.changed


def _by_case(report: Report) -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (result.name, json.dumps(row["label"], sort_keys=True)): row["figures"]
        for result in report.results
        for row in result.rows
        if "figures" in row
    }


def _plain(label: str) -> str:
    return " ".join(str(value) for value in json.loads(label).values())
