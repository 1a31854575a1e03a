"""The set-up of a deployment: what is decided before anything is declared, and never changes."""

from __future__ import annotations

from dataclasses import dataclass

from kelda.engine.incremental import IncrementalEvaluator
from kelda.store.store import Store


@dataclass(frozen=True, slots=True)
class Setup:
    """What all shards have in common. Plain data: it travels to other processes."""

    t0: int = 0
    shards: int = 1
    fixed_graphs: bool = False  # graphs are loaded before the first query, and streams narrowed by them
    memory_limit: int | None = None  # bytes a shard may hold
    by_definition: bool = False  # everything is run by the reference evaluator

    def evaluator(self, store: Store | None = None) -> IncrementalEvaluator:
        """An evaluator without streams and queries, over a store."""
        return IncrementalEvaluator(
            t0=self.t0,
            store=store,
            memory_limit=self.memory_limit,
            by_definition=self.by_definition,
        )
