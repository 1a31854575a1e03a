"""Who is registered, and which network answers each: queries that are equal or of one shape have one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from pyoxigraph import NamedNode

from kelda.engine.absorb import Absorb
from kelda.engine.builder import Asked, Builder
from kelda.engine.by_definition import check_continuous
from kelda.engine.clock import FOREVER
from kelda.engine.compile import NotIncremental
from kelda.engine.deltas import Ids
from kelda.engine.functions import check_functions
from kelda.engine.network import KeptNetwork, Network, NodeNetwork, SharedNetwork
from kelda.engine.ownership import Owner
from kelda.engine.report import Report, When, output_of, periods_of, report_of
from kelda.engine.stopped import Stopped
from kelda.errors import UsageError
from kelda.lang import algebra as A
from kelda.lang.deep import SHALLOW
from kelda.lang.params import Prepared, sizes_of, term_of
from kelda.lang.walk import has
from kelda.plan.optimize import optimize
from kelda.plan.rules.each_stream import reads_every_stream
from kelda.plan.shape import Lifted, lift, nameless
from kelda.rdf import wire
from kelda.store.store import Store


@wire.plain
@dataclass(frozen=True, slots=True)
class KeptQueries:
    """What of the queries must survive, by name; of those that were stopped, when and why."""

    networks: dict[str, KeptNetwork]
    stopped: dict[str, tuple[int, str]]


class Registry:
    """The registered queries. With `by_definition` each of them runs so."""

    def __init__(self, builder: Builder, by_definition: bool) -> None:
        self.stopped: dict[str, Stopped] = {}  # queries that have failed
        self.reasons: dict[str, str] = {}  # queries that run by definition, and why
        self._builder, self._input, self._by_definition = builder, builder.input, by_definition
        self._alone: dict[str, Network] = {}  # by query; equal queries have nodes in common
        # Shapes seen; None while only one query has it, which then runs alone.
        self._shapes: dict[Asked, SharedNetwork | None] = {}
        self._shared: dict[str, SharedNetwork] = {}  # by query
        # Networks that an equal query may still come to, and whose they are.
        self._open: dict[Asked, NodeNetwork] = {}
        self._opened_by: dict[str, Asked] = {}
        # Queries with STREAM ?var as they were registered, to be compiled again for a stream that is new.
        self._on_every_stream: dict[str, Asked] = {}

    # -------------------------------------------------------------------- looking up

    @property
    def queries(self) -> list[str]:
        """Names of the registered queries, those that were stopped included."""
        return [*self._alone, *self._shared, *self.stopped]

    def network(self, name: str) -> Network:
        """The network that answers a query."""
        return self._shared.get(name) or self._alone[name]

    def networks(self) -> list[Network]:
        """What runs: queries by themselves, and shapes that queries share."""
        return [*self._alone.values(), *(s for s in self._shapes.values() if s is not None)]

    def equal(self, network: Network) -> list[Network]:
        """The networks that compute the same, those included that are kept for queries to come."""
        every: list[Network] = [*self._alone.values(), *self._open.values()]
        return [other for other in every if other.what == network.what]

    def say(self, name: str) -> str:
        """How a query is run, as a tree of nodes."""
        if name in self.stopped:
            return self.stopped[name].say()
        network = self.network(name)
        return network.say(sum(other.what == network.what for other in self._alone.values()))

    # -------------------------------------------------------------------- coming

    def add_stream(self, iri: str, lateness: int, from_start: bool, absorb: Absorb | None = None) -> None:
        """Declare a stream; queries that read every stream read it, too."""
        waiting = dict(self._on_every_stream)
        if waiting and self._input.steps and iri not in self._input.clock.streams:
            raise UsageError(
                f"stream <{iri}> comes too late for {', '.join(map(repr, waiting))}, reading every stream: "
                "declare all streams before elements come, or drop these queries and register them again"
            )
        self._input.add_stream(iri, lateness, from_start, absorb)
        for network in self._alone.values():
            network.add_stream(iri)
        for name, asked in waiting.items():
            self.drop(name)
            self._register(name, asked)

    def register(
        self, name: str, query: A.Query, output: A.Output | None, report: Report | None, owner: Owner | None
    ) -> None:
        """Add a query. One of five things comes of it:

        - it is *refused*: its name is taken, it has a function or a stream that nobody knows, or no window;
        - it *joins the network of its shape*: others differ from it in constants and sizes of windows only;
        - it runs *with an equal one* that has seen nothing of the stream before it;
        - it has a network *alone*;
        - it runs *by definition*, if it has no incremental form; `reasons` says why."""
        if self._is_taken(name):
            raise UsageError(f"a query named {name!r} is registered already: choose another name or drop it")
        check_functions(query)
        check_continuous(name, query, self._input.clock, live=True)
        self._register(name, Asked(query, output or output_of(query), report or report_of(query), owner))

    def _register(self, name: str, asked: Asked) -> None:
        if self._by_definition:
            self._define(name, asked, "as asked for")
            return
        query = asked.query
        is_deep = query.depth > SHALLOW  # and so not to be looked up again and again
        key = asked._replace(query=nameless(query))
        if not is_deep and (self._joins_its_shape(name, asked) or self._joins_an_equal(name, key)):
            return
        try:
            network = self._builder.alone(name, asked)
        except NotIncremental as reason:
            self._define(name, asked, str(reason))
            return
        self._alone[name] = network
        if reads_every_stream(query):
            self._on_every_stream[name] = asked
        elif not (is_deep or any(w.intervals.remembers_its_opening for w in network.windows)):
            self._open[key], self._opened_by[name] = network, key

    def _define(self, name: str, asked: Asked, reason: str) -> None:
        """Let the query run by definition."""
        self._alone[name] = self._builder.by_definition(name, asked, reason)
        self.reasons[name] = reason

    def _is_taken(self, name: str) -> bool:
        return name in self._alone or name in self._shared or name in self.stopped

    def _joins_an_equal(self, name: str, key: Asked) -> bool:
        """Let the query run with an equal one, if that has seen nothing of the stream before it."""
        if key not in self._open:
            return False
        self._alone[name] = self._open[key].twin(name)
        return True

    def _joins_its_shape(self, name: str, asked: Asked) -> bool:
        """Let the query join the network of its shape; the first of a shape goes alone."""
        lifted = self._lifted(asked)
        if lifted is None:
            return False
        key = asked._replace(query=lifted.shape)
        if key not in self._shapes:
            self._shapes[key] = None
            return False
        encode = self._input.dictionary.encode
        constants = np.array([[encode(c)] for c in lifted.constants], np.int64)  # type: ignore[arg-type]
        sizes = [np.array([s], np.int64) for s in lifted.sizes if s is not None]
        return self._join_shape(lifted, key, [name], constants.reshape(len(lifted.constants), 1), sizes)

    def register_many(
        self,
        prepared: Prepared,
        names: Sequence[str],
        values: Mapping[str, Sequence[object]],
        output: A.Output | None,
        report: Report | None,
        owner: Owner | None,
    ) -> None:
        """Register one query per name: `prepared` with the i-th value of each parameter.

        They run as one network if their shape allows it, and one by one if not."""
        query = prepared.query
        asked = Asked(query, output or output_of(query), report or report_of(query), owner)
        lifted = self._lifted(asked)
        taken = next((name for name in names if self._is_taken(name)), None)
        if taken is not None or len(set(names)) < len(names):
            raise UsageError(f"query names must be new and differ; {taken or 'some name'!r} does not")
        if lifted is not None:
            check_functions(query)
            constants = np.empty((len(lifted.constants), len(names)), np.int64)
            for i, constant in enumerate(lifted.constants):
                given = values[constant.name] if isinstance(constant, A.Param) else [constant] * len(names)
                constants[i] = [self._input.dictionary.encode(term_of(v)) for v in given]
            sizes = []
            for w, size in zip(query.windows, lifted.sizes, strict=True):
                if isinstance(size, A.Param):
                    sizes.append(np.array(sizes_of(w.window, size, values), np.int64))
                elif size is not None:
                    sizes.append(np.full(len(names), size, np.int64))
            key = asked._replace(query=lifted.shape)
            if self._join_shape(lifted, key, list(names), constants, sizes):
                return
        for i, name in enumerate(names):
            bound = prepared.bind(**{p: values[p][i] for p in prepared.parameters})
            self.register(name, bound, output, report, owner)

    def _lifted(self, asked: Asked) -> Lifted | None:
        """The shape of a query, if it can share a network with others of it."""
        query, output, report, _ = asked
        if self._by_definition or query.form is not A.Form.SELECT or query.depth > SHALLOW:
            return None
        if not periods_of(query, report) if output is A.Output.RSTREAM else report.when is When.PERIODIC:
            return None
        if has(query.pattern, (A.Slice, A.OrderBy, A.Reduced)):
            return None
        if any(
            isinstance(w.stream, NamedNode) and w.stream.value not in self._input.clock.streams
            for w in query.windows
        ):
            return None
        return _shape_of(query)

    def _join_shape(
        self, lifted: Lifted, key: Asked, names: list[str], constants: Ids, sizes: list[Ids]
    ) -> bool:
        shared = self._shapes.get(key)
        if shared is None:
            try:
                shared = self._builder.shared(lifted, key)
            except NotIncremental:
                return False
            self._shapes[key] = shared
        varying = [w.name for w, s in zip(lifted.shape.windows, lifted.sizes, strict=True) if s is not None]
        shared.parameters.add(names, constants, dict(zip(varying, sizes, strict=True)), self._input.now)
        self._shared.update(dict.fromkeys(names, shared))
        return True

    # -------------------------------------------------------------------- being there

    @property
    def store(self) -> Store:
        """The stored graphs."""
        return self._builder.store

    def reach(self, moment: int) -> None:
        """Changes of stored graphs up to a moment are about to be seen."""
        self._builder.reach(moment)

    def apart(self) -> None:
        """Queries that are registered from now on have no state in common with those before."""
        self._builder.close()
        self._open.clear()
        self._opened_by.clear()
        for shared in self._shapes.values():
            if shared is not None:
                shared.parameters.close()

    def pause(self, name: str, paused: bool) -> None:
        """A paused query keeps its windows up to date but reports nothing."""
        if name in self.stopped:
            return
        if paused:
            self._let_nobody_join(name)
        self.network(name).pause(name, paused, self._input.now)

    def _let_nobody_join(self, name: str) -> None:
        """From now on, no other query is to run with this one."""
        if name in self._opened_by:
            del self._open[self._opened_by.pop(name)]

    # -------------------------------------------------------------------- going

    def drop(self, name: str) -> None:
        """Forget a query."""
        if self.stopped.pop(name, None) is not None:
            return
        self._on_every_stream.pop(name, None)
        self.reasons.pop(name, None)
        self._let_nobody_join(name)
        network = self._shared.pop(name, None) or self._alone.pop(name)
        network.drop(name)

    def stop(self, name: str, why: Stopped) -> None:
        """A query has failed: it answers nothing any more, but is still registered."""
        if name not in self.stopped:
            self.drop(name)
        self.stopped[name] = why

    def stop_all(self, who: int, why: Stopped) -> None:
        """What has this number (`Network.who`) has failed, and with it the queries that it reports for."""
        names = [name for name, network in self._alone.items() if network.who == who]
        for key, network in list(self._shapes.items()):
            if network is not None and network.who == who:
                del self._shapes[key]
                names += network.parameters.numbers
        if names:
            why.warn(names)
        for name in names:
            self.stop(name, why)

    # -------------------------------------------------------------------- what survives

    def snapshot(self) -> KeptQueries:
        """To go on from here elsewhere."""
        networks: dict[str, KeptNetwork] = {}
        for network in self.networks():
            kept = network.snapshot()
            if kept is not None:
                networks.update(dict.fromkeys(network.names, kept))
        return KeptQueries(networks, {name: (why.at, why.reason) for name, why in self.stopped.items()})

    def look_back(self, kept: KeptQueries) -> None:
        """Queries that are registered until `restore` find stored graphs as they were when none had told more
        than what was kept."""
        told = [network.told for network in kept.networks.values() if network.told is not None]
        self._builder.look_back(min(told, default=FOREVER))

    def begin_with(self, kept: KeptQueries, first: Mapping[str, tuple[int, int]]) -> None:
        """Before steps are taken again: of each stream, `first` has the numbers of the row and the event that
        come first."""
        for network in self.networks():
            known = [kept.networks[name] for name in network.names if name in kept.networks]
            if known:
                network.begin_with(known, first)

    def restore(self, kept: KeptQueries) -> None:
        """Go on, when all steps have been taken again."""
        self._builder.stand_at_now()
        for network in self.networks():
            if network.name in kept.networks:
                network.restore(kept.networks[network.name])
        for name, (at, reason) in kept.stopped.items():  # whether or not it has failed again
            self.stop(name, Stopped(at, reason))


@lru_cache(maxsize=64)
def _shape_of(query: A.Query) -> Lifted | None:
    return lift(optimize(query))
