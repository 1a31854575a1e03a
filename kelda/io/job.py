"""Streams and queries as they are declared: plain data, which travels and is kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from kelda.lang import parse
from kelda.lang.algebra import Query, Report
from kelda.lang.params import term_from_text
from kelda.plan.view import as_view
from kelda.rdf import wire

DEFAULT = "default"  # the name of the default graph, where a stream is absorbed into it


@wire.plain
@dataclass(frozen=True, slots=True)
class StreamSource:
    """A stream and where it comes from: a file, or any address that `io/sources` knows."""

    iri: str
    path: str
    format: str | None = None  # None: by the file's name
    time: str | None = None  # IRI of the predicate that carries the event time
    mapping: str | None = None  # path of the mapping file for CSV and JSON
    lateness: int = 0  # ms an element may come behind the newest one of its stream
    idle_ms: int | None = None  # ms of silence after which it does not hold back the clock; None: never
    rate: int | None = None  # records a second that are taken at most; None: as they come
    max_record: int | None = None  # bytes of a record at most, longer ones are rejected; None: 16 million
    absorb: str | None = None  # the graph that its elements are stored in; DEFAULT: the default graph
    predicates: tuple[str, ...] | None = None  # of those that are; None: all


@dataclass(frozen=True, slots=True)
class QuerySpec:
    """A query to register. Parameter values are terms in N-Triples syntax."""

    name: str
    text: str
    dialect: str | None = None  # None: the text decides
    params: dict[str, str] = field(default_factory=dict)
    output: str | None = None  # rstream, istream, dstream, changes; None: what the query says
    base: str | None = None  # what relative IRIs stand against; None: what the query says
    report: Report | None = None  # when it reports; None: as its dialect and text say
    view: bool = False  # whether its solutions are the triples that it makes, each once


def parse_spec(spec: QuerySpec) -> Query:
    """The query of a specification, with its parameters bound."""
    if not spec.params:
        query = _parsed(spec.text, spec.dialect, spec.base)
    else:
        params = {name: term_from_text(text) for name, text in spec.params.items()}
        query = parse(spec.text, dialect=spec.dialect, base=spec.base, params=params)
    return as_view(query) if spec.view else query


@lru_cache(maxsize=64)
def _parsed(text: str, dialect: str | None, base: str | None) -> Query:
    """Many users ask the same: it is read once."""
    return parse(text, dialect=dialect, base=base)
