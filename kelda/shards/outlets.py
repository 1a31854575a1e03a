"""Where answers go: the sinks of queries, and the streams that queries feed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from kelda.engine.answer import Answer
from kelda.engine.clock import FOREVER
from kelda.io.file_names import file_name
from kelda.io.formats import shape_of
from kelda.io.job import QuerySpec, parse_spec
from kelda.io.sinks import NullSink, StreamSink, open_sink
from kelda.io.sinks.sink import Sink
from kelda.lang.algebra import Output
from kelda.shards.catalog import Drop, Op, Register
from kelda.shards.declared import Declared
from kelda.shards.feeding import GRAPH, as_changes
from kelda.shards.merge import Merged
from kelda.shards.shard import News


class Outlets:
    """The sinks of the queries that stand, opened when they do and closed when they go."""

    def __init__(self, run: str, ledgers: Path | None, fed: Callable[[int], Path]) -> None:
        """`run` names whose batches these are; `fed` says where the elements of a stream lie that a query
        feeds."""
        self._run, self._ledgers, self._fed = run, ledgers, fed
        self.sinks: dict[str, Sink] = {}
        self._graphs: set[str] = set()  # queries that feed stored graphs
        self.feeds: dict[str, StreamSink] = {}

    def check(self, sink: str, spec: QuerySpec) -> None:
        """Raise what is wrong with the sink of a query."""
        self._open(sink, spec).close()

    def _open(self, sink: str, spec: QuerySpec) -> Sink:
        if sink.startswith(GRAPH):  # its answers go there by way of a stream
            return NullSink()
        shape = shape_of(parse_spec(spec), None if spec.output is None else Output(spec.output))
        ledger = None if self._ledgers is None else self._ledgers / file_name(spec.name)
        return open_sink(sink, query=spec.name, shape=shape, run=self._run, ledger=ledger)

    def take(self, ops: Iterable[Op], declared: Declared) -> Iterator[Sink]:
        """Entries of the catalog hold; the sinks that are new."""
        for op in ops:
            if isinstance(op, Register) and op.sink is not None:
                self.sinks[op.name] = self._open(op.sink, op.spec)
                yield self.sinks[op.name]
                if op.sink.startswith(GRAPH):
                    self._graphs.add(op.name)
            elif isinstance(op, Drop):
                for gone in (self.sinks.pop(op.name, None), self.feeds.pop(op.name, None)):
                    if gone is not None:
                        gone.close()
            if isinstance(op, Register):
                for number, _ in declared.fed_by(op.name):
                    self.feeds[op.name] = StreamSink(self._fed(number), query=op.name, run=self._run)
                    yield self.feeds[op.name]

    @property
    def last(self) -> bool:
        """Whether any of them knows of batches when this process has ended."""
        return bool(self.feeds) or any(not isinstance(sink, NullSink) for sink in self.sinks.values())

    def write(
        self, batch: int, merged: Merged, news: list[News], levels: dict[str, int], content: str | None
    ) -> None:
        """Hand out the answers of a batch."""
        for name, sink in self.sinks.items():
            if mine := merged.of(name):
                sink.write(batch, mine, content=content)
        for name in self.feeds if news else ():
            level = levels[name]
            reported = min(n.reported[level] for n in news if level < len(n.reported))
            if all(n.level_ended(level) for n in news):
                reported = FOREVER
            self.feed(name, batch, merged.of(name), reported, content)

    def feed(
        self, name: str, batch: int, answers: Sequence[Answer], reported: int, content: str | None = None
    ) -> None:
        """The answers of a query as elements of the stream that it feeds, with the time up to which it has
        reported: that is the clock of the stream."""
        events = [as_changes(answer) for answer in answers] if name in self._graphs else answers
        self.feeds[name].write(batch, events, reported, content=content)

    def close(self) -> None:
        """Let go of all files."""
        for sink in (*self.sinks.values(), *self.feeds.values()):
            sink.close()
        self.sinks.clear()
        self.feeds.clear()
