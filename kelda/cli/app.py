"""The commands. Heavy imports stand inside them, so that `kelda --help` answers at once."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from typing import Annotated

import typer

from kelda.cli import jobs
from kelda.cli.bench import bench
from kelda.cli.choices import Balance, BaseOption, DialectOption, Format, Output, ParamOption, Runner
from kelda.cli.store import store
from kelda.errors import EnvironmentProblem, KeldaError

app = typer.Typer(
    name="kelda",
    help="Continuous SPARQL queries over RDF streams.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


ASKING, PIPELINES, ABOUT = "Asking", "Pipelines", "About Kelda"
WHOLE = "whole on one shard: by the reference evaluator"
STREAMS, READING, RUNNING, WRITING = "Streams and graphs", "Reading", "Running", "Writing"


# Words of more than a dozen letters in the middle column would be cut where a terminal has 80 columns.
QueryFiles = Annotated[
    list[Path] | None,
    typer.Argument(help="Query files, one query each; - is standard input.", metavar="Q.rq…"),
]
TextOption = Annotated[
    list[str], typer.Option("-e", "--text", help="A query, as text instead of a file.", metavar="QUERY")
]
MasterOption = Annotated[
    str, typer.Option(help="Spark master: local[N], or the URL of a cluster.", metavar="URL")
]
WHO_RUNS = "Who runs the queries: spark, inprocess or reference."


@app.command(rich_help_panel=ASKING)
def query(
    files: QueryFiles = None,
    text: TextOption = [],  # noqa: B006
    stream: Annotated[
        list[str],
        typer.Option(
            help="A stream and where it comes from: a file, folder:, tail:, replay:, tcp:, or - for "
            "standard input.",
            metavar="IRI=FILE",
            rich_help_panel=STREAMS,
        ),
    ] = [],  # noqa: B006 - typer copies it
    graph: Annotated[
        list[str],
        typer.Option(help="A stored graph and its file.", metavar="IRI=FILE", rich_help_panel=STREAMS),
    ] = [],  # noqa: B006
    default_graph: Annotated[
        list[Path],
        typer.Option(help="A file for the default graph.", metavar="FILE", rich_help_panel=STREAMS),
    ] = [],  # noqa: B006
    absorb: Annotated[
        list[str],
        typer.Option(
            help="Store what a stream brings in a graph: its IRI, or default. Queries without windows are "
            "live then.",
            metavar="IRI=GRAPH",
            rich_help_panel=STREAMS,
        ),
    ] = [],  # noqa: B006
    dialect: DialectOption = None,
    base: BaseOption = None,
    param: ParamOption = [],  # noqa: B006
    stream_format: Annotated[
        list[str],
        typer.Option(
            help="Format of all streams, or of one (default: by file name).",
            metavar="[IRI=]FORMAT",
            rich_help_panel=READING,
        ),
    ] = [],  # noqa: B006
    time_predicate: Annotated[
        list[str],
        typer.Option(
            help="The predicate that carries the event time.",
            metavar="[IRI=]PREDICATE",
            rich_help_panel=READING,
        ),
    ] = [],  # noqa: B006
    mapping: Annotated[
        list[str],
        typer.Option(
            help="How CSV or JSON records become triples (YAML).",
            metavar="[IRI=]FILE",
            rich_help_panel=READING,
        ),
    ] = [],  # noqa: B006
    lateness: Annotated[
        list[str],
        typer.Option(
            help="How far an element may come behind the newest one: 5s, 500ms, PT5S.",
            metavar="[IRI=]DURATION",
            rich_help_panel=READING,
        ),
    ] = [],  # noqa: B006
    idle: Annotated[
        list[str],
        typer.Option(
            help="After this long a silence a stream does not hold back the others.",
            metavar="[IRI=]DURATION",
            rich_help_panel=READING,
        ),
    ] = [],  # noqa: B006
    rate: Annotated[
        list[str],
        typer.Option(
            help="Take at most this many records a second.", metavar="[IRI=]N", rich_help_panel=READING
        ),
    ] = [],  # noqa: B006
    max_record: Annotated[
        list[str],
        typer.Option(
            help="Reject records longer than this: 16MB, 64kB, 1000 (default: 16MB).",
            metavar="[IRI=]SIZE",
            rich_help_panel=READING,
        ),
    ] = [],  # noqa: B006
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="Stop at the first record that cannot be read.", rich_help_panel=READING
        ),
    ] = False,
    runner: Annotated[
        Runner | None,
        typer.Option(
            help=f"{WHO_RUNS} Default: inprocess, unless --master or --shards ask for Spark.",
            metavar="NAME",
            rich_help_panel=RUNNING,
        ),
    ] = None,
    master: Annotated[
        str | None,
        typer.Option(
            help="Spark master: local[N], or the URL of a cluster (default on Spark: local[*]).",
            metavar="URL",
            rich_help_panel=RUNNING,
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Keep what was read and answered here, to go on after a crash.",
            metavar="DIR",
            rich_help_panel=RUNNING,
        ),
    ] = None,
    shards: Annotated[
        int,
        typer.Option(
            help="Pieces that Spark runs the queries in; answers do not depend on it.",
            metavar="N",
            min=1,
            max=63,
            rich_help_panel=RUNNING,
        ),
    ] = 1,
    balance: Annotated[
        Balance,
        typer.Option(
            help="On which shard a query goes that cannot be spread: by rotation, least-latency or "
            "smallest-buffers.",
            metavar="NAME",
            rich_help_panel=RUNNING,
        ),
    ] = Balance.rotation,
    batch_events: Annotated[
        int,
        typer.Option(
            help="Events taken at a time; answers do not depend on it.",
            metavar="N",
            min=1,
            rich_help_panel=RUNNING,
        ),
    ] = 10_000,
    keep: Annotated[
        str | None,
        typer.Option(
            help="Snapshots of stored graphs that can be asked: how many, or of how long (default: 2).",
            metavar="N",
            rich_help_panel=RUNNING,
        ),
    ] = None,
    t0: Annotated[
        str,
        typer.Option(
            help="What sliding windows are aligned to: milliseconds since 1970, or an ISO date.",
            metavar="MS",
            rich_help_panel=RUNNING,
        ),
    ] = "0",
    output: Annotated[
        Output | None,
        typer.Option(
            help="Send whole answers (rstream), new ones (istream), gone ones (dstream), or both changes "
            "(changes); default: what the query says.",
            metavar="NAME",
            rich_help_panel=WRITING,
        ),
    ] = None,
    format: Annotated[
        Format,
        typer.Option(
            help="How answers are written: table, ndjson, csv or json.",
            metavar="NAME",
            rich_help_panel=WRITING,
        ),
    ] = Format.table,
    out: Annotated[
        Path | None,
        typer.Option(help="Write answers here instead of stdout.", metavar="FILE", rich_help_panel=WRITING),
    ] = None,
    sink: Annotated[
        list[str],
        typer.Option(
            help="Send the answers of a query to answers.ndjson, parquet:FOLDER, …, each exactly once.",
            metavar="[NAME=]SINK",
            rich_help_panel=WRITING,
        ),
    ] = [],  # noqa: B006
    rejects: Annotated[
        Path | None,
        typer.Option(
            help="Write records that cannot be read here, as NDJSON.", metavar="FILE", rich_help_panel=WRITING
        ),
    ] = None,
    progress: Annotated[
        bool | None,
        typer.Option(
            "--progress/--no-progress",
            help="Show how far the run is (default: if stderr is a terminal).",
            rich_help_panel=WRITING,
            show_default=False,
        ),
    ] = None,
) -> None:
    """Answer queries over streams read to their end; a query without windows is asked once."""
    from kelda.cli.query import answer_queries
    from kelda.cli.request import Request, settings_of
    from kelda.io.values import instant, keeping

    answer_queries(
        Request(
            queries=files or (),
            texts=text,
            streams=stream,
            graphs=graph,
            default_graphs=default_graph,
            dialect=dialect and dialect.value,
            params=param,
            stream_formats=stream_format,
            time_predicates=time_predicate,
            mappings=mapping,
            lateness=lateness,
            output=output and output.value,
            idle=idle,
            rate=rate,
            base=base,
            max_record=max_record,
            absorb=absorb,
            sinks=sink,
        ),
        settings=settings_of(
            runner=runner and runner.value,
            master=master,
            shards=shards,
            balance=balance.value,
            checkpoint=checkpoint,
            batch_events=batch_events,
            t0=instant(t0),
            strict=strict,
            rejects=rejects,
            keep=None if keep is None else keeping(keep),
        ),
        format=format.value,
        out=out,
        progress=progress,
    )


app.command(rich_help_panel=ASKING)(jobs.ask)


@app.command(rich_help_panel=ASKING)
def explain(
    files: QueryFiles = None,
    text: TextOption = [],  # noqa: B006
    dialect: DialectOption = None,
    base: BaseOption = None,
    param: ParamOption = [],  # noqa: B006
    shards: Annotated[
        int, typer.Option(help="Pieces that Spark runs the queries in.", metavar="N", min=1, max=63)
    ] = 2,
) -> None:
    """Show how queries will be run."""
    from kelda.cli.request import Request, parsed_queries
    from kelda.engine.incremental import how_it_runs
    from kelda.plan.explain import explain as explained
    from kelda.plan.partition import partition

    for number, (_, parsed) in enumerate(
        parsed_queries(
            Request(
                queries=files or (),
                texts=text,
                dialect=dialect and dialect.value,
                params=param,
                base=base,
            )
        )
    ):
        print(("\n" if number else "") + explained(parsed))
        if parsed.windows:
            said = how_it_runs(parsed)
            print("\nin-process it runs " + said)
            where = partition(parsed, shards).say() if said.startswith("from the changes") else WHOLE
            print(f"\non {shards} shards it runs " + where)


@app.command(rich_help_panel=ASKING)
def demo(
    runner: Annotated[Runner, typer.Option(help=WHO_RUNS, metavar="NAME")] = Runner.spark,
    master: MasterOption = "local[2]",
    seconds: Annotated[
        int,
        typer.Option(help="How long the story is, in its own time.", metavar="N", min=20, max=3600),
    ] = 60,
    keep: Annotated[
        Path | None, typer.Option(help="Write the data and the queries here, and leave them.", metavar="DIR")
    ] = None,
) -> None:
    """Three queries, one a dialect, over a small city that lives for a minute."""
    from kelda.demo import run_demo

    run_demo(runner=runner.value, master=master, seconds=seconds, keep=keep)


app.command(rich_help_panel=PIPELINES)(jobs.init)
app.command(rich_help_panel=PIPELINES)(jobs.run)
app.command(rich_help_panel=PIPELINES)(jobs.add)
app.command("list", rich_help_panel=PIPELINES)(jobs.list_)
app.command(rich_help_panel=PIPELINES)(jobs.drop)
app.command(rich_help_panel=PIPELINES)(jobs.pause)
app.command(rich_help_panel=PIPELINES)(jobs.resume)
app.command(rich_help_panel=PIPELINES)(jobs.update)
app.command(rich_help_panel=PIPELINES)(store)


@app.command(rich_help_panel=ABOUT)
def doctor() -> None:
    """Check that this machine has what Kelda needs, and say what to do where it has not."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from kelda.doctor import run_checks

    checks = run_checks()
    table = Table(box=None, show_header=False, pad_edge=False)
    for check in checks:
        mark, style = (
            ("ok", "green") if check.ok else (("missing", "bold red") if check.needed else ("low", "yellow"))
        )
        table.add_row(Text(mark, style), check.name, Text(check.found))
        if not check.ok:
            table.add_row("", "", Text(check.advice, "yellow"))
    Console(highlight=False).print(table)
    if not all(check.ok or not check.needed for check in checks):
        raise typer.Exit(EnvironmentProblem.exit_code)


app.command(rich_help_panel=ABOUT)(bench)


@app.command(rich_help_panel=ABOUT)
def version() -> None:
    """Print the version."""
    import kelda

    print(f"kelda {kelda.__version__}")


def _print_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


@app.callback()
def whole(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", is_eager=True, callback=_print_version, expose_value=False
        ),
    ] = False,
) -> None:
    """Continuous SPARQL queries over RDF streams."""


def main() -> None:
    """The `kelda` command. An error of ours is a message and an exit code, never a traceback."""
    try:
        app(prog_name="kelda")
    except KeldaError as error:
        if os.environ.get("KELDA_DEBUG") == "1":
            traceback.print_exc()
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
