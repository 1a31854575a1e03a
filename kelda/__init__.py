"""Kelda: continuous queries over RDF streams.

Register SPARQL queries with windows (CQELS-QL, C-SPARQL, RSP-QL), push RDF events, read answers.
The answers never depend on how the input was cut into batches or spread over shards.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from kelda.compiling import find_a_place

if TYPE_CHECKING:
    from kelda.api import Engine, Query, Stream, connect
    from kelda.engine.answer import Answer
    from kelda.engine.oneshot import Solutions
    from kelda.engine.report import Report, When
    from kelda.errors import InputError, KeldaError, MemoryLimitError, QueryError, QueryStopped, UsageError
    from kelda.rdf.event import Event

__version__ = "0.1.0.dev0"  # pyproject.toml takes it from here

_HOMES = {
    "Answer": "kelda.engine.answer",
    "Engine": "kelda.api",
    "Event": "kelda.rdf.event",
    "InputError": "kelda.errors",
    "KeldaError": "kelda.errors",
    "MemoryLimitError": "kelda.errors",
    "Query": "kelda.api",
    "QueryError": "kelda.errors",
    "QueryStopped": "kelda.errors",
    "Report": "kelda.engine.report",
    "Solutions": "kelda.engine.oneshot",
    "Stream": "kelda.api",
    "UsageError": "kelda.errors",
    "When": "kelda.engine.report",
    "connect": "kelda.api",
}

__all__ = [
    "Answer",
    "Engine",
    "Event",
    "InputError",
    "KeldaError",
    "MemoryLimitError",
    "Query",
    "QueryError",
    "QueryStopped",
    "Report",
    "Solutions",
    "Stream",
    "UsageError",
    "When",
    "connect",
]

find_a_place()

if not TYPE_CHECKING:  # a type checker that sees it takes any name for one of ours

    def __getattr__(name: str) -> object:
        # Loaded on first use: `kelda --help` and Spark's Python workers start without the whole engine.
        if name not in _HOMES:
            raise AttributeError(f"module 'kelda' has no attribute {name!r}")
        found = getattr(import_module(_HOMES[name]), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*__all__, *globals()} - {"TYPE_CHECKING", "annotations", "find_a_place", "import_module"})
