"""What surviving rests on, piece by piece, without Spark."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from kelda.io.job import QuerySpec, StreamSource
from kelda.io.sources.reader import Piece
from kelda.rdf.framings.base import Chunk
from kelda.shards.catalog import CatalogFolder
from kelda.shards.ingest import ingest
from kelda.shards.planner import Planner
from kelda.shards.setup import Setup
from kelda.spark import daemon
from kelda.spark.host import _Served
from kelda.spark.host_wire import NEW, Reply
from kelda.spark.run import Run
from kelda.spark.session import retrying
from tests.shards.local import declare


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("local", "local[1,4]"),
        ("local[*]", "local[*,4]"),
        ("local[ 2 ]", "local[2,4]"),
        ("local[2,1]", "local[2,1]"),  # who says a number means it
        ("local-cluster[2,1,512]", "local-cluster[2,1,512]"),
        ("spark://h:7077", "spark://h:7077"),
    ],
)
def test_local_masters_run_tasks_again(given: str, wanted: str) -> None:
    assert retrying(given) == wanted


# ------------------------------------------------------------------------------------- stamps


@pytest.fixture
def scene(tmp_path: Path) -> tuple[Run, list[bytes]]:
    """A run with one query, and the parcels of two batches for its one shard."""
    setup = Setup()
    planner = Planner(setup)
    declared = declare(planner, [StreamSource("x:s", "x.tsnt", format="tsnt")])
    run = Run("run", setup, str(tmp_path))
    spec = QuerySpec("q", "SELECT ?a ?b { STREAM <x:s> [RANGE 10s] { ?a <x:p> ?b } }")
    ops = [planner.plan(spec)]
    planner.route(ops)
    CatalogFolder(run.catalog).add([*declared, *ops])
    parcels = []
    for number in range(2):
        text = b"".join(b"%d\t<x:a> <x:p> <x:b%d> .\n" % (1000 * number + i, i) for i in range(1, 4))
        piece = Piece(0, number, Chunk(0, 0, b"", text), 3, len(text), ends=number == 1)
        parcels += ingest([piece], planner.declared.streams, planner.routing, 1, 1)
    return run, parcels


def taken(host: _Served, batch: int, before: tuple[int, int], parcel: bytes) -> Reply:
    reply = host.take(batch, before, [parcel])
    assert reply is not None
    return reply


def stood_up(run: Run) -> _Served:
    host = _Served(run, 0)
    assert host.take(0, NEW, []) is None, "a host that has just started knows nothing"
    host.stand_up(NEW, None, {})
    return host


def test_a_task_that_is_run_again_gets_the_same_reply(scene: tuple[Run, list[bytes]]) -> None:
    run, parcels = scene
    host = stood_up(run)
    first = taken(host, 0, NEW, parcels[0])
    assert taken(host, 0, NEW, parcels[0]) is first
    assert taken(host, 1, first.stamp, parcels[1]).stamp[0] == 1


def test_a_host_whose_batch_was_not_the_one_committed_stands_up(scene: tuple[Run, list[bytes]]) -> None:
    run, parcels = scene
    lost, other = stood_up(run), stood_up(run)
    taken(lost, 0, NEW, parcels[0])  # its executor is cut off before it can commit
    committed = taken(other, 0, NEW, parcels[0])
    assert lost.take(1, committed.stamp, [parcels[1]]) is None
    segments = {number: (committed.version, data) for number, data in committed.put.items()}
    lost.stand_up(committed.stamp, committed.memory, segments)
    assert taken(lost, 1, committed.stamp, parcels[1]).put.keys() == (
        taken(other, 1, committed.stamp, parcels[1]).put.keys()
    )


# ------------------------------------------------------------------------------------- the daemon


@pytest.mark.parametrize("same", [True, False])
def test_the_zipped_pyspark_is_used_only_if_it_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, same: bool
) -> None:
    import pyspark

    version = Path(pyspark.__file__).with_name("version.py").read_bytes()
    with zipfile.ZipFile(tmp_path / "pyspark.zip", "w") as zipped:
        zipped.writestr("pyspark/version.py", version if same else b"__version__ = 'another'\n")
    path = [str(tmp_path / "pyspark.zip"), *sys.path]
    monkeypatch.setattr(sys, "path", path[:])
    daemon.use_installed_pyspark()
    assert sys.path == (path[1:] if same else path)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux lets children end with a parent")
def test_workers_end_with_their_daemon_and_hosts_do_not() -> None:
    program = """
import os, time
from kelda.spark.daemon import end_together
end_together()
if os.fork() == 0:
    host = os.fork() or (time.sleep(60) or os._exit(0))
    print(os.getpid(), host, flush=True)
    time.sleep(60)
    os._exit(0)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        worker, host = map(int, parent.stdout.readline().split())
        try:
            parent.send_signal(signal.SIGKILL)
            parent.wait()
            until = time.monotonic() + 20
            while runs(worker) and time.monotonic() < until:
                time.sleep(0.02)
            assert not runs(worker)
            assert runs(host)  # it looks after itself: see `kelda.spark.host`
        finally:
            os.kill(host, signal.SIGKILL)


def runs(process: int) -> bool:
    """Whether there is such a process that has not ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
