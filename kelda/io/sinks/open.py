"""Sinks by what a user writes: `console`, `answers.ndjson`, `csv:out/answers`, `parquet:folder`."""

from __future__ import annotations

from pathlib import Path

from kelda.errors import UsageError
from kelda.io.formats import (
    TIME_PREDICATE,
    Csv,
    Format,
    Messages,
    Ndjson,
    NQuads,
    Parquet,
    Shape,
    sign_of_events,
)
from kelda.io.kafka.answers import kafka_output
from kelda.io.sinks.console import ConsoleSink, check_style
from kelda.io.sinks.file import FileSink
from kelda.io.sinks.folder import FolderSink
from kelda.io.sinks.kafka import KafkaSink
from kelda.io.sinks.null import NullSink
from kelda.io.sinks.sink import Existing, Sink
from kelda.io.sinks.stream import StreamSink
from kelda.io.sources.address import absolute
from kelda.io.values import is_absolute_iri
from kelda.lang.algebra import Form

BY_SUFFIX = {
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".csv": "csv",
    ".nq": "nquads",
    ".nquads": "nquads",
    ".messages": "messages",
    ".trigs": "messages",
    ".parquet": "parquet",
}
FORMATS = ("ndjson", "csv", "nquads", "messages", "parquet")
KINDS = ("console", "null", "stream", "graph", "kafka", *FORMATS)


def open_sink(
    spec: str,
    *,
    query: str,
    shape: Shape | None = None,
    existing: Existing = "refuse",
    run: str = "",
    ledger: Path | None = None,
    time_predicate: str = TIME_PREDICATE,
) -> Sink:
    """The sink that `spec` names, for the answers of the query called `query`.

    | spec | |
    |---|---|
    | `console`, `console:ndjson` | tables, or lines, on stdout |
    | `FILE` | the name decides: `.ndjson`, `.csv`, `.nq`, `.messages` |
    | `FORMAT:FILE` | `ndjson`, `csv`, `nquads`, `messages` |
    | `FORMAT:FOLDER/` | a file a batch; `parquet:FOLDER` always is |
    | `stream:FOLDER` | for another query to read |
    | `graph:IRI` | facts of a stored graph: only of a query that an engine has |
    | `kafka://HOST:PORT/TOPIC` | messages of a topic |
    | `null` | nowhere |

    `shape` (`shape_of` the parsed query) tells the columns and lets mistakes be found now; without it the
    columns are those of the first answers. `run` names the run whose batch numbers these are (a
    checkpoint's id): what another run wrote is then never taken for this one's. `existing` says what
    becomes of that. `ledger` is where the console remembers what it has shown, and Kafka's what it has sent.
    """
    kind, path = _parse(spec)
    if kind == "null":
        return NullSink()
    if kind == "console":
        return ConsoleSink(query=query, shape=shape, style=path or "table", ledger=ledger, run=run)
    if kind == "graph":
        raise UsageError(f"{spec}: a stored graph is fed by a query of the engine that holds it")
    if kind == "kafka":
        output = kafka_output(spec, query, shape)
        return KafkaSink(
            output, query=query, shape=shape, run=run, ledger=ledger, time_predicate=time_predicate
        )
    if existing not in ("refuse", "append", "overwrite"):
        raise UsageError(f"existing is 'refuse', 'append' or 'overwrite', not '{existing}'")
    where = Path(path).expanduser()
    if kind == "stream":
        return StreamSink(
            where,
            query=query,
            run=run,
            existing=existing,
            sign=sign_of_events(query, shape),
            time_predicate=time_predicate,
        )
    format = format_of(kind, query, shape, time_predicate)
    if kind == "parquet" or path.endswith("/") or where.is_dir():
        return FolderSink(where, format, query=query, run=run, existing=existing)
    return FileSink(where, format, query=query, run=run, existing=existing)


def format_of(kind: str, query: str, shape: Shape | None, time_predicate: str) -> Format:
    """The format by its name, ready for the answers of a query."""
    columns = shape.columns if shape is not None else None
    match kind:
        case "csv":
            return Csv(columns)
        case "parquet":
            return Parquet(columns, shape.form if shape is not None else None)
        case "nquads":
            return NQuads(sign=sign_of_events(query, shape), time_predicate=time_predicate)
        case "messages":
            return Messages(sign=sign_of_events(query, shape), time_predicate=time_predicate)
    return Ndjson()


def _parse(spec: str) -> tuple[str, str]:
    """The kind of a sink and its path."""
    kind, _, path = spec.partition(":")
    if kind in KINDS:
        if not path and kind not in ("console", "null"):
            raise UsageError(f"say where to: {kind}:PATH")
        return kind, path
    guessed = BY_SUFFIX.get(Path(spec.rstrip("/")).suffix.lower())
    if guessed is None:
        raise UsageError(
            f"cannot tell what kind of sink '{spec}' is; there are console, null, stream:FOLDER, graph:IRI, "
            f"kafka://HOST:PORT/TOPIC, {', '.join(f'{name}:PATH' for name in FORMATS)}, "
            f"and files called *{', *'.join(BY_SUFFIX)}"
        )
    return guessed, spec


def check_sink(spec: str, *, query: str, shape: Shape, time_predicate: str = TIME_PREDICATE) -> None:
    """Raise what is wrong with a sink for the answers of a query. Nothing is opened, and nothing made."""
    kind, path = _parse(spec)
    if kind == "console":
        check_style(path or "table")
    elif kind == "stream":
        sign_of_events(query, shape)
    elif kind == "graph":
        _check_graph(query, shape, path)
    elif kind == "kafka":
        kafka_output(spec, query, shape)
    elif kind != "null":
        format_of(kind, query, shape, time_predicate)


def _check_graph(query: str, shape: Shape, iri: str) -> None:
    if shape.form is not Form.CONSTRUCT:
        raise UsageError(f"query '{query}' makes no triples: a stored graph is fed by a CONSTRUCT query")
    if not is_absolute_iri(iri):
        raise UsageError(f"'{iri}' is not an absolute IRI: write graph:http://example.org/g")


def beside(spec: str, folder: Path) -> str:
    """The same sink, with a path that was relative to `folder` in full.

    >>> beside("csv:out/answers", Path("/data")), beside("ndjson:out/", Path("/data"))
    ('csv:/data/out/answers', 'ndjson:/data/out/')
    >>> beside("answers.ndjson", Path("/data")), beside("console", Path("/data"))
    ('/data/answers.ndjson', 'console')
    """
    kind, path = _parse(spec)
    if kind in ("console", "null", "graph"):
        return spec
    if kind == "kafka":
        return absolute(spec, folder)
    full = str((folder / Path(path).expanduser()).absolute()) + "/" * path.endswith("/")
    return f"{kind}:{full}" if spec != path else full
