"""Records that were read by columns and those that a framing has read, in their order again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kelda.rdf.columnar.found import Found, Ids, found_of
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.event import Event


class Odd(NamedTuple):
    """What a framing found in some records that follow one another: `record` is the number of the first."""

    record: int
    events: Sequence[Event]


def runs(odd: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """The runs of records that are odd, each with its end."""
    for _, run in groupby(enumerate(np.flatnonzero(odd).tolist()), lambda pair: pair[1] - pair[0]):
        numbers = [number for _, number in run]
        yield numbers[0], numbers[-1] + 1


def woven(found: Found, records: Ids, odd: Sequence[Odd], dictionary: Dictionary) -> Found:
    """All in the order of the records. `records[e]` is the number of the record that event `e` of `found`
    comes from; none of them lies in a run that is odd."""
    if not any(some.events for some in odd):
        return found
    parts, firsts = [found], [records]
    for some in odd:
        parts.append(found_of(some.events, dictionary))
        count = int(parts[-1].event[-1]) + 1 if parts[-1].size else 0
        firsts.append(np.full(count, some.record))
    events = np.concatenate(firsts)
    order = np.argsort(events, kind="stable")
    number = np.empty(len(events), np.int64)
    number[order] = np.arange(len(events))
    before = np.cumsum([0, *map(len, firsts)])
    event = np.concatenate([number[part.event + n] for part, n in zip(parts, before, strict=False)])
    triples = np.argsort(event, kind="stable")
    place = np.empty(len(triples), np.int64)
    place[triples] = np.arange(len(triples))
    starts = np.cumsum([0, *(part.size for part in parts)])
    rows = np.concatenate(
        [
            place[start + (np.arange(part.size) if part.rows is None else part.rows)]
            for part, start in zip(parts, starts, strict=False)
        ]
    )
    asked = np.argsort(rows)
    whole = len(rows) == len(triples)
    time = np.concatenate([part.time for part in parts])

    def column(name: str) -> Ids:
        columns = [getattr(part, name) for part in parts]
        filled = [
            np.zeros(len(p.s), np.int64) if c is None else c for c, p in zip(columns, parts, strict=True)
        ]
        return np.concatenate(filled)[asked]

    g = column("g") if any(part.g is not None for part in parts) else None
    sent = None if whole else rows[asked]
    return Found(len(triples), time[triples], event[triples], sent, column("s"), column("p"), column("o"), g)
