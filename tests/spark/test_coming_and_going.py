"""Streams, graphs and queries that are declared and dropped while Spark runs, and what is there when it is
started again. An engine by definition, in this process, is told the same and says what is expected."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from pyoxigraph import NamedNode

import kelda
from kelda.errors import UsageError
from tests.shards.worlds import PREFIX, event
from tests.spark.scene import MASTER, PATIENCE, committed, hosts, until

A, B, C = (f"http://ex/{letter}" for letter in "abc")
NAMED = PREFIX + "SELECT ?x ?n { STREAM :a [RANGE 4ms] { ?x :p ?y } ?x :name ?n }"
JOINED = PREFIX + "SELECT ?x ?y ?z { STREAM :a [RANGE 4ms] { ?x :p ?y } STREAM :b [RANGE 6ms] { ?x :q ?z } }"
OF_ONE = PREFIX + "SELECT ?y { STREAM :a [RANGE 3ms] { $who :p ?y } }"
THIRD = PREFIX + "SELECT (COUNT(*) AS ?n) { STREAM :c [RANGE 5ms] { ?x ?p ?y } }"


class Both:
    """An engine on Spark and one by definition, which outlives it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.time = folder, 0
        self.oracle = kelda.connect(reference=True)
        self.begin()

    def begin(self) -> kelda.Engine:
        """Start, or start again with the same checkpoint."""
        self.spark = kelda.connect(MASTER, checkpoint=self.folder / "checkpoint", shards=2)
        return self.spark

    def do(self, call: Callable[[kelda.Engine], object]) -> None:
        for engine in (self.spark, self.oracle):
            call(engine)

    def query(self, engine: kelda.Engine, name: str) -> kelda.Query:
        return next(query for query in engine.queries if query.name == name)

    def say(self, count: int = 3) -> int:
        """So many more instants on all streams that are pushed, and what both say to them, which must be the
        same; returns how much that is."""
        times = range(self.time + 1, self.time + count + 1)
        self.time += count
        for engine in (self.spark, self.oracle):
            for stream in engine.streams:
                if stream.is_pushed:
                    letter = {A: "p", B: "q"}.get(stream.iri, "r")
                    stream.push([event(t, f"n{t % 3}", letter, t % 5) for t in times])
            engine.advance(self.time)
        assert self.spark.flush(PATIENCE)
        found, wanted = answers(self.spark), answers(self.oracle)
        assert found == wanted
        return len(found)


def answers(engine: kelda.Engine) -> list[str]:
    return lines(a for query in engine.queries for a in query.results())


def lines(answers: Iterable[kelda.Answer]) -> list[str]:
    return sorted(answer.to_json() for answer in answers)


def write_names(folder: Path, *names: str) -> Path:
    path = folder / "names.ttl"
    lines = [f'<http://ex/n{i}> <http://ex/name> "{name}" .\n' for i, name in enumerate(names)]
    path.write_text("".join(lines))
    return path


@pytest.mark.spark
def test_everything_comes_and_goes(tmp_path: Path) -> None:
    both, heard, expected = Both(tmp_path), list[kelda.Answer](), list[kelda.Answer]()
    names = write_names(tmp_path, "Ann", "Bob")
    with both.spark as engine:
        engine.start()  # with nothing

        # A stream, a query, and then the graph that it joins with.
        both.do(lambda e: e.stream(A))
        both.do(lambda e: e.register(NAMED, name="named"))
        engine.register(NAMED, name="told").subscribe(heard.append)
        both.oracle.register(NAMED, name="told").subscribe(expected.append)
        assert both.say() == 0
        both.do(lambda e: e.load(names))
        assert both.say() > 0
        assert lines(heard) == lines(expected) and len(heard) > 0
        both.do(lambda e: both.query(e, "told").stop())

        # Another stream, whose elements the clock waits for from now on.
        both.do(lambda e: e.stream(B))
        both.do(lambda e: e.register(JOINED, name="joined", output="changes"))
        assert both.say() > 0

        # Many queries at once; one of them goes again.
        nodes = {f"of{i}": NamedNode(f"http://ex/n{i}") for i in range(3)}
        engine.register_many(OF_ONE, {"who": list(nodes.values())}, list(nodes), output="changes")
        for name, node in nodes.items():
            both.oracle.register(OF_ONE, name, {"who": node}, output="changes")
        assert both.say() > 0
        both.do(lambda e: both.query(e, "of1").stop())
        assert both.say() > 0

        # Of the graph nothing is left, then there is another.
        both.do(lambda e: e.drop_graph())
        both.say()
        both.do(lambda e: e.load(write_names(tmp_path, "Cleo", "Dan", "Eve")))
        assert both.say() > 0
        assert engine.query('ASK { ?x ?p "Cleo" FILTER NOT EXISTS { ?y ?q "Ann" } }') is True

        # Shards that are lost stand up with the graphs and queries of their batch.
        for process in hosts():
            os.kill(process, signal.SIGKILL)
        assert both.say() > 0 and engine.figures.rebuilt == 2

        _a_stream_is_dropped_and_declared_again(both)
        _what_is_late_and_what_cannot_be_read(both)

        assert engine.memory["dictionary"] > 0 and engine.memory["query named"] > 0
        figures = engine.figures
        assert figures.stream_time == both.time and figures.batches > 16
        until(lambda: committed(engine), "the last batch is committed")

    # The file has gone; its copy has not.
    names.unlink()
    with both.begin() as engine:
        assert [stream.iri for stream in engine.streams] == [A, B, C]
        assert [query.name for query in engine.queries] == ["named", "joined", "of0", "of2", "third"]
        assert engine.query('ASK { <http://ex/n0> ?p "Cleo" }') is True
        assert both.query(engine, "joined").text == JOINED
        engine.start()
        assert both.say() > 0
        both.do(lambda e: both.query(e, "of0").stop())
        both.do(lambda e: e.register(THIRD, name="of0"))  # another one
        assert both.say() > 0


def _a_stream_is_dropped_and_declared_again(both: Both) -> None:
    """First from a file, then pushed: with the same name it is another stream."""
    engine, file = both.spark, both.folder / "c.tsnt"
    before = engine.figures.events
    file.write_text(
        "".join(f"{both.time + i}\t<http://ex/x> <http://ex/r> <http://ex/y> .\n" for i in (1, 2))
    )
    engine.stream(C, str(file))
    with pytest.raises(UsageError, match="is declared already, in another way"):
        engine.stream(C, "tail:another.tsnt", format="tsnt")
    until(lambda: engine.wait(0.01) or engine.figures.events == before + 2, "the file is read")
    both.say()
    engine.stream(C).drop()
    assert [stream.iri for stream in engine.streams] == [A, B]
    with pytest.raises(UsageError, match="<http://ex/b> is read by 'joined': stop these queries first"):
        engine.stream(B).drop()
    both.say()
    both.do(lambda e: e.stream(C, lateness=2))
    both.do(lambda e: e.register(THIRD, name="third", output="changes"))
    assert both.say() > 0


def _what_is_late_and_what_cannot_be_read(both: Both) -> None:
    engine = both.spark
    both.do(lambda e: e.stream(A).push(event(both.time - 1, "n0", "p", 7)))
    both.do(lambda e: e.stream(C).push(event(both.time + 3, "n0", "r", 7)))
    both.do(lambda e: e.stream(C).push(event(both.time + 1, "n1", "r", 7)))  # not later than is allowed
    both.say()
    assert engine.late == both.oracle.late == {A: 1, B: 0, C: 0}

    text = engine.stream("http://ex/text", format="tsnt")
    assert text.push("99\tno triple\n99\t<x:a> <x:b> <x:c> .\n") == 2
    assert engine.flush(PATIENCE)
    assert [reject.record for reject in engine.rejects] == ["99\tno triple"]
    assert (engine.figures.rejected, engine.figures.late) == (1, 1)
    text.drop()
