"""What the tests of shards share: two streams, stored triples, and shards over them."""

from __future__ import annotations

from pathlib import Path

from pyoxigraph import Literal, NamedNode, Quad

from kelda.io.job import StreamSource
from kelda.rdf.event import Event
from kelda.shards.planner import Setup
from tests.engine.random_queries import EX, STORED, STREAMS, XSD_INTEGER

PREFIX = f"PREFIX : <{EX}> "


def write_stored(folder: Path) -> str:
    """The stored triples as a file; returns its path."""
    path = folder / "stored.trig"
    path.write_text(STORED)
    return str(path)


def setup(shards: int, stored: str | None = None, lateness: int = 0) -> Setup:
    streams = tuple(StreamSource(iri, "", lateness=lateness) for iri in STREAMS)
    return Setup(streams, ((None, stored),) if stored else (), shards=shards)


def event(time: int, s: str, p: str, o: str | int) -> Event:
    """One triple: `event(3, "n0", "p", 7)`."""
    value = NamedNode(EX + o) if isinstance(o, str) else Literal(str(o), datatype=XSD_INTEGER)
    return Event(time, (Quad(NamedNode(EX + s), NamedNode(EX + p), value),))
