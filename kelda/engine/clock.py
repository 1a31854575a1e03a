"""What time is it? One clock per stream, one for all of them.

A stream's clock says up to which instant no more elements will come (`closed`): its newest
element less the allowed lateness, or what a heart-beat promised, or for ever once it has ended.
The engine's clock is the slowest of the streams that take part.

A stream may come in several *lanes* (the partitions of a topic), each in an order of its own and none in
any order with the others. Then each lane has a clock, an element is late by that of its lane, and the
stream's is the slowest of them: so it does not matter how the lanes are interleaved.

Law: `closed` is a function of the sequence of elements and heart-beats alone, element by element;
it does not depend on how that sequence was cut into batches.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kelda.errors import UsageError
from kelda.rdf import wire
from kelda.store.moments import FOREVER as FOREVER
from kelda.store.moments import NEVER as NEVER


@wire.plain
@dataclass
class StreamClock:
    """`from_start`: holds the engine's clock back even before its first element. `idle`: has been silent
    for so long that nobody waits for it, until it speaks again. `lanes`: none, unless it has several."""

    lateness: int = 0
    from_start: bool = False
    newest: int = NEVER
    promised: int = NEVER
    ended: bool = False
    idle: bool = False
    lanes: dict[int, StreamClock] = field(default_factory=dict)

    def lane(self, number: int) -> StreamClock:
        """The clock of a lane, which is there from now on."""
        if number not in self.lanes:
            self.lanes[number] = StreamClock(self.lateness, True, promised=self.promised, ended=self.ended)
        return self.lanes[number]

    @property
    def is_idle(self) -> bool:
        """Whether nobody waits for it: for none of its lanes, if it has any."""
        return self.idle or (bool(self.lanes) and all(lane.idle for lane in self.lanes.values()))

    @property
    def takes_part(self) -> bool:
        if self.is_idle:
            return False
        return self.from_start or self.newest > NEVER or self.promised > NEVER or self.ended

    @property
    def closed(self) -> int:
        """No element at or before this instant will be taken any more."""
        if self.ended:
            return FOREVER
        if self.lanes:
            heard = [lane.closed for lane in self.lanes.values() if not lane.idle]
            return max(
                min(heard) if heard else max(lane.closed for lane in self.lanes.values()), self.promised
            )
        by_data = NEVER if self.newest == NEVER else self.newest - self.lateness - 1
        return max(by_data, self.promised)


@wire.plain
@dataclass
class Clock:
    """The clocks of all streams."""

    streams: dict[str, StreamClock] = field(default_factory=dict)

    def add(self, stream: str, lateness: int, from_start: bool) -> None:
        """One more stream."""
        if stream in self.streams:
            raise UsageError(f"stream <{stream}> exists already")
        self.streams[stream] = StreamClock(lateness, from_start)

    def drop(self, stream: str) -> None:
        """One stream less."""
        self.of(stream)
        del self.streams[stream]

    def of(self, stream: str) -> StreamClock:
        """The clock of a stream."""
        try:
            return self.streams[stream]
        except KeyError:
            raise UsageError(f"unknown stream <{stream}>; {self.known}") from None

    @property
    def known(self) -> str:
        """The streams that there are, in words."""
        return "known streams: " + (", ".join(f"<{s}>" for s in self.streams) or "none")

    def snapshot(self) -> Clock:
        """What must survive: itself, as it is now."""
        return Clock({stream: _copy(clock) for stream, clock in self.streams.items()})

    @property
    def told(self) -> dict[str, int]:
        """The latest instant that each stream has spoken of."""
        return {stream: max(clock.newest, clock.promised) for stream, clock in self.streams.items()}

    @property
    def horizon(self) -> int:
        """The latest instant that any stream has spoken of: time does not run on beyond it."""
        return max((max(s.newest, s.promised) for s in self.streams.values()), default=NEVER)

    @property
    def closed(self) -> int:
        """Up to here every stream that takes part is complete. If all have fallen idle, none waits for
        another: it is as if the one that went furthest had done so last."""
        taking = [s.closed for s in self.streams.values() if s.takes_part]
        idle = [s.closed for s in self.streams.values() if s.is_idle]
        return min(min(taking) if taking else max(idle, default=NEVER), self.horizon)


def _copy(clock: StreamClock) -> StreamClock:
    return replace(clock, lanes={number: replace(lane) for number, lane in clock.lanes.items()})
