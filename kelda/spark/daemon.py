"""The worker daemon: forks Spark's Python workers from a process in which all is imported already.

A worker that starts cold needs seconds for its imports and for loading compiled kernels; one that is
forked from here has them in the memory that it shares with its parent.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import signal
import sys
import zipfile
from contextlib import suppress
from importlib.machinery import PathFinder
from pathlib import Path

PR_SET_PDEATHSIG = 1  # of Linux's prctl
MEMORY = {  # options of mallopt, by their numbers in malloc.h
    -8: 1,  # one arena for all threads
    -3: 1 << 25,  # blocks of up to 32 MB (the most there is) come from it, not each from the system
    -2: 1 << 26,  # it grows by 64 MB
    -1: 1 << 29,  # and gives back what is more than 512 MB
}


def use_installed_pyspark() -> None:
    """Import PySpark from where it is installed, if that is the same version as the zipped copy that Spark
    puts first on the path: a zip holds no bytecode, so every daemon would compile it anew."""
    zips = [entry for entry in sys.path if Path(entry).name == "pyspark.zip"]
    others = [entry for entry in sys.path if entry not in zips]
    installed = PathFinder.find_spec("pyspark", others)
    if not zips or installed is None or installed.origin is None:
        return
    version = Path(installed.origin).with_name("version.py").read_bytes()
    with zipfile.ZipFile(zips[0]) as zipped:
        same = zipped.read("pyspark/version.py") == version
    if same:
        sys.path[:] = others


def end_together() -> None:
    """Let workers end with this process, where the system can do that.

    Spark would go on to use workers whose daemon was killed, beside those of the next daemon.
    """
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "prctl"):
        return
    daemon = os.getpid()

    def follow() -> None:
        if os.getppid() == daemon:  # a worker, not a host that a worker starts
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    os.register_at_fork(after_in_child=follow)


def keep_memory() -> None:
    """Let this process and those forked from it hold on to memory that they have freed, where the system is
    glibc's.

    Each batch needs about as much as the one before, and a fresh page costs more than what is done with it:
    with the six LSBench queries a pipeline is nearly twice as fast.
    """
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallopt"):
        return
    for option, value in MEMORY.items():
        libc.mallopt(option, value)


# What Spark imports in a worker's first tasks. Some may have other names in another version: what is not
# found here, workers import themselves, and say so if they cannot.
SPARKS = (
    "pandas",
    "pyarrow",
    "pyspark.worker",
    "pyspark.sql.conversion",
    "pyspark.sql.datasource_internal",
    "pyspark.sql.pandas.serializers",
    "pyspark.sql.streaming.proto.StateMessage_pb2",
    "pyspark.sql.streaming.stateful_processor_api_client",
    "pyspark.sql.worker.plan_data_source_read",
)


def prepare() -> None:
    """Import what workers need, and let each kernel they use be loaded once."""
    for name in SPARKS:
        with suppress(ImportError):
            importlib.import_module(name)
    import kelda.spark.client
    import kelda.spark.shard
    import kelda.spark.source  # noqa: F401
    from kelda.io.job import QuerySpec, StreamSource
    from kelda.io.sources.reader import Piece
    from kelda.rdf.framings.base import Chunk
    from kelda.shards.catalog import Catalog
    from kelda.shards.ingest import ingest
    from kelda.shards.planner import Planner
    from kelda.shards.setup import Setup
    from kelda.shards.shard import Shard

    stream = StreamSource("x:s", "x.tsnt", format="tsnt")
    setup = Setup(shards=2)
    planner = Planner(setup)
    declared = planner.declare(stream)
    planner.route([declared])
    joined = "SELECT ?a ?b ?c { STREAM <x:s> [RANGE 1s SLIDE 100ms] { ?a <x:p> ?b . ?b <x:q> ?c } }"
    counted = "SELECT ?a (COUNT(*) AS ?n) { STREAM <x:s> [RANGE 1s] { ?a <x:p> ?b } } GROUP BY ?a"
    ops = [planner.plan(QuerySpec(f"q{i}", text)) for i, text in enumerate((joined, counted))]
    catalog = Catalog()
    catalog.add([declared, *ops])
    planner.route(ops)
    text = b"".join(b"%d000\t<x:a> <x:%s> <x:a> .\n" % (i, b"pq"[i % 2 : i % 2 + 1]) for i in range(1, 9))
    piece = Piece(0, 0, Chunk(0, 0, b"", text), 8, len(text), ends=True)
    parcels = ingest([piece], planner.declared.streams, planner.routing, 2, 1)
    Shard(0, setup).take(0, catalog, [parcels[0]])


EXECUTOR = "KELDA_EXECUTOR"  # as in kelda.spark.host, which is not imported before the path is right

if __name__ == "__main__":
    use_installed_pyspark()
    keep_memory()
    try:
        prepare()
    except Exception:  # noqa: BLE001 - workers can do without; what is wrong shows in their own tasks
        import traceback

        traceback.print_exc()
    from pyspark.daemon import manager

    end_together()
    # A worker collects garbage after each task. What is there now is none, and need not be looked through
    # again: that took 80 ms a task.
    gc.collect()
    gc.freeze()
    os.environ[EXECUTOR] = str(os.getppid())
    manager()
