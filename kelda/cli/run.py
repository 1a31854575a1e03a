"""`kelda run JOB.toml`: what the job says is brought to the engine, which goes on from its checkpoint.

The checkpoint has the last word on what runs. A job file that has changed adds to it: streams, graphs and
queries that are new are declared, loaded and registered. What is gone from the file goes on, and is said; to
end it, drop it. A query that is now another under its old name is refused: its answers would not be those
of one query.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TextIO

from kelda.api import Engine
from kelda.cli.driving import STOPPED, declare, drive, load, opened
from kelda.cli.watch import Watch
from kelda.compiling import say_so_on_a_terminal
from kelda.errors import UsageError
from kelda.io.job import StreamSource
from kelda.io.jobfile import JobFile, JobQuery, read_job
from kelda.io.requests import Desk, ServedQuery, register
from kelda.words import count


def run(path: Path, *, progress: bool | None = None) -> None:
    """Run a job until its streams end, or Ctrl-C. Mistakes in it are raised before anything starts."""
    job = read_job(path)
    say_so_on_a_terminal()
    with contextlib.ExitStack() as stack:
        engine = opened(job.engine)
        stack.callback(engine.stop)
        desk = None if job.engine.checkpoint is None else Desk(job.engine.checkpoint, engine)
        if desk is not None:
            desk.serve()  # what was left to be done when the job was killed
        for note in bring(engine, job):
            print(f"note: {note}", file=sys.stderr)
        rejects = _open_rejects(job, stack)
        told = Watch(sys.stderr, show=_shows(job, progress), rejects=rejects)
        told.begin(engine, job.streams)
        print(_beginning(job), file=sys.stderr)
        if desk is not None:
            stack.callback(desk.start().stop)
        finished = drive(engine, strict=job.engine.strict, tick=told.look)
        told.clear()
        print(told.summary(), file=sys.stderr)
    if not finished:
        print(how_to_go_on(job), file=sys.stderr)
        raise SystemExit(STOPPED)


def check(path: Path) -> None:
    """Say whether a job file is right."""
    job = read_job(path)
    parts = (
        count(len(job.streams), "stream"),
        count(len(job.graphs), "graph"),
        count(len(job.queries), "query"),
    )
    print(f"{path} is right: {', '.join(parts)}")


# ----------------------------------------------------------------------- from the file to the engine


def bring(engine: Engine, job: JobFile) -> list[str]:
    """Bring to the engine what it does not have yet; returns notes on what it has and the job has not."""
    there = {query.name: query for query in engine.queries}
    changed = [q.spec.name for q in job.queries if q.spec.name in there and not same(q, there[q.spec.name])]
    if changed:
        raise UsageError(
            f"{job.path} has changed: {' and '.join(map(repr, changed))} in {job.engine.checkpoint} "
            f"{'is another query' if len(changed) == 1 else 'are other queries'}, or with another sink. "
            f"To run the new one, `kelda drop {job.path} {changed[0]}` the old one, or give it another name"
        )
    known = {stream.iri for stream in engine.streams if not feeds_a_graph(stream.source)}
    try:
        declare(engine, job.streams)
    except UsageError as error:
        raise UsageError(
            f"{error}\nA stream of a checkpoint stays as it was declared: give it back its settings in "
            f"{job.path}, or name another checkpoint folder"
        ) from error
    _load_what_is_new(engine, job)
    for query in job.queries:
        if query.spec.name not in there:
            register(engine, query.spec, query.sink)
    in_file = {query.spec.name for query in job.queries}
    goes_on = f"is not in {job.path.name} and goes on"
    return [
        f"query '{name}' {goes_on}; to end it: kelda drop {job.path} {name}"
        for name in there
        if name not in in_file
    ] + [f"<{iri}> {goes_on}" for iri in known - {stream.iri for stream in job.streams}]


def feeds_a_graph(source: StreamSource) -> bool:
    """Whether a stream is the way from a query to its graph, which no job declares."""
    return source.path.startswith("query:") and source.absorb is not None


def same(query: JobQuery, other: ServedQuery) -> bool:
    """Whether a query of the engine is what the job has under its name."""
    return (query.spec.text, query.sink) == (other.text, other.sink)


def _load_what_is_new(engine: Engine, job: JobFile) -> None:
    """Load graphs, each once in the life of a checkpoint."""
    there = set(engine.graphs)
    load(
        engine,
        [graph for graph in job.graphs if (graph.graph, str(Path(graph.path).absolute())) not in there],
    )


# --------------------------------------------------------------------------------- what is said


def _shows(job: JobFile, progress: bool | None) -> bool:
    """Whether there is a line of progress: where it does not go through tables of answers."""
    if progress is not None:
        return progress
    tables = sys.stdout.isatty() and any(query.sink.startswith("console") for query in job.queries)
    return sys.stderr.isatty() and not tables


def _open_rejects(job: JobFile, stack: contextlib.ExitStack) -> TextIO | None:
    path = job.engine.rejects
    if path is None:
        return None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return stack.enter_context(path.open("a", encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error


def _beginning(job: JobFile) -> str:
    where = f"on Spark, {job.engine.master}" if job.engine.runner == "spark" else "in this process"
    return f"running {job.path.name} {where}; Ctrl-C stops it"


def how_to_go_on(job: JobFile) -> str:
    """What to tell who has stopped a job."""
    if job.engine.checkpoint is not None:
        keeps = f"with what {job.engine.checkpoint} keeps"
        return f"stopped by Ctrl-C; `kelda run {job.path}` goes on from there, {keeps}"
    return (
        f"stopped by Ctrl-C; `kelda run {job.path}` begins anew "
        '(with checkpoint = "state" under [engine] it would go on)'
    )
