"""Hosts: processes that hold the working form of shards, one per shard and machine.

Spark may run a shard's task in another Python worker each time, so a worker holds nothing: it hands the
batch to the shard's host, a process beside it that lives on from batch to batch, and gets back what the
state store is to keep. A host is only a cache. It is stamped with the batch it has taken and a number drawn
then, which the state store keeps too; a worker that finds no host, or one with another stamp (its batch was
never committed, another host's was), gives it the segments from the state store to stand up from.

Where tasks run on the driver's machine, the source hands parcels to the hosts itself and only a *ticket* for
them goes through Spark. A host does not wait for it: if it has the state of the batch before, it takes
the parcels at once, while Spark is on its way to the keyed step. The reply is given out when that comes with
the stamp that the host began from; with another one it is worth nothing, and the host stands up again. Of
files even the next batch is offered ahead, as what comes after this one's ticket: it is taken while Spark
commits this one, so a host has two replies at most that nobody has asked for yet. The answers stay with the
host, too, until the driver fetches them.

A host ends when its run does (its flag in the checkpoint folder is gone), when its executor (locally, the
driver's JVM) has gone, be it by kill -9, or when its shard has moved to another executor: batches are
committed, and nobody asks this host for them.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import zstandard

from kelda.errors import KeldaError, UsageError
from kelda.rdf import wire
from kelda.shards.catalog import CatalogFolder
from kelda.shards.levels import Levels
from kelda.shards.planner import Setup
from kelda.shards.shard import Outcome
from kelda.spark.private import make_private
from kelda.spark.sockets import accept, answer, ask, connect, listen

PATIENCE = 60.0  # seconds for a new host to open its door
AGAIN = 5.0  # seconds after which another is started, if there is none to be seen
LINGER = 3.0  # seconds for which a host is not asked, and
BEHIND = 3  # batches that are committed without it: then its shard is elsewhere
EXECUTOR = "KELDA_EXECUTOR"  # environment variable of workers: the process that they work for
TICKET = b"\xff" * 8  # begins what stands for parcels that a host has; no parcel begins so
TRIES = 3  # a host that dies is started again; one that dies each time is a failure of the task

Stamp = tuple[int, int]  # a batch, and which of the times that it was taken
NEW: Stamp = (-1, 0)  # of a shard that has taken nothing

ASKED = frozenset({"take", "told", "offer", "has", "stand_up"})  # what a host can be asked

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a pipeline: what a host must know. Plain data."""

    id: str
    setup: Setup
    folder: str  # of the checkpoint; the catalog lies in it

    @property
    def flag(self) -> Path:
        """Is there as long as the run goes on."""
        return Path(self.folder, f"running-{self.id}")

    def fed(self, stream: int) -> Path:
        """Where the elements of a stream lie that a query feeds."""
        return Path(self.folder, "fed", str(stream))

    @property
    def catalog(self) -> Path:
        return Path(self.folder, "catalog")

    def last_commit(self) -> int:
        """The last batch that Spark has committed; -1 if none."""
        try:
            names = os.listdir(Path(self.folder, "spark", "commits"))
        except OSError:  # not begun, or not to be seen just now
            return -1
        return max((int(name) for name in names if name.isdigit()), default=-1)


@wire.plain
@dataclass(frozen=True, slots=True)
class Reply:
    """What a host has made of a batch: what is to be kept, compressed. The answers are asked for apart."""

    stamp: Stamp
    version: int  # of the catalog
    put: dict[int, bytes]
    removed: list[int]
    memory: bytes


def new_ticket() -> bytes:
    """For the parcels of one batch."""
    return TICKET + secrets.token_bytes(8)


class ParcelsGone(KeldaError):
    """The host that had the parcels of a ticket has died: they must be read again."""


class ToldGone(KeldaError):
    """The host that had the answers of a batch has died: it must be taken again."""


# ------------------------------------------------------------------------------ the worker's side


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
                    _start(self.path, self.run, self.shard, self._executor)
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


def hosts_folder(run: Run) -> Path:
    """Where the sockets of a run's hosts are. Nobody else knows its name before it is there."""
    return Path(tempfile.gettempdir(), f"kelda-hosts-{os.geteuid()}-{run.id[:12]}")


def outcome_of(told: bytes) -> tuple[int, Outcome]:
    """(the shard, what it made of a batch) of what it has told."""
    number, outcome = wire.decode(told, "what a shard tells")
    assert isinstance(outcome, Outcome)
    return int(number), outcome


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


# ------------------------------------------------------------------------------ the host's side


def _start(path: str, run: Run, shard: int, executor: int) -> None:
    """A host in a process of its own, forked from this one: all modules are there already."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        for fd in (0, 1):
            os.dup2(os.open(os.devnull, os.O_RDWR), fd)
        os.closerange(3, 65536)  # the worker's own connections are none of ours
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        serve(path, run, shard, executor)
    except BaseException:  # noqa: BLE001 - a forked child must not return into its parent's code
        traceback.print_exc()
    finally:
        os._exit(0)


def serve(path: str, run: Run, shard: int, executor: int) -> None:
    """Answer workers until the run is over."""
    try:
        door = listen(path)
    except OSError:  # another worker was faster
        return
    _call_process(f"kelda-shard-{shard}")
    served = _Served(run, shard)
    threading.Thread(target=_watch, args=(path, run, executor, served), daemon=True).start()
    while True:
        guest = accept(door)
        threading.Thread(target=answer, args=(guest, served.answer), daemon=True).start()


def _watch(path: str, run: Run, executor: int, served: _Served) -> None:
    over = False
    while not over and not served.is_left_behind():
        time.sleep(0.5)
        with suppress(OSError):  # a file system that does not answer just now
            over = not run.flag.exists() or not _alive(executor)
    Path(path).unlink(missing_ok=True)
    if over:
        with suppress(OSError):  # there are others, who have not noticed yet
            Path(path).parent.rmdir()
    os._exit(0)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def _call_process(name: str) -> None:
    """The name of this process in `ps` and `top`, where the system lets one say it."""
    comm = Path("/proc/self/comm")
    if comm.exists():
        comm.write_text(name)


@dataclass(slots=True)
class _Offer:
    """Parcels of the batch with this number, or of the one after another ticket's."""

    ticket: bytes
    parcels: list[bytes]
    batch: int | None
    after: bytes | None
    tried: bool = False  # to take it: only once ahead, and not after it was asked for


class _Served:
    """A shard, and the replies to its last batches. One thread at a time is busy with the shard."""

    def __init__(self, run: Run, shard: int) -> None:
        self.run, self.number = run, shard
        self.catalog = CatalogFolder(run.catalog)
        self.shard: Levels | None = None
        self._stamp = NEW
        self._ticket: bytes | None = None  # of the last batch
        self._replies: dict[tuple[int, Stamp], Reply] = {}  # to the last two, by batch and stamp before
        self._told: dict[Stamp, bytes] = {}  # of the same
        self._offers: list[_Offer] = []  # the last two
        self._busy = False
        self._change = threading.Condition()
        self._asked = time.monotonic()  # the last time
        threading.Thread(target=self._go_ahead, daemon=True).start()

    def answer(self, what: str, *arguments: Any) -> Any:
        """What a worker asks."""
        if what not in ASKED:
            raise UsageError(f"a host cannot be asked for {what!r}")
        try:
            return getattr(self, what)(*arguments)
        finally:
            self._asked = time.monotonic()

    def is_left_behind(self) -> bool:
        """Whether others take the batches of the shard."""
        with self._change:
            if self._busy or time.monotonic() < self._asked + LINGER:
                return False
            self._asked = time.monotonic()  # as often as this, and not more, it is worth a look
            taken = self._stamp[0]
        return self.run.last_commit() >= taken + BEHIND

    def take(self, batch: int, before: Stamp, given: list[bytes]) -> Reply | None:
        with self._change:
            # The reply may be there: it was taken ahead; or the task is run again, because its worker died.
            while (reply := self._replies.get((batch, before))) is None and self._busy:
                self._change.wait()
            if reply is not None:
                return reply
            ticket, parcels = self._parcels(given)
            if self.shard is None or self._stamp != before:
                return None
            self._busy = True
        return self._step(ticket, parcels, batch, before)

    def told(self, stamp: Stamp) -> bytes:
        with self._change:
            if stamp not in self._told:
                raise ToldGone("the answers of this batch were lost with a process; it is taken again")
            return self._told[stamp]

    def offer(self, ticket: bytes, parcels: list[bytes], batch: int | None, after: bytes | None) -> None:
        with self._change:
            others = [offer for offer in self._offers if offer.ticket != ticket]
            self._offers = [*others[-1:], _Offer(ticket, parcels, batch, after)]
            self._change.notify_all()

    def has(self, ticket: bytes) -> bool:
        with self._change:
            return any(offer.ticket == ticket for offer in self._offers)

    def stand_up(
        self, before: Stamp, memory: bytes | None, segments: Mapping[int, tuple[int, bytes]]
    ) -> None:
        with self._change:
            while self._busy:
                self._change.wait()
            self._busy = True
            self._replies.clear()
            self._told.clear()
            self.shard = self._ticket = None  # let go of the old one first
        try:
            loaded = {i: (version, zstandard.decompress(data)) for i, (version, data) in segments.items()}
            kept = None if memory is None else zstandard.decompress(memory)
            shard = Levels.stand_up(self.number, self.run.setup, self.catalog, before[0], kept, loaded)
            self.shard, self._stamp = shard, before
        finally:
            self._rest()

    def _step(self, ticket: bytes | None, parcels: list[bytes], batch: int, before: Stamp) -> Reply:
        """Take a batch. Who calls this has said that he is busy."""
        shard, self.shard = self.shard, None  # until all has gone well, there is none
        try:
            assert shard is not None
            outcome = shard.take(batch, self.catalog, parcels)
            told = wire.encode((self.number, replace(outcome, put={}, removed=[], memory=b"")))
            stamp = (batch, secrets.randbits(62))
            put = {number: zstandard.compress(data, 1) for number, data in outcome.put.items()}
            memory = zstandard.compress(outcome.memory, 1)
            reply = Reply(stamp, outcome.version, put, outcome.removed, memory)
            with self._change:
                self._replies = dict([*self._replies.items()][-1:]) | {(batch, before): reply}
                self._told = dict([*self._told.items()][-1:]) | {stamp: told}
                self.shard, self._stamp, self._ticket = shard, stamp, ticket
            return reply
        finally:
            self._rest()

    def _rest(self) -> None:
        with self._change:
            self._busy = False
            self._change.notify_all()

    def _go_ahead(self) -> None:
        """Take what was offered as soon as the state is that of the batch before."""
        while True:
            with self._change:
                while self._busy or (offer := self._next()) is None:
                    self._change.wait()
                offer.tried = self._busy = True
                before = self._stamp
            try:
                self._step(offer.ticket, offer.parcels, before[0] + 1, before)
            except Exception:  # noqa: BLE001 - it is raised when the batch is asked for: it is taken again then
                traceback.print_exc()

    def _next(self) -> _Offer | None:
        for offer in self._offers:
            fits = offer.batch == self._stamp[0] + 1 if offer.after is None else offer.after == self._ticket
            if self.shard is not None and fits and not offer.tried:
                return offer
        return None

    def _parcels(self, given: list[bytes]) -> tuple[bytes | None, list[bytes]]:
        """What was given; if that is a ticket, with the parcels that it stands for."""
        tickets = [parcel for parcel in given if parcel.startswith(TICKET)]
        if not tickets:
            return None, given
        for offer in self._offers:
            if [offer.ticket] == given:
                offer.tried = True  # who asks takes it now, and is told what is wrong with it
                return offer.ticket, offer.parcels
        raise ParcelsGone("the parcels of this batch were lost with a process; Spark reads them again")
