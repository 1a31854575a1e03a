"""`kelda query`: a request to an engine, and its answers on paper."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from kelda.api import Engine
from kelda.ask.prepared import PreparedAsk
from kelda.cli.at_hand import store_of
from kelda.cli.driving import STOPPED, declare, drive, load, opened
from kelda.cli.output import Paper, writer_for
from kelda.cli.request import STDIN, STDIN_FILE, Request, Wanted, read_request
from kelda.cli.watch import Watch
from kelda.compiling import say_so_on_a_terminal
from kelda.engine.block import Block
from kelda.errors import InputError, UsageError
from kelda.io.formats import shape_of
from kelda.io.hold import LOCK
from kelda.io.job import StreamSource
from kelda.io.jobfile import EngineSettings, JobGraph
from kelda.io.requests import Desk, register
from kelda.io.results import answers_of
from kelda.io.sources.address import read_address
from kelda.lang import algebra as A
from kelda.plan.default_graph import reads_default_graph


def answer_queries(
    request: Request,
    *,
    settings: EngineSettings,
    format: str = "table",
    out: Path | None = None,
    progress: bool | None = None,
) -> None:
    """Run the request and write its answers; a summary goes to stderr."""
    wanted = read_request(request)
    _spare_inputs(request, wanted, (out, settings.rejects))
    if settings.checkpoint is not None and format == "json":
        raise UsageError("--format json is one array, which a later run cannot continue; use ndjson or csv")
    for spec, query in wanted.queries:
        if not wanted.grows and (note := in_no_graph(spec.name, query, wanted.graphs)):
            print(note, file=sys.stderr)
    say_so_on_a_terminal()
    # A run that is taken up again adds to what the first one wrote.
    resumed = settings.checkpoint is not None and (settings.checkpoint / LOCK).exists()
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(_opened(out, append=resumed)) if out else sys.stdout
        rejects = stack.enter_context(_opened(settings.rejects, append=resumed)) if settings.rejects else None
        watch = Watch(sys.stderr, show=sys.stderr.isatty() if progress is None else progress, rejects=rejects)
        shapes = {spec.name: shape_of(query) for spec, query in wanted.queries}
        header = out is None or file.tell() == 0
        writer = writer_for(format, file, shapes, watch.clear, header=header)
        paper = Paper(writer, file, lasting=settings.checkpoint is not None)
        stack.callback(paper.close)
        for block in one_shot_answers(wanted):
            paper.take(block)
        if not wanted.continuous:
            paper.idle()
            print(watch.summary(paper.count), file=sys.stderr)
            return
        streams = stack.enter_context(_kept_input(wanted.streams, settings))
        engine = opened(settings, fixed_graphs=settings.checkpoint is None and not wanted.grows)
        stack.callback(engine.stop)
        ask(engine, replace(wanted, streams=streams), paper)
        watch.begin(engine, streams)
        if settings.checkpoint is not None:
            stack.callback(Desk(settings.checkpoint, engine).start().stop)

        def tick() -> None:
            paper.idle()
            watch.look()

        try:
            finished = drive(engine, strict=settings.strict, tick=tick)
        finally:
            paper.close()
            watch.clear()
            print(watch.summary(None if wanted.sinks else paper.count), file=sys.stderr)
    if not finished:
        print(how_to_go_on(settings.checkpoint), file=sys.stderr)
        raise SystemExit(STOPPED)
    if not resumed:
        _refuse_if_all_was_rejected(watch, streams)


def ask(engine: Engine, wanted: Wanted, paper: Paper) -> None:
    """Let an engine know all that it is to read and to answer; one that goes on knows most of it."""
    there = {query.name: query for query in engine.queries}
    known = {spec.name: (spec.text, wanted.sinks.get(spec.name)) for spec, _ in wanted.continuous}
    if any(known.get(name) != (query.text, query.sink) for name, query in there.items()):
        raise UsageError(
            "the checkpoint belongs to another job (other queries or sinks); "
            "use another folder, or delete this one to start from the beginning"
        )
    if not engine.streams:
        load(engine, wanted.graphs)
    declare(engine, wanted.streams)
    for spec, _ in wanted.continuous:
        query = there.get(spec.name) or register(engine, spec, wanted.sinks.get(spec.name))
        if query.sink is None:
            query.subscribe_to_batches(paper.take)


def one_shot_answers(wanted: Wanted) -> Iterator[Block]:
    """The answers of queries without windows, all at the instant at which they are asked."""
    if not wanted.one_shot:
        return
    store = store_of(wanted.graphs)
    now = time.time_ns() // 1_000_000
    for spec, query in wanted.one_shot:
        found = PreparedAsk(query, store.dictionary).answer(store.view(), now_ms=now)
        yield Block.of_answers(query, spec.name, list(answers_of(spec.name, found, now)))


def how_to_go_on(checkpoint: Path | None) -> str:
    """What to tell who has stopped a run."""
    if checkpoint is not None:
        return f"stopped by Ctrl-C; the same command goes on from there, with what {checkpoint} keeps"
    return "stopped by Ctrl-C; the same command begins anew (with --checkpoint DIR it would go on)"


def in_no_graph(name: str, query: A.Query, graphs: Sequence[JobGraph]) -> str | None:
    """A note that a query looks for stored data where there are none: all are in named graphs."""
    if not graphs or any(graph.graph is None for graph in graphs) or not reads_default_graph(query):
        return None
    return (
        f"note: '{name}' looks for stored data in the default graph, which is empty: --graph makes named "
        f"graphs.\n      Write GRAPH <{graphs[0].graph}> {{ … }} in it, or load with --default-graph FILE"
    )


@contextlib.contextmanager
def _kept_input(
    streams: tuple[StreamSource, ...], settings: EngineSettings
) -> Iterator[tuple[StreamSource, ...]]:
    """The streams, with standard input in a file where other processes are to read it."""
    piped = [stream for stream in streams if stream.path == STDIN_FILE]
    if piped and settings.checkpoint is not None:
        raise UsageError(
            "standard input cannot be read again, so a run cannot go on with it: write it to a file first"
        )
    if not piped or settings.runner != "spark":
        yield streams
        return
    with tempfile.TemporaryDirectory(prefix="kelda-stdin-") as folder:
        file = Path(folder, "stdin")
        with Path(STDIN_FILE).open("rb") as whole, file.open("wb") as copy:
            shutil.copyfileobj(whole, copy)
        yield tuple(replace(stream, path=str(file)) if stream in piped else stream for stream in streams)


def _refuse_if_all_was_rejected(watch: Watch, streams: Sequence[StreamSource]) -> None:
    """A stream of which nothing could be read is no success, however few answers were to be expected."""
    for stream in streams:
        place = read_address(stream.path).place
        if first := watch.first_of_only_rejects(stream.iri, (stream.path, place)):
            raise InputError(
                f"nothing of <{stream.iri}> could be read: every record of {stream.path} was rejected, "
                f"the first (line {first.line}) for this: {first.reason}\n  {first.record}\n"
                "is it another format (--stream-format) or mapping (--mapping)? --rejects FILE keeps them all"
            )


def _spare_inputs(request: Request, wanted: Wanted, written: Sequence[Path | None]) -> None:
    """Refuse to write over what is to be read."""
    inputs = [
        *(path for path in request.queries if path != STDIN),
        *(Path(stream.path) for stream in wanted.streams),
        *(Path(graph.path) for graph in wanted.graphs),
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
