"""RDF out: quads in the common syntaxes, and events as streams that `read_events` reads back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import BinaryIO

from pyoxigraph import BlankNode, DefaultGraph, NamedNode, Quad, RdfFormat, Triple, serialize

from kelda.errors import UsageError
from kelda.rdf.event import Event
from kelda.rdf.times import ms_to_literal

WRITE_FORMATS = {
    "ntriples": RdfFormat.N_TRIPLES,
    "nquads": RdfFormat.N_QUADS,
    "turtle": RdfFormat.TURTLE,
    "trig": RdfFormat.TRIG,
}


def write_rdf(
    quads: Iterable[Quad | Triple], format: str = "nquads", *, prefixes: Mapping[str, str] | None = None
) -> bytes:
    """The quads (or triples) as text. `prefixes` shorten Turtle and TriG."""
    kind = WRITE_FORMATS.get(format)
    if kind is None:
        raise UsageError(f"cannot write RDF as '{format}'; there are: {', '.join(WRITE_FORMATS)}")
    given = list(quads)
    if not kind.supports_datasets:
        for quad in given:
            if isinstance(quad, Quad) and quad.graph_name != DefaultGraph():
                raise UsageError(
                    f"{format} has no place for the graph name {quad.graph_name}; write nquads or trig"
                )
    written = serialize(given, format=kind, prefixes=dict(prefixes) if prefixes else None)  # type: ignore[arg-type]
    assert written is not None  # no output was given
    return written


def write_messages(events: Iterable[Event], out: BinaryIO, *, time_predicate: str | None = None) -> int:
    """Events as RDF Messages (in N-Quads), one message each; returns how many.

    RDF Messages have no place for event time but the triples themselves. With `time_predicate`, an
    event that has a time and no such triple gets one, about a blank node of its own; without, times
    that the quads do not tell are not written.
    """
    predicate = NamedNode(time_predicate) if time_predicate is not None else None
    out.write(b'VERSION "1.2-messages"\n')
    count = 0
    for event in events:
        quads = list(event.quads)
        if predicate is not None and event.time is not None and all(q.predicate != predicate for q in quads):
            quads.append(Quad(_unused_blank(quads), predicate, ms_to_literal(event.time)))
        out.write(write_rdf(quads))
        out.write(b"MESSAGE\n")
        count += 1
    return count


def _unused_blank(quads: list[Quad]) -> BlankNode:
    text = write_rdf(quads).decode()
    number = 0
    while f"_:event{number}" in text:
        number += 1
    return BlankNode(f"event{number}")


def write_tsnt(events: Iterable[Event], out: BinaryIO) -> int:
    """Events as `epoch-milliseconds TAB N-Triples` lines (N-Quads if in a graph); returns how many lines.

    A line is an event for whoever reads it: an event of several quads becomes several.
    """
    count = 0
    for event in events:
        if event.time is None:
            raise UsageError("an event without time cannot be written as tsnt; write RDF Messages instead")
        for line in write_rdf(event.quads).splitlines(keepends=True):
            out.write(b"%d\t%s" % (event.time, line))
            count += 1
    return count
