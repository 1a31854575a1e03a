"""Ingest: pieces of streams in, a parcel for each shard out. Stateless, so it is as wide as need be."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

import numpy as np

from kelda.engine.deltas import Ids
from kelda.errors import UsageError
from kelda.io.elements import ELEMENTS, Columns, columns_of, unpack
from kelda.io.job import StreamSource
from kelda.io.kafka.events import Run, ToRead, at_offsets, events_in, runs
from kelda.io.kafka.spot import KafkaSpot
from kelda.io.sources.arrival import arrived
from kelda.io.sources.reader import Piece
from kelda.rdf.columnar import READERS, Found, without_heads
from kelda.rdf.columnar.found import NO_TIME
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.event import Event, Reject
from kelda.rdf.framing import checked_length, guess_format, prepare_mapping, read_chunk
from kelda.rdf.framings.base import Portions, Reading
from kelda.rdf.skim import Skimmed, Skimmer, Untimed
from kelda.shards.declared import FED
from kelda.shards.parcel import Elements, Part, cut, heads_of, pack
from kelda.shards.routing import Routing

MANY_TERMS = 1 << 17  # a task's dictionary is emptied when it has grown to this: a small one is a fast one

_mine = threading.local()  # each thread's skimmer: what its dictionary knows need not be put in place again

Route = Callable[[Ids, Ids, Ids], Ids]  # of s, p, o: the shards that want each triple, as bits


def ingest(
    pieces: Iterable[Piece],
    streams: Mapping[int, StreamSource],
    routing: Routing,
    shards: int,
    version: int,
) -> list[bytes]:
    """One parcel per shard, with the times of all elements and the triples that the shard wants."""
    skimmer = _own_skimmer()
    parts = parts_of(pieces, streams, routing, shards, skimmer)
    return [pack(some, skimmer.dictionary, version) for some in parts]


def parts_of(
    pieces: Iterable[Piece],
    streams: Mapping[int, StreamSource],
    routing: Routing,
    shards: int,
    skimmer: Skimmer,
) -> list[list[Part]]:
    """The parts of each shard, whose terms the skimmer's dictionary then knows."""
    parts: list[list[Part]] = [[] for _ in range(shards)]
    for piece in pieces:
        source = streams[piece.stream]
        rejects: list[Reject] = []
        found, size = [NOTHING], piece.bytes
        if isinstance(piece.chunk, KafkaSpot):
            found, size = read_messages(piece, piece.chunk, source, skimmer, routing, rejects)
        elif piece.chunk is not None:
            found = [read(piece, source, skimmer, routing, rejects)]
        counted = routing.counts(source.iri)
        first = True
        for elements in found:
            for shard, part in enumerate(cut(elements, piece.stream, piece.number, shards, counted)):
                part = replace(
                    part,
                    ends=piece.ends,
                    heartbeat=piece.heartbeat,
                    idle=piece.idle,
                    lane=piece.lane,
                    bytes=size if first else 0,
                    rejects=tuple(rejects) if first else (),
                )
                parts[shard].append(part)
                first = False  # one shard tells what was read
    return parts


def _own_skimmer() -> Skimmer:
    if not hasattr(_mine, "skimmer"):
        _mine.skimmer = Skimmer(Dictionary())
    skimmer: Skimmer = _mine.skimmer
    if len(skimmer.dictionary) > MANY_TERMS:
        skimmer.dictionary.clear()
    return skimmer


def read(
    piece: Piece, source: StreamSource, skimmer: Skimmer, routing: Routing, rejects: list[Reject]
) -> Elements:
    """The elements of a piece; a record that cannot be read becomes a reject, the others go on."""
    chunk = piece.chunk
    assert chunk is not None
    route = routing.to(source.iri)
    if piece.format == ELEMENTS:
        columns, entries = unpack(chunk.data)
        skimmer.dictionary.add_entries(entries)
        return elements_of(columns, route)
    format = piece.format or source.format or guess_format(source.path)
    name = piece.name or source.path
    longest = checked_length(format, source.max_record)
    fed = source.path.startswith(FED)
    may_lack_times = format == "nquads" and not fed
    if not chunk.left_out and (may_lack_times or (format == "tsnt" and source.time is None)):
        found: list[Reject] = []
        asked = routing.asked(source.iri)
        with suppress(Untimed), chunk.text() as text:
            skimmed = skimmer.read(text, asked, source=name, may_lack_times=may_lack_times)
            elements = routed(skimmed, route, found)
            before = chunk.begins_on() - 1 if found else 0  # lines may not have been counted
            rejects += [replace(reject, line=reject.line + before) for reject in found]
            return elements
    ready = prepare_mapping(format, source.mapping)
    chunk = chunk.load()
    if format in READERS and not chunk.left_out:
        how = Reading(name, rejects.append, source.time, ready.mapping, longest, piece.arrived is None)
        by_columns = READERS[format](chunk, how, routing.asked(source.iri), skimmer.dictionary)
        if by_columns is not None:
            # The first triple of an event that was fed says its time, and is no part of it.
            said = without_heads(by_columns) if fed else by_columns
            return elements_found(said, piece.arrived or 0, route)
    events = read_chunk(
        chunk,
        format,
        time_predicate=source.time,
        mapping=ready,
        on_reject=rejects.append,
        name=name,
        max_record=longest,
        needs_time=piece.arrived is None,
    )
    if fed:
        events = (Event(event.time, event.quads[1:]) for event in events)
    return encoded(arrived(events, lambda: piece.arrived or 0), skimmer.dictionary, route)


def read_messages(
    piece: Piece,
    spot: KafkaSpot,
    source: StreamSource,
    skimmer: Skimmer,
    routing: Routing,
    rejects: list[Reject],
) -> tuple[list[Elements], int]:
    """The elements of messages, which are read from their broker here; and how many bytes these have."""
    route, found, size = routing.to(source.iri), [], 0
    for run in runs(spot, piece.format, rejects):
        size += run.size
        own_time = source.time is None and not spot.by_broker
        lines = run.lines(checked_length(run.format, source.max_record)) if own_time else None
        if lines is None:
            rows = _rows(spot, run, source, piece.format, skimmer, routing, rejects)
            if rows is not None:
                found += rows
                continue
            events = list(events_in(spot, run, source, piece.format, rejects))
            found.append(encoded(events, skimmer.dictionary, route))
            continue
        broken: list[Reject] = []
        blocks = skimmer.read(Portions(lines), routing.asked(source.iri), source=spot.name)
        found.append(routed(blocks, route, broken))
        rejects += at_offsets(spot, run.messages, broken)
    return found or [NOTHING], size


def _rows(
    spot: KafkaSpot,
    run: Run,
    source: StreamSource,
    otherwise: str,
    skimmer: Skimmer,
    routing: Routing,
    rejects: list[Reject],
) -> list[Elements] | None:
    """The elements of messages that are rows, if they can be read as such and all say their times."""
    chunks = None if spot.by_broker else run.rows(checked_length(run.format, source.max_record))
    if chunks is None:
        return None
    try:
        ready = ToRead(run.format, source, otherwise)
    except UsageError:  # each is rejected for it
        return None
    found, broken = [], list[Reject]()
    for chunk, messages in chunks:
        mine: list[Reject] = []
        how = Reading(spot.name, mine.append, source.time, ready.mapping, ready.longest)
        columns = READERS[run.format](chunk, how, routing.asked(source.iri), skimmer.dictionary)
        if columns is None or (columns.time == NO_TIME).any():
            return None
        found.append(elements_found(columns, 0, routing.to(source.iri)))
        broken += at_offsets(spot, messages, mine)
    rejects += broken
    return found


def routed(blocks: Iterable[Skimmed], route: Route, rejects: list[Reject]) -> Elements:
    """Elements from text. Most are often wanted by nobody: their terms are never made known."""
    size = 0
    heads, times, sent, owners, columns = [_NONE], [_NONE], [_NONE], [_NONE], [_NO_COLUMNS]
    for block in blocks:
        rejects += block.rejects
        size += block.rows
        heads.append(block.heads.copy())
        times.append(block.times.copy())
        if not len(block.found):
            continue
        to = route(block.s, block.p, block.o)
        wanted = np.flatnonzero(to)
        block.know(wanted)
        sent.append(block.found[wanted])
        owners.append(to[wanted])
        columns.append(np.array([block.s[wanted], block.p[wanted], block.o[wanted]]))
    rows = np.concatenate(sent)
    return Elements(
        size,
        np.concatenate(heads),
        np.concatenate(times),
        rows if len(rows) < size else None,
        np.concatenate(owners),
        *np.concatenate(columns, axis=1),
    )


def encoded(events: list[Event], dictionary: Dictionary, route: Route) -> Elements:
    """Elements from events."""
    return elements_of(columns_of(events, dictionary), route)


def elements_found(found: Found, arrived: int, route: Route) -> Elements:
    """Elements from the columns of a chunk; those without a time have that of their arrival."""
    time = np.where(found.time == NO_TIME, arrived, found.time)
    each = found.size == 0 or int(found.event[-1]) == found.size - 1
    heads = heads_of(time)
    to = route(found.s, found.p, found.o)
    wanted = np.flatnonzero(to)
    whole = len(wanted) == found.size
    columns = (found.s, found.p, found.o, found.g)
    s, p, o, g = columns if whole else (None if c is None else c[wanted] for c in columns)
    assert s is not None and p is not None and o is not None
    rows = None if whole else wanted if found.rows is None else found.rows[wanted]
    events = None if each else found.event
    return Elements(found.size, heads, time[heads], rows, to[wanted], s, p, o, g, events)


def elements_of(columns: Columns, route: Route) -> Elements:
    """Elements from columns."""
    s, p, o, g, time, number = columns
    each = len(number) == 0 or bool((np.diff(number) > 0).all())
    heads = heads_of(time)
    return Elements(len(time), heads, time[heads], None, route(s, p, o), s, p, o, g, None if each else number)


_NONE = np.zeros(0, np.int64)
_NO_COLUMNS = np.zeros((3, 0), np.int64)
NOTHING = Elements(0, _NONE, _NONE, None, _NONE, _NONE, _NONE, _NONE)
