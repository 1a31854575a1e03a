"""Each runner as a function from a world and its cases to the answers, by case name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from unittest.mock import patch

from pyoxigraph import Literal, NamedNode, Quad

import kelda
from kelda.engine.answer import Answer
from kelda.inprocess import by_reference
from kelda.inprocess import run as inprocess
from kelda.io.job import Job, QuerySpec, StreamSource
from kelda.lang.params import term_from_text
from kelda.rdf.event import Event, Reject
from kelda.rdf.framing import read_events
from kelda.shards.setup import Setup
from tests.behaviour.cases import Case
from tests.behaviour.worlds import World
from tests.shards.local import LocalShards

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
    return collect(by_reference.run(job_of(world, cases, folder)))


def on_reference_one_by_one(world: World, cases: Iterable[Case], folder: Path) -> Answers:
    return collect(by_reference.run(job_of(world, cases, folder, batch_events=1)))


def on_inprocess(world: World, cases: Iterable[Case], folder: Path) -> Answers:
    return collect(inprocess.run(job_of(world, cases, folder)))


def on_inprocess_one_by_one(world: World, cases: Iterable[Case], folder: Path) -> Answers:
    """Each query alone and incremental where it can be, in the smallest of batches."""
    found: Answers = {}
    for case in cases:
        found.update(collect(inprocess.run(job_of(world, [case], folder, batch_events=1))))
    return defaultdict(list, found)


def on_shards(world: World, cases: Iterable[Case], folder: Path, shards: int) -> Answers:
    """The shards of the Spark pipeline without Spark: everything is one batch."""
    job = job_of(world, cases, folder)
    local = shards_of(job, shards)
    events = {source.iri: list(events_of(source)) for source in job.streams}
    return collect(local.push(events, ends=list(events)))


def on_shards_one_by_one(world: World, cases: Iterable[Case], folder: Path, shards: int) -> Answers:
    """Each event is a batch, and now and then all shards are lost and stand up again."""
    job = job_of(world, cases, folder)
    local = shards_of(job, shards)
    found: list[Answer] = []
    left = {source.iri: events_of(source) for source in job.streams}
    while left:
        for stream, events in list(left.items()):
            event = next(events, None)
            if event is None:
                del left[stream]
                found += local.push({}, ends=[stream])
            else:
                found += local.push({stream: [event]})
            if local.batch % 4 == 3:
                local.crash()
    return collect(found)


def shards_of(job: Job, shards: int) -> LocalShards:
    """Shards with the queries of a job."""
    local = LocalShards(Setup(job.t0, shards, fixed_graphs=True), job.streams, job.graphs)
    local.apply([local.planner.plan(spec) for spec in job.queries])
    return local


def events_of(source: StreamSource) -> Iterator[Event]:
    """The events of a stream, in the order of their arrival."""

    def refuse(reject: Reject) -> None:
        raise AssertionError(reject)

    return read_events(source.path, format=source.format, on_reject=refuse, name=source.path)


def on_connect(world: World, cases: Iterable[Case], folder: Path) -> Answers:
    """What a user holds: `kelda.connect()`, event by event. Graphs are loaded last: queries run already."""
    job = job_of(world, cases, folder)
    with kelda.connect(t0=job.t0) as engine:
        for source in job.streams:
            engine.stream(source.iri, lateness=source.lateness).heartbeat(-1)  # it takes part from the start
        queries = []
        for spec in job.queries:
            params = {name: term_from_text(text) for name, text in spec.params.items()}
            queries.append(engine.register(spec.text, spec.name, params, output=spec.output))
        for graph, path in job.graphs:
            engine.load(path, graph)
        left = {source.iri: events_of(source) for source in job.streams}
        while left:
            for stream, events in list(left.items()):
                event = next(events, None)
                if event is None:
                    del left[stream]
                else:
                    engine.stream(stream).push(event)
    return defaultdict(list, {query.name: list(query.results()) for query in queries})


# Events in a batch: each number of shards and each world meets one event, some, and all of them.
ALL = 10_000
BATCH_EVENTS = {
    "building": {1: 4, 2: ALL, 5: 1},
    "observations": {1: ALL, 2: 1, 5: 2},
    "unordered": {1: 1, 2: 3, 5: ALL},
}


def on_spark(
    world: World, cases: Iterable[Case], folder: Path, shards: int, exchange: bool = False
) -> Answers:
    """With `exchange`, parcels go through Spark to the shards, as on a cluster."""
    from kelda.spark.pipeline import Pipeline

    from kelda.spark.run import run

    job = job_of(world, cases, folder, BATCH_EVENTS[world.name][shards])
    way = patch.object(Pipeline, "_in_one_stage", lambda self: False) if exchange else nullcontext()
    with way:
        return collect(run(job, master="local[2]", shards=shards))


RUNNERS: dict[str, Callable[[World, Iterable[Case], Path], Answers]] = {
    "reference": on_reference,
    "reference-one-by-one": on_reference_one_by_one,
    "inprocess": on_inprocess,
    "inprocess-one-by-one": on_inprocess_one_by_one,
    "connect": on_connect,
    "shards-2": partial(on_shards, shards=2),
    "shards-2-one-by-one": partial(on_shards_one_by_one, shards=2),
    "shards-5": partial(on_shards, shards=5),
    "shards-5-one-by-one": partial(on_shards_one_by_one, shards=5),
    "spark-1": partial(on_spark, shards=1),
    "spark-2": partial(on_spark, shards=2, exchange=True),
    "spark-5": partial(on_spark, shards=5),
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
                graph = [t.graph_name] if isinstance(t, Quad) else []
                terms = (t.subject, t.predicate, t.object, *graph)
                lines.append((a.time, f"{head} {' '.join(map(_short, terms))}"))
        else:
            lines.append((a.time, f"{head} {str(a.boolean).lower()}"))
    return [line for _, line in sorted(lines)]


def _short(term: object) -> str:
    if isinstance(term, NamedNode):
        return term.value.replace("#", "/").rsplit("/", 1)[1]
    return term.value if isinstance(term, Literal) else str(term)
