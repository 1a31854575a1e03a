"""Kelda: continuous queries over RDF streams.

Register SPARQL queries with windows (CQELS-QL, C-SPARQL, RSP-QL), push RDF events, read answers.
The answers never depend on how the input was cut into batches or spread over shards.
"""

from kelda.engine.answer import Answer
from kelda.engine.report import Report, When
from kelda.errors import KeldaError, QueryError
from kelda.rdf.event import Event
from kelda.runner.engine import Engine, Query, Stream, connect

__version__ = "0.1.0"

__all__ = ["Answer", "Engine", "Event", "KeldaError", "Query", "QueryError", "Report", "Stream", "When", "connect"]
