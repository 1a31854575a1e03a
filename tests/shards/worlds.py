"""What the tests of shards share: two streams, stored triples, and shards over them."""

from __future__ import annotations

from pathlib import Path

from pyoxigraph import Literal, NamedNode, Quad

from kelda.io.job import StreamSource
from kelda.rdf.event import Event
from kelda.shards.setup import Setup
from tests.engine.random_queries import EX, STORED, STREAMS, XSD_INTEGER
from tests.shards.local import LocalShards

PREFIX = f"PREFIX : <{EX}> "


def write_stored(folder: Path) -> str:
    """The stored triples as a file; returns its path."""
    path = folder / "stored.trig"
    path.write_text(STORED)
    return str(path)


def local_shards(shards: int, stored: str | None = None, lateness: int = 0) -> LocalShards:
    streams = [StreamSource(iri, "", lateness=lateness) for iri in STREAMS]
    return LocalShards(Setup(shards=shards, fixed_graphs=True), streams, [(None, stored)] if stored else [])


def event(time: int, s: str, p: str, o: str | int) -> Event:
    """One triple: `event(3, "n0", "p", 7)`."""
    value = NamedNode(EX + o) if isinstance(o, str) else Literal(str(o), datatype=XSD_INTEGER)
    return Event(time, (Quad(NamedNode(EX + s), NamedNode(EX + p), value),))
