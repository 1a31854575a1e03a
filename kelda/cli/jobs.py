"""The commands for pipelines: `init`, `run`, `add`, `list`, `drop`, `pause`, `resume`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

JobArgument = Annotated[Path, typer.Argument(help="The job file.", metavar="JOB.toml", show_default=False)]


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
