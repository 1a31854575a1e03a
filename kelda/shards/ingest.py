"""Ingest: pieces of streams in, a parcel for each shard out. Stateless, so it is as wide as need be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from kelda.rdf import ntriples
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.event import Event, Reject
from kelda.rdf.framing import guess_format, prepare_mapping, read_chunk
from kelda.runner.job import StreamSource
from kelda.runner.sources.reader import Piece
from kelda.shards.parcel import Elements, Part, cut, pack
from kelda.shards.planner import FED
from kelda.shards.routing import Routing

MANY_TERMS = 1 << 20  # a task's dictionary is thrown away when it has grown to this

_dictionary = Dictionary()  # of this process: what it knows already need not be hashed into place again


def ingest(
    pieces: Iterable[Piece], streams: Sequence[StreamSource], routing: Routing, shards: int, version: int
) -> list[bytes]:
    """One parcel per shard, with the times of all elements and the triples that the shard wants."""
    global _dictionary
    if len(_dictionary) > MANY_TERMS:
        _dictionary = Dictionary()
    dictionary = _dictionary
    parts: list[list[Part]] = [[] for _ in range(shards)]
    for piece in pieces:
        source = streams[piece.stream]
        rejects: list[Reject] = []
        elements = NOTHING
        if piece.chunk is not None:
            elements = read(piece, source, dictionary, rejects)
        owners = routing.owners(source.iri, elements.s, elements.p, elements.o)
        for shard, part in enumerate(cut(elements, piece.stream, piece.number, shards, owners)):
            first = shard == 0  # one shard tells what was read
            part = replace(
                part,
                ends=piece.ends,
                heartbeat=piece.heartbeat,
                idle=piece.idle,
                bytes=piece.bytes if first else 0,
                rejects=tuple(rejects) if first else (),
            )
            parts[shard].append(part)
    return [pack(some, dictionary, version) for some in parts]


def read(piece: Piece, source: StreamSource, dictionary: Dictionary, rejects: list[Reject]) -> Elements:
    """The elements of a piece; a record that cannot be read becomes a reject, the others go on."""
    assert piece.chunk is not None
    format = piece.format or source.format or guess_format(source.path)
    name = piece.name or source.path
    if format == "tsnt" and source.time is None:
        columns = ntriples.read(
            piece.chunk.data, dictionary, timed=True, source=name, first_line=piece.chunk.first_line
        )
        rejects += columns.rejects
        assert columns.t is not None
        return Elements(columns.s, columns.p, columns.o, columns.t)
    events = read_chunk(
        piece.chunk,
        format,
        time_predicate=source.time,
        mapping=prepare_mapping(format, source.mapping),
        on_reject=rejects.append,
        name=name,
    )
    if source.path.startswith(FED):  # the first triple of such an event says its time, and is no part of it
        events = (Event(event.time, event.quads[1:]) for event in events)
    return encoded(list(events), dictionary)


def encoded(events: list[Event], dictionary: Dictionary) -> Elements:
    """Events as columns."""
    encode = dictionary.encode
    quads = [(quad, event.time, i) for i, event in enumerate(events) for quad in event.quads]
    s, p, o, g = (
        np.array([encode(getattr(quad, part)) for quad, _, _ in quads], np.int64)
        for part in ("subject", "predicate", "object", "graph_name")
    )
    time = np.array([t for _, t, _ in quads], np.int64)
    number = np.array([i for _, _, i in quads], np.int64)
    each = len(quads) == 0 or bool((np.diff(number) > 0).all())
    return Elements(s, p, o, time, None if each else number, g)


_EMPTY = np.zeros(0, np.int64)
NOTHING = Elements(_EMPTY, _EMPTY, _EMPTY, _EMPTY)
