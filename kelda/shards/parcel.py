"""Parcels: what ingest sends to a shard. Every shard learns the time of every element, and what it says
only if one of the shard's queries wants it.

With the times alone a shard's windows move, its count windows count and its clock ticks exactly as if it
had seen everything: that is what makes answers the same for every number of shards.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kelda.engine.deltas import Ids
from kelda.errors import WireError
from kelda.rdf import wire
from kelda.rdf.dictionary import Dictionary, Entries
from kelda.rdf.event import Reject
from kelda.shards.parcel_kernels import rows_of

_HEAD = struct.Struct("<4sq")  # a mark, and the version of the catalog
_MARK = b"KLDP"


class Rows(NamedTuple):
    """Rows as a shard's evaluator takes them: zeros where only the time was sent. `stands_for` (None: each
    for itself) tells how many elements a row stands for."""

    s: Ids
    p: Ids
    o: Ids
    time: Ids
    stands_for: Ids | None = None


@wire.plain
@dataclass(frozen=True, slots=True)
class Part:
    """A run of elements of one stream, as one shard gets it. Parts sort by (stream, number) into the
    order in which the stream has them.

    Rows i with `heads[k]` <= i < `heads[k + 1]` have the time `times[k]`; `events` (None: each row is an
    event) gives the event of each row; `sent` (None: all) which rows the columns s, p, o, g are of.
    `counted`: some window counts the elements of the stream, so each must be there."""

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
    counted: bool = True
    ends: bool = False
    heartbeat: int | None = None
    idle: bool = False
    lane: int | None = None
    bytes: int = 0
    rejects: tuple[Reject, ...] = ()

    def rows(self) -> Rows:
        """For the evaluator: all that was sent, and of what was not its times; as often as the times have
        it if they are counted."""
        if self.sent is None:
            return Rows(self.s, self.p, self.o, self.time())
        if self.counted or self.events is not None:
            full = np.zeros((3, self.size), np.int64)
            full[:, self.sent] = self.s, self.p, self.o
            s, p, o = full
            return Rows(s, p, o, self.time())
        return Rows(*rows_of(self.size, self.heads, self.times, self.sent, self.s, self.p, self.o))

    def graphs(self) -> Ids | None:
        """The graph that each of `rows` is in, if none stands for several; None: all in the default graph."""
        if self.g is None or self.sent is None:
            return self.g
        full = np.zeros(self.size, np.int64)
        full[self.sent] = self.g
        return full

    def check(self) -> None:
        """Kernels go by these lengths, and look at nothing else."""
        rows = self.size if self.sent is None else len(self.sent)
        same = [self.s, self.p, self.o] if self.g is None else [self.s, self.p, self.o, self.g]
        if (
            any(array.shape != (rows,) for array in same)
            or self.heads.shape != self.times.shape
            or (self.events is not None and self.events.shape != (self.size,))
        ):
            raise WireError(f"a parcel whose columns do not fit together: {wire.WAY_OUT}")

    def time(self) -> Ids:
        """The time of each row."""
        return np.repeat(self.times, np.diff(self.heads, append=self.size))


@dataclass(frozen=True, slots=True)
class Elements:
    """Elements of one stream as read: the times of all, in runs, and those that some shard wants, which
    are the rows `sent` (None: all). `owners` has the shards that want each of these, as bits."""

    size: int
    heads: Ids
    times: Ids
    sent: Ids | None
    owners: Ids
    s: Ids
    p: Ids
    o: Ids
    g: Ids | None = None
    events: Ids | None = None


def heads_of(time: Ids) -> Ids:
    """Where each run of equal times begins."""
    return np.flatnonzero(np.diff(time, prepend=time[:1] - 1)) if len(time) else np.zeros(0, np.int64)


def cut(elements: Elements, stream: int, number: int, shards: int, counted: bool = True) -> list[Part]:
    """The elements as each shard gets them."""
    e = elements
    parts = []
    for shard in range(shards):
        mine = np.flatnonzero(e.owners >> shard & 1)
        whole = len(mine) == len(e.owners)
        s, p, o = (a if whole else a[mine] for a in (e.s, e.p, e.o))
        g = None if e.g is None or not e.g.any() else e.g[mine]
        sent = e.sent if whole else mine if e.sent is None else e.sent[mine]
        parts.append(Part(stream, number, e.size, e.heads, e.times, e.events, sent, s, p, o, g, counted))
    return parts


def pack(parts: Iterable[Part], dictionary: Dictionary, version: int) -> bytes:
    """Parts for one shard, with the terms of their rows, each once. `version` of the catalog holds."""
    parts = list(parts)
    ids = [a for part in parts for a in (part.s, part.p, part.o, part.g) if a is not None]
    entries = dictionary.entries_of(np.concatenate(ids)) if ids else None
    return _HEAD.pack(_MARK, version) + wire.encode((parts, entries))


def unpack(data: bytes) -> tuple[int, list[Part], Entries | None]:
    """What `pack` packed."""
    version = version_of(data)
    parts, entries = wire.decode(memoryview(data)[_HEAD.size :], "a parcel")
    for part in parts:
        part.check()
    return version, parts, entries


def version_of(data: bytes) -> int:
    """The version of the catalog that a parcel tells."""
    mark, version = _HEAD.unpack_from(data) if len(data) >= _HEAD.size else (b"", 0)
    if mark != _MARK:
        raise WireError(f"what came as a parcel is none: {wire.WAY_OUT}")
    return int(version)
