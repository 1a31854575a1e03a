"""The planner: where a query runs, decided once, when it is registered, and written into the catalog."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from pyoxigraph import BlankNode, NamedNode, Triple

from kelda.ask.solutions import solutions
from kelda.engine.deltas import Ids
from kelda.engine.ownership import MOST_SHARDS
from kelda.engine.report import output_of
from kelda.errors import UsageError
from kelda.io.job import QuerySpec, StreamSource, parse_spec
from kelda.lang import algebra as A
from kelda.lang import prepare
from kelda.lang.params import term_from_text
from kelda.plan.narrow import MOST, Narrowing, narrowings
from kelda.plan.partition import Partitioning, Spread, partition, streams_of
from kelda.plan.rules.each_stream import reads_every_stream
from kelda.plan.stored_reads import stored_reads
from kelda.rdf.ids import DEFAULT_GRAPH
from kelda.shards.balance import Balancer, Rotation
from kelda.shards.catalog import (
    AddStream,
    Drop,
    DropGraph,
    DropStream,
    Load,
    Op,
    Register,
    RegisterMany,
    Switch,
    Update,
    Warm,
)
from kelda.shards.declared import FED, Declared
from kelda.shards.routing import Narrowed, Routing, id_of
from kelda.shards.setup import Setup
from kelda.shards.trial import Scratch, Trial


@dataclass(frozen=True, slots=True)
class Standing:
    """A registered query as the one sees it who hands out its answers."""

    name: str
    query: A.Query
    output: A.Output
    spread: Spread | None


@dataclass
class Planner:
    """Plans queries, and keeps what ingest (`routing`) and the sinks (`standing`) need of them."""

    setup: Setup
    balancer: Balancer = field(default_factory=Rotation)
    trial: Trial = None  # type: ignore[assignment]  # by default an evaluator of its own
    declared: Declared = field(default_factory=Declared)
    routing: Routing = field(default_factory=Routing)
    standing: dict[str, Standing] = field(default_factory=dict)
    placed: dict[str, int] = field(default_factory=dict)  # the shard of each whole query
    partitionings: dict[str, Partitioning] = field(default_factory=dict)
    levels: dict[str, int] = field(default_factory=dict)
    _queries: dict[str, A.Query] = field(default_factory=dict)  # those that are known, by name
    _narrowed_to: dict[str, Narrowed] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 1 <= self.setup.shards <= MOST_SHARDS:
            raise UsageError(f"{self.setup.shards} shards: there can be 1 to {MOST_SHARDS}")
        if self.trial is None:
            self.trial = Scratch(self.setup)

    # -------------------------------------------------------------------- streams and graphs

    def declare(self, source: StreamSource, *, begun: bool = False) -> AddStream:
        """The entry that declares a stream. `begun`: elements have come already."""
        if self.declared.knows(source.iri):
            raise UsageError(f"there is a stream <{source.iri}> already: drop it first, or take another name")
        if source.absorb in self.declared.feeders and not source.path.startswith(FED):
            raise UsageError(
                f"<{source.absorb}> holds what the query {self.declared.feeders[source.absorb]!r} makes: "
                f"<{source.iri}> cannot be absorbed into it"
            )
        readers = [name for name, query in self._queries.items() if reads_every_stream(query)]
        if begun and readers and not source.path.startswith(FED):
            raise UsageError(
                f"stream <{source.iri}> comes too late for {', '.join(map(repr, readers))}, reading every "
                "stream: declare all streams before elements come, or drop these queries and register "
                "them again"
            )
        return AddStream(self.declared.numbered, source)

    def undeclare(self, iri: str) -> DropStream:
        """The entry that drops a stream, which nobody may read any more."""
        self.declared.number(iri)
        readers = [name for name in self._queries if self._reads(name, iri)]
        if readers:
            raise UsageError(f"<{iri}> is read by {', '.join(map(repr, readers))}: stop these queries first")
        return DropStream(iri)

    def _reads(self, name: str, iri: str) -> bool:
        query = self._queries[name]
        return iri in streams_of(query) or reads_every_stream(query)

    def check_load(self) -> None:
        """Refuse to change graphs that are fixed."""
        if self.setup.fixed_graphs and self._queries:
            raise UsageError(
                "the graphs are fixed, and queries rely on it: load them before the first query is "
                "registered, or connect without fixed_graphs=True"
            )

    # -------------------------------------------------------------------- new queries

    @contextmanager
    def trying(self) -> Iterator[None]:
        """What is planned inside is forgotten again if anything in there fails."""
        before = set(self._queries)
        try:
            yield
        except BaseException:
            for name in set(self._queries) - before:
                self._forget(name)
            raise

    def plan(self, spec: QuerySpec) -> Register:
        """Where this query is to run. Mistakes in it are raised here."""
        if spec.name in self._queries:
            raise UsageError(
                f"a query named {spec.name!r} is registered already: choose another name or drop it"
            )
        query = parse_spec(spec)
        if self.declared.fed_by(spec.name) and query.form is not A.Form.CONSTRUCT:
            raise UsageError(f"{spec.name!r} feeds a stream: it must be a CONSTRUCT query")
        level = self._level(query)
        self._try(spec, query, level)
        found = self.partitionings[spec.name]
        return Register(spec.name, spec, found.spread, self._place(spec.name, found), level=level)

    def _try(self, spec: QuerySpec, query: A.Query, level: int) -> None:
        self.trial.register(spec, query, level)
        self._queries[spec.name], self.levels[spec.name] = query, level
        self._partition(spec.name, query)

    def _place(self, name: str, found: Partitioning) -> int:
        if found.spread is not None:
            return 0
        self.placed[name] = self.balancer.place(name, self.placed)  # at once: the next one is to know
        return self.placed[name]

    def _level(self, query: A.Query) -> int:
        """Above all queries whose answers this one reads."""
        level = 0
        for stream in self.declared.streams.values():
            reads = stream.iri in streams_of(query) or reads_every_stream(query)
            if reads and stream.path.startswith(FED):
                feeder = stream.path.removeprefix(FED)
                if feeder not in self.levels:
                    raise UsageError(
                        f"<{stream.iri}> is fed by the query {feeder!r}: register that one first"
                    )
                level = max(level, self.levels[feeder] + 1)
        stored = stored_reads(query)
        for graph, feeder in self.declared.feeders.items():
            if NamedNode(graph) in stored and feeder in self.levels:
                level = max(level, self.levels[feeder] + 1)
        return level

    def plan_many(
        self, spec: QuerySpec, names: Sequence[str], values: Mapping[str, Sequence[str]]
    ) -> RegisterMany:
        """The same for queries that differ in parameters; they stay together."""
        prepared = prepare(spec.text, dialect=spec.dialect, base=spec.base)
        level = self._level(prepared.query)
        taken = next((name for name in names if name in self._queries), None)
        if taken is not None:
            raise UsageError(f"a query named {taken!r} is registered already: choose another name or drop it")
        self._try_many(spec, names, values, level)
        found = self._partition(names[0], prepared.query)
        if (reason := self.trial.reason(names[0], level)) is not None:
            raise UsageError(
                f"these queries run by the reference evaluator ({reason}): register them one by one"
            )
        shard = self._place(names[0], found)
        given = {name: tuple(texts) for name, texts in values.items()}
        return RegisterMany(tuple(names), spec, given, found.spread, shard, level)

    def _try_many(
        self, spec: QuerySpec, names: Sequence[str], values: Mapping[str, Sequence[str]], level: int
    ) -> None:
        prepared = prepare(spec.text, dialect=spec.dialect, base=spec.base)
        self.trial.register_many(spec, prepared, (names, read_values(values)), level)
        self._queries |= dict.fromkeys(names, prepared.query)
        self.levels |= dict.fromkeys(names, level)

    def _partition(self, name: str, query: A.Query) -> Partitioning:
        reason = self.trial.reason(name, self.levels[name])
        if reason is not None:
            found = Partitioning(None, f"by the reference evaluator ({reason})")
        else:
            found = partition(query, self.setup.shards, stored_default=self._may_store_in_default())
        self.partitionings[name] = found
        return found

    def _may_store_in_default(self) -> bool:
        """Whether the stored default graph has something in it, or may come to have."""
        if not self.setup.fixed_graphs:
            return True
        return bool(self.trial.store.view().tables(DEFAULT_GRAPH))

    def explain(self, name: str) -> str:
        """How and where a query runs."""
        where = self.partitionings.get(name) or self._partition(name, self._queries[name])
        at = f" (shard {self.placed[name]})" if where.spread is None and name in self.placed else ""
        how = self.trial.say(name, self.levels[name])
        place = f"{where.say()}{at}\n" if self.setup.shards > 1 else ""
        return f"{place}{self._say_narrowed(name)}{how}"

    def _say_narrowed(self, name: str) -> str:
        lines = []
        for wanted, each in self._narrowed_to.get(name, {}).items():
            for place in sorted({place for keys in each for place in keys}):
                values = sum(len(keys[place]) for keys in each if place in keys)
                variable = getattr(wanted.pattern, place).name
                lines.append(f"<{wanted.stream}>: stored data leave ?{variable} {values} value(s)\n")
        return "".join(lines)

    # -------------------------------------------------------------------- what holds

    def route(self, ops: Iterable[Op]) -> None:
        """Entries of the catalog are about to hold: from now on their elements are sent to their shards.

        What is dropped is still sent: a batch that is read again may be older than the drop."""
        for op in ops:
            match op:
                case AddStream() | DropStream():
                    self.declared.take([op])
                    self.trial.take(op)
                    if isinstance(op, AddStream):
                        self._route_to_all(op.source.iri)
                        self._route_absorbed(op.source)
                case Load() | DropGraph() | Update():
                    self.trial.take(op)
                case Register(name, spec, spread, shard):
                    query = parse_spec(spec)
                    if name not in self._queries:  # planned by another process
                        self._try(spec, query, op.level)
                    if spread is None:
                        self.placed[name] = shard
                    self._route(name, query, spread, shard)
                case RegisterMany(names, spec, values, spread, shard):
                    prepared = prepare(spec.text, dialect=spec.dialect, base=spec.base)
                    if names[0] not in self._queries:
                        self._try_many(spec, names, values, op.level)
                    if spread is None:
                        self.placed.update(dict.fromkeys(names, shard))
                    self._count(prepared.query)
                    patterns = partition(prepared.query, 1).patterns
                    self.routing.add_many(patterns, _encoded(values), spread, shard)
                case Warm(name, shard):
                    self._route(name, self._queries[name], None, shard)
                case Switch(name, shard):
                    self.placed[name] = shard
                case Drop(name):
                    self._forget(name)

    def _forget(self, name: str) -> None:
        if self._queries.pop(name, None) is not None:
            self.trial.drop(name, self.levels.pop(name))
        self.placed.pop(name, None)
        self._narrowed_to.pop(name, None)
        self.partitionings.pop(name, None)

    def stand(self, ops: Iterable[Op]) -> None:
        """Entries of the catalog hold: from now on these are the queries whose answers are handed out."""
        for op in ops:
            match op:
                case Register(name, spec, spread, _):
                    self._stand([name], parse_spec(spec), spec.output, spread)
                case RegisterMany(names, spec, _, spread, _):
                    query = prepare(spec.text, dialect=spec.dialect, base=spec.base).query
                    self._stand(names, query, spec.output, spread)
                case Drop(name):
                    self.standing.pop(name, None)

    @property
    def queries(self) -> list[str]:
        """Names of the registered queries."""
        return list(self._queries)

    def streams(self, spec: QuerySpec) -> list[str]:
        """The streams that a query reads."""
        return self.streams_of(self._queries.get(spec.name) or parse_spec(spec))

    def streams_of(self, query: A.Query) -> list[str]:
        """The same of a query that may not be known."""
        if reads_every_stream(query):
            return [source.iri for source in self.declared.streams.values()]
        return list(streams_of(query))

    def algebra(self, name: str) -> A.Query:
        """A registered query."""
        return self._queries[name]

    def span(self, name: str) -> int | None:
        """How far back the windows of a query reach, ms of stream time; None if that cannot be said."""
        reach = 0
        for window in self._queries[name].windows:
            match window.window:
                case A.TimeWindow(range=int(r), slide=slide, until=until, time_predicate=None):
                    reach = max(reach, r + until + (slide if isinstance(slide, int) else 0))
                case A.NowWindow():
                    reach = max(reach, 1)
                case _:
                    return None
        return reach + (self._queries[name].every or 0)

    def _stand(self, names: Iterable[str], query: A.Query, output: str | None, spread: Spread | None) -> None:
        told = output_of(query) if output is None else A.Output(output)
        self.standing |= {name: Standing(name, query, told, spread) for name in names}

    def _route(self, name: str, query: A.Query, spread: Spread | None, shard: int) -> None:
        self._count(query)
        if reads_every_stream(query) or self.trial.reason(name, self.levels[name]) is not None:
            every = reads_every_stream(query)
            streams = [s.iri for s in self.declared.streams.values()] if every else streams_of(query)
            for stream in streams:
                self.routing.everything(stream, shard)
            return
        narrowed = self._narrowed_to[name] = self._narrowed(query)
        self.routing.add(self.partitionings[name].patterns, spread, shard, narrowed)
        for window in query.windows:
            by = window.window.time_predicate if isinstance(window.window, A.TimeWindow) else None
            if by is not None and isinstance(window.stream, NamedNode):
                self.routing.predicate(window.stream.value, int(id_of([by])[0]), shard)

    def _route_to_all(self, iri: str) -> None:
        """A new stream goes to the queries that read every stream."""
        for name, query in self._queries.items():
            if reads_every_stream(query):
                self._count(query)
                self.routing.everything(iri, self.placed[name])

    def _route_absorbed(self, source: StreamSource) -> None:
        """What becomes a fact is wanted everywhere: stored graphs are the same for all shards."""
        if source.absorb is None:
            return
        for shard in range(self.setup.shards):
            if source.predicates is None:
                self.routing.everything(source.iri, shard)
            for predicate in source.predicates or ():
                self.routing.predicate(source.iri, int(id_of([NamedNode(predicate)])[0]), shard)

    def _narrowed(self, query: A.Query) -> Narrowed:
        """The ids to which stored graphs narrow patterns over windows, if these are fixed."""
        found: Narrowed = {}
        for pattern, places in narrowings(query).items() if self.setup.fixed_graphs else ():
            each = [self._keys(narrowing) for narrowing in places]
            if all(each):
                found[pattern] = each
        return found

    def _keys(self, narrowing: tuple[Narrowing, ...]) -> dict[str, Ids]:
        keys = {}
        for one in narrowing:
            store = self.trial.store
            _, ids = solutions(one.stored, store.view(), store.dictionary, now=0)
            # What a blank node is called may differ from process to process.
            terms = store.dictionary.terms(ids[0])
            if len(terms) <= MOST and not any(isinstance(term, BlankNode | Triple) for term in terms):
                keys[one.place] = ids[0]
        return keys

    def _count(self, query: A.Query) -> None:
        for window in query.windows:
            if isinstance(window.window, A.CountWindow):
                one = [window.stream.value] if isinstance(window.stream, NamedNode) else None
                for stream in one or [s.iri for s in self.declared.streams.values()]:
                    self.routing.count(stream)


def read_values(values: Mapping[str, Sequence[str]]) -> dict[str, list[object]]:
    """Parameter values from their texts: terms in N-Triples syntax, or numbers for window sizes."""
    return {
        name: [int(v) if str(v).lstrip("-").isdigit() else term_from_text(v) for v in texts]
        for name, texts in values.items()
    }


def _encoded(values: Mapping[str, Sequence[str]]) -> dict[str, np.ndarray]:
    """The ids of the parameters that are terms."""
    return {
        name: id_of(given)  # type: ignore[arg-type]
        for name, given in read_values(values).items()
        if all(not isinstance(v, int) for v in given)
    }
