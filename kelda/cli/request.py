"""What `kelda query` is asked: from options as they were written to queries, streams, graphs and sinks.

Everything is checked here, before anything starts.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kelda.cli import values
from kelda.errors import InputError, QueryError, UsageError
from kelda.io.formats import shape_of
from kelda.io.job import QuerySpec, StreamSource
from kelda.io.jobfile import EngineSettings, JobGraph
from kelda.io.query_files import query_text, specified, undeclared_streams
from kelda.io.sinks import beside, check_sink
from kelda.io.sources.address import read_address
from kelda.io.values import duration, size
from kelda.lang import algebra as A
from kelda.rdf.framing import framing_of, guess_format

Asked = tuple[QuerySpec, A.Query]

STDIN = Path("-")
STDIN_FILE = "/dev/stdin"


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asked for, as it was written."""

    queries: Sequence[Path] = ()
    texts: Sequence[str] = ()  # queries that are not in files
    streams: Sequence[str] = ()
    graphs: Sequence[str] = ()
    default_graphs: Sequence[Path] = ()
    dialect: str | None = None
    params: Sequence[str] = ()
    stream_formats: Sequence[str] = ()
    time_predicates: Sequence[str] = ()
    mappings: Sequence[str] = ()
    lateness: Sequence[str] = ()
    sinks: Sequence[str] = ()
    output: str | None = None
    idle: Sequence[str] = ()
    rate: Sequence[str] = ()
    base: str | None = None
    max_record: Sequence[str] = ()
    absorb: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Wanted:
    """The same, read: what an engine is to be told."""

    queries: tuple[Asked, ...]
    streams: tuple[StreamSource, ...]
    graphs: tuple[JobGraph, ...]
    sinks: Mapping[str, str]  # by the name of the query; the others' answers go to paper

    @property
    def grows(self) -> bool:
        """Whether stored graphs change while the streams are read."""
        return any(stream.absorb for stream in self.streams) or any(map(feeds_graph, self.sinks.values()))

    @property
    def continuous(self) -> list[Asked]:
        """The queries with windows, and if graphs grow, those that tell their changes."""
        return [asked for asked in self.queries if asked[1].windows or self.grows]

    @property
    def one_shot(self) -> list[Asked]:
        """The others, which are asked once."""
        return [asked for asked in self.queries if not asked[1].windows and not self.grows]


def settings_of(*, runner: str | None, master: str | None, shards: int, **more: Any) -> EngineSettings:
    """How the engine is to run: in this process, unless Spark is asked for, or something that only it has."""
    for_spark = [option for option, given in (("--master", master), ("--shards", shards > 1)) if given]
    if runner is None:
        runner = "spark" if for_spark else "inprocess"
    elif for_spark and runner != "spark":
        raise UsageError(f"{for_spark[0]} is for --runner spark, and --runner {runner} is asked for")
    return EngineSettings(runner=runner, master=master or "local[*]", shards=shards, **more)


def read_request(request: Request) -> Wanted:
    """Read and check every option."""
    queries = parsed_queries(request)
    base = next((spec.base for spec, _ in queries if spec.base is not None), request.base)
    streams = tuple(streams_of(request, base))
    live = any(stream.absorb for stream in streams)
    wanted = Wanted(
        tuple(queries),
        streams,
        tuple(graphs_of(request, base)),
        sinks_of(request, [asked for asked in queries if asked[1].windows or live]),
    )
    known = {stream.iri for stream in wanted.streams}
    for spec, query in wanted.continuous:
        for iri in undeclared_streams(query, known):
            raise UsageError(f"query '{spec.name}' reads <{iri}>: say from which file, --stream {iri}=FILE")
        if query.windows and not known:
            raise UsageError(f"query '{spec.name}' reads streams: give at least one, --stream IRI=FILE")
    return wanted


def parsed_queries(request: Request) -> list[tuple[QuerySpec, A.Query]]:
    """The queries of the request, each with its name: what REGISTER says, else the file's."""
    if not request.queries and not request.texts:
        raise UsageError(
            "no query is given: name a file that has one, - for standard input, or -e 'SELECT …'"
        )
    params = dict(values.parameter(text) for text in request.params)
    unused = set(params)
    found: list[tuple[QuerySpec, A.Query]] = []
    for where, stem, text, file in _query_texts(request):
        named = {name for name in params if re.search(rf"[$]{name}\b", text)}
        unused -= named
        try:
            spec, query = specified(
                text,
                otherwise=stem,
                file=file,
                dialect=request.dialect,
                params={name: params[name] for name in sorted(named)},
                output=request.output,
                base=request.base,
            )
        except QueryError as error:
            error.args = (f"{where}: {error}",)
            raise
        if any(spec.name == other.name for other, _ in found):
            raise UsageError(
                f"{where}: there is a query named '{spec.name}' already; REGISTER it under another name"
            )
        found.append((spec, query))
    if unused:
        raise UsageError(f"no query has the parameter {', '.join('$' + name for name in sorted(unused))}")
    return found


def _query_texts(request: Request) -> Iterator[tuple[str, str, str, Path | None]]:
    """Of each query where it is, what it is called if it has no name, its text, and its file."""
    for path in request.queries:
        if path == STDIN:
            yield "standard input", "stdin", _text_of_stdin(), None
        else:
            yield str(path), path.stem, query_text(path), path
    for number, text in enumerate(request.texts, 1):
        which = "" if len(request.texts) == 1 else str(number)
        yield "-e", f"query{which}", text, None


def _text_of_stdin() -> str:
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise UsageError("cannot read the query from standard input: not UTF-8 text") from error


def streams_of(request: Request, base: str | None = None) -> list[StreamSource]:
    """The streams of a request, every option read and checked. Relative IRIs stand against `base`."""
    files = [values.iri_and_file(text, "--stream", base) for text in request.streams]
    names = [iri for iri, _ in files]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"--stream <{name}> is given twice; one stream is read from one file")
    if sum(path == str(STDIN) for path in [*map(str, request.queries), *(path for _, path in files)]) > 1:
        raise UsageError("standard input (-) is one thing: one query, or one stream")
    formats = values.per_stream(request.stream_formats, names, str)
    times = values.per_stream(request.time_predicates, names, lambda text: text.strip("<>"))
    mappings = values.per_stream(request.mappings, names, str)
    lateness = values.per_stream(request.lateness, names, duration)
    idle = values.per_stream(request.idle, names, duration)
    rate = values.per_stream(request.rate, names, int)
    max_record = values.per_stream(request.max_record, names, size)
    absorb = values.absorbed(request.absorb, names)
    streams = []
    for iri, path in files:
        if path == str(STDIN):
            if iri not in formats:
                raise UsageError(
                    f"standard input has no name that tells its format: say it, --stream-format {iri}=tsnt"
                )
            path = STDIN_FILE
        address = read_address(path)
        if address.scheme in ("file", "replay", "tail"):
            _must_exist(address.place)
            framing_of(formats.get(iri) or guess_format(address.place))
        streams.append(
            StreamSource(
                iri,
                path,
                formats.get(iri),
                times.get(iri),
                mappings.get(iri),
                lateness.get(iri, 0),
                idle.get(iri),
                rate.get(iri),
                max_record.get(iri),
                absorb.get(iri),
            )
        )
    return streams


def graphs_of(request: Request, base: str | None = None) -> list[JobGraph]:
    """The stored graphs of a request."""
    named = [values.iri_and_file(text, "--graph", base) for text in request.graphs]
    graphs = [JobGraph(path, iri) for iri, path in named]
    graphs += [JobGraph(str(path)) for path in request.default_graphs]
    for graph in graphs:
        _must_exist(graph.path)
    return graphs


def feeds_graph(sink: str) -> bool:
    """Whether answers become facts of a stored graph."""
    return sink.startswith("graph:")


def sinks_of(request: Request, queries: Sequence[Asked]) -> dict[str, str]:
    """Where the answers of queries go that do not go to paper, by name: `--sink [NAME=]SINK`."""
    found: dict[str, str] = {}
    names = [spec.name for spec, _ in queries]
    for text in request.sinks:
        owner = next(
            (name for name in sorted(names, key=len, reverse=True) if text.startswith(name + "=")), None
        )
        if owner is None and len(names) != 1:
            raise UsageError(
                f"--sink {text}: say whose answers go there, --sink NAME=SINK; the continuous queries are: "
                f"{', '.join(names) or 'none'}"
            )
        name = owner or names[0]
        if name in found:
            raise UsageError(f"--sink is given twice for '{name}'")
        found[name] = beside(text if owner is None else text[len(owner) + 1 :], Path())
    for spec, query in queries:
        if spec.name in found:
            output = None if spec.output is None else A.Output(spec.output)
            check_sink(found[spec.name], query=spec.name, shape=shape_of(query, output))
    return found


def _must_exist(path: str) -> None:
    if not Path(path).exists():
        raise InputError(f"there is no file {path}")
