"""What `kelda bench` does, once it has found this package."""

from __future__ import annotations

import shlex
import signal
from pathlib import Path

from rich.console import Console
from rich.text import Text

from bench.experiments import EXPERIMENTS, QUICK, find
from bench.harness import compare as comparing
from bench.harness import html, tables
from bench.harness.report import Report, begin, load
from bench.harness.run import run
from kelda.errors import UsageError

QUICK_SECONDS = 260.0  # five minutes, with some left for starting and for the last case
QUICK_CASES = 3  # of each benchmark


def list_all(console: Console) -> None:
    """Every benchmark, what it is about, and whether it can be run."""
    group = None
    for experiment in EXPERIMENTS.values():
        of = experiment.paper.name if experiment.paper else "Our own"
        if of != group:
            console.print(Text(f"\n{of}", "bold"))
            group = of
        mark = "  (quick)" if experiment.name in QUICK else ""
        line = Text.assemble((f"  {experiment.name:18}", "cyan"), experiment.title, (mark, "dim"))
        console.print(line, soft_wrap=True)
        problem = experiment.missing()
        if problem:
            console.print(Text(f"{'':20}not available: {problem}", "yellow"), soft_wrap=True)
    console.print(
        "\nkelda bench NAME … runs some; --quick those marked, in five minutes; --full all, at full size"
    )


def bench(
    names: list[str],
    *,
    quick: bool = False,
    full: bool = False,
    compare: Path | None = None,
    tolerance: float = 0.2,
    json_file: Path | None = None,
    html_file: Path | None = None,
    resume: bool = False,
) -> int:
    """Run, show, write, compare; the exit code: 1 if something is slower or an answer is wrong.

    With `resume`, cases that the JSON file has figures of are not run again."""
    console = Console(highlight=False)
    old = None if compare is None else load(compare)
    if old is not None and len(names) == 1 and names[0].endswith(".json"):
        return _verdict(old, load(Path(names[0])), tolerance, console)
    if quick and full:
        raise UsageError("--quick or --full, not both")
    if not names and not quick and not full and old is None:
        raise UsageError("say what to run: a name from `kelda bench --list`, --quick or --full")
    if old is not None and not names:
        names = old.names
        full = full or bool(old.parameters.get("full"))
    if resume and json_file is None:
        raise UsageError("--resume goes on with the report that --json FILE names: give --json too")
    everything = quick and not names
    experiments = find(names or (list(QUICK) if quick else list(EXPERIMENTS)))
    report = begin(_command(names, quick, full), {"names": [e.name for e in experiments], "full": full})
    known = {}
    if resume and json_file is not None and json_file.exists():
        cut_off = load(json_file)
        known = cut_off.measured()
        console.print(f"{len(known)} cases of {json_file} ({cut_off.started}) are taken over")

    def save() -> None:
        if json_file is not None:
            report.save(json_file)  # hours of figures are not lost when a later one goes wrong

    before = signal.signal(signal.SIGTERM, _asked_to_end)
    try:
        run(
            experiments,
            report,
            full=full,
            seconds=QUICK_SECONDS if everything else None,
            most=QUICK_CASES if everything else None,
            known=known,
            on_row=save,
            on_result=lambda result: tables.show(result, console),
        )
    finally:
        signal.signal(signal.SIGTERM, before)
    save()
    console.print("\n" + tables.summary(report))
    if everything and html_file is None:
        html_file = Path("build", "kelda-bench.html")
    if json_file is not None:
        console.print(f"figures: {json_file}")
    if html_file is not None:
        html.write(report, html_file)
        console.print(f"report: {html_file}")
    for line in tables.wrong(report):
        console.print(Text(f"wrong answers: {line}", "bold red"))
    code = 1 if tables.wrong(report) else 0
    return max(code, 0 if old is None else _verdict(old, report, tolerance, console))


def _asked_to_end(*_: object) -> None:
    raise SystemExit(128 + signal.SIGTERM)  # on the way out, the measurement's processes are ended


def _verdict(old: Report, new: Report, tolerance: float, console: Console) -> int:
    return 0 if comparing.show(comparing.compare(old, new), tolerance, console) else 1


def _command(names: list[str], quick: bool, full: bool) -> str:
    parts = ["kelda", "bench", *names, *(["--quick"] if quick else []), *(["--full"] if full else [])]
    return shlex.join(parts)
