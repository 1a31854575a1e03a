"""Each runner as a function from a world and its cases to the answers, by case name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

from pyoxigraph import Literal, NamedNode

from kelda.engine.answer import Answer
from kelda.runner import inprocess, reference_runner
from kelda.runner.job import Job, QuerySpec, StreamSource
from tests.behaviour.cases import Case
from tests.behaviour.worlds import World

Answers = dict[str, list[Answer]]


def job_of(world: World, cases: Iterable[Case], folder: Path, batch_events: int = 10_000) -> Job:
    """All cases of a world as one job: queries must not disturb each other."""
    streams = []
    for i, (iri, (format, text)) in enumerate(world.streams.items()):
        path = folder / f"stream{i}.{format}"
        path.write_text(text)
        streams.append(StreamSource(iri, str(path), format=format, lateness=world.lateness))
    graphs = []
    for i, (graph, text) in enumerate(world.graphs.items()):
        path = folder / f"graph{i}.ttl"
        path.write_text(text)
        graphs.append((graph, str(path)))
    queries = tuple(QuerySpec(c.name, c.text, params=dict(c.params), output=c.output) for c in cases)
    return Job(queries, tuple(streams), tuple(graphs), batch_events=batch_events)


def collect(answers: Iterable[Answer]) -> Answers:
    """Answers by query."""
    found: Answers = defaultdict(list)
    for answer in answers:
        found[answer.query].append(answer)
    return found


def on_reference(world: World, cases: Iterable[Case], folder: Path) -> Answers:
    return collect(reference_runner.run(job_of(world, cases, folder)))


def on_reference_one_by_one(world: World, cases: Iterable[Case], folder: Path) -> Answers:
    return collect(reference_runner.run(job_of(world, cases, folder, batch_events=1)))


def on_inprocess(world: World, cases: Iterable[Case], folder: Path) -> Answers:
    return collect(inprocess.run(job_of(world, cases, folder)))


def on_inprocess_one_by_one(world: World, cases: Iterable[Case], folder: Path) -> Answers:
    """Each query alone and incremental where it can be, in the smallest of batches."""
    found: Answers = {}
    for case in cases:
        found.update(collect(inprocess.run(job_of(world, [case], folder, batch_events=1))))
    return defaultdict(list, found)


def on_spark(world: World, cases: Iterable[Case], folder: Path) -> Answers:
    from kelda.spark import run as pipeline

    return collect(pipeline.run(job_of(world, cases, folder, batch_events=4), master="local[2]"))


RUNNERS: dict[str, Callable[[World, Iterable[Case], Path], Answers]] = {
    "reference": on_reference,
    "reference-one-by-one": on_reference_one_by_one,
    "inprocess": on_inprocess,
    "inprocess-one-by-one": on_inprocess_one_by_one,
    "spark": on_spark,
}


def show(answers: Iterable[Answer]) -> list[str]:
    """Answers in the notation of the cases, sorted within each time."""
    lines = []
    for a in answers:
        head = f"{a.time} {a.sign}"
        if a.bindings is not None:
            cells = sorted(f"{k}={_short(v)}" for k, v in a.bindings.items())
            lines.append((a.time, f"{head} {' '.join(cells)}"))
        elif a.triples is not None:
            for t in a.triples:
                lines.append((a.time, f"{head} {_short(t.subject)} {_short(t.predicate)} {_short(t.object)}"))
        else:
            lines.append((a.time, f"{head} {str(a.boolean).lower()}"))
    return [line for _, line in sorted(lines)]


def _short(term: object) -> str:
    if isinstance(term, NamedNode):
        return term.value.replace("#", "/").rsplit("/", 1)[1]
    return term.value if isinstance(term, Literal) else str(term)
