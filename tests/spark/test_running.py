"""An engine that runs on: queries come, go, pause and move, hosts are killed, and it is started again.

The reference evaluator is told the same at the same places of the streams, and says what is expected.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

import kelda
from kelda.engine.answer import Answer
from kelda.engine.reference import ReferenceEvaluator
from kelda.errors import UsageError
from kelda.io.job import QuerySpec, StreamSource
from kelda.lang import parse
from kelda.lang.algebra import Output
from kelda.shards.deployment import Batch
from kelda.shards.setup import Setup
from kelda.spark.driver import SparkDriver
from tests.shards.worlds import PREFIX, event
from tests.spark.scene import MASTER, PATIENCE, committed, driver_of, hosts, sockets, until

A, B = "http://ex/a", "http://ex/b"
JOINED = PREFIX + "SELECT ?x ?y ?z { STREAM :a [RANGE 8ms] { ?x :p ?y } STREAM :b [TRIPLES 4] { ?x :q ?z } }"
EACH = PREFIX + "SELECT ?x (COUNT(*) AS ?n) { STREAM :a [RANGE 6ms] { ?x :p ?y } } GROUP BY ?x"
COUNTED = PREFIX + "SELECT (COUNT(*) AS ?n) { STREAM :a [RANGE 5ms] { ?x :p ?y } }"


class Twins:
    """An engine with two streams that are pushed, and a reference evaluator beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.reference = ReferenceEvaluator()
        for stream in (A, B):
            self.reference.add_stream(stream, from_start=True)
        self.expected: list[Answer] = []
        self.found: list[Answer] = []
        self.time = 0
        self.begin()
        for stream in (A, B):
            self.engine.stream(stream)

    def begin(self) -> None:
        """Start, or start again with the same folder."""
        self.engine = kelda.connect(MASTER, checkpoint=self.folder / "checkpoint", shards=2)

    def register(self, name: str, text: str, sink: str | None = None) -> kelda.Query:
        self.reference.register(name, parse(text), output=Output.CHANGES)
        return self.engine.register(text, name=name, output="changes", sink=sink)

    def say(self, count: int) -> None:
        """So many more elements on both streams; back when all is answered."""
        times = range(self.time + 1, self.time + count + 1)
        self.time += count
        for iri, letter in ((A, "p"), (B, "q")):
            events = [event(t, f"n{t * t % 5}", letter, t % 7) for t in times]
            self.expected += self.reference.push(iri, events)
            self.expected += self.reference.heartbeat(iri, self.time)
            stream = self.engine.stream(iri)
            stream.push(events)
            stream.heartbeat(self.time)
        assert self.engine.flush(PATIENCE), f"{self.time} ms answered"
        for query in self.engine.queries:
            self.found += query.results()

    def agree(self) -> None:
        assert lines(self.found) == lines([a for a in self.expected if a.query != "joined"])


def lines(answers: list[Answer]) -> list[str]:
    return [line for _, _, line in sorted((a.time, a.query, a.to_json()) for a in answers)]


@pytest.mark.spark
def test_a_day_in_the_life(tmp_path: Path) -> None:
    twins = Twins(tmp_path)
    sink = tmp_path / "joined.ndjson"
    twins.register("joined", JOINED, sink=str(sink))
    with twins.engine as engine:
        engine.start()
        twins.say(5)
        processes = hosts()
        assert sorted(processes.values()) == [0, 1]

        # Registered while nothing happens: from the next element on.
        each, counted = twins.register("each", EACH), twins.register("counted", COUNTED)
        twins.say(5)
        twins.agree()
        assert {a.query for a in twins.found} == {"each", "counted"}
        assert min(a.time for a in twins.found) == 6

        # A host dies; its shard stands up in another process.
        killed = next(process for process, shard in processes.items() if shard == 0)
        os.kill(killed, signal.SIGKILL)
        twins.say(7)
        twins.agree()
        assert engine.figures.rebuilt == 1
        assert sorted(hosts().values()) == [0, 1] and killed not in hosts()

        # Paused: silent. Then what has changed meanwhile, at once.
        each.pause()
        twins.reference.pause("each")
        assert each.state == "paused"
        silent = len([a for a in twins.found if a.query == "each"])
        twins.say(6)
        assert len([a for a in twins.found if a.query == "each"]) == silent
        each.resume()
        twins.reference.pause("each", False)
        assert each.state == "running"

        # Moved: the other shard warms up, then answers.
        placed = engine._deployment.planner.placed
        place = placed["counted"]
        counted.move(1 - place)
        for _ in range(4):
            twins.say(3)
        twins.agree()
        assert placed["counted"] == 1 - place
        assert f"(shard {1 - place})" in counted.explain()

        # Dropped.
        each.stop()
        twins.reference.drop("each")
        twins.say(3)
        twins.agree()
        with pytest.raises(UsageError, match="no query named 'each'"):
            each.explain()

        figures = json.loads(engine.figures.json())
        assert figures["events"] == 2 * twins.time and figures["stream_time"] == twins.time
        assert figures["answers"] > 0 and figures["segments"] > 0 and len(figures["shard_seconds"]) == 2
        assert figures["late"] == figures["rejected"] == 0
        until(lambda: committed(engine), "the last batch is committed")
    until(lambda: not hosts(), "hosts end with their run", 3.0)
    assert sockets(driver_of(engine).run.id) == []

    # The next day: the queries are there, with their sinks, and go on.
    twins.begin()
    with twins.engine as engine:
        assert [(q.name, q.sink) for q in engine.queries] == [("joined", str(sink)), ("counted", None)]
        engine.start()
        assert engine.flush(PATIENCE), "nothing new was pushed"
        twins.register("each", EACH)
        twins.say(4)
        twins.agree()
        for iri in (A, B):
            engine.stream(iri).end()
            twins.expected += twins.reference.end(iri)
        assert engine.wait(PATIENCE), "it ends when all streams have"
        for query in engine.queries:
            twins.found += query.results()
    twins.agree()
    written = [line for line in sink.read_text().splitlines() if line]
    assert sorted(written) == sorted(a.to_json() for a in twins.expected if a.query == "joined")
    assert len(written) > 20
    until(lambda: not hosts(), "hosts end with their run", 3.0)

    # On the third day nothing is left to do.
    twins.begin()
    with twins.engine as engine:
        engine.start()
        assert engine.wait(PATIENCE)


COMING = PREFIX + "SELECT ?x ?y { STREAM :a [RANGE 9ms] { ?x :r ?y } STREAM :b [RANGE 20ms] { ?z :s%d ?y } }"


@pytest.mark.spark
def test_queries_that_come_while_files_are_read_ahead(tmp_path: Path) -> None:
    """Each sees all elements of the instants after the clock of the batch before it holds, also those of a
    batch that was read when nobody asked for them yet."""
    count = 720
    said = {
        A: [event(t, f"n{t * t % 5}", "r", t % 7) for t in range(1, count)],
        # Twice as far in the same part of its file: elements wait for the clock.
        B: [event(2 * t, f"n{t % 4}", f"s{t % 3}", t % 7) for t in range(1, count)],
    }
    for iri, events in said.items():
        text = [f"{e.time}\t{q.subject} {q.predicate} {q.object} .\n" for e in events for q in e.quads]
        (tmp_path / f"{iri[-1]}.tsnt").write_text("".join(text))
    coming = {1: "c0", 2: "c1", 5: "c2"}
    found: list[Answer] = []
    clocks: dict[str, int] = {}  # of the batch before the first in which a query stood
    clock = 0

    def take(batch: Batch) -> None:
        nonlocal clock
        found.extend(batch.answers)
        for name in deployment.planner.standing:
            clocks.setdefault(name, clock)
        clock = min(news.now for news in batch.news)
        if batch.id == 3:  # one that is pushed: until it goes again, nothing is read ahead
            driver.add_stream(StreamSource("http://ex/c", "push:"))
            driver.end("http://ex/c")
        if batch.id == 8:
            driver.drop_stream("http://ex/c")
        if name := coming.get(batch.id):
            deployment.register(QuerySpec(name, COMING % int(name[1]), output="changes"))

    driver = SparkDriver(Setup(shards=2), tmp_path / "checkpoint", master=MASTER, batch_events=40, take=take)
    deployment = driver.deployment
    for iri in said:
        driver.add_stream(StreamSource(iri, str(tmp_path / f"{iri[-1]}.tsnt")))
    deployment.register(
        QuerySpec("counted", PREFIX + "SELECT (COUNT(*) AS ?n) { STREAM :a [RANGE 5ms] { ?x :r ?y } }")
    )
    try:
        driver.start()
        assert driver._ahead
        assert driver.wait(PATIENCE)
    finally:
        driver.stop()
    assert set(clocks) == {"counted", *coming.values()} and 0 < clocks["c0"] < clocks["c2"] < count

    for name in coming.values():
        reference = ReferenceEvaluator()
        for stream in said:
            reference.add_stream(stream, from_start=True)
        for stream, events in said.items():
            reference.push(stream, [e for e in events if e.time <= clocks[name]])
            reference.heartbeat(stream, clocks[name])
        reference.register(name, parse(COMING % int(name[1])), output=Output.CHANGES)
        expected = []
        for stream, events in said.items():
            expected += reference.push(stream, [e for e in events if e.time > clocks[name]])
            expected += reference.end(stream)
        assert lines_of(found, name) == lines(expected)
        assert len(expected) > 50


def lines_of(answers: list[Answer], query: str) -> list[str]:
    return lines([a for a in answers if a.query == query])
