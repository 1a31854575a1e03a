"""Elements as columns of ids: what events become on their way into an engine.

Ids need no coordination, so elements may be encoded anywhere, with the texts of their terms beside them. What
an application pushes lies in a spool as such columns (`ELEMENTS`, a format like others): nothing of an event
is lost on the way, its graph names and which triples belong together included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kelda.errors import WireError
from kelda.rdf import wire
from kelda.rdf.dictionary import Dictionary, Entries
from kelda.rdf.event import Event

ELEMENTS = "elements"  # the name of the format

Ids = NDArray[np.int64]


class Columns(NamedTuple):
    """A row a triple; `event` numbers the events from 0, `g` is 0 for the default graph."""

    s: Ids
    p: Ids
    o: Ids
    g: Ids
    time: Ids
    event: Ids


def columns_of(events: Sequence[Event], dictionary: Dictionary) -> Columns:
    """Events, which all have a time, as columns; the dictionary knows their terms then."""
    encode = dictionary.encode
    quads = [quad for event in events for quad in event.quads]
    s, p, o, g = (
        np.array([encode(getattr(quad, part)) for quad in quads], np.int64)
        for part in ("subject", "predicate", "object", "graph_name")
    )
    sizes = [len(event.quads) for event in events]
    time = np.repeat(np.array([event.time for event in events], np.int64), sizes)
    return Columns(s, p, o, g, time, np.repeat(np.arange(len(events)), sizes))


@dataclass(frozen=True, slots=True)
class Pushed:
    """Events that an application pushes, as columns, and what knows their terms. Each says something; the
    time of one that does not say when is NO_TIME."""

    columns: Columns
    dictionary: Dictionary
    events: int

    def __len__(self) -> int:
        return self.events

    @property
    def times(self) -> Ids:
        """Of each event."""
        return self.columns.time[self._heads]

    def at(self, times: Ids) -> Pushed:
        """The same events with other times."""
        return replace(self, columns=self.columns._replace(time=times[self.columns.event]))

    @property
    def _heads(self) -> Ids:
        return np.flatnonzero(np.diff(self.columns.event, prepend=-1))


Events = Sequence[Event] | Pushed


def pack(events: Events) -> bytes:
    """Events, which all have a time, as bytes."""
    if isinstance(events, Pushed):
        columns, dictionary = events.columns, events.dictionary
    else:
        dictionary = Dictionary()
        columns = columns_of(events, dictionary)
    return wire.encode((tuple(columns), dictionary.entries()))


def unpack(data: bytes) -> tuple[Columns, Entries]:
    """What `pack` packed."""
    columns, entries = wire.decode(data, "what was pushed")
    if len({column.shape for column in columns}) != 1 or len(columns) != len(Columns._fields):
        raise WireError(f"columns that do not fit together: {wire.WAY_OUT}")
    return Columns(*columns), entries
