"""Stored graphs made of files, for who asks once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kelda.engine.incremental import IncrementalEvaluator
from kelda.io.jobfile import JobGraph
from kelda.shards.catalog import Load
from kelda.shards.graphs import carry_out
from kelda.store.store import Store


def store_of(graphs: Sequence[JobGraph]) -> Store:
    """A store with these graphs."""
    evaluator = IncrementalEvaluator()
    for graph in graphs:
        path = Path(graph.path).absolute()
        carry_out(Load(graph.graph, str(path), graph.format, path.as_uri(), str(path)), evaluator, ())
    return evaluator.store
