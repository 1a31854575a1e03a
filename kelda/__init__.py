"""Kelda: continuous queries over RDF streams.

Register SPARQL queries with windows (CQELS-QL, C-SPARQL, RSP-QL), push RDF events, read answers.
The answers never depend on how the input was cut into batches or spread over shards.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kelda.engine.answer import Answer
    from kelda.engine.report import Report, When
    from kelda.errors import KeldaError, QueryError
    from kelda.rdf.event import Event
    from kelda.runner.engine import Engine, Query, Stream, connect
    from kelda.spark.engine import SparkEngine

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "Engine",
    "Event",
    "KeldaError",
    "Query",
    "QueryError",
    "Report",
    "SparkEngine",
    "Stream",
    "When",
    "connect",
]

_HOMES = {
    "Answer": "kelda.engine.answer",
    "Report": "kelda.engine.report",
    "When": "kelda.engine.report",
    "KeldaError": "kelda.errors",
    "QueryError": "kelda.errors",
    "Event": "kelda.rdf.event",
    "Engine": "kelda.runner.engine",
    "Query": "kelda.runner.engine",
    "Stream": "kelda.runner.engine",
    "connect": "kelda.runner.engine",
    "SparkEngine": "kelda.spark.engine",
}


def __getattr__(name: str) -> object:
    # Loaded on first use: `kelda --help` and Spark's Python workers start without the whole engine.
    if name not in _HOMES:
        raise AttributeError(f"module 'kelda' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
