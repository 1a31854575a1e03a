"""`kelda query`: from options to a job, from a job to answers on paper."""

from __future__ import annotations

import contextlib
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO, cast

from kelda.cli import values
from kelda.cli.output import Writer, writer_for
from kelda.cli.progress import RunProgress
from kelda.compiling import say_so_on_a_terminal
from kelda.engine.answer import Answer
from kelda.engine.oneshot import Solutions, evaluate
from kelda.errors import EnvironmentProblem, InputError, QueryError, UsageError
from kelda.io.formats import shape_of
from kelda.io.job import Job, QuerySpec, StreamSource
from kelda.io.progress import Progress
from kelda.io.query_files import query_text, specified, undeclared_streams
from kelda.io.sources.address import read_address
from kelda.io.values import duration, instant, size
from kelda.lang import algebra as A
from kelda.plan.default_graph import reads_default_graph
from kelda.rdf.framing import framing_of, guess_format
from kelda.rdf.graphs import load_graph
from kelda.rdf.graphstore import GraphStore

STOPPED = 130  # the exit code of who was stopped by Ctrl-C
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
    strict: bool = False
    t0: str = "0"
    batch_events: int = 10_000
    output: str | None = None
    idle: Sequence[str] = ()
    rate: Sequence[str] = ()
    base: str | None = None
    max_record: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class OnSpark:
    """Where and how Spark runs a job."""

    master: str = "local[*]"
    checkpoint: Path | None = None
    shards: int = 1
    balance: str = "rotation"


# ------------------------------------------------------------------------------ what to run


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


def make_job(request: Request, specs: Iterable[QuerySpec]) -> Job:
    """The job of a request: every option read and checked, before anything starts."""
    specs = list(specs)
    base = next((spec.base for spec in specs if spec.base is not None), request.base)
    files = [values.iri_and_file(text, "--stream", base) for text in request.streams]
    names = [iri for iri, _ in files]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"--stream <{name}> is given twice; one stream is read from one file")
    formats = values.per_stream(request.stream_formats, names, str)
    times = values.per_stream(request.time_predicates, names, lambda text: text.strip("<>"))
    mappings = values.per_stream(request.mappings, names, str)
    lateness = values.per_stream(request.lateness, names, duration)
    idle = values.per_stream(request.idle, names, duration)
    rate = values.per_stream(request.rate, names, int)
    if sum(path == str(STDIN) for path in [*map(str, request.queries), *(path for _, path in files)]) > 1:
        raise UsageError("standard input (-) is one thing: one query, or one stream")
    max_record = values.per_stream(request.max_record, names, size)
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
            )
        )
    graphs: list[tuple[str | None, str]] = [
        values.iri_and_file(text, "--graph", base) for text in request.graphs
    ]
    graphs += [(None, str(path)) for path in request.default_graphs]
    for _, path in graphs:
        _must_exist(path)
    return Job(
        queries=tuple(specs),
        streams=tuple(streams),
        graphs=tuple(graphs),
        t0=instant(request.t0),
        strict=request.strict,
        batch_events=request.batch_events,
    )


def _must_exist(path: str) -> None:
    if not Path(path).exists():
        raise InputError(f"there is no file {path}")


# ---------------------------------------------------------------------------------- running


def run_job(
    job: Job,
    *,
    runner: str,
    spark: OnSpark = OnSpark(),
    progress: Progress | None = None,
) -> Iterator[Answer]:
    """Every answer of a job, by the runner of that name."""
    if runner == "spark":
        from kelda.doctor import require_java

        require_java()
        try:
            from kelda.spark.run import run
        except ModuleNotFoundError as error:
            raise EnvironmentProblem(f"{error}; run `kelda doctor` to see what is missing") from error
        return run(
            job,
            master=spark.master,
            checkpoint=None if spark.checkpoint is None else str(spark.checkpoint),
            progress=progress,
            shards=spark.shards,
            balance=spark.balance,
        )
    for stream in job.streams:
        elsewhere = not Path(stream.path).exists() or Path(stream.path).is_dir()  # a pipe is a file, too
        if elsewhere or stream.rate is not None or stream.idle_ms is not None:
            raise UsageError(
                f"the runner '{runner}' reads files to their ends; {stream.path} is for --runner spark"
            )
    if spark.checkpoint is not None:
        raise UsageError(
            f"--checkpoint is for --runner spark; the runner '{runner}' keeps its state in memory"
        )
    if runner == "inprocess":
        from kelda.inprocess.run import run as run_incrementally

        return run_incrementally(job, progress=progress)
    from kelda.inprocess.by_reference import run as run_by_definition

    return run_by_definition(job, progress=progress)


def one_shot_answers(name: str, query: A.Query, store: GraphStore, now: int) -> Iterator[Answer]:
    """The answer of a query without windows, as answers at the instant `now`."""
    found = evaluate(query, store, now=now)
    if isinstance(found, Solutions):
        for row in found.rows:
            yield Answer(name, now, "+", bindings=row)
    elif isinstance(found, bool):
        yield Answer(name, now, "+", boolean=found)
    else:
        yield Answer(name, now, "+", triples=tuple(found))


def answer_queries(
    request: Request,
    *,
    runner: str,
    spark: OnSpark = OnSpark(),
    format: str = "table",
    out: Path | None = None,
    rejects: Path | None = None,
    progress: bool | None = None,
) -> None:
    """Run the request and write its answers; a summary goes to stderr."""
    checkpoint = spark.checkpoint
    queries = parsed_queries(request)
    continuous = [(spec, query) for spec, query in queries if query.windows]
    one_shot = [(spec, query) for spec, query in queries if not query.windows]
    job = make_job(request, [spec for spec, _ in continuous])
    _check_streams(job, continuous)
    _spare_inputs(request, job, out, rejects)
    if checkpoint is not None and format == "json":
        raise UsageError("--format json is one array, which a later run cannot continue; use ndjson or csv")
    # A run that is taken up again adds to what the first one wrote.
    resumed = checkpoint is not None and (checkpoint / "kelda.json").exists()
    shapes = {spec.name: shape_of(query) for spec, query in queries}
    with contextlib.ExitStack() as open_files:
        paper = open_files.enter_context(_opened(out, append=resumed)) if out else sys.stdout
        rejects_file = open_files.enter_context(_opened(rejects, append=resumed)) if rejects else None
        show = sys.stderr.isatty() if progress is None else progress
        size = sum(Path(s.path).stat().st_size for s in job.streams if Path(s.path).is_file())
        told = RunProgress(size, sys.stderr, show=show, rejects=rejects_file)
        writer = writer_for(format, paper, shapes, told.clear, header=not (resumed and out))
        told.while_working = writer.idle
        for spec, query in queries:
            if note := in_no_graph(spec.name, query, job):
                print(note, file=sys.stderr)
        say_so_on_a_terminal()
        count = 0
        stopped = False
        try:
            count += _ask_once(one_shot, job, writer)
            if continuous:
                if runner == "spark":
                    job = open_files.enter_context(_kept_input(job, checkpoint))
                answers = run_job(job, runner=runner, spark=spark, progress=told)
                with contextlib.closing(cast(Generator[Answer, None, None], answers)):
                    for answer in answers:
                        writer.write((answer,))
                        count += 1
                        if checkpoint is not None:  # an answer that is taken must not be lost in a buffer
                            paper.flush()
        except KeyboardInterrupt:
            stopped = True
        finally:
            told.clear()
            writer.close()  # what was answered before a failure is still an answer
        print(told.summary(count), file=sys.stderr)
    if stopped:
        print(how_to_go_on(checkpoint, runner), file=sys.stderr)
        raise SystemExit(STOPPED)
    if not resumed:
        _refuse_if_all_was_rejected(told, job)


def how_to_go_on(checkpoint: Path | None, runner: str) -> str:
    """What to tell who has stopped a run."""
    if checkpoint is not None:
        return f"stopped by Ctrl-C; the same command goes on from there, with what {checkpoint} keeps"
    keep = "with --checkpoint DIR" if runner == "spark" else "with --runner spark and --checkpoint DIR"
    return f"stopped by Ctrl-C; the same command begins anew ({keep} it would go on)"


def in_no_graph(name: str, query: A.Query, job: Job) -> str | None:
    """A note that a query looks for stored data where there are none: all are in named graphs."""
    if not job.graphs or any(graph is None for graph, _ in job.graphs) or not reads_default_graph(query):
        return None
    return (
        f"note: '{name}' looks for stored data in the default graph, which is empty: --graph makes named "
        f"graphs.\n      Write GRAPH <{job.graphs[0][0]}> {{ … }} in it, or load with --default-graph FILE"
    )


@contextlib.contextmanager
def _kept_input(job: Job, checkpoint: Path | None) -> Iterator[Job]:
    """The job with standard input in a file, which other processes can read too."""
    piped = [stream for stream in job.streams if stream.path == STDIN_FILE]
    if not piped:
        yield job
        return
    if checkpoint is not None:
        raise UsageError(
            "standard input cannot be read again, so a run cannot go on with it: write it to a file first"
        )
    with tempfile.TemporaryDirectory(prefix="kelda-stdin-") as folder:
        file = Path(folder, "stdin")
        with Path(STDIN_FILE).open("rb") as whole, file.open("wb") as copy:
            shutil.copyfileobj(whole, copy)
        streams = [replace(s, path=str(file)) if s in piped else s for s in job.streams]
        yield replace(job, streams=tuple(streams))


def _refuse_if_all_was_rejected(told: RunProgress, job: Job) -> None:
    """A stream of which nothing could be read is no success, however few answers were to be expected."""
    for stream in job.streams:
        place = read_address(stream.path).place
        if first := told.first_of_only_rejects(stream.iri, (stream.path, place)):
            raise InputError(
                f"nothing of <{stream.iri}> could be read: every record of {stream.path} was rejected, "
                f"the first (line {first.line}) for this: {first.reason}\n  {first.record}\n"
                "is it another format (--stream-format) or mapping (--mapping)? --rejects FILE keeps them all"
            )


def _ask_once(queries: list[tuple[QuerySpec, A.Query]], job: Job, writer: Writer) -> int:
    if not queries:
        return 0
    store = GraphStore()
    for graph, path in job.graphs:
        load_graph(store, path, graph)
    now = time.time_ns() // 1_000_000
    count = 0
    for spec, query in queries:
        for answer in one_shot_answers(spec.name, query, store, now):
            writer.write((answer,))
            count += 1
    return count


def _check_streams(job: Job, queries: list[tuple[QuerySpec, A.Query]]) -> None:
    known = {s.iri for s in job.streams}
    for spec, query in queries:
        for iri in undeclared_streams(query, known):
            raise UsageError(f"query '{spec.name}' reads <{iri}>: say from which file, --stream {iri}=FILE")
        if not known:
            raise UsageError(f"query '{spec.name}' reads streams: give at least one, --stream IRI=FILE")


def _spare_inputs(request: Request, job: Job, *written: Path | None) -> None:
    """Refuse to write over what is to be read."""
    inputs = [
        *(p for p in request.queries if p != STDIN),
        *(Path(s.path) for s in job.streams),
        *(Path(p) for _, p in job.graphs),
    ]
    taken = {path.resolve() for path in inputs}
    for path in written:
        if path is not None and path.resolve() in taken:
            raise UsageError(f"{path} is an input of this run; write somewhere else")
        if path is not None:
            taken.add(path.resolve())


def _opened(path: Path, *, append: bool) -> TextIO:
    try:
        return path.open("a" if append else "w", encoding="utf-8", newline="")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
