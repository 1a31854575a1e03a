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

The stored graphs of a host are its own. When the driver has made an image of them, because they have doubled,
a host lets go of its shard and stands up again on the image, whose memory all hosts of a machine share.

A host ends when its run does (its flag in the checkpoint folder is gone), when its executor (locally, the
driver's JVM) has gone, be it by kill -9, or when its shard has moved to another executor: batches are
committed, and nobody asks this host for them.
"""

from __future__ import annotations

import gc
import os
import secrets
import signal
import threading
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import zstandard

from kelda.errors import UsageError
from kelda.rdf import wire
from kelda.shards.catalog import CatalogFolder
from kelda.shards.levels import Levels
from kelda.shards.storing import FOLDER, opened
from kelda.spark.host_wire import ASKED, NEW, TICKET, ParcelsGone, Reply, Stamp, ToldGone
from kelda.spark.run import Run
from kelda.spark.sockets import accept, answer, listen
from kelda.store.image import Images
from kelda.store.truth import Truth

LINGER = 3.0  # seconds for which a host is not asked, and
BEHIND = 3  # batches that are committed without it: then its shard is elsewhere


def start(path: str, run: Run, shard: int, executor: int) -> None:
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
        self._images = Images(Truth(Path(run.folder) / FOLDER))
        self._image = -1  # the last one when the shard stood up
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
            gc.collect()  # what the old one had mapped
            self._image = self._images.newest
            store = None if kept is None else opened(Path(self.run.folder), before[0])[0]
            setup, number = self.run.setup, self.number
            shard = Levels.stand_up(number, setup, self.catalog, before[0], kept, loaded, store)
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
                if self._image < self._images.newest <= batch:
                    self.shard = None  # it stands up again, on the image that it shares with others
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
