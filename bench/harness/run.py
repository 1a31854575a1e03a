"""Experiments run one case after another, each case in a process of its own, with progress on stderr."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from bench.experiments.base import Case, Experiment
from bench.harness.child import run_in_child
from bench.harness.report import Report, Result, key_of
from kelda.errors import KeldaError

OUT_OF_TIME = "left out: the time was up"


def run(
    experiments: list[Experiment],
    report: Report,
    *,
    full: bool,
    seconds: float | None = None,
    most: int | None = None,
    known: Mapping[str, dict[str, Any]] | None = None,
    on_row: Callable[[], None] = lambda: None,
    on_result: Callable[[Result], None] = lambda _: None,
    console: Console | None = None,
) -> None:
    """Run them all into the report.

    With `seconds`, the first case of each comes before the second of any, and after that time no further
    case is begun: its row says so. Of an experiment with more than `most` cases, so many are run, evenly
    chosen. Rows that are `known` (by `key_of`) are taken over.
    """
    known = known or {}
    plans: list[tuple[Result, list[Case]]] = []
    for experiment in experiments:
        result = blank(experiment)
        cases = [] if result.missing else experiment.cases(full)
        if most is not None and len(cases) > most:
            result.differs += f" {most} of {len(cases)} cases."
            cases = [cases[i * len(cases) // most] for i in range(most)]
        plans.append((result, cases))
    began = time.monotonic()
    until = None if seconds is None else began + seconds
    total = sum(len(cases) for _, cases in plans)
    with Progress(
        TextColumn("{task.description:32}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console or Console(stderr=True),
        transient=True,
    ) as progress:
        bar = progress.add_task("benchmarks", total=total)
        log = None if progress.console.is_terminal else progress.console

        def measure(result: Result, case: Case) -> None:
            start = time.monotonic()
            what = " ".join(map(str, case.label.values()))
            progress.update(bar, description=f"{result.name} {what}"[:32])
            found = blank_row(case)
            found = known.get(key_of(result.name, found)) or measured(found, until)
            result.rows.append(found)
            if result not in report.results:
                report.results.append(result)
            on_row()
            progress.advance(bar)
            took = time.monotonic() - start
            result.seconds += took
            if log is not None:  # a bar would not be seen: a line for each
                done = int(progress.tasks[bar].completed)
                log.print(f"{done} of {total}: {result.name} {what}, {took:.0f} s", highlight=False)

        if seconds is not None:
            for turn in range(max((len(cases) for _, cases in plans), default=0)):
                for result, cases in plans:
                    if turn < len(cases):
                        measure(result, cases[turn])
        for result, cases in plans:
            for case in cases[len(result.rows) :]:
                measure(result, case)
            if result not in report.results:  # without a case
                report.results.append(result)
            on_result(result)


def blank(experiment: Experiment) -> Result:
    """The experiment's result before anything was measured."""
    paper = experiment.paper
    return Result(
        name=experiment.name,
        title=experiment.title,
        columns=list(experiment.columns),
        paper=paper.name if paper else "",
        hardware=paper.hardware if paper else "",
        setup=experiment.setup,
        differs=experiment.differs,
        plots=[asdict(plot) for plot in experiment.plots],
        missing=experiment.missing(),
    )


def blank_row(case: Case) -> dict[str, Any]:
    """The row of a case before it was measured."""
    return {"label": case.label, "paper": case.paper, "call": case.call, "params": case.params}


def measured(row: dict[str, Any], until: float | None) -> dict[str, Any]:
    """The row with its figures. What went wrong is a row too."""
    left = None if until is None else until - time.monotonic()
    if left is not None and left <= 0:
        return row | {"problem": OUT_OF_TIME}
    try:
        return row | {"figures": run_in_child(row["call"], row["params"], timeout=left)}
    except KeldaError as problem:
        return row | {"problem": str(problem)}
