"""Hosts: processes that hold the working form of shards, one per shard and machine.

Spark may run a shard's task in another Python worker each time, so a worker holds nothing: it hands the
batch to the shard's host, a process beside it that lives on from batch to batch, and gets back what the
state store is to keep. A host is only a cache. It is stamped with the batch it has taken and a number drawn
then, which the state store keeps too; a worker that finds no host, or one with another stamp (its batch was
never committed, another host's was), gives it the segments from the state store to stand up from.

Where tasks run on the driver's machine, the source hands parcels to the hosts itself and only a *ticket* for
them goes through Spark. A host does not wait for it: if it has the state of the batch before, it takes
the parcels at once, while Spark is on its way to the keyed step. The reply is given out when that comes with
the stamp that the host began from; with another one it is worth nothing, and the host stands up again.

A host ends when its run does (its flag in the checkpoint folder is gone) or when its executor (locally, the
driver's JVM) has gone, be it by kill -9.
"""

from __future__ import annotations

import os
import pickle
import secrets
import signal
import socket
import struct
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from kelda.errors import KeldaError
from kelda.shards.catalog import CatalogFolder
from kelda.shards.levels import Levels
from kelda.shards.planner import Setup

PATIENCE = 60.0  # seconds for a new host to open its door
EXECUTOR = "KELDA_EXECUTOR"  # environment variable of workers: the process that they work for
TICKET = b"\xff" * 8  # begins what stands for parcels that a host has; a parcel begins with a version
TRIES = 3  # a host that dies is started again; one that dies each time is a failure of the task

Stamp = tuple[int, int]  # a batch, and which of the times that it was taken
NEW: Stamp = (-1, 0)  # of a shard that has taken nothing

T = TypeVar("T")

_LENGTH = struct.Struct("!Q")


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


@dataclass(frozen=True, slots=True)
class Reply:
    """What a host says to a batch: the answers (pickled, for the sink), and what is to be kept."""

    told: bytes
    stamp: Stamp
    version: int  # of the catalog
    put: dict[int, bytes]
    removed: list[int]
    memory: bytes


class ParcelsGone(KeldaError):
    """The host that had the parcels of a ticket has died: they must be read again."""


# ------------------------------------------------------------------------------ the worker's side


class Host:
    """A connection to the host of a shard, which is started if need be."""

    def __init__(self, run: Run, shard: int) -> None:
        self.run, self.shard = run, shard
        executor = int(os.environ.get(EXECUTOR) or os.getppid())
        folder = Path(tempfile.gettempdir(), f"kelda-hosts-{os.getuid()}")
        folder.mkdir(mode=0o700, exist_ok=True)
        self.path = str(folder / f"{executor}-{run.id[:12]}-{shard}.sock")
        self._socket = self._connect(executor)

    def _connect(self, executor: int) -> socket.socket:
        door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        until = time.monotonic() + PATIENCE
        started = False
        while True:
            try:
                door.connect(self.path)
                return door
            except (FileNotFoundError, ConnectionRefusedError):
                if not started:
                    Path(self.path).unlink(missing_ok=True)
                    _start(self.path, self.run, self.shard, executor)
                    started = True
                elif time.monotonic() > until:
                    raise KeldaError(f"the host of shard {self.shard} did not start: {self.path}") from None
                time.sleep(0.005)

    def take(self, batch: int, before: Stamp, parcels: list[bytes]) -> Reply | None:
        """Take a batch on the state stamped `before`; None if the host does not have that state."""
        return self._ask("take", batch, before, parcels)

    def offer(self, batch: int, parcels: list[bytes]) -> bytes:
        """Hand over the parcels of a batch; what comes back stands for them in `take`."""
        ticket = TICKET + secrets.token_bytes(8)
        self._ask("offer", batch, ticket, parcels)
        return ticket

    def stand_up(
        self, before: Stamp, memory: bytes | None, segments: Mapping[int, tuple[int, bytes]]
    ) -> None:
        """Be the shard as it was when it was stamped `before`."""
        self._ask("stand_up", before, memory, segments)

    def _ask(self, *request: Any) -> Any:
        send(self._socket, request)
        kind, body = receive(self._socket)
        if kind == "error":
            raise body
        return body


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


def send(to: socket.socket, message: Any) -> None:
    """A message, whole."""
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    to.sendall(_LENGTH.pack(len(data)))
    to.sendall(data)


def receive(of: socket.socket) -> Any:
    """The next message; `ConnectionResetError` if there is none."""
    (size,) = _LENGTH.unpack(_exactly(of, _LENGTH.size))
    return pickle.loads(_exactly(of, size))


def _exactly(of: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    view = memoryview(data)
    while view.nbytes:
        got = of.recv_into(view)
        if not got:
            raise ConnectionResetError("the other side has gone")
        view = view[got:]
    return data


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
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        door.bind(path)
    except OSError:  # another worker was faster
        return
    door.listen(8)
    _call_process(f"kelda-shard-{shard}")
    threading.Thread(target=_watch, args=(path, run, executor), daemon=True).start()
    served = _Served(run, shard)
    while True:
        guest, _ = door.accept()
        threading.Thread(target=served.talk, args=(guest,), daemon=True).start()


def _watch(path: str, run: Run, executor: int) -> None:
    while run.flag.exists() and _alive(executor):
        time.sleep(0.5)
    Path(path).unlink(missing_ok=True)
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


class _Served:
    """A shard, for one guest at a time."""

    def __init__(self, run: Run, shard: int) -> None:
        self.run, self.number = run, shard
        self.catalog = CatalogFolder(run.catalog)
        self.shard: Levels | None = None
        self._stamp = NEW
        self._last: tuple[int, Stamp, Reply] | None = None  # the last batch, the stamp before, the reply
        self._offered: tuple[int, bytes, list[bytes]] | None = None  # batch, ticket, parcels
        self._lock = threading.Lock()

    def talk(self, guest: socket.socket) -> None:
        """Serve a worker until it hangs up."""
        with guest:
            while True:
                try:
                    request = receive(guest)
                except (ConnectionError, OSError):
                    return
                try:
                    with self._lock:
                        reply = ("ok", getattr(self, request[0])(*request[1:]))
                except Exception as problem:  # noqa: BLE001 - it is raised again in the worker
                    self.shard = None
                    reply = ("error", _portable(problem))
                try:
                    send(guest, reply)
                except (ConnectionError, OSError):
                    return
                if request[0] == "offer":
                    self._begin(*request[1:3])

    def take(self, batch: int, before: Stamp, parcels: list[bytes]) -> Reply | None:
        if self._last is not None and self._last[:2] == (batch, before):
            return self._last[2]  # the task is run again: its worker died, or lost its way to Spark
        found = self._parcels(parcels)
        if self.shard is None or self._stamp != before:
            return None
        shard, self.shard = self.shard, None  # until all has gone well, there is none
        outcome = shard.take(batch, self.catalog.refresh(), found)
        told = pickle.dumps((self.number, replace(outcome, put={}, removed=[], memory=b"")), 5)
        stamp = (batch, secrets.randbits(62))
        reply = Reply(told, stamp, outcome.version, outcome.put, outcome.removed, outcome.memory)
        self.shard, self._stamp, self._last = shard, stamp, (batch, before, reply)
        return reply

    def offer(self, batch: int, ticket: bytes, parcels: list[bytes]) -> None:
        self._offered = (batch, ticket, parcels)

    def _begin(self, batch: int, ticket: bytes) -> None:
        """Take what was offered, if the state is that of the batch before."""
        with self._lock:
            if self.shard is None or self._stamp[0] != batch - 1:
                return
            try:
                self.take(batch, self._stamp, [ticket])
            except Exception:  # noqa: BLE001 - it is raised when the batch is asked for: it is taken again then
                self.shard = None

    def _parcels(self, given: list[bytes]) -> list[bytes]:
        """The parcels that tickets stand for."""
        found: list[bytes] = []
        for parcel in given:
            if not parcel.startswith(TICKET):
                found.append(parcel)
            elif self._offered is not None and self._offered[1] == parcel:
                found += self._offered[2]
            else:
                raise ParcelsGone(
                    "the parcels of this batch were lost with a process; Spark reads them again"
                )
        return found

    def stand_up(
        self, before: Stamp, memory: bytes | None, segments: Mapping[int, tuple[int, bytes]]
    ) -> None:
        self._last = None
        self.shard = None  # let go of the old one first
        catalog = self.catalog.refresh()
        self.shard = Levels.stand_up(self.number, self.run.setup, catalog, before[0], memory, segments)
        self._stamp = before


def _portable(problem: Exception) -> Exception:
    """An error that can be raised in another process, with where it came from."""
    if isinstance(problem, KeldaError):
        return problem
    return RuntimeError("".join(traceback.format_exception(problem)))
