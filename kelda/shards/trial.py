"""Where a query is tried before it is entered: mistakes in it show there, and how it would run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from kelda.io.job import QuerySpec
from kelda.lang import algebra as A
from kelda.lang.params import Prepared
from kelda.shards.catalog import AddStream, DropGraph, DropStream, Load, Op, Update
from kelda.shards.graphs import carry_out
from kelda.shards.setup import Setup
from kelda.store.store import Store

Many = tuple[Sequence[str], Mapping[str, Sequence[object]]]
"""Names of queries, and for each parameter the value of each."""


def output_in(spec: QuerySpec) -> A.Output | None:
    """What a query is told to send; None: what it says itself."""
    return None if spec.output is None else A.Output(spec.output)


class Trial(Protocol):
    """Queries are registered on it when they are planned, each on the level that it will run on."""

    @property
    def store(self) -> Store:
        """The stored graphs."""
        ...

    def register(self, spec: QuerySpec, query: A.Query, level: int) -> None:
        """Raises what is wrong with the query."""
        ...

    def register_many(self, spec: QuerySpec, prepared: Prepared, many: Many, level: int) -> None:
        """The same for queries that differ in parameters."""
        ...

    def reason(self, name: str, level: int) -> str | None:
        """Why a query runs by the reference evaluator; None if it does not."""
        ...

    def say(self, name: str, level: int) -> str:
        """How a query runs."""
        ...

    def drop(self, name: str, level: int) -> None:
        """A query has gone, or is not to be entered."""
        ...

    def take(self, op: Op) -> None:
        """A stream or a graph has come or gone."""
        ...


class Scratch:
    """An evaluator that is told of all streams, graphs and queries, and of no elements."""

    def __init__(
        self, setup: Setup, begun: Callable[[], bool] = lambda: False, store: Store | None = None
    ) -> None:
        """`begun`: shards have taken batches, and tell how the stored graphs change from there on."""
        self._evaluator = setup.evaluator(store)
        self._begun = begun

    @property
    def store(self) -> Store:
        return self._evaluator.store

    def register(self, spec: QuerySpec, query: A.Query, level: int) -> None:
        self._evaluator.register(spec.name, query, output=output_in(spec), report=spec.report)

    def register_many(self, spec: QuerySpec, prepared: Prepared, many: Many, level: int) -> None:
        names, values = many
        self._evaluator.register_many(prepared, names, values, output=output_in(spec), report=spec.report)

    def reason(self, name: str, level: int) -> str | None:
        return self._evaluator.reasons.get(name)

    def say(self, name: str, level: int) -> str:
        return self._evaluator.say(name)

    def drop(self, name: str, level: int) -> None:
        self._evaluator.drop(name)

    def take(self, op: Op) -> None:
        match op:
            case AddStream(_, source):
                self._evaluator.add_stream(source.iri, lateness=source.lateness, from_start=True)
            case DropStream(iri):
                self._evaluator.drop_stream(iri)
            case Load() | DropGraph() | Update() if not self._begun():
                carry_out(op, self._evaluator, ())
