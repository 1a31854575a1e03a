"""What a chunk of a stream has, as columns of ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kelda.rdf.dictionary import Dictionary
from kelda.rdf.event import Event
from kelda.rdf.framings.base import Chunk, Reading
from kelda.rdf.skim import Asked

Ids = NDArray[np.int64]

NO_TIME = -(2**63)
"""The time of a triple whose event has none: it gets that of its arrival."""


class Found(NamedTuple):
    """The triples of a chunk, in order: `size` of them, of which somebody asks for those in the columns.

    `time[i]` and `event[i]` are those of triple i of all; events are numbered from 0, and one without
    triples has no number. Row k of the columns is triple `rows[k]` (None: all are there). `g` is 0 for the
    default graph (None: all are in it).
    """

    size: int
    time: Ids
    event: Ids
    rows: Ids | None
    s: Ids
    p: Ids
    o: Ids
    g: Ids | None = None


Read = Callable[[Chunk, Reading, Asked, Dictionary], Found | None]
"""Reads a chunk: of the triples that match `Asked` none may be left out, others may be. Rejects go to the
reading, in order. The dictionary knows the terms of the columns afterwards. None: not by columns, as these
settings (a mapping, say) have no way; then nothing was told to the reading."""


def found_of(events: Sequence[Event], dictionary: Dictionary) -> Found:
    """What events say, as columns; those that say nothing are left out."""
    encode = dictionary.encode
    quads = [quad for event in events for quad in event.quads]
    s, p, o, g = (
        np.array([encode(getattr(quad, part)) for quad in quads], np.int64)
        for part in ("subject", "predicate", "object", "graph_name")
    )
    said = [event for event in events if event.quads]
    sizes = [len(event.quads) for event in said]
    times = np.array([NO_TIME if event.time is None else event.time for event in said], np.int64)
    number = np.repeat(np.arange(len(said)), sizes)
    return Found(len(quads), times[number], number, None, s, p, o, g)


def without_heads(found: Found) -> Found:
    """The same without the first triple of each event; an event with no other is none."""
    begins = np.diff(found.event, prepend=-1) > 0
    place = np.cumsum(~begins) - 1  # of those that stay
    event = found.event[~begins]
    number = np.cumsum(np.diff(event, prepend=event[:1]) > 0, dtype=np.int64)
    rows = np.arange(found.size) if found.rows is None else found.rows
    stays = ~begins[rows]
    columns = (None if c is None else c[stays] for c in (found.s, found.p, found.o, found.g))
    s, p, o, g = columns
    assert s is not None and p is not None and o is not None
    sent = None if found.rows is None else place[rows[stays]]
    return Found(len(event), found.time[~begins], number, sent, s, p, o, g)
