"""Parcels: what ingest sends to a shard. Every shard learns the time of every element, and what it says
only if one of the shard's queries wants it.

With the times alone a shard's windows move, its count windows count and its clock ticks exactly as if it
had seen everything: that is what makes answers the same for every number of shards.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from kelda.engine.deltas import Ids
from kelda.rdf.dictionary import Dictionary, Entries
from kelda.rdf.event import Reject

_VERSION = struct.Struct("<q")


@dataclass(frozen=True, slots=True)
class Part:
    """A run of elements of one stream, as one shard gets it. Parts sort by (stream, number) into the
    order in which the stream has them.

    Rows i with `heads[k]` <= i < `heads[k + 1]` have the time `times[k]`; `events` (None: each row is an
    event) gives the event of each row; `sent` (None: all) which rows the columns s, p, o, g are of."""

    stream: int
    number: int
    size: int
    heads: Ids
    times: Ids
    events: Ids | None
    sent: Ids | None
    s: Ids
    p: Ids
    o: Ids
    g: Ids | None = None  # None: all in the default graph
    ends: bool = False
    heartbeat: int | None = None
    idle: bool = False
    bytes: int = 0
    rejects: tuple[Reject, ...] = ()

    def columns(self) -> tuple[Ids, Ids, Ids, Ids]:
        """s, p, o, time in full length: zeros where a row was not sent."""
        time = np.repeat(self.times, np.diff(np.append(self.heads, self.size)))
        if self.sent is None:
            return self.s, self.p, self.o, time
        full = np.zeros((3, self.size), np.int64)
        full[0, self.sent], full[1, self.sent], full[2, self.sent] = self.s, self.p, self.o
        return full[0], full[1], full[2], time


@dataclass(frozen=True, slots=True)
class Elements:
    """Elements of one stream as read: full columns."""

    s: Ids
    p: Ids
    o: Ids
    time: Ids
    events: Ids | None = None
    g: Ids | None = None


def cut(elements: Elements, stream: int, number: int, shards: int, owners: Ids) -> list[Part]:
    """The elements as each shard gets them; `owners` has the shards that want each row, as bits."""
    size = len(elements.time)
    heads = (
        np.flatnonzero(np.concatenate([[True], np.diff(elements.time) != 0]))
        if size
        else np.zeros(0, np.int64)
    )
    times = elements.time[heads]
    parts = []
    for shard in range(shards):
        sent = np.flatnonzero(owners >> shard & 1)
        all_sent = len(sent) == size
        s, p, o = (a if all_sent else a[sent] for a in (elements.s, elements.p, elements.o))
        g = None if elements.g is None or not elements.g.any() else elements.g[sent]
        parts.append(
            Part(stream, number, size, heads, times, elements.events, None if all_sent else sent, s, p, o, g)
        )
    return parts


def pack(parts: Iterable[Part], dictionary: Dictionary, version: int) -> bytes:
    """Parts for one shard, with the terms of their rows, each once. `version` of the catalog holds."""
    parts = list(parts)
    ids = [a for part in parts for a in (part.s, part.p, part.o, part.g) if a is not None]
    entries = dictionary.entries_of(np.concatenate(ids)) if ids else None
    return _VERSION.pack(version) + pickle.dumps((parts, entries), pickle.HIGHEST_PROTOCOL)


def unpack(data: bytes) -> tuple[int, list[Part], Entries | None]:
    """What `pack` packed."""
    parts, entries = pickle.loads(memoryview(data)[_VERSION.size :])
    return version_of(data), parts, entries


def version_of(data: bytes) -> int:
    """The version of the catalog that a parcel tells."""
    return int(_VERSION.unpack_from(data)[0])
