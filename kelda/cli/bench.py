"""`kelda bench`: finds the benchmarks, which lie beside the package in a clone and are not installed."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

import kelda
from kelda.errors import EnvironmentProblem

MARK = Path("bench", "harness", "main.py")


def clone() -> Path:
    """The folder that has `bench/`: the clone the package comes from, or the current folder or one above."""
    here = Path.cwd()
    for folder in (Path(kelda.__file__).parent.parent, here, *here.parents):
        if (folder / MARK).is_file():
            return folder
    raise EnvironmentProblem(
        "the benchmarks are not here: they lie beside the package in a clone and are not installed with it; "
        "clone the repository and run `kelda bench` inside it (in the clone, `make venv` makes what it needs)"
    )


def harness() -> Any:
    """The module that does the work."""
    folder = str(clone())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module("bench.harness.main")


def bench(
    names: Annotated[
        list[str] | None, typer.Argument(help="Benchmarks to run; --list shows them.", metavar="NAME…")
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="Show the benchmarks there are.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Every family and some of each paper, in five minutes.")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="At the papers' sizes; all of them take hours.")
    ] = False,
    compare: Annotated[
        Path | None,
        typer.Option(
            help="Run what this report has and compare CPU times; with a report as NAME, compare the two.",
            metavar="OLD.json",
        ),
    ] = None,
    tolerance: Annotated[
        float, typer.Option(help="How much slower is still the same: 0.2 is a fifth.", min=0.0)
    ] = 0.2,
    json: Annotated[Path | None, typer.Option(help="Write all figures here.", metavar="FILE")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run that --json FILE is of: run what it lacks.")
    ] = False,
    html: Annotated[Path | None, typer.Option(help="Write a report with plots here.", metavar="FILE")] = None,
) -> None:
    """Measure: the papers' experiments, the benchmarks' queries, ours beside others."""
    main = harness()
    if list_:
        from rich.console import Console

        main.list_all(Console(highlight=False))
        return
    code = main.bench(
        names or [],
        quick=quick,
        full=full,
        compare=compare,
        tolerance=tolerance,
        json_file=json,
        html_file=html,
        resume=resume,
    )
    if code:
        raise typer.Exit(code)
