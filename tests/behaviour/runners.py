"""Each backend as a function from a world and its cases to the answers, by case name.

All but the reference evaluator are what users hold: an `Engine`, in this process, in this process with a
checkpoint and crashes, on Spark; its streams read from files, or pushed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pyoxigraph import Literal, NamedNode, Quad

import kelda
from kelda.engine.answer import Answer
from kelda.engine.reference import ReferenceEvaluator
from kelda.io.job import StreamSource, parse_spec
from kelda.lang.algebra import Output
from kelda.lang.params import term_from_text
from kelda.rdf.event import Event, Reject
from kelda.rdf.framing import read_events
from kelda.rdf.graphs import load_graph
from kelda.shards.setup import Setup
from tests.behaviour.cases import Case
from tests.behaviour.worlds import World
from tests.crash.abandon import abandon
from tests.shards.local import LocalShards

Answers = dict[str, list[Answer]]
Graphs = list[tuple[str | None, str]]
PATIENCE = 240.0  # seconds: the machine may be busy


def written(world: World, folder: Path) -> tuple[list[StreamSource], Graphs]:
    """The streams and graphs of a world, in files."""
    streams, graphs = [], Graphs()
    for i, (iri, (format, text)) in enumerate(world.streams.items()):
        path = folder / f"stream{i}.{format}"
        path.write_text(text)
        streams.append(StreamSource(iri, str(path), format=format, lateness=world.lateness))
    for i, (graph, text) in enumerate(world.graphs.items()):
        file = folder / f"graph{i}.ttl"
        file.write_text(text)
        graphs.append((graph, str(file)))
    return streams, graphs


def events_of(source: StreamSource) -> Iterator[Event]:
    """The events of a stream, in the order of their arrival."""

    def refuse(reject: Reject) -> None:
        raise AssertionError(reject)

    return read_events(source.path, format=source.format, on_reject=refuse, name=source.path)


def collect(answers: Iterable[Answer]) -> Answers:
    """Answers by query."""
    found: Answers = defaultdict(list)
    for answer in answers:
        found[answer.query].append(answer)
    return found


# ------------------------------------------------------------------------------ by definition


def on_reference(world: World, cases: Iterable[Case], folder: Path, *, at_once: int) -> Answers:
    """The reference evaluator, so many events at a time from each stream in turn."""
    streams, graphs = written(world, folder)
    reference = ReferenceEvaluator()
    for graph, path in graphs:
        load_graph(reference.store, path, graph)
    for source in streams:
        reference.add_stream(source.iri, lateness=source.lateness, from_start=True)
    for case in cases:
        output = None if case.output is None else Output(case.output)
        reference.register(case.name, parse_spec(case.spec), output=output)
    left = {source.iri: events_of(source) for source in streams}
    found: list[Answer] = []
    while left:
        for stream, events in list(left.items()):
            some = list(islice(events, at_once))
            found += reference.push(stream, some)
            if not some:
                del left[stream]
                found += reference.end(stream)
    return collect(found)


# ------------------------------------------------------------------------------ engines


def register(engine: kelda.Engine, case: Case) -> kelda.Query:
    params = {name: term_from_text(text) for name, text in case.params}
    return engine.register(case.text, case.name, params, output=case.output)


def on_files(
    world: World, cases: Iterable[Case], folder: Path, *, exchange: bool = False, **how: Any
) -> Answers:
    """Streams by address, from `start` to their ends. With `exchange`, parcels go through Spark to the
    shards, as on a cluster."""
    way: Any = nullcontext()
    if exchange:
        from kelda.spark.driver import SparkDriver

        way = patch.object(SparkDriver, "_may_hand_over", lambda self: False)
    streams, graphs = written(world, folder)
    with way, kelda.connect(**how) as engine:
        for graph, path in graphs:
            engine.load(path, graph)
        for source in streams:
            engine.stream(source.iri, source.path, format=source.format, lateness=source.lateness)
        queries = [register(engine, case) for case in cases]
        engine.start()
        assert engine.wait(PATIENCE)
        return defaultdict(list, {query.name: list(query.results()) for query in queries})


def one_by_one(world: World, cases: Iterable[Case], folder: Path, **how: Any) -> Answers:
    """Each query alone, and incremental where it can be."""
    found: Answers = {}
    for case in cases:
        found.update(on_files(world, [case], folder, **how))
    return defaultdict(list, found)


def on_pushes(world: World, cases: Iterable[Case], folder: Path, **how: Any) -> Answers:
    """Event by event. Graphs are loaded last: queries run already."""
    streams, graphs = written(world, folder)
    with kelda.connect(**how) as engine:
        for source in streams:
            engine.stream(source.iri, lateness=source.lateness)
        queries = [register(engine, case) for case in cases]
        for graph, path in graphs:
            engine.load(path, graph)
        left = {source.iri: events_of(source) for source in streams}
        while left:
            for stream, events in list(left.items()):
                event = next(events, None)
                if event is None:
                    del left[stream]
                else:
                    engine.stream(stream).push(event)
    return defaultdict(list, {query.name: list(query.results()) for query in queries})


def on_crashes(world: World, cases: Iterable[Case], folder: Path, *, events: int) -> Answers:
    """With a checkpoint: after so many events of each stream the engine is lost, and another one goes on."""
    streams, graphs = written(world, folder)
    cases, state = list(cases), folder / "state"
    engine = kelda.connect(checkpoint=state)
    for graph, path in graphs:
        engine.load(path, graph)
        Path(path).unlink()  # the engine has a copy
    for source in streams:
        engine.stream(source.iri, lateness=source.lateness)
    for case in cases:
        register(engine, case)
    left = {source.iri: events_of(source) for source in streams}
    found: Answers = defaultdict(list)
    while left:
        engine.start()
        for stream, coming in list(left.items()):
            some = list(islice(coming, events))
            if some:
                engine.stream(stream).push(some)
            else:
                del left[stream]
                engine.stream(stream).end()
        assert engine.flush(PATIENCE)
        for query in engine.queries:
            found[query.name] += query.results()
        abandon(engine)
        engine = kelda.connect(checkpoint=state)
    engine.stop()
    return found


# ------------------------------------------------------------------------------ shards without Spark


def shards_of(world: World, cases: Iterable[Case], folder: Path, shards: int) -> LocalShards:
    """Shards with the queries of a world."""
    streams, graphs = written(world, folder)
    local = LocalShards(Setup(shards=shards, fixed_graphs=True), streams, graphs)
    local.apply([local.planner.plan(case.spec) for case in cases])
    return local


def on_shards(world: World, cases: Iterable[Case], folder: Path, shards: int) -> Answers:
    """Everything is one batch."""
    local = shards_of(world, cases, folder, shards)
    events = {source.iri: list(events_of(source)) for source in local.planner.declared.streams.values()}
    return collect(local.push(events, ends=list(events)))


def on_shards_one_by_one(world: World, cases: Iterable[Case], folder: Path, shards: int) -> Answers:
    """Each event is a batch, and now and then all shards are lost and stand up again."""
    local = shards_of(world, cases, folder, shards)
    found: list[Answer] = []
    left = {source.iri: events_of(source) for source in local.planner.declared.streams.values()}
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
    size = BATCH_EVENTS[world.name][shards]
    return on_files(
        world, cases, folder, exchange=exchange, master="local[2]", shards=shards, batch_events=size
    )


RUNNERS: dict[str, Callable[[World, Iterable[Case], Path], Answers]] = {
    "reference": partial(on_reference, at_once=ALL),
    "reference-one-by-one": partial(on_reference, at_once=1),
    "by-definition": partial(on_files, reference=True),
    "inprocess": on_files,
    "inprocess-one-by-one": partial(one_by_one, batch_events=1),
    "inprocess-pushed": on_pushes,
    "inprocess-crashing": partial(on_crashes, events=2),
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
