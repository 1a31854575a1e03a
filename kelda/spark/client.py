"""Asking hosts: the side of the tasks, and of the driver that fetches answers."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from kelda.errors import KeldaError
from kelda.io.private import make_private
from kelda.rdf import wire
from kelda.spark.host import start as start_host
from kelda.spark.host_wire import EXECUTOR, Reply, Stamp, ToldGone, hosts_folder, new_ticket
from kelda.spark.run import Run
from kelda.spark.sockets import ask, connect

__all__ = ["TRIES", "AtHost", "Host", "at_host", "current_batch", "host_of", "new_ticket"]

PATIENCE = 60.0  # seconds for a new host to open its door
AGAIN = 5.0  # seconds after which another is started, if there is none to be seen
TRIES = 3  # a host that dies is started again; one that dies each time is a failure of the task

T = TypeVar("T")


class Host:
    """A connection to the host of a shard, which is started if need be (and `start` lets it)."""

    def __init__(self, run: Run, shard: int, *, start: bool = True, path: str | None = None) -> None:
        self.run, self.shard = run, shard
        self._executor = int(os.environ.get(EXECUTOR) or os.getppid())
        self.path = path or self._door()
        self._socket = self._connect(start)

    def _door(self) -> str:
        return str(hosts_folder(self.run) / f"{self._executor}-{self.shard}.sock")

    def _connect(self, start: bool) -> socket.socket:
        until, again = time.monotonic() + PATIENCE, 0.0
        while True:
            try:
                return connect(self.path)
            except (FileNotFoundError, ConnectionRefusedError) as problem:
                now = time.monotonic()
                if not start:
                    raise ConnectionRefusedError(f"there is no host of shard {self.shard}") from None
                if now > until:
                    raise KeldaError(f"the host of shard {self.shard} did not start: {self.path}") from None
                if now > again:
                    if isinstance(problem, ConnectionRefusedError):  # the door of one that has died
                        Path(self.path).unlink(missing_ok=True)
                    make_private(Path(self.path).parent)  # others may have cleared it away
                    start_host(self.path, self.run, self.shard, self._executor)
                    again = now + AGAIN
                time.sleep(0.005)

    def take(self, batch: int, before: Stamp, parcels: list[bytes]) -> Reply | None:
        """Take a batch on the state stamped `before`; None if the host does not have that state."""
        return self._ask("take", batch, before, parcels)

    def told(self, stamp: Stamp) -> bytes:
        """The answers of the batch that was stamped so, with the number of the shard: see `outcome_of`."""
        told: bytes = self._ask("told", stamp)
        return told

    def offer(self, ticket: bytes, parcels: list[bytes], *, batch: int) -> None:
        """Hand over the parcels of a batch, for which the ticket stands in `take`."""
        self._ask("offer", ticket, parcels, batch, None)

    def offer_next(self, ticket: bytes, parcels: list[bytes], *, after: bytes) -> None:
        """The same for the batch that comes after the one of another ticket."""
        self._ask("offer", ticket, parcels, None, after)

    def has(self, ticket: bytes) -> bool:
        """Whether the parcels of a ticket have been offered."""
        return bool(self._ask("has", ticket))

    def stand_up(
        self, before: Stamp, memory: bytes | None, segments: Mapping[int, tuple[int, bytes]]
    ) -> None:
        """Be the shard as it was when it was stamped `before`."""
        self._ask("stand_up", before, memory, segments)

    def close(self) -> None:
        """Hang up. The host lives on."""
        self._socket.close()

    def _ask(self, *request: Any) -> Any:
        return ask(self._socket, *request)


@wire.plain
@dataclass(frozen=True, slots=True)
class AtHost:
    """Where the answers of a batch are to be had."""

    shard: int
    path: str  # of the host's socket: the driver may have another folder for such things
    stamp: Stamp

    def fetch(self, run: Run) -> bytes:
        """The answers; raises `ToldGone` if the host is not there any more."""
        try:
            with closing(Host(run, self.shard, start=False, path=self.path)) as host:
                return host.told(self.stamp)
        except (ConnectionError, OSError) as problem:
            raise ToldGone(f"the host of shard {self.shard} has gone with its answers") from problem


_hosts: dict[tuple[str, int], Host] = {}


def host_of(run: Run, shard: int, *, anew: bool = False) -> Host:
    """This process's connection to the host of a shard; `anew` after one that broke."""
    if anew:
        _hosts.pop((run.id, shard), None)
    for key in [k for k in _hosts if k[0] != run.id]:
        del _hosts[key]
    if (run.id, shard) not in _hosts:
        _hosts[run.id, shard] = Host(run, shard)
    return _hosts[run.id, shard]


def at_host(run: Run, shard: int, ask: Callable[[Host], T]) -> T:
    """Ask the host of a shard, and another one if it dies."""
    for attempt in range(TRIES):
        try:
            return ask(host_of(run, shard, anew=attempt > 0))
        except (ConnectionError, BrokenPipeError, EOFError):
            if attempt == TRIES - 1:
                raise
            time.sleep(0.2)  # a process that was killed may hold its door for a moment
    raise AssertionError("not reached")


def current_batch() -> int:
    """The number of the batch that this task belongs to."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    number = context.getLocalProperty("streaming.sql.batchId")
    assert number is not None, "not a task of a streaming query"
    return int(number)
