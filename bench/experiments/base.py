"""What an experiment is: cases that are measured one by one, shown beside a paper's figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bench.harness.families import missing as missing_family

WORKLOAD = "bench.harness.workload:measure"

# What a figure is called in a table, and how it is written.
FIGURES: dict[str, tuple[str, str]] = {
    "triples": ("triples", ",.0f"),
    "answers": ("answers", ",.0f"),
    "queries": ("queries", ",.0f"),
    "stored_triples": ("stored triples", ",.0f"),
    "triples_per_s": ("triples/s", ",.0f"),
    "triples_per_cpu_s": ("triples/CPU-s", ",.0f"),
    "offered_per_s": ("offered/s", ",.0f"),
    "cpu_us": ("CPU µs a triple", ",.2f"),
    "cpu_s": ("CPU s", ",.2f"),
    "wall_s": ("s", ",.2f"),
    "register_s": ("registered in, s", ",.2f"),
    "load_s": ("loaded in, s", ",.1f"),
    "p50_ms": ("median ms", ",.2f"),
    "p95_ms": ("p95 ms", ",.2f"),
    "p99_ms": ("p99 ms", ",.2f"),
    "mean_ms": ("mean ms", ",.3f"),
    "peak_mb": ("peak MB", ",.0f"),
    "state_mb": ("state MB", ",.1f"),
    "grew_mb": ("grew by MB", ",.1f"),
    "spread": ("spread", ".0%"),
    "kept_up": ("kept up", ""),
    "checked": ("by definition: answers on triples", ""),
    "inserts_per_second": ("inserts/s", ",.0f"),
    "ns_per_probe": ("ns a probe", ",.1f"),
    "ns_per_probe_in_turn": ("one after another", ",.1f"),
    "probes_per_second": ("probes/s", ",.0f"),
    "elements_per_second": ("elements/s", ",.0f"),
    "injection_ms": ("text to ids, ms", ",.2f"),
    "indexing_ms": ("ids to windows, ms", ",.2f"),
    "absorb_ms": ("ids to facts, ms", ",.2f"),
    "cpu_ms": ("CPU ms", ",.3f"),
    "off_ms": ("streams off, CPU ms", ",.3f"),
    "on_ms": ("streams on, CPU ms", ",.3f"),
    "first_ms": ("first minute, CPU ms a step", ",.3f"),
    "last_ms": ("last minute, CPU ms a step", ",.3f"),
    "batch_ms": ("CPU ms a batch", ",.2f"),
    "batches": ("batches", ",.0f"),
    "facts": ("facts", ",.0f"),
    "text_mb": ("text, MB a minute", ",.1f"),
    "file_mb": ("MB", ",.1f"),
    "read_cpu_s": ("read, CPU s", ",.3f"),
    "read_per_cpu_s": ("read, triples/CPU-s", ",.0f"),
    "of_tsnt": ("of tsnt's speed", ".0%"),
    "answered_cpu_s": ("answered, CPU s", ",.3f"),
    "answered_per_cpu_s": ("answered, triples/CPU-s", ",.0f"),
    "written_cpu_s": ("written, CPU s", ",.3f"),
    "written_per_cpu_s": ("written, triples/CPU-s", ",.0f"),
    "data_mb": ("facts, MB a minute", ",.1f"),
    "index_mb": ("indexes, MB a minute", ",.1f"),
    "terms_mb": ("terms, MB a minute", ",.1f"),
    "executions_per_cpu_s": ("queries answered/CPU-s", ",.0f"),
    "one_shots_per_cpu_s": ("one-shot queries/CPU-s", ",.0f"),
    "first_steps_s": ("and three steps, s", ",.2f"),
    "mb_per_minute": ("MB a minute", ",.1f"),
    "index_share": ("of it indexes", ".1%"),
    "ratio": ("ratio", ",.2f"),
    "same_answers": ("same answers", ""),
    "theirs_per_s": ("theirs, triples/s", ",.0f"),
    "theirs_answers": ("their answers", ",.0f"),
    "theirs_cpu_us": ("theirs, CPU µs", ",.1f"),
}

# The cost that two reports are compared by: CPU time of a unit of work, the first of these that is there.
COSTS = ("cpu_us", "cpu_ms", "cost_us")


@dataclass(frozen=True)
class Case:
    """One measurement: `call` (module:function) with `params`, in a process of its own.

    `label` tells it from the other cases; `paper` has the paper's figures for it, by column."""

    label: dict[str, Any]
    params: dict[str, Any]
    call: str = WORKLOAD
    paper: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Plot:
    """A drawing of the rows: `y` over `x`, one line for each value of `lines`. Without numbers in x: bars."""

    x: str
    y: str
    lines: str = ""
    log: bool = True


@dataclass(frozen=True)
class Paper:
    """Where the figures beside ours come from."""

    name: str
    hardware: str


@dataclass(frozen=True)
class Experiment:
    """`cases(full)` are its measurements. `missing()` says why it cannot be run; empty if it can."""

    name: str
    title: str
    columns: tuple[str, ...]
    cases: Callable[[bool], list[Case]]
    paper: Paper | None = None
    setup: str = ""  # what the paper did
    differs: str = ""  # what we do differently
    plots: tuple[Plot, ...] = ()
    missing: Callable[[], str] = lambda: ""


def heading(column: str) -> str:
    """The column's name for a reader."""
    return FIGURES[column][0] if column in FIGURES else column


def shown(column: str, value: Any) -> str:
    """A value as a table has it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        plain = ",.0f" if isinstance(value, int) else ",.2f" if abs(value) >= 1 else ",.3g"
        return format(value, FIGURES.get(column, ("", plain))[1] or plain)
    return str(value)


def needs(*families: str) -> Callable[[], str]:
    """Missing while one of the families is."""

    def missing() -> str:
        return "; ".join(problem for problem in map(missing_family, families) if problem)

    return missing
