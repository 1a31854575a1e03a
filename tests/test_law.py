"""The law, with everything that can come and go: streams, graphs and queries are declared and dropped between
any two batches, engines are lost and stand up again, and the answers are those of the reference evaluator."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import kelda
from kelda.engine.answer import Answer
from kelda.engine.reference import ReferenceEvaluator
from kelda.errors import QueryError
from kelda.io.job import QuerySpec, StreamSource
from kelda.lang import parse
from kelda.lang.algebra import Output
from kelda.plan.rules.each_stream import reads_every_stream
from kelda.rdf.event import Event
from kelda.rdf.graphs import load_graph
from kelda.shards.catalog import Drop, DropGraph, Load, Pause
from kelda.shards.setup import Setup
from tests import growing
from tests.crash.abandon import abandon
from tests.engine.random_queries import EX, STORED, STREAMS, events, queries
from tests.engine.test_batching import bag
from tests.engine.test_pause import texts
from tests.shards.local import LocalShards

CASES = int(os.environ.get("KELDA_CASES", "60")) // 2
LATENESS = 1
OTHER = EX + "c"  # a stream that no query reads by its name, but whose clock counts
MORE = "@prefix : <http://ex/> . :n0 :k 2 ; :knows :n2 . :n1 :k 3 . GRAPH :g { :n1 :in :n0 . }"


class ByDefinition:
    """The reference evaluator."""

    def __init__(self) -> None:
        self.evaluator = ReferenceEvaluator()
        self.answers: list[Answer] = []

    def add_stream(self, iri: str) -> None:
        self.evaluator.add_stream(iri, lateness=LATENESS, from_start=True)

    def drop_stream(self, iri: str) -> None:
        self.evaluator.drop_stream(iri)

    def load(self, path: str) -> None:
        load_graph(self.evaluator.store, path)
        self.evaluator.stored_changed()

    def drop_graph(self, graph: str | None) -> None:
        if graph is None:
            self.evaluator.store.clear_default_graph()
        else:
            self.evaluator.store.remove_graph(graph)
        self.evaluator.stored_changed()

    def register(self, name: str, text: str, output: str | None) -> None:
        self.evaluator.register(name, parse(text), output=None if output is None else Output(output))

    def drop(self, name: str) -> None:
        self.evaluator.drop(name)

    def pause(self, name: str, paused: bool) -> None:
        self.evaluator.pause(name, paused)

    def push(self, batch: dict[str, list[Event]]) -> None:
        for stream, some in batch.items():
            self.answers += self.evaluator.push(stream, some)

    def beat(self, streams: list[str], time: int) -> None:
        for stream in streams:
            self.answers += self.evaluator.heartbeat(stream, time)

    def end(self, streams: list[str]) -> None:
        for stream in streams:
            self.answers += self.evaluator.end(stream)

    def crash(self) -> None:
        """Never."""


class OnShards:
    """Several shards, without Spark."""

    def __init__(self, shards: int) -> None:
        self.local = LocalShards(Setup(shards=shards))
        self.answers: list[Answer] = []

    def add_stream(self, iri: str) -> None:
        self.local.apply([self.local.planner.declare(StreamSource(iri, "", lateness=LATENESS))])

    def drop_stream(self, iri: str) -> None:
        self.local.apply([self.local.planner.undeclare(iri)])

    def load(self, path: str) -> None:
        self.local.apply([Load(None, path)])

    def drop_graph(self, graph: str | None) -> None:
        self.local.apply([DropGraph(graph)])

    def register(self, name: str, text: str, output: str | None) -> None:
        self.local.apply([self.local.planner.plan(QuerySpec(name, text, output=output))])
        note(f"{name}: {self.local.planner.explain(name)}")

    def drop(self, name: str) -> None:
        self.local.apply([Drop(name)])

    def pause(self, name: str, paused: bool) -> None:
        self.local.apply([Pause(name, paused)])

    def push(self, batch: dict[str, list[Event]]) -> None:
        self.answers += self.local.push(batch)

    def beat(self, streams: list[str], time: int) -> None:
        self.answers += self.local.push({}, heartbeats=dict.fromkeys(streams, time))

    def end(self, streams: list[str]) -> None:
        self.answers += self.local.push({}, ends=streams)

    def crash(self) -> None:
        self.local.crash()


class OnEngine:
    """What users hold, in this process; with a checkpoint it can be lost."""

    def __init__(self, checkpoint: Path | None) -> None:
        self._checkpoint = checkpoint
        self.engine = kelda.connect(checkpoint=checkpoint, batch_events=3)
        self.engine.start()
        self.answers: list[Answer] = []

    def add_stream(self, iri: str) -> None:
        self.engine.stream(iri, lateness=LATENESS)

    def drop_stream(self, iri: str) -> None:
        self.engine.stream(iri, lateness=LATENESS).drop()

    def load(self, path: str) -> None:
        self.engine.load(path)

    def drop_graph(self, graph: str | None) -> None:
        self.engine.drop_graph(graph)

    def register(self, name: str, text: str, output: str | None) -> None:
        self.engine.register(text, name, output=output)

    def _query(self, name: str) -> kelda.Query:
        return next(query for query in self.engine.queries if query.name == name)

    def drop(self, name: str) -> None:
        self._read()
        self._query(name).stop()

    def pause(self, name: str, paused: bool) -> None:
        self._query(name).pause() if paused else self._query(name).resume()

    def push(self, batch: dict[str, list[Event]]) -> None:
        for stream, some in batch.items():
            if some:
                self.engine.stream(stream, lateness=LATENESS).push(some)
        self._read()

    def beat(self, streams: list[str], time: int) -> None:
        for stream in streams:
            self.engine.stream(stream, lateness=LATENESS).heartbeat(time)
        self._read()

    def end(self, streams: list[str]) -> None:
        for stream in streams:
            self.engine.stream(stream, lateness=LATENESS).end()
        self._read()

    def _read(self) -> None:
        assert self.engine.flush(60)
        for query in self.engine.queries:
            self.answers += query.results()

    def crash(self) -> None:
        if self._checkpoint is not None:
            abandon(self.engine)
            self.engine = kelda.connect(checkpoint=self._checkpoint, batch_events=3)
            self.engine.start()


@contextmanager
def backend(name: str) -> Iterator[OnShards | OnEngine]:
    if name.startswith("shards"):
        yield OnShards(int(name.partition("-")[2]))
        return
    with tempfile.TemporaryDirectory() as folder:
        on = OnEngine(Path(folder, "state") if name == "checkpoint" else None)
        try:
            yield on
        finally:
            on.engine.stop()


def _reads(text: str, iri: str) -> bool:
    query = parse(text)
    return reads_every_stream(query) or any(getattr(w.stream, "value", None) == iri for w in query.windows)


@pytest.mark.parametrize("on", ["inprocess", "checkpoint", "shards-1", "shards-2", "shards-5"])
@settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.one_of(texts(), queries()), min_size=1, max_size=3),
    st.sampled_from([None, "changes"]),
    events(),
    events(),
    st.data(),
)
def test_whatever_comes_and_goes(
    on: str, wanted: list[str], output: str | None, a: list[Event], b: list[Event], data: st.DataObject
) -> None:
    definition = ByDefinition()
    with backend(on) as engine, tempfile.TemporaryDirectory() as folder:
        both = (definition, engine)
        files = [Path(folder, f"{i}.trig") for i in range(2)]
        for file, text in zip(files, (STORED, MORE), strict=True):
            file.write_text(text)
        declared: list[str] = []
        running: dict[str, str] = {}
        left = {s: [e for e in some if e.quads] for s, some in zip(STREAMS, (a, b), strict=True)}
        newest, has_begun = -1, False

        def declare(iri: str) -> None:
            note(f"declare {iri}")
            for one in both:
                one.add_stream(iri)
            declared.append(iri)

        for stream in STREAMS:
            declare(stream)
        actions = ["register", "register", "drop", "pause", "resume", "crash", "load", "clear", "declare"]
        for count in range(data.draw(st.integers(4, 18))):
            action = data.draw(st.sampled_from([*actions, "undeclare", *7 * ["push"]]))
            if action == "register" or not running:
                text = data.draw(st.sampled_from(wanted))
                try:
                    read = {getattr(w.stream, "value", None) for w in parse(text).windows}
                except QueryError:  # a random query may break a rule of SPARQL
                    return
                if not read <= {None, *declared}:
                    continue
                # Nothing may wait for its instant: whether it is sent was decided without the query.
                for one in both:
                    one.beat(declared, newest)
                has_begun = True
                note(f"register q{count} {text}")
                for one in both:
                    one.register(f"q{count}", text, output)
                running[f"q{count}"] = text
            elif action == "push":
                batch = {}
                for stream in [s for s in STREAMS if s in declared]:
                    size = data.draw(st.integers(0, 3))
                    batch[stream], left[stream] = left[stream][:size], left[stream][size:]
                newest = max([newest, *(e.time or 0 for some in batch.values() for e in some)])
                if OTHER in declared:
                    batch[OTHER] = [Event(newest, (e.quads)) for e in a[:1] if newest >= 0]
                has_begun = has_begun or any(batch.values())
                note(f"push {[[e.time for e in some] for some in batch.values()]}")
                for one in both:
                    one.push(batch)
            elif action == "crash":
                note("crash")
                engine.crash()
            elif action in ("load", "clear"):
                which = data.draw(st.integers(0, 1))
                note(f"{action} {which}")
                for one in both:
                    if action == "load":
                        one.load(str(files[which]))
                    else:
                        one.drop_graph(None if which else EX + "g")
            elif action == "declare":
                new = [s for s in (*STREAMS, OTHER) if s not in declared]
                late = has_begun and any(reads_every_stream(parse(text)) for text in running.values())
                if new and not late:
                    declare(data.draw(st.sampled_from(new)))
            elif action == "undeclare":
                unread = [s for s in declared if not any(_reads(text, s) for text in running.values())]
                if unread:
                    gone = data.draw(st.sampled_from(unread))
                    note(f"undeclare {gone}")
                    for one in both:
                        one.drop_stream(gone)
                    declared.remove(gone)
            else:
                name = data.draw(st.sampled_from(sorted(running)))
                note(f"{action} {name}")
                for one in both:
                    if action == "drop":
                        one.drop(name)
                    else:
                        one.pause(name, action == "pause")
                if action == "drop":
                    del running[name]
        rest = {stream: some for stream, some in left.items() if stream in declared}
        for one in both:
            one.push(rest)
            one.end(declared)
        assert bag(engine.answers) == bag(definition.answers)


def test_programs_over_graphs_that_grow_by_definition() -> None:
    """However the elements are cut into batches, and wherever the evaluator is lost."""
    the_same_on("by definition")


@pytest.mark.parametrize("on", ["inprocess", "checkpoint"])
def test_programs_over_graphs_that_grow(on: str) -> None:
    the_same_on(on)


def the_same_on(on: str) -> None:
    """Random programs have the same log by definition and on another side."""

    @settings(max_examples=2 * CASES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(growing.programs())
    def check(program: list[growing.Op]) -> None:
        for i, op in enumerate(program):
            note(f"{i} {op}")
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            expected = growing.run(program, growing.ByDefinition(), folder)
            if on == "by definition":
                found = growing.run(program, growing.ByDefinition(cut=True), folder)
            else:
                side = growing.OnEngine(folder / "state" if on == "checkpoint" else None)
                try:
                    found = growing.run(program, side, folder)
                finally:
                    side.engine.stop()
        assert found.lines == expected.lines
        assert found.answers == expected.answers

    check()
