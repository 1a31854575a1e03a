"""`kelda add`, `list`, `drop`, `pause`, `resume`, `update`: queries and stored graphs of a job that runs, or
of one that is stopped.

A job that runs is asked through its checkpoint folder. If nobody has the checkpoint, it is opened here, the
request is carried out, and it is let go again: nothing is read or answered meanwhile.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kelda.cli import values
from kelda.errors import QueryError, UsageError
from kelda.io.formats import shape_of
from kelda.io.hold import LOCK, Hold, InUse
from kelda.io.jobfile import EngineSettings, JobFile, read_job
from kelda.io.query_files import query_text, specified
from kelda.io.requests import Ask, Desk
from kelda.io.sinks.open import beside, check_sink
from kelda.kept import reading
from kelda.lang import parse_update
from kelda.lang.algebra import Output
from kelda.words import count

STDIN = Path("-")
TIMEOUT = 30.0  # seconds that a job may take to answer


def add(
    path: Path,
    *,
    file: Path | None,
    text: str | None,
    name: str | None,
    sink: str,
    params: Sequence[str],
    dialect: str | None,
    output: str | None,
    base: str | None,
    timeout: float = TIMEOUT,
) -> None:
    """Register one more query."""
    job = read_job(path)
    if (file is None) == (text is None):
        raise UsageError("say one query: a file that has it, or -e 'SELECT …'")
    try:
        spec, query = specified(
            query_text(file) if file is not None else text or "",
            name=name,
            file=file,
            dialect=dialect,
            params=dict(values.parameter(param) for param in params),
            output=output,
            base=base,
        )
    except QueryError as error:
        error.args = (f"{file or '-e'}: {error}",)
        raise
    sink = beside(sink, Path())
    check_sink(sink, query=spec.name, shape=shape_of(query, None if output is None else Output(output)))
    asked = Asked(job, "add", timeout, query=asdict(spec), sink=sink)
    print(f"added '{spec.name}'{asked.when('from the next batch on')}; its answers go to {sink}")


def drop(path: Path, name: str, *, timeout: float = TIMEOUT) -> None:
    """Forget a query; what its sink holds stays."""
    job = read_job(path)
    asked = Asked(job, "drop", timeout, name=name)
    print(f"dropped '{name}'{asked.when('from the next batch on')}")
    if any(query.spec.name == name for query in job.queries):
        print(f"it is still in {path}: take it out there too, or the next `kelda run` adds it again")


def pause(path: Path, name: str, *, resume: bool = False, timeout: float = TIMEOUT) -> None:
    """Let a query report nothing, or again; its windows stay up to date."""
    asked = Asked(read_job(path), "resume" if resume else "pause", timeout, name=name)
    print(f"{'resumed' if resume else 'paused'} '{name}'{asked.when('from the next batch on')}")


def list_(path: Path, *, as_json: bool = False, timeout: float = TIMEOUT) -> None:
    """Show what a job reads and answers."""
    job = read_job(path)
    asked = Asked(job, "list", timeout)
    if as_json:
        print(json.dumps({"running": asked.running, **asked.value}, ensure_ascii=False))
    else:
        _show(job, asked)


def update(
    path: Path, *, file: Path | None, text: str | None, base: str | None, timeout: float = TIMEOUT
) -> None:
    """Change stored graphs."""
    job = job_at(path)
    if (file is None) == (text is None):
        raise UsageError("say one update: a file that has it, - for standard input, or -e 'INSERT DATA …'")
    if file is None or file == STDIN:
        text, address = sys.stdin.read() if text is None else text, f"{Path.cwd().as_uri()}/"
    else:
        text, address = query_text(file), file.resolve().as_uri()
    base = address if base is None else base
    try:
        parse_update(text, base=base)
    except QueryError as error:
        error.args = (f"{file or '-e'}: {error}",)
        raise
    asked = Asked(job, "update", timeout, text=text, base=base)
    print(f"updated{asked.when('from the next batch on')}")


class Asked:
    """A request to a job, and what became of it."""

    def __init__(self, job: JobFile, what: str, timeout: float, **about: object) -> None:
        checkpoint = checkpoint_of(job)
        ask = Ask(checkpoint, what, **about)
        self.running = False
        try:
            try:
                Hold(checkpoint).release()
                self._serve_here(job, checkpoint)
            except InUse:
                self.running = True
            self.value: Any = ask.wait(timeout if self.running else 0.0).result()
        finally:
            ask.withdraw()

    def when(self, running: str) -> str:
        """When it holds."""
        return f", {running}" if self.running else ", for when the job runs again"

    @staticmethod
    def _serve_here(job: JobFile, checkpoint: Path) -> None:
        from kelda.cli.driving import opened  # brings the engine, which who asks another process needs not

        engine = opened(job.engine, to_run=False)
        try:
            Desk(checkpoint, engine).serve()
        finally:
            engine.stop()


def job_at(path: Path) -> JobFile:
    """The job of a file; or that of a checkpoint folder, as it was begun."""
    if not path.is_dir():
        return read_job(path)
    from kelda.shards.checkpoint import ABOUT  # brings the engine

    about = path / ABOUT
    if not about.exists():
        raise UsageError(f"{path} is no checkpoint of Kelda: it has no {ABOUT}")
    with reading(about):
        setup = json.loads(about.read_text("utf-8"))["setup"]
        runner = "reference" if setup["by_definition"] else str(setup["driver"])
        settings = EngineSettings(runner, shards=setup["shards"], t0=setup["t0"], checkpoint=path)
    return JobFile(path, settings)


def checkpoint_of(job: JobFile) -> Path:
    """Through which a job is reached; refused if there is none."""
    checkpoint = job.engine.checkpoint
    if checkpoint is None:
        raise UsageError(
            f'{job.path} has no checkpoint, through which a job is reached: write checkpoint = "state" '
            "under [engine], and run it again"
        )
    if not (checkpoint / LOCK).exists():
        raise UsageError(
            f"{job.path} has not been run yet: there is no checkpoint {checkpoint}; "
            f"begin with `kelda run {job.path}`"
        )
    return checkpoint


def _show(job: JobFile, asked: Asked) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    value, console = asked.value, Console(highlight=False)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 2, 0, 0))
    for column in ("query", "state", "answers go to"):
        table.add_column(column, overflow="fold")
    in_file = {query.spec.name for query in job.queries}
    colours = {"running": "green", "paused": "yellow", "stopped": "red"}
    for query in value["queries"]:
        state = query["state"] if asked.running or query["state"] != "running" else "ready"
        added = "" if query["name"] in in_file else f"  (not in {job.path.name})"
        table.add_row(
            Text.assemble(query["name"], (added, "dim")),
            Text(state, colours.get(state, "")),
            Text(query["sink"] or ""),
        )
        if query["error"]:
            table.add_row("", "", Text(query["error"].splitlines()[0], "red"))
    console.print(table)
    figures = value["figures"]
    state = "is running" if asked.running else f"is not running; `kelda run {job.path}` goes on with it"
    console.print(Text(f"\n{job.path.name} {state}", "dim"))
    if asked.running:
        console.print(
            Text(f"{count(figures['events'], 'event')}, {count(figures['answers'], 'answer')} so far", "dim")
        )
