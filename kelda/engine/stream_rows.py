"""The rows of a stream: the triples that one step delivers, as columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kelda.engine.deltas import Ids


@dataclass(frozen=True, slots=True)
class StreamRows:
    """The triples of one stream in one step, in the order (time, arrival).

    `event` numbers the events of the stream, `row` its triples, both from its beginning."""

    s: Ids
    p: Ids
    o: Ids
    time: Ids
    event: Ids
    row: Ids

    def __len__(self) -> int:
        return len(self.time)

    def up_to(self, instant: int) -> int:
        """How many of them came up to an instant."""
        return int(self.time.searchsorted(instant, "right"))

    def after(self, instant: int) -> StreamRows:
        """Those that came after an instant."""
        first = self.up_to(instant)
        columns = (self.s, self.p, self.o, self.time, self.event, self.row)
        return StreamRows(*(column[first:] for column in columns))


_NOTHING = np.zeros(0, np.int64)
NO_ROWS = StreamRows(_NOTHING, _NOTHING, _NOTHING, _NOTHING, _NOTHING, _NOTHING)


@dataclass(frozen=True, slots=True)
class Last:
    """What is remembered of some rows of a stream: time, number and event of the last of them, and how long
    one of them may stay where they state their times themselves."""

    time: int
    row: int
    event: int
    stays_until: int
