"""Hosts: processes that hold the working form of shards, one per shard and machine.

Spark may run a shard's task in another Python worker each time, so a worker holds nothing: it hands the
batch to the shard's host, a process beside it that lives on from batch to batch, and gets back what the
state store is to keep. A host is only a cache. It is stamped with the batch it has taken and a number drawn
then, which the state store keeps too; a worker that finds no host, or one with another stamp (its batch was
never committed, another host's was), gives it the segments from the state store to stand up from.

A host ends when its run does (its flag in the checkpoint folder is gone) or when the worker daemon of its
machine has gone, be it by kill -9.
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
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kelda.errors import KeldaError
from kelda.shards.catalog import CatalogFolder
from kelda.shards.levels import Levels
from kelda.shards.planner import Setup

PATIENCE = 60.0  # seconds for a new host to open its door

Stamp = tuple[int, int]  # a batch, and which of the times that it was taken
NEW: Stamp = (-1, 0)  # of a shard that has taken nothing

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


# ------------------------------------------------------------------------------ the worker's side


class Host:
    """A connection to the host of a shard, which is started if need be."""

    def __init__(self, run: Run, shard: int) -> None:
        self.run, self.shard = run, shard
        daemon = os.getppid()
        folder = Path(tempfile.gettempdir(), f"kelda-hosts-{os.getuid()}")
        folder.mkdir(mode=0o700, exist_ok=True)
        self.path = str(folder / f"{daemon}-{run.id[:12]}-{shard}.sock")
        self._socket = self._connect(daemon)

    def _connect(self, daemon: int) -> socket.socket:
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
                    _start(self.path, self.run, self.shard, daemon)
                    started = True
                elif time.monotonic() > until:
                    raise KeldaError(f"the host of shard {self.shard} did not start: {self.path}") from None
                time.sleep(0.005)

    def take(self, batch: int, before: Stamp, parcels: list[bytes]) -> Reply | None:
        """Take a batch on the state stamped `before`; None if the host does not have that state."""
        return self._ask("take", batch, before, parcels)

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


def _start(path: str, run: Run, shard: int, daemon: int) -> None:
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
        serve(path, run, shard, daemon)
    except BaseException:  # noqa: BLE001 - a forked child must not return into its parent's code
        traceback.print_exc()
    finally:
        os._exit(0)


def serve(path: str, run: Run, shard: int, daemon: int) -> None:
    """Answer workers until the run is over."""
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        door.bind(path)
    except OSError:  # another worker was faster
        return
    door.listen(8)
    _call_process(f"kelda-shard-{shard}")
    threading.Thread(target=_watch, args=(path, run, daemon), daemon=True).start()
    served = _Served(run, shard)
    while True:
        guest, _ = door.accept()
        threading.Thread(target=served.talk, args=(guest,), daemon=True).start()


def _watch(path: str, run: Run, daemon: int) -> None:
    while run.flag.exists() and _alive(daemon):
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

    def take(self, batch: int, before: Stamp, parcels: list[bytes]) -> Reply | None:
        if self._last is not None and self._last[:2] == (batch, before):
            return self._last[2]  # the task is run again: its worker died, or lost its way to Spark
        if self.shard is None or self._stamp != before:
            return None
        shard, self.shard = self.shard, None  # until all has gone well, there is none
        outcome = shard.take(batch, self.catalog.refresh(), parcels)
        told = pickle.dumps((self.number, replace(outcome, put={}, removed=[], memory=b"")), 5)
        stamp = (batch, secrets.randbits(62))
        reply = Reply(told, stamp, outcome.version, outcome.put, outcome.removed, outcome.memory)
        self.shard, self._stamp, self._last = shard, stamp, (batch, before, reply)
        return reply

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
