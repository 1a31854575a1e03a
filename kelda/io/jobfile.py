"""Job files: a pipeline in one TOML file, read and checked whole before anything starts.

    [engine]
    checkpoint = "state"

    [[stream]]
    iri = "http://example.org/sightings"
    source = "folder:incoming?watch=true"
    format = "tsnt"

    [[query]]
    file = "in-the-lab.rq"
    sink = "in-the-lab.ndjson"

Paths are relative to the job file. `docs/cli.md` lists the keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from urllib.parse import quote

from pyoxigraph import Literal

from kelda.errors import KeldaError, QueryError, UsageError
from kelda.io.formats import shape_of
from kelda.io.job import QuerySpec, StreamSource
from kelda.io.kafka.settings import TABLE, settings_in
from kelda.io.query_files import query_text, specified, undeclared_streams
from kelda.io.sinks.open import beside, check_sink
from kelda.io.sources import check_source
from kelda.io.sources.address import absolute, read_address
from kelda.io.toml_tables import (
    Document,
    Table,
    duration,
    flag,
    graph,
    instant,
    iri,
    iris,
    keeping,
    mapping,
    one_of,
    size,
    text,
    whole_number,
)
from kelda.io.values import term_text
from kelda.lang import algebra as A
from kelda.lang.params import term_of
from kelda.rdf.graphs import graph_format

RUNNERS = ("spark", "inprocess", "reference")
BALANCES = ("rotation", "least-latency", "smallest-buffers")
DIALECTS = ("cqels", "csparql", "rspql", "sparql")
OUTPUTS = ("rstream", "istream", "dstream", "changes")
MOST_SHARDS = 63
NOT_HERE = ("push", "dataframe")  # kinds of streams that a program of one's own brings
SHARED = ("console", "null", "kafka")  # sinks that several queries may have


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """`[engine]`: who runs the job, and how."""

    runner: str = "spark"
    master: str = "local[*]"
    shards: int = 1
    balance: str = "rotation"
    checkpoint: Path | None = None
    batch_events: int | None = None
    t0: int = 0
    memory_limit: int | None = None
    strict: bool = False
    rejects: Path | None = None
    keep: int | timedelta | None = None  # snapshots, or the time of them; None: as many as by default


@dataclass(frozen=True, slots=True)
class JobQuery:
    """`[[query]]`: a query and where its answers go."""

    spec: QuerySpec
    sink: str = "console"


@dataclass(frozen=True, slots=True)
class JobGraph:
    """`[[graph]]`: a file for a stored graph (None: the default graph)."""

    path: str
    graph: str | None = None
    format: str | None = None


@dataclass(frozen=True, slots=True)
class JobFile:
    """A job as its file says it, all paths in full but that of the file itself."""

    path: Path
    engine: EngineSettings
    streams: tuple[StreamSource, ...] = ()
    graphs: tuple[JobGraph, ...] = ()
    queries: tuple[JobQuery, ...] = ()


def read_job(path: Path) -> JobFile:
    """The job in a file. All that is wrong in it is one `UsageError`, a line for each mistake."""
    document = Document(path)
    folder = path.absolute().parent
    engine = _engine(document.table("engine"), folder)
    place = Beside(folder, _kafka(document, path))
    tables = document.tables("stream")
    streams = [_stream(table, place) for table in tables]
    graphs = [_graph(table, folder) for table in document.tables("graph")]
    asked = document.tables("query")
    queries = _queries(asked, place, [s.iri for s in streams if s] if all(streams) else None)
    _check_together(tables, streams, {query.spec.name for query in queries})
    if not asked:
        document.wrong((), "there is no [[query]]: a job answers at least one")
    document.done()
    return JobFile(path, engine, tuple(filter(None, streams)), tuple(filter(None, graphs)), tuple(queries))


@dataclass(frozen=True, slots=True)
class Beside:
    """What addresses are relative to: the folder of the job, and for Kafka its file, if it has settings."""

    folder: Path
    kafka: Path | None = None

    def settled(self, address: str) -> str:
        """An address of Kafka, with the settings that hold for it."""
        if self.kafka is None or not address.startswith("kafka:") or "settings=" in address:
            return address
        return f"{address}{'&' if '?' in address else '?'}settings={quote(str(self.kafka))}"


def _kafka(document: Document, path: Path) -> Path | None:
    """The file in which brokers are told of, if it is this one."""
    table = document.table(TABLE)
    if not table:
        return None
    try:
        settings_in(path)
    except KeldaError as error:
        table.wrong(None, str(error).removeprefix(f"{path}: "))
    return path.absolute()


# ------------------------------------------------------------------------------------- [engine]


def _engine(table: Table, folder: Path) -> EngineSettings:
    path = partial(_path, folder)
    settings = EngineSettings(
        runner=table.get("runner", one_of(*RUNNERS), "spark"),
        master=table.get("master", text, "local[*]"),
        shards=table.get("shards", whole_number(1, MOST_SHARDS), 1),
        balance=table.get("balance", one_of(*BALANCES), "rotation"),
        checkpoint=table.get("checkpoint", path),
        batch_events=table.get("batch_events", whole_number(1)),
        t0=table.get("t0", instant, 0),
        memory_limit=table.get("memory_limit", size),
        strict=table.get("strict", flag, False),
        rejects=table.get("rejects", path),
        keep=table.get("keep", keeping),
    )
    if settings.runner != "spark":
        for key in ("master", "shards", "balance"):
            if key in table:
                table.wrong(key, f'it is for runner = "spark", and this job has "{settings.runner}"')
    table.done()
    return settings


# ---------------------------------------------------------------------------- [[stream]], [[graph]]


def _stream(table: Table, place: Beside) -> StreamSource | None:
    named, source = table.need("iri", iri), table.need("source", partial(_source, place))
    mapped = table.get("mapping", partial(_path, place.folder))
    stream = StreamSource(
        named or "",
        source or "",
        format=table.get("format", text),
        time=table.get("time_predicate", iri),
        mapping=None if mapped is None else str(mapped),
        lateness=table.get("lateness", duration, 0),
        idle_ms=table.get("idle", duration),
        rate=table.get("rate", whole_number(1)),
        max_record=table.get("max_record", size),
        absorb=table.get("absorb", graph),
        predicates=table.get("predicates", iris),
    )
    if "predicates" in table and "absorb" not in table:
        table.wrong("predicates", 'they tell what is absorbed: say into which graph, absorb = "http://…"')
    table.done()
    if named is None or source is None:
        return None
    try:
        check_source(stream)
    except KeldaError as error:
        table.wrong("source", str(error))
    return stream


def _source(place: Beside, value: object) -> str:
    address = place.settled(absolute(text(value), place.folder))
    if (kind := read_address(address).scheme) in NOT_HERE:
        raise UsageError(f"{kind}: streams are brought by a program that uses the engine, not by a job file")
    return address


def _check_together(
    tables: Sequence[Table], streams: Sequence[StreamSource | None], queries: set[str]
) -> None:
    """One place for a stream; and those that are the answers of a query are those of one of the job."""
    seen: set[str] = set()
    for table, stream in zip(tables, streams, strict=True):
        if stream is None:
            continue
        if stream.iri in seen:
            table.wrong("iri", f"<{stream.iri}> is declared twice; a stream comes from one place")
        seen.add(stream.iri)
        address = read_address(stream.path)
        if address.scheme == "query" and address.place not in queries:
            table.wrong("source", f"the job has no query named '{address.place}'")


def _graph(table: Table, folder: Path) -> JobGraph | None:
    file, named = table.need("file", partial(_file, folder)), table.get("graph", iri)
    format = table.get("format", text)
    table.done()
    if file is None:
        return None
    try:
        graph_format(file, format)
    except KeldaError as error:
        table.wrong("file" if format is None else "format", str(error))
    return JobGraph(str(file), named, format)


# ------------------------------------------------------------------------------------ [[query]]


def _queries(tables: Sequence[Table], place: Beside, streams: list[str] | None) -> list[JobQuery]:
    """The queries; `streams` are those that are declared, if all of them could be read."""
    found: list[JobQuery] = []
    for table in tables:
        read = _query(table, place)
        if read is None:
            continue
        query, algebra = read
        if any(query.spec.name == other.spec.name for other in found):
            table.wrong("name", f"there is a query named '{query.spec.name}' already")
        if query.sink.partition(":")[0] not in SHARED and any(query.sink == other.sink for other in found):
            table.wrong("sink", f"another query writes to {query.sink}; give each a place of its own")
        for stream in [] if streams is None else undeclared_streams(algebra, streams):
            table.wrong(None, f'it reads <{stream}>, and there is no [[stream]] with iri = "{stream}"')
        found.append(query)
    return found


def _query(table: Table, place: Beside) -> tuple[JobQuery, A.Query] | None:
    file, written = table.get("file", partial(_file, place.folder)), table.get("text", text)
    name, sink = table.get("name", text), table.get("sink", partial(_sink, place), "console")
    dialect, output = table.get("dialect", one_of(*DIALECTS)), table.get("output", one_of(*OUTPUTS))
    params, base = table.get("params", parameters), table.get("base", iri)
    table.done()
    if ("file" in table) == ("text" in table):
        table.wrong(None, "its query is in a file (file = …) or in the job (text = …): say one of the two")
    if file is None and written is None:
        return None
    try:
        spec, algebra = specified(
            query_text(file) if file is not None else written or "",
            name=name,
            file=file,
            dialect=dialect,
            params=params,
            output=output,
            base=base,
        )
    except KeldaError as error:
        where = "in the query, " if isinstance(error, QueryError) else ""
        table.wrong("file" if file is not None else "text", f"{where}{error}")
        return None
    shape = shape_of(algebra, None if output is None else A.Output(output))
    try:
        check_sink(sink, query=spec.name, shape=shape)
    except KeldaError as error:
        table.wrong("sink", str(error))
    return JobQuery(spec, sink), algebra


def _sink(place: Beside, value: object) -> str:
    return place.settled(beside(text(value), place.folder))


def parameters(value: object) -> dict[str, str]:
    """Values of parameters as terms. A text is a term if it is written as one, `<iri>` or `"literal"`."""
    return {name: _term(given) for name, given in mapping(value).items()}


def _term(value: object) -> str:
    if isinstance(value, str):
        return term_text(value) if value.startswith(("<", '"')) else str(Literal(value))
    return str(term_of(value))


# --------------------------------------------------------------------------------------- paths


def _path(folder: Path, value: object) -> Path:
    return (folder / text(value)).absolute()


def _file(folder: Path, value: object) -> Path:
    path = _path(folder, value)
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    return path
