"""A host takes batches, remembers the last one, and stands up from what was kept. No JVM here: the worker
daemon is this process."""

from __future__ import annotations

import os
import signal
import socket
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from kelda.errors import IdCollisionError, KeldaError, UsageError, WireError
from kelda.io.job import QuerySpec, StreamSource
from kelda.rdf import wire
from kelda.rdf.dictionary import Dictionary
from kelda.shards import seen
from kelda.shards.catalog import CatalogFolder, Drop
from kelda.shards.ingest import encoded
from kelda.shards.merge import merge
from kelda.shards.parcel import cut, pack, unpack
from kelda.shards.planner import Planner
from kelda.shards.setup import Setup
from kelda.shards.shard import Outcome
from kelda.spark import client
from kelda.spark import host as hosts
from kelda.spark.client import AtHost, Host, new_ticket
from kelda.spark.host_wire import (
    NEW,
    TICKET,
    ParcelsGone,
    Reply,
    Stamp,
    ToldGone,
    hosts_folder,
    outcome_of,
)
from kelda.spark.run import Run
from tests.shards.local import declare
from tests.shards.worlds import PREFIX, event

TEXT = PREFIX + "SELECT ?x ?y { STREAM :a [RANGE 5ms] { ?x :p ?y } }"
READING = [event(i, f"n{i % 3}", "p", i) for i in range(1, 31)]


class Work:
    """One shard's batches, and the state store's side of the bargain."""

    def __init__(self, folder: Path) -> None:
        setup = Setup()
        self.run = Run("0123456789abcdef", setup, str(folder))
        self.planner = Planner(setup)
        declared = declare(self.planner, [StreamSource("http://ex/a", "a.tsnt")])
        ops = [self.planner.plan(QuerySpec("q", TEXT))]
        CatalogFolder(self.run.catalog).add([*declared, *ops])
        self.planner.route(ops)
        self.planner.stand(ops)
        self.segments: dict[int, tuple[int, bytes]] = {}
        self.memory: bytes | None = None
        self.stamp: Stamp = NEW

    def parcel(self, batch: int) -> list[bytes]:
        """The ten elements of a batch."""
        dictionary = Dictionary()
        elements = encoded(READING[10 * batch : 10 * batch + 10], dictionary, lambda s, p, o: s * 0 + 1)
        (part,) = cut(elements, 0, batch, 1)
        return [pack([part], dictionary, 1)]

    def keep(self, reply: Reply) -> list[str]:
        """Commit a batch; returns its answers."""
        self.segments |= {number: (reply.version, data) for number, data in reply.put.items()}
        for number in reply.removed:
            del self.segments[number]
        self.memory, self.stamp = reply.memory, reply.stamp
        return answers(self, reply)


def told(work: Work, reply: Reply) -> Outcome:
    """What the host has to say, asked for as the driver does it."""
    path = str(hosts_folder(work.run) / f"{os.getpid()}-0.sock")
    number, outcome = outcome_of(AtHost(0, path, reply.stamp).fetch(work.run))
    assert number == 0 and isinstance(outcome, Outcome)
    return outcome


def answers(work: Work, reply: Reply) -> list[str]:
    outcome = told(work, reply)
    return sorted(answer.to_json() for answer in merge([outcome], work.planner.standing).answers())


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Work]:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(os, "getppid", os.getpid)
    work = Work(tmp_path / "checkpoint")
    work.run.flag.touch()
    yield work
    work.run.flag.unlink(missing_ok=True)


def taken(host: Host, work: Work, batch: int) -> Reply:
    """A batch by a host that may have to stand up first, as the keyed step does it."""
    reply = host.take(batch, work.stamp, work.parcel(batch))
    if reply is None:
        host.stand_up(work.stamp, work.memory, work.segments)
        reply = host.take(batch, work.stamp, work.parcel(batch))
    assert reply is not None
    return reply


def host_process(host: Host) -> int:
    """The process behind a socket."""
    data = host._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", data)[0])


def gone(process: int, patience: float = 3.0) -> bool:
    """Whether a process ends in time."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        if not Path(f"/proc/{process}").exists():
            return True
        time.sleep(0.05)
    return False


def test_a_host_lives_dies_and_stands_up(work: Work) -> None:
    zeroth = taken(Host(work.run, 0), work, 0)
    host = Host(work.run, 0)  # another worker's connection to the same host
    process = host_process(host)
    assert process != os.getpid()
    assert Path(f"/proc/{process}/comm").read_text().strip() == "kelda-shard-0"
    expected = [work.keep(zeroth)]

    # The same batch again, from another worker: the reply that was given, not a second one.
    assert host.take(0, NEW, work.parcel(0)) == zeroth
    # On another state than it has: it says so.
    assert host.take(1, (0, 12345), work.parcel(1)) is None

    # An attempt that was not committed, then the batch once more after the host was killed.
    first = host.take(1, work.stamp, work.parcel(1))
    assert first is not None
    said = answers(work, first)
    os.kill(process, signal.SIGKILL)
    with pytest.raises((ConnectionError, EOFError)):
        for _ in range(100):
            host.take(2, first.stamp, [])
    assert gone(process)
    with pytest.raises(ToldGone):
        told(work, first)
    host = Host(work.run, 0)
    assert host_process(host) != process
    with pytest.raises(ToldGone):
        told(work, first)
    second = taken(host, work, 1)
    assert answers(work, second) == said
    assert second.stamp != first.stamp, "so nobody can take one for the other"
    assert told(work, second).news.rebuilt
    expected.append(work.keep(second))

    # It goes on as if nothing had been.
    expected.append(work.keep(taken(host, work, 2)))
    assert [len(lines) for lines in expected] == [9, 10, 10]

    # With the run the host ends, and its socket with it.
    process, path = host_process(host), host.path
    assert Path(path).exists()
    work.run.flag.unlink()
    assert gone(process) and not Path(path).exists()


def test_what_is_offered_is_taken_ahead(work: Work) -> None:
    source, host = Host(work.run, 0), Host(work.run, 0)  # of the worker that reads, of the one that keeps

    def ticketed(batch: int) -> list[bytes]:
        source.offer(ticket := new_ticket(), work.parcel(batch), batch=batch)
        return [ticket]

    # A new host has no state to take it on: it waits to be asked, and stands up.
    ticket = ticketed(0)
    assert host.take(0, work.stamp, ticket) is None
    host.stand_up(work.stamp, None, {})
    zeroth = host.take(0, work.stamp, ticket)
    assert zeroth is not None
    expected = [work.keep(zeroth)]

    # The next one is taken at once. It is offered a second time, as when a task is run again: taken once.
    ticketed(1)
    first = host.take(1, work.stamp, ticketed(1))
    assert first is not None
    assert host.take(1, work.stamp, ticketed(1)) == first
    before = work.stamp
    expected.append(work.keep(first))

    # Taken ahead on a state that was never committed: worth nothing.
    ticket = ticketed(2)
    kept = work.stamp
    assert host.take(2, (before[0] + 1, 4711), ticket) is None
    host.stand_up(kept, work.memory, work.segments)
    second = host.take(2, kept, ticket)
    assert second is not None
    expected.append(work.keep(second))
    assert [len(lines) for lines in expected] == [9, 10, 10]

    # A ticket of parcels that nobody has: the task must read them again.
    with pytest.raises(ParcelsGone):
        host.take(3, work.stamp, [TICKET + b"somebody"])


def test_the_next_batch_is_taken_before_it_is_asked_for(work: Work) -> None:
    source, host = Host(work.run, 0), Host(work.run, 0)
    tickets = [new_ticket() for _ in range(4)]
    assert not source.has(tickets[0])
    source.offer(tickets[0], work.parcel(0), batch=0)
    host.stand_up(work.stamp, None, {})
    source.offer_next(tickets[1], work.parcel(1), after=tickets[0])
    assert source.has(tickets[0]) and source.has(tickets[1])
    zeroth = host.take(0, NEW, tickets[:1])
    assert zeroth is not None
    first = host.take(1, zeroth.stamp, tickets[1:2])
    assert first is not None
    # Both replies are there still: a task of either may be run again.
    assert host.take(0, NEW, tickets[:1]) == zeroth
    assert [len(work.keep(reply)) for reply in (zeroth, first)] == [9, 10]

    # What comes after a batch that the host did not take has to wait for it.
    source.offer_next(tickets[3], work.parcel(2), after=tickets[2])
    source.offer(tickets[2], work.parcel(2), batch=2)
    second = host.take(2, first.stamp, tickets[2:3])
    assert second is not None and len(work.keep(second)) == 10
    with pytest.raises(ToldGone):
        told(work, zeroth)


def test_a_mistake_in_what_was_offered_shows_when_it_is_asked_for(work: Work) -> None:
    host = Host(work.run, 0)
    work.keep(taken(host, work, 0))
    host.offer(ticket := new_ticket(), [b"no parcel"], batch=1)
    # Taken ahead, it has let go of what may be half done; if it was asked before it began, it says why.
    with suppress(WireError):
        assert host.take(1, work.stamp, [ticket]) is None
    host.stand_up(work.stamp, work.memory, work.segments)
    with pytest.raises(WireError, match="came as a parcel is none"):
        host.take(1, work.stamp, [ticket])
    assert answers(work, taken(host, work, 1))


def test_errors_come_back_as_they_were(work: Work) -> None:
    host = Host(work.run, 0)
    reply = taken(host, work, 0)
    work.keep(reply)
    # Another term under an id that the host knows already: a collision, made by hand.
    forged = Dictionary()
    elements = encoded([event(20, "n1", "p", "n2")], forged, lambda s, p, o: s * 0 + 1)
    (part,) = cut(elements, 0, 1, 1)
    other = Dictionary()
    for id, name in zip((elements.s[0], elements.p[0], elements.o[0]), ("nobody", "p", "n2"), strict=True):
        other.add(int(id), f"<http://ex/{name}>")
    with pytest.raises(IdCollisionError, match="nobody"):
        host.take(1, work.stamp, [pack([part], other, 1)])
    host.stand_up(work.stamp, work.memory, work.segments)
    with pytest.raises(WireError, match="came as a parcel is none"):
        host.take(1, work.stamp, [b"no parcel"])
    host.stand_up(work.stamp, work.memory, work.segments)
    # What is no error of Kelda's comes as text, with where it came from.
    with pytest.raises(RuntimeError, match=r"Traceback(.|\n)*AttributeError"):
        host.take(1, work.stamp, [pack([], Dictionary(), 1)[:12] + wire.encode(([7], None))])
    # The host has let go of what may be half done, and stands up when it is asked again.
    assert answers(work, taken(host, work, 1))


def test_connections_of_earlier_runs_are_let_go(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_hosts", {("an-earlier-run", 0): None})
    host = client.host_of(work.run, 0)
    assert client.host_of(work.run, 0) is host
    assert client.host_of(work.run, 0, anew=True) is not host
    assert list(client._hosts) == [(work.run.id, 0)]


def test_a_host_is_asked_for_nothing_else(work: Work) -> None:
    host = Host(work.run, 0)
    for what in ("answer", "_step", "__init__", "run"):
        with pytest.raises(UsageError, match="cannot be asked"):
            host._ask(what)


def test_a_registration_that_is_seen_late_is_not_lost(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    host = Host(work.run, 0)
    work.keep(taken(host, work, 0))
    dropped = [Drop("q")]
    (parcel,) = work.parcel(1)
    newer = pack(unpack(parcel)[1], Dictionary(), 2)  # a batch for which version 2 holds
    with ThreadPoolExecutor(1) as thread:
        taking = thread.submit(host.take, 1, work.stamp, [newer])
        time.sleep(0.3)
        assert not taking.done(), "it waits for the entry"
        CatalogFolder(work.run.catalog).add(dropped)
        reply = taking.result(10)
    assert reply is not None and reply.version == 2
    assert answers(work, reply) == []

    # What never comes is an error, for which the task is run again.
    monkeypatch.setattr(seen, "PATIENCE", 0.1)
    os.kill(host_process(host), signal.SIGKILL)
    assert gone(host_process(host))
    host = Host(work.run, 0)  # another: it has the patience that was set here
    host.stand_up(work.stamp, work.memory, work.segments)
    later = pack(unpack(parcel)[1], Dictionary(), 3)
    with pytest.raises(KeldaError, match="version 3 of the catalog did not come to be seen"):
        host.take(1, work.stamp, [later])
    assert host.take(1, work.stamp, [newer]) is None, "it does not say that it has what it has not"


def test_a_host_whose_shard_has_moved_lets_go(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "LINGER", 0.3)
    host = Host(work.run, 0)
    work.keep(taken(host, work, 0))
    process = host_process(host)
    commits = Path(work.run.folder, "spark", "commits")
    commits.mkdir(parents=True)
    for batch in range(hosts.BEHIND):
        (commits / str(batch)).touch()
    assert not gone(process, 1.5), "so far it is one of those that were committed"
    (commits / str(hosts.BEHIND)).touch()
    until = time.monotonic() + 1.0
    while time.monotonic() < until:  # who is asked is not left behind, whatever is committed
        assert not host.has(b"anything")
        time.sleep(0.05)
    assert gone(process) and not Path(host.path).exists()
    # If the shard comes back, there is another host, which stands up.
    again = Host(work.run, 0)
    assert answers(work, taken(again, work, 1))
