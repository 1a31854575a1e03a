"""What a shard must keep to stand up again: the rows that its windows still need, step by step.

A *segment* is what one step delivered: the rows of each stream with their terms. The engine's state is a
function of the rows that stand in windows, so an evaluator that is fed the segments again, from the
oldest that any window needs, is the same as one that has seen everything. `Keeper` tells which segments
those are, and which part of a new one (of a large batch and small windows, only its end); `Memory` is the
little that is not in rows: clocks, numbering, and what waits for its instant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kelda.engine.clock import FOREVER, NEVER
from kelda.engine.incremental import IncrementalEvaluator
from kelda.engine.input import KeptInput
from kelda.engine.nodes import Step
from kelda.engine.registry import KeptQueries
from kelda.engine.stream_rows import Last, StreamRows
from kelda.errors import WireError
from kelda.rdf import wire
from kelda.rdf.dictionary import Dictionary, Entries

# ------------------------------------------------------------------------------ one segment


def pack_rows(rows: StreamRows) -> tuple[Any, ...]:
    """Rows without those that are there for their time alone, and times as runs."""
    sent = np.flatnonzero(rows.s)
    heads = np.flatnonzero(np.concatenate([[True], np.diff(rows.time) != 0]))
    each = len(rows) > 0 and int(rows.event[-1] - rows.event[0]) == len(rows) - 1
    return (
        len(rows),
        int(rows.row[0]),
        int(rows.event[0]) if each else rows.event,
        heads,
        rows.time[heads],
        sent if len(sent) < len(rows) else None,
        rows.s[sent],
        rows.p[sent],
        rows.o[sent],
    )


def unpack_rows(packed: tuple[Any, ...]) -> StreamRows:
    """What `pack_rows` packed."""
    size, row, event, heads, times, sent, *parts = packed
    time = np.repeat(times, np.diff(np.append(heads, size)))
    if sent is not None:
        full = np.zeros((3, size), np.int64)
        full[:, sent] = parts
        parts = list(full)
    events = np.arange(event, event + size) if isinstance(event, int) else event
    s, p, o = parts
    if any(array.shape != (size,) for array in (s, p, o, time, events)):  # kernels go by one length
        raise WireError(f"a segment whose columns do not fit together: {wire.WAY_OUT}")
    return StreamRows(s, p, o, time, events, np.arange(row, row + size))


def pack_step(step: Step, since: int, dictionary: Dictionary) -> bytes:
    """A step as bytes; `since` is the instant up to which the step before it went."""
    rows = {stream: pack_rows(some) for stream, some in step.rows.items() if len(some)}
    ids = [part for packed in rows.values() for part in packed[6:]]
    entries = dictionary.entries_of(np.concatenate(ids)) if ids else None
    return wire.encode((since, step.until, rows, entries))


@dataclass(frozen=True, slots=True)
class Segment:
    """A step to be taken again."""

    since: int
    until: int
    rows: dict[str, StreamRows]
    entries: Entries | None

    @classmethod
    def unpack(cls, data: bytes) -> Segment:
        """From `pack_step`."""
        since, until, rows, entries = wire.decode(data, "a segment of a window")
        return cls(since, until, {stream: unpack_rows(some) for stream, some in rows.items()}, entries)


# ------------------------------------------------------------------------------ which are needed


Span = dict[str, Last]  # what is remembered of a segment, for each stream


@dataclass(slots=True)
class Keeper:
    """Follows an evaluator and tells which segments its windows still need."""

    evaluator: IncrementalEvaluator
    paused: dict[int, int] = field(default_factory=dict)  # since when networks are

    def begin(self) -> None:
        """Before a step is taken, when all that is to be paused or to go on again in it has been told."""
        now = self.evaluator.now
        paused = [network.who for network in self.evaluator.networks() if network.paused]
        self.paused = {who: self.paused.get(who, now) for who in paused}

    def span(self, step: Step) -> Span:
        """What to remember of a step that has been taken."""
        stays: dict[str, int] = {}
        for network in self.evaluator.networks():
            for window in network.windows:
                known = stays.get(window.stream, NEVER)
                stays[window.stream] = max(known, window.intervals.stays_until)
        return {
            stream: _last(rows, len(rows), stays.get(stream, NEVER))
            for stream, rows in step.rows.items()
            if len(rows)
        }

    def rest(self, step: Step, since: int) -> tuple[Step, int]:
        """The end of a step that has been taken without a beginning that no window needs, and the instant up
        to which that goes: a step may be cut at any instant. (It is looked for at a few instants only.)"""
        first = min(int(rows.time[0]) for rows in step.rows.values() if len(rows))
        instants = np.linspace(first - 1, step.until, CUTS + 1).astype(np.int64)
        low, high = 0, CUTS  # nothing up to the one is needed; something up to the other may be
        look = 1  # first: most often windows are longer than a step
        while high - low > 1:
            if self.needs(_span_until(step, int(instants[look]))):
                high = look
            else:
                low = look
            look = (low + high) // 2
        if not low:
            return step, since
        until = int(instants[low])
        return replace(step, rows={stream: rows.after(until) for stream, rows in step.rows.items()}), until

    def needs(self, span: Span) -> bool:
        """Whether some window may still need a row of the segment."""
        now = self.evaluator.now
        for network in self.evaluator.networks():
            since = self.paused.get(network.who, now) - network.margin
            for window in network.windows:
                if window.stream in span and window.intervals.needs(span[window.stream], since):
                    return True
        return False


CUTS = 16  # instants of a step at which it may be cut


def _span_until(step: Step, instant: int) -> Span:
    """The span of the rows up to an instant; how long those stay that state their times is not known."""
    counts = {stream: rows.up_to(instant) for stream, rows in step.rows.items()}
    return {stream: _last(step.rows[stream], n, FOREVER) for stream, n in counts.items() if n}


def _last(rows: StreamRows, count: int, stays_until: int) -> Last:
    """Of the first `count` rows."""
    at = count - 1
    return Last(int(rows.time[at]), int(rows.row[at]), int(rows.event[at]), stays_until)


# ------------------------------------------------------------------------------ the rest


@wire.plain
@dataclass(frozen=True, slots=True)
class Memory:
    """What is not in segments."""

    input: KeptInput
    queries: KeptQueries


def memory_of(evaluator: IncrementalEvaluator) -> Memory:
    """To be stored with the segments after each batch."""
    return Memory(evaluator.input.snapshot(), evaluator.registry.snapshot())


def stand_up(
    evaluator: IncrementalEvaluator,
    memory: Memory,
    batches: Sequence[tuple[int, Sequence[Segment]]],
    register: Callable[[int | None], None],
    retaken: Callable[[Segment], None],
) -> None:
    """Bring an evaluator without queries to where another one was when it left `memory` and `batches`.

    Batches have numbers (of any kind); `register(b)` applies what holds from batch b on, and
    `register(None)`, first of all, what held before them. `retaken` is told of each
    segment when it has been taken again."""
    every = [segment for _, segments in batches for segment in segments]
    evaluator.input.stand_at(every[0].since if every else memory.input.now)
    evaluator.registry.look_back(memory.queries)
    register(None)
    first = {stream: (waits.rows, waits.events) for stream, waits in memory.input.pending.items()}
    for segment in reversed(every):
        first |= {s: (int(rows.row[0]), int(rows.event[0])) for s, rows in segment.rows.items()}
    evaluator.registry.begin_with(memory.queries, first)
    for batch, segments in batches:
        register(batch)
        for segment in segments:
            if segment.entries is not None:
                evaluator.dictionary.add_entries(segment.entries)
            evaluator.retake(segment.until, segment.rows)
            retaken(segment)
    evaluator.retake(memory.input.now, {})
    kept = memory.queries.networks
    evaluator.running.see_again({name: q.told for name, q in kept.items() if q.told is not None})
    evaluator.input.restore(memory.input)
    evaluator.registry.restore(memory.queries)
