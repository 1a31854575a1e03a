"""The incremental evaluator: the same answers as the reference evaluator, from the changes alone.

Elements come as columns of ids (`input.py`). When instants have become complete, their rows go through the
networks of all queries in one step (`running.py`). Which network answers which query is decided when it is
registered (`registry.py`); one without an incremental form has a network by definition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from pyoxigraph import NamedNode, Quad

from kelda.engine.absorb import Absorb
from kelda.engine.answer import Answer
from kelda.engine.batch import Batch
from kelda.engine.builder import Builder
from kelda.engine.clock import Clock
from kelda.engine.deltas import Ids
from kelda.engine.input import Input
from kelda.engine.memory import Held
from kelda.engine.network import Network
from kelda.engine.nodes import Step
from kelda.engine.ownership import Owner
from kelda.engine.registry import Registry
from kelda.engine.report import Report
from kelda.engine.running import Running
from kelda.engine.stopped import Stopped
from kelda.engine.stream_rows import StreamRows
from kelda.lang import algebra as A
from kelda.lang.deep import roomy
from kelda.lang.params import Prepared
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.event import Event
from kelda.store.changes import Changes, changes_of, cleared
from kelda.store.moments import behind
from kelda.store.store import Store


class IncrementalEvaluator:
    """Same interface and same answers as `ReferenceEvaluator`. With `by_definition` every query runs by
    definition, on the same clock and with the same input as otherwise."""

    def __init__(
        self,
        *,
        t0: int = 0,
        store: Store | None = None,
        memory_limit: int | None = None,
        by_definition: bool = False,
    ) -> None:
        self.dictionary = Dictionary()
        self.store = Store() if store is None else store
        self.made: list[Changes] = []  # of stored graphs, for whoever makes them last
        self.input = Input(self.dictionary)
        self.registry = Registry(Builder(self.input, self.store, t0), by_definition)
        self.running = Running(self.registry, self.input, t0, memory_limit)
        self.on_step: Callable[[Step], None] | None = None  # told of each step before it is taken

    # -------------------------------------------------------------------- queries

    def add_stream(
        self, iri: str, *, lateness: int = 0, from_start: bool = False, absorb: Absorb | None = None
    ) -> None:
        """Declare a stream. `from_start`: the clock waits for it even before its first element. `absorb`: its
        elements become stored facts."""
        self.registry.add_stream(iri, lateness, from_start, absorb)

    def drop_stream(self, iri: str) -> None:
        """Forget a stream that no query reads. The clock does not wait for it any more."""
        self.input.drop_stream(iri)

    @roomy(2)
    def register(
        self,
        name: str,
        query: A.Query,
        *,
        output: A.Output | None = None,
        report: Report | None = None,
        owner: Owner | None = None,
    ) -> None:
        """Add a query; see `Registry.register` for what may come of it.

        With `owner` it takes only the rows that are this shard's."""
        self.registry.register(name, query, output, report, owner)

    def register_many(
        self,
        prepared: Prepared,
        names: Sequence[str],
        values: Mapping[str, Sequence[object]],
        *,
        output: A.Output | None = None,
        report: Report | None = None,
        owner: Owner | None = None,
    ) -> None:
        """Register one query per name: `prepared` with the i-th value of each parameter."""
        self.registry.register_many(prepared, names, values, output, report, owner)

    def apart(self) -> None:
        """Queries that are registered from now on have no state in common with those before."""
        self.registry.apart()

    def drop(self, name: str) -> None:
        """Forget a query."""
        self.registry.drop(name)

    def pause(self, name: str, paused: bool = True) -> None:
        """A paused query keeps its windows up to date but reports nothing."""
        self.registry.pause(name, paused)

    def stop(self, name: str, why: Stopped) -> None:
        """A query has failed: it answers nothing any more, but is still registered."""
        self.registry.stop(name, why)

    # -------------------------------------------------------------------- stored graphs

    @property
    def next_moment(self) -> int:
        """The moment of an update that is carried out now."""
        return behind(self.now, self.store.latest)

    def change(self, changes: Changes) -> list[Batch]:
        """Carry out an update; what live queries say to it. Others see it from the next instant on."""
        return self.changed(self.store.apply(changes))

    def changed(self, made: Changes) -> list[Batch]:
        """An update was carried out; what live queries say to it."""
        if not len(made):
            return []
        self.made.append(made)
        return self.running.updated(int(made.moment[-1]))

    def load(self, quads: Iterable[Quad]) -> list[Batch]:
        """Add quads to the stored graphs."""
        return self.change(changes_of(quads, self.store.dictionary, self.next_moment))

    def clear(self, graph: int) -> list[Batch]:
        """Empty a stored graph."""
        return self.change(cleared(self.store.view(), graph, self.next_moment))

    # -------------------------------------------------------------------- looking

    @property
    def queries(self) -> list[str]:
        """Names of the registered queries, those that were stopped included."""
        return self.registry.queries

    @property
    def reasons(self) -> dict[str, str]:
        """Queries that run by definition, and why."""
        return self.registry.reasons

    @property
    def stopped(self) -> dict[str, Stopped]:
        """The queries that have failed, and why; until they are dropped."""
        return self.registry.stopped

    @property
    def clock(self) -> Clock:
        """The clocks of all streams."""
        return self.input.clock

    @property
    def late(self) -> dict[str, int]:
        """How many elements of each stream came too late."""
        return self.input.late

    @property
    def now(self) -> int:
        """All instants up to here are answered."""
        return self.input.now

    @property
    def released(self) -> int:
        """How many terms the dictionary has let go of."""
        return self.running.terms.released

    def network(self, name: str) -> Network:
        """The network that answers a query."""
        return self.registry.network(name)

    def networks(self) -> list[Network]:
        """What runs: queries by themselves, and shapes that queries share."""
        return self.registry.networks()

    def say(self, name: str) -> str:
        """How a query is run, as a tree of nodes."""
        return self.registry.say(name)

    @property
    def nbytes(self) -> dict[str, int]:
        """Bytes held, by query (or shape), by stream (elements that wait), and by the dictionary."""
        out: dict[str, int] = {}
        for held in self.memory():
            out[held.whose] = out.get(held.whose, 0) + held.bytes
        return out

    def memory(self) -> list[Held]:
        """Bytes held by each part: every index, table and buffer."""
        return self.running.memory()

    # -------------------------------------------------------------------- input

    def push(self, stream: str, events: Iterable[Event]) -> list[Answer]:
        """Take events as objects; see `push_columns` for the fast way."""
        self.input.take_events(stream, events)
        return self.running.answers(self.advance())

    def push_columns(
        self, stream: str, s: Ids, p: Ids, o: Ids, time: Ids, event: Ids | None = None
    ) -> list[Answer]:
        """Take triples as columns of ids, known to `dictionary`; equal `event` numbers in a row make
        one event (None: each triple is its own)."""
        return self.running.answers(self.push_batch(stream, s, p, o, time, event))

    def push_batch(
        self, stream: str, s: Ids, p: Ids, o: Ids, time: Ids, event: Ids | None = None
    ) -> list[Batch]:
        """As `push_columns`, with the answers left as columns."""
        self.input.take(stream, s, p, o, time, event)
        return self.advance()

    def heartbeat(self, stream: str, time: int) -> list[Answer]:
        """The stream promises that no element at or before `time` will come any more."""
        self.input.promise(stream, time)
        return self.running.answers(self.advance())

    def end(self, stream: str) -> list[Answer]:
        """The stream has no more elements."""
        self.input.end(stream)
        return self.running.answers(self.advance())

    # -------------------------------------------------------------------- time

    def advance(self) -> list[Batch]:
        """Answer what has become complete."""
        step = self.input.release(self.running.budget)
        if step is None:
            return []
        if self.on_step is not None:
            self.on_step(step)
        if self.input.absorbing:
            self._absorb(self.input.absorbed(step.rows, step.until))
        return self.running.step(step)

    def _absorb(self, changes: Changes) -> None:
        self.store.know(self.dictionary, changes)
        made = self.store.apply(changes)
        if len(made):
            self.made.append(made)

    def retake(self, until: int, rows: Mapping[str, StreamRows]) -> None:
        """Take a step again that was taken and answered before."""
        self.running.again(self.input.again(until, rows, self.running.budget))


def how_it_runs(query: A.Query) -> str:
    """How a query would be run over empty stored graphs: from the changes alone, or why not."""
    evaluator = IncrementalEvaluator()
    for window in query.windows:
        if isinstance(window.stream, NamedNode) and window.stream.value not in evaluator.clock.streams:
            evaluator.add_stream(window.stream.value)
    evaluator.register("query", query)
    return evaluator.say("query")
