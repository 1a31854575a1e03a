"""Options that several commands have, and the words that they take."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer


class Runner(str, Enum):
    """Who runs the queries."""

    spark = "spark"
    inprocess = "inprocess"
    reference = "reference"


class Balance(str, Enum):
    """Which shard takes a query that cannot be spread."""

    rotation = "rotation"
    least_latency = "least-latency"
    smallest_buffers = "smallest-buffers"


class Dialect(str, Enum):
    """How the query text is to be read; without it the text decides."""

    cqels = "cqels"
    csparql = "csparql"
    rspql = "rspql"
    sparql = "sparql"


class Output(str, Enum):
    """What is sent of an answer that changes."""

    rstream = "rstream"
    istream = "istream"
    dstream = "dstream"
    changes = "changes"


class Format(str, Enum):
    """How answers are written."""

    table = "table"
    ndjson = "ndjson"
    csv = "csv"
    json = "json"


class On(str, Enum):
    """Where a one-shot query is asked, if not here."""

    spark = "spark"


# Words of more than a dozen letters in the middle column would be cut where a terminal has 80 columns.
DialectOption = Annotated[
    Dialect | None,
    typer.Option(
        help="Read the queries as cqels, csparql, rspql or sparql (default: the text decides).",
        metavar="NAME",
    ),
]
BaseOption = Annotated[
    str | None,
    typer.Option(help="What relative IRIs stand against (default: the query file's address).", metavar="IRI"),
]
ParamOption = Annotated[
    list[str],
    typer.Option(
        "--param", help='Value of $name: <iri>, "literal", a number, or a word.', metavar="NAME=VALUE"
    ),
]
