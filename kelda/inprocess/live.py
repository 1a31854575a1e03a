"""The evaluators that run, as the place where new queries are tried."""

from __future__ import annotations

from collections.abc import Callable

from kelda.engine.incremental import IncrementalEvaluator
from kelda.io.job import QuerySpec
from kelda.lang import algebra as A
from kelda.lang.params import Prepared
from kelda.shards.catalog import Op
from kelda.shards.declared import Declared
from kelda.shards.levels import Levels
from kelda.shards.setup import Setup
from kelda.shards.trial import Many, output_in
from kelda.store.store import Store

WAITS = "registered; it begins when all that was read before it has been answered"


class Live:
    """A query that may begin at once is registered where it will run; one that has to wait for the clock is
    tried on an evaluator of its own, and registered there when it holds."""

    def __init__(self, setup: Setup, levels: Callable[[], Levels], waits: Callable[[A.Query], bool]) -> None:
        self._setup, self._levels, self._waits = setup, levels, waits
        self._reasons: dict[str, str] = {}  # of queries that wait
        self._declared = Declared()  # as of the entry that is looked at: it may be an old one

    @property
    def store(self) -> Store:
        return self._levels().store

    def _evaluator(self, name: str, query: A.Query, level: int) -> IncrementalEvaluator:
        shards = self._levels().shards
        if level < len(shards):
            here = shards[level].evaluator
            if name in here.queries or not self._waits(query):
                return here
        evaluator = self._setup.evaluator(self.store)
        for source in self._declared.streams.values():
            evaluator.add_stream(source.iri, lateness=source.lateness)
        return evaluator

    def register(self, spec: QuerySpec, query: A.Query, level: int) -> None:
        evaluator, name = self._evaluator(spec.name, query, level), spec.name
        if name not in evaluator.queries:
            evaluator.register(name, query, output=output_in(spec), report=spec.report)
        self._reasons |= {name: evaluator.reasons[name]} if name in evaluator.reasons else {}

    def register_many(self, spec: QuerySpec, prepared: Prepared, many: Many, level: int) -> None:
        names, values = many
        evaluator = self._evaluator(names[0], prepared.query, level)
        if names[0] not in evaluator.queries:
            output = output_in(spec)
            evaluator.register_many(prepared, names, values, output=output, report=spec.report)
        self._reasons |= {name: evaluator.reasons[name] for name in names if name in evaluator.reasons}

    def reason(self, name: str, level: int) -> str | None:
        return self._reasons.get(name)

    def say(self, name: str, level: int) -> str:
        shards = self._levels().shards
        if level < len(shards) and name in shards[level].evaluator.queries:
            return shards[level].evaluator.say(name)
        return WAITS

    def drop(self, name: str, level: int) -> None:
        self._reasons.pop(name, None)
        shards = self._levels().shards
        if level < len(shards) and name in shards[level].evaluator.queries:
            shards[level].evaluator.drop(name)

    def take(self, op: Op) -> None:
        """Streams and graphs come and go there when the entry is carried out."""
        self._declared.take([op])
