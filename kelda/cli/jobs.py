"""The commands for pipelines: `init`, `run`, `add`, `list`, `drop`, `pause`, `resume`, `update`, `ask`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kelda.cli.choices import BaseOption, DialectOption, Format, On, Output, ParamOption

JobArgument = Annotated[Path, typer.Argument(help="The job file.", metavar="JOB.toml", show_default=False)]
NameArgument = Annotated[
    str,
    typer.Argument(help="The query's name, as `kelda list` shows it.", metavar="NAME", show_default=False),
]
TimeoutOption = Annotated[
    float, typer.Option(help="Seconds to wait for a job that runs to answer.", metavar="S", min=0)
]
PATIENCE = 30.0


def init(
    job: Annotated[Path, typer.Argument(help="The job file to write.", metavar="JOB.toml")] = Path(
        "job.toml"
    ),
) -> None:
    """Write a job file that runs as it is, with data and queries beside it."""
    from kelda.cli.starter import write_starter

    for path in write_starter(job):
        print(f"wrote {path}")
    print(f"run it: kelda run {job}")


def run(
    job: JobArgument,
    check: Annotated[bool, typer.Option("--check", help="Only say whether the job file is right.")] = False,
    progress: Annotated[
        bool | None,
        typer.Option(
            "--progress/--no-progress",
            help="Show how far the run is (default: if stderr is a terminal).",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run a pipeline until its streams end; started again, it goes on from its checkpoint."""
    from kelda.cli import run as running

    if check:
        running.check(job)
    else:
        running.run(job, progress=progress)


def add(
    job: JobArgument,
    file: Annotated[Path | None, typer.Argument(help="A file with one query.", metavar="Q.rq")] = None,
    text: Annotated[
        str | None, typer.Option("-e", "--text", help="A query, as text instead of a file.", metavar="QUERY")
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(help="What to call it (default: as it says itself, or its file).", metavar="NAME"),
    ] = None,
    sink: Annotated[
        str, typer.Option(help="Where its answers go: answers.ndjson, parquet:FOLDER, …", metavar="SINK")
    ] = "console",
    param: ParamOption = [],  # noqa: B006 - typer copies it
    dialect: DialectOption = None,
    output: Annotated[
        Output | None,
        typer.Option(help="Send rstream, istream, dstream or changes.", metavar="NAME"),
    ] = None,
    base: BaseOption = None,
    timeout: TimeoutOption = PATIENCE,
) -> None:
    """Add a query to a job, while it runs or not."""
    from kelda.cli import steer

    steer.add(
        job,
        file=file,
        text=text,
        name=name,
        sink=sink,
        params=param,
        dialect=dialect and dialect.value,
        output=output and output.value,
        base=base,
        timeout=timeout,
    )


def list_(
    job: JobArgument,
    json: Annotated[bool, typer.Option("--json", help="For programs: one JSON object.")] = False,
    timeout: TimeoutOption = PATIENCE,
) -> None:
    """Show the queries of a job, and whether it runs."""
    from kelda.cli import steer

    steer.list_(job, as_json=json, timeout=timeout)


def drop(job: JobArgument, name: NameArgument, timeout: TimeoutOption = PATIENCE) -> None:
    """Take a query out of a job; what its sink holds stays."""
    from kelda.cli import steer

    steer.drop(job, name, timeout=timeout)


def pause(job: JobArgument, name: NameArgument, timeout: TimeoutOption = PATIENCE) -> None:
    """Let a query be silent; its windows stay up to date."""
    from kelda.cli import steer

    steer.pause(job, name, timeout=timeout)


def resume(job: JobArgument, name: NameArgument, timeout: TimeoutOption = PATIENCE) -> None:
    """Let a paused query report again."""
    from kelda.cli import steer

    steer.pause(job, name, resume=True, timeout=timeout)


def update(
    job: Annotated[
        Path,
        typer.Argument(
            help="The job file, or the checkpoint folder of `kelda query`.",
            metavar="JOB.toml",
            show_default=False,
        ),
    ],
    file: Annotated[
        Path | None, typer.Argument(help="A file with an update; - is standard input.", metavar="U.ru")
    ] = None,
    text: Annotated[
        str | None,
        typer.Option("-e", "--text", help="An update, as text instead of a file.", metavar="UPDATE"),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            help="What relative IRIs stand against (default: the file's address, or this folder).",
            metavar="IRI",
        ),
    ] = None,
    timeout: TimeoutOption = PATIENCE,
) -> None:
    """Change the stored graphs of a job (SPARQL Update), while it runs or not."""
    from kelda.cli import steer

    steer.update(job, file=file, text=text, base=base, timeout=timeout)


def ask(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            help="The job file, or a checkpoint folder (neither, if files are asked); then a query file.",
            metavar="[JOB.toml] [Q.rq]",
            show_default=False,
        ),
    ] = None,
    text: Annotated[
        str | None, typer.Option("-e", "--text", help="A query, as text instead of a file.", metavar="QUERY")
    ] = None,
    graph: Annotated[
        list[str], typer.Option(help="Ask files: a stored graph and its file.", metavar="IRI=FILE")
    ] = [],  # noqa: B006
    default_graph: Annotated[
        list[Path], typer.Option(help="Ask files: one for the default graph.", metavar="FILE")
    ] = [],  # noqa: B006
    param: ParamOption = [],  # noqa: B006
    base: BaseOption = None,
    at: Annotated[
        str | None,
        typer.Option(
            help="The past: the number of a snapshot, or a time such as 2026-05-01T12:00:00Z.", metavar="WHEN"
        ),
    ] = None,
    on: Annotated[
        On | None,
        typer.Option(help="Ask as a job of Spark, over the files of the store: spark.", metavar="NAME"),
    ] = None,
    master: Annotated[
        str | None,
        typer.Option(help="With --on spark: local[N], or the URL of a cluster.", metavar="URL"),
    ] = None,
    format: Annotated[
        Format, typer.Option(help="How answers are written: table, ndjson, csv or json.", metavar="NAME")
    ] = Format.table,
    explain: Annotated[
        bool, typer.Option("--explain", help="Only say how the query would be answered.")
    ] = False,
    timeout: TimeoutOption = PATIENCE,
) -> None:
    """Ask once: what a job has stored, while it runs or not, or files."""
    from kelda.cli.ask import Question
    from kelda.cli.ask import ask as asked

    question = Question(
        words=words or (),
        text=text,
        graphs=graph,
        default_graphs=default_graph,
        params=param,
        base=base,
        at=at,
        on=on and on.value,
        master=master,
        timeout=timeout,
    )
    asked(question, format=format.value, explain=explain)
