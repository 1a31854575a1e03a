"""What comes in: elements wait, stream by stream, until their instant is complete.

Law: which elements are late, and which wait when an instant is complete, is a function of the sequence of
elements and heart-beats alone; it does not depend on how that sequence was cut into batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from pyoxigraph import NamedNode

from kelda.engine.absorb import Absorb, Absorbing
from kelda.engine.budget import Budget
from kelda.engine.clock import FOREVER, NEVER, Clock
from kelda.engine.deltas import Ids
from kelda.engine.intervals_kernels import falls, numbered
from kelda.engine.nodes import Step
from kelda.engine.stream_rows import NO_ROWS, StreamRows
from kelda.errors import UsageError
from kelda.rdf import wire
from kelda.rdf.dictionary import Dictionary, Entries
from kelda.rdf.event import Event
from kelda.rdf.ids import DEFAULT_GRAPH
from kelda.store.changes import Changes

Columns = tuple[Ids, ...]  # s, p, o, time, event; and the lane, in a stream that has lanes
TIME, LANE = 3, 5


@wire.plain
@dataclass
class Pending:
    """Elements of a stream that wait for their instant to be complete."""

    parts: list[Columns] = field(default_factory=list)
    events: int = 0  # numbered so far
    rows: int = 0  # delivered so far

    def release(self, closed: int) -> StreamRows:
        """Take out the rows up to `closed`, in the order (time, arrival), or (time, lane, arrival)."""
        if not self.parts:
            return NO_ROWS
        waiting: Sequence[Ids] = self.parts[0]
        if len(self.parts) > 1:
            waiting = [np.concatenate(columns) for columns in zip(*self.parts, strict=True)]
        times = waiting[TIME]
        if len(waiting) > LANE or falls(times):
            lanes = waiting[LANE:]
            order = np.lexsort((lanes[0], times)) if lanes else np.argsort(times, kind="stable")
            waiting = [column[order] for column in waiting]
            times = waiting[TIME]
        cut = int(times.searchsorted(closed, "right"))
        self.parts = [tuple([column[cut:] for column in waiting])] if cut < len(times) else []
        if not cut:
            return NO_ROWS
        s, p, o, time, event = [column[:cut] for column in waiting[:LANE]]
        # Events are numbered in the order in which windows see them.
        numbers = numbered(event, self.events)
        self.events = int(numbers[-1]) + 1
        rows = StreamRows(s, p, o, time, numbers, np.arange(self.rows, self.rows + len(time)))
        self.rows += len(time)
        return rows

    @property
    def first(self) -> int:
        """The earliest time of the elements that wait."""
        return min(int(part[TIME].min()) for part in self.parts)

    def snapshot(self) -> Pending:
        """What must survive: itself, as it is now."""
        return Pending(list(self.parts), self.events, self.rows)


@wire.plain
@dataclass(frozen=True, slots=True)
class KeptInput:
    """What of the input must survive, with the terms of what waits."""

    clock: Clock
    late: dict[str, int]
    pending: dict[str, Pending]
    arrival: int
    now: int
    entries: Entries | None
    late_facts: dict[str, Pending]


class Input:
    """The streams: their clocks, what waits on them, and how many of their elements were late.

    `now`: all instants up to it have been delivered."""

    def __init__(self, dictionary: Dictionary) -> None:
        self.dictionary = dictionary
        self.absorbing: dict[str, Absorbing] = {}
        self.late_facts: dict[str, Pending] = {}  # late elements that are absorbed all the same
        self.clock = Clock()
        self.late: dict[str, int] = {}
        self.pending: dict[str, Pending] = {}
        self.now = NEVER
        self.steps = 0
        self._arrival = 0
        self._begin = NEVER  # where time begins

    def add_stream(self, iri: str, lateness: int, from_start: bool, absorb: Absorb | None = None) -> None:
        """Declare a stream."""
        self.clock.add(iri, lateness, from_start)
        self.late[iri] = 0
        self.pending[iri] = Pending()
        if absorb is not None:
            encode = self.dictionary.encode
            graph = DEFAULT_GRAPH if absorb.graph is None else encode(NamedNode(absorb.graph))
            named = None if absorb.predicates is None else sorted(absorb.predicates)
            predicates = None if named is None else np.array([encode(NamedNode(p)) for p in named], np.int64)
            self.absorbing[iri] = Absorbing(graph, predicates)
            self.late_facts[iri] = Pending()

    def drop_stream(self, iri: str) -> None:
        """Forget a stream, with what waits on it."""
        self.clock.drop(iri)
        del self.late[iri], self.pending[iri]
        if self.absorbing.pop(iri, None) is not None:
            del self.late_facts[iri]

    # -------------------------------------------------------------------- taking

    def take_events(self, stream: str, events: Iterable[Event]) -> None:
        """Take events as objects; see `take` for the fast way."""
        events = [e for e in events if e.quads]  # an empty message says nothing
        if any(e.time is None for e in events):
            raise UsageError(f"an event on <{stream}> has no time: give one, or a time predicate")
        encode = self.dictionary.encode
        quads = [(q, e.time, i) for i, e in enumerate(events) for q in e.quads]
        s, p, o = (
            np.array([encode(getattr(q, part)) for q, _, _ in quads], np.int64)
            for part in ("subject", "predicate", "object")
        )
        time = np.array([t for _, t, _ in quads], np.int64)
        event = np.array([i for _, _, i in quads], np.int64)
        self.take(stream, s, p, o, time, event)

    def take(
        self,
        stream: str,
        s: Ids,
        p: Ids,
        o: Ids,
        time: Ids,
        event: Ids | None = None,
        stands_for: Ids | None = None,
        lane: int | None = None,
    ) -> None:
        """Take triples, to be delivered when their instants are complete. Rows of zeros are elements of which
        the time alone matters here; a row may stand for several, which counts if it is late."""
        whole = self.clock.of(stream)
        clock = whole if lane is None else whole.lane(lane)
        if event is None:
            event = np.arange(self._arrival, self._arrival + len(time))
        else:
            event = event + self._arrival
        if len(time):
            clock.idle = whole.idle = False
        in_order = not falls(time)
        if len(time) and (not in_order or time[0] <= max(clock.closed, self.now)):
            newest = np.maximum.accumulate(np.concatenate([[clock.newest], time[:-1]]))
            closed = np.maximum(np.where(newest == NEVER, NEVER, newest - clock.lateness - 1), clock.promised)
            fine = time > np.maximum(closed, self.now)
            if not fine.all():
                late = ~fine
                events = len(np.unique(event[late])) if stands_for is None else int(stands_for[late].sum())
                self.late[stream] += events
                if stream in self.absorbing:  # it is in no window, but a fact: from the next instant on
                    # If its stream has ended, that is the next instant that is answered.
                    known = np.where(closed == FOREVER, NEVER, closed)
                    later = np.maximum(known, self.now)[late] + 1
                    parts = (s[late], p[late], o[late], later, event[late])
                    self.late_facts[stream].parts.append(parts)
                s, p, o, time, event = (a[fine] for a in (s, p, o, time, event))
        if not len(time):
            return
        if self._begin == NEVER:  # with the first of them, whatever else is in the batch
            clock.newest = max(clock.newest, int(time[0]))
            whole.newest = max(whole.newest, clock.newest)
            self._may_begin(int(time[0]))
        clock.newest = max(clock.newest, int(time[-1] if in_order else time.max()))
        whole.newest = max(whole.newest, clock.newest)
        of_lane = () if lane is None else (np.full(len(time), lane, np.int64),)
        self.pending[stream].parts.append((s, p, o, time, event, *of_lane))
        self._arrival = int(event[-1]) + 1

    def promise(self, stream: str, time: int) -> None:
        """No element of the stream at or before `time` will come any more."""
        whole = self.clock.of(stream)
        for clock in (whole, *whole.lanes.values()):
            clock.promised = max(clock.promised, time)
        self._may_begin()

    def open_lane(self, stream: str, lane: int) -> None:
        """The stream has this lane, and waits for it."""
        self.clock.of(stream).lane(lane)

    def silence(self, stream: str, lane: int | None = None) -> None:
        """Nobody waits for the stream, or for a lane of it, until it speaks again."""
        whole = self.clock.of(stream)
        (whole if lane is None else whole.lane(lane)).idle = True
        self._may_begin()

    def end(self, stream: str) -> None:
        """The stream has no more elements."""
        whole = self.clock.of(stream)
        for clock in (whole, *whole.lanes.values()):
            clock.ended = True
        self._may_begin()

    def _may_begin(self, *first: int) -> None:
        """Time begins where an instant is complete for the first time, and before all elements there are."""
        if self._begin == NEVER and (closed := self.clock.closed) > NEVER:
            waiting = [*first, *(p.first for p in self.pending.values() if p.parts)]
            self._begin = min([closed, *(t - 1 for t in waiting)])

    # -------------------------------------------------------------------- delivering

    def release(self, budget: Budget) -> Step | None:
        """The elements of the instants that have become complete; None if none has. `now` is moved on when
        they are answered."""
        closed = self.clock.closed
        if closed <= self.now:
            return None
        since = self.now
        if since == NEVER:
            self._may_begin()
            since = self._begin
        rows = {name: pending.release(closed) for name, pending in self.pending.items()}
        self.steps += 1
        return Step(self.steps, closed, rows, budget, since)

    def absorbed(self, rows: Mapping[str, StreamRows], until: int) -> Changes:
        """What the elements of a step add to stored graphs."""
        parts = []
        for stream, absorbing in self.absorbing.items():
            late = self.late_facts[stream].release(until)
            parts += [absorbing.changes(some) for some in (rows.get(stream, NO_ROWS), late) if len(some)]
        together = Changes.concat([part for part in parts if len(part)])
        if falls(together.moment) or (len(together) and together.sign.min() < 0):
            return together.select(np.lexsort((together.sign, together.moment)))
        return together

    def again(self, until: int, rows: Mapping[str, StreamRows], budget: Budget) -> Step:
        """A step that was taken before."""
        self.steps += 1
        return Step(self.steps, until, rows, budget, self.now)

    def stand_at(self, instant: int) -> None:
        """What was up to this instant is not delivered any more, at most again."""
        self.now = instant

    # -------------------------------------------------------------------- what survives

    def snapshot(self) -> KeptInput:
        """To go on from here elsewhere."""
        pending = {stream: waits.snapshot() for stream, waits in self.pending.items()}
        late = {stream: waits.snapshot() for stream, waits in self.late_facts.items()}
        waiting = [*pending.values(), *late.values()]
        parts = [part for waits in waiting for part in waits.parts]
        ids = [column for s, p, o, *_ in parts for column in (s, np.abs(p), o)]
        entries = self.dictionary.entries_of(np.concatenate(ids)) if ids else None
        clock = self.clock.snapshot()
        return KeptInput(clock, dict(self.late), pending, self._arrival, self.now, entries, late)

    def restore(self, kept: KeptInput) -> None:
        """Go on from there, with the same streams."""
        if kept.entries is not None:
            self.dictionary.add_entries(kept.entries)
        self.clock, self.late, self._arrival, self.now = kept.clock, kept.late, kept.arrival, kept.now
        self.pending |= kept.pending
        self.late_facts |= kept.late_facts
