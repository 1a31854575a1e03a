"""Entries on their way into the catalog: when they hold, and what waits for the clock.

A new query is to see all elements of the instants after the clock, also those that wait there. What was read
before the routing knew of it was not sent to its shards: so its entry waits until all of that, on the streams
that it reads, has been answered. A query that moves is switched over when its new shard has seen as much as
its windows reach back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from kelda.durable import replace_file
from kelda.engine.clock import NEVER
from kelda.errors import UsageError
from kelda.kept import reading
from kelda.shards.catalog import (
    AddStream,
    Catalog,
    Drop,
    Op,
    Register,
    RegisterMany,
    Switch,
    Warm,
    as_json,
    from_json,
)
from kelda.shards.planner import Planner
from kelda.shards.shard import News


@dataclass
class Waiting:
    """Registrations that hold when the clock has come to `until`, the latest time that their streams have
    told in batches up to `last` (None: those are not done yet)."""

    ops: tuple[Op, ...]
    streams: frozenset[str]
    last: int = -1
    until: int | None = None

    @property
    def names(self) -> list[str]:
        found: list[str] = []
        for op in self.ops:
            found += (
                [op.name] if isinstance(op, Register) else op.names if isinstance(op, RegisterMany) else []
            )
        return found


@dataclass
class Move:
    """A query that changes over to `shard` when the clock is `span` behind `since`, the latest time told by
    batches up to `last` (None: those are not done yet)."""

    shard: int
    span: int
    last: int = -1
    since: int | None = None


class Registrations:
    """Puts entries into the catalog. `last_read` tells the last batch of which anything may have been read;
    `hold` carries entries out where that is done at once, and `entered` is called when they are in."""

    def __init__(
        self,
        catalog: Catalog,
        planner: Planner,
        *,
        last_read: Callable[[], int],
        route: Callable[[], None] = lambda: None,
        hold: Callable[[Sequence[Op]], None] = lambda ops: None,
        entered: Callable[[], None] = lambda: None,
        file: Path | None = None,
    ) -> None:
        self.catalog, self.planner = catalog, planner
        self._last_read, self._tell_routing, self._hold, self._file = last_read, route, hold, file
        self._entered = entered
        self._moving: dict[str, Move] = {}
        self.waiting: list[Waiting] = []
        self.horizon: int | None = None  # the latest time that any stream has told
        self._told: dict[str, int] = {}  # the same of each
        self._fresh: dict[str, int] = {}  # of streams: the last batch before they were declared
        self._now = 0  # the time up to which all is answered
        self._done = -1  # the last batch that was

    @property
    def begun(self) -> bool:
        """Whether elements have been read."""
        return self._last_read() >= 0

    def number(self) -> int:
        """A number that no entry before has had."""
        return self.catalog.version + len(self.waiting)

    def enter(self, ops: Sequence[Op]) -> None:
        """Into the catalog; first the routing, so that no element of theirs is held back."""
        gone = {op.name for op in ops if isinstance(op, Drop)}
        unborn = [w for w in self.waiting if any(name in gone for name in w.names)]
        streams = self._read_by(ops)
        waits = self.must_wait(streams)
        self._fresh |= {op.source.iri: self._last_read() for op in ops if isinstance(op, AddStream)}
        self.route(ops)
        if unborn:  # dropped before it held
            self.waiting = [w for w in self.waiting if w not in unborn]
        elif waits:
            last = self._last_read()
            until = self._told_by(streams) if last <= self._done else None
            self.waiting.append(Waiting(tuple(ops), streams, last, until))
        else:
            self._add(ops)
        self._remember()

    def _add(self, ops: Sequence[Op]) -> None:
        self._hold(ops)
        self.catalog.add(ops)
        self._entered()

    def route(self, ops: Sequence[Op]) -> None:
        """Elements of these entries are sent to their shards from now on."""
        self.planner.route(ops)
        self._tell_routing()

    def must_wait(self, streams: Collection[str]) -> bool:
        """Whether elements of streams may have been read that are not answered yet."""
        last = self._last_read()
        if all(self._fresh.get(iri) == last for iri in streams):  # since then nothing was read
            return False
        return last > self._done or self._now < self._told_by(streams)

    def _told_by(self, streams: Collection[str]) -> int:
        """The latest time that any of the streams has told."""
        return max((self._told.get(iri, NEVER) for iri in streams), default=NEVER)

    def _read_by(self, ops: Sequence[Op]) -> frozenset[str]:
        """The streams that new queries read."""
        return frozenset(
            iri
            for op in ops
            if isinstance(op, Register | RegisterMany)
            for iri in self.planner.streams(op.spec)
        )

    def move(self, name: str, shard: int) -> None:
        """Move a whole query to another shard: that one runs it too, until its windows are as full."""
        span = self.planner.span(name)
        if name not in self.planner.placed or span is None:
            raise UsageError(f"{name!r} cannot move: only whole queries with time windows can")
        if not 0 <= shard < self.planner.setup.shards:
            raise UsageError(
                f"there is no shard {shard}: they are numbered 0 to {self.planner.setup.shards - 1}"
            )
        if shard != self.planner.placed[name] and name not in self._moving:
            self.enter([Warm(name, shard)])
            self._moving[name] = Move(shard, span, self._last_read())

    def settle(self, batch: int, news: Sequence[News]) -> None:
        """A batch was taken: what waited for it, or for the clock, is entered."""
        self._done = batch
        if not news:
            return
        self.horizon = max(n.horizon for n in news)
        self._told = {iri: time for n in news for iri, time in n.told.items()}
        self._now = min(n.now for n in news)
        for waiting in list(self.waiting):
            if waiting.until is None and batch >= waiting.last:
                # What was read up to now may have been read without it.
                waiting.until = self._told_by(waiting.streams)
                self._remember()
            if waiting.until is not None and self._now >= waiting.until:
                self.waiting.remove(waiting)
                self._add(waiting.ops)
                self._remember()
        for name, move in list(self._moving.items()):
            if move.since is None and batch >= move.last:
                move.since = self.horizon
            if move.since is not None and self._now > move.since + move.span:
                del self._moving[name]
                if name in self.planner.queries:
                    self.enter([Switch(name, move.shard)])

    # -------------------------------------------------------------------- over a restart

    @property
    def clocks(self) -> tuple[int, News]:
        """The last batch that was answered, and where the clocks stood then: to `settle` with by the next
        run."""
        horizon = NEVER if self.horizon is None else self.horizon
        return self._done, News(now=self._now, horizon=horizon, told=self._told)

    def take_up(self) -> None:
        """Go on where an earlier run was, whose catalog this is."""
        ops = self.catalog.between(0, self.catalog.version)
        self.route(ops)
        for op in ops:  # moves that a restart found half done
            if isinstance(op, Warm):
                self._moving[op.name] = Move(op.shard, self.planner.span(op.name) or 0)
            elif isinstance(op, Switch | Drop):
                self._moving.pop(op.name, None)
        self._recall()

    def _remember(self) -> None:
        """Registrations survive a restart while they wait, and so does what they wait for."""
        if self._file is None:
            return
        lines = [json.dumps([w.until, [as_json(op) for op in w.ops]]) for w in self.waiting]
        lines.insert(0, json.dumps(len(lines)))
        replace_file(self._file, "".join(f"{line}\n" for line in lines).encode())

    def _recall(self) -> None:
        if self._file is None:
            return
        if not self.catalog.version and not self._file.exists():
            self._remember()  # so that it is known to be lost if it is not there
        with reading(self._file):
            count, *lines = self._file.read_text("utf-8").splitlines() or ["none"]
            if json.loads(count) != len(lines):
                raise ValueError("it is cut off")
            kept = [(until, [from_json(data) for data in some]) for until, some in map(json.loads, lines)]
        for until, ops in kept:
            waiting = Waiting(tuple(ops), self._read_by(ops), until=until)
            if not any(name in self.planner.queries for name in waiting.names):  # else it holds
                self.route(ops)
                self.waiting.append(waiting)
