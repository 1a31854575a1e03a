"""The Spark session: one JVM on this machine (or a cluster's), quiet, with every setting explained."""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import shlex
import shutil
import signal
import sys
import tempfile
import threading
import warnings
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from kelda.doctor import require_java
from kelda.spark import filesystem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG = "KELDA_SPARK_LOG"  # environment variable: where Spark's own log goes, to keep it

_STATE = "org.apache.spark.sql.execution.streaming.state"
_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing"

# What a running session can still be told; set on a session of our own, so that a caller's stays as it is.
STREAMING = {
    # A batch's plan is always the same; planning it anew in the middle only costs time.
    "spark.sql.adaptive.enabled": "false",
    # The JVM only passes a few binary rows on: nothing to generate code for.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # transformWithState works on RocksDB alone.
    "spark.sql.streaming.stateStore.providerClass": f"{_STATE}.RocksDBStateStoreProvider",
    # Per batch write what changed, not all of RocksDB's files.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Write checkpoint files with plain file operations: the default asks Hadoop's slow FileContext,
    # several times a batch. Renames are atomic on a local disk and on HDFS, which is all it relies on.
    "spark.sql.streaming.checkpointFileManagerClass": f"{_CHECKPOINTS}.FileSystemBasedCheckpointFileManager",
    # No second file with a checksum for each: local disks and HDFS have their own.
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    # Batches without input would only move Spark's watermark, and the clock is ours.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    # A few batches are all a restart needs; older ones are cleared away.
    "spark.sql.streaming.minBatchesToRetain": "10",
    # Few, large binary rows: an Arrow batch needs no room for ten thousand.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
    # Python's side of an error is enough; the JVM's frames hide it.
    "spark.sql.pyspark.jvmStacktrace.enabled": "false",
}


FAILURES = 4  # of one task; Spark's own number on clusters


def session(master: str = "local[*]") -> SparkSession:
    """A session to run a pipeline in: of the Spark that is up in this process, or of a new one.

    A Spark that was started here stays up for the next run and ends with the process.
    """
    # PySpark warns of every pandas newer than itself; no data of ours passes through pandas.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    if running is None:
        with _same_ctrl_c():
            running = start(master)
    spark = running.newSession()
    for name, value in STREAMING.items():
        spark.conf.set(name, value)
    return spark


@contextlib.contextmanager
def _same_ctrl_c() -> Iterator[None]:
    """PySpark takes Ctrl-C over, to cancel jobs by a call to the JVM: in the midst of another, which breaks
    both. A pipeline is stopped by who runs it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)


# Most of what the JVM does here it does a few times: compile quickly, collect simply.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def archive() -> Path:
    """Where `python -m kelda.spark.warm` keeps Spark's classes ready for the JVM to map in.

    It belongs to one Java and one PySpark; the JVM itself refuses an archive that does not fit.
    """
    java = require_java()
    import pyspark

    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    where = zlib.crc32(str(Path(pyspark.__file__).parent).encode())
    return caches / "kelda" / f"spark-{pyspark.__version__}-java-{java.version}-{where:08x}.jsa"


def start(master: str, *, java_options: str | None = None) -> SparkSession:
    """Start the JVM and a session in it."""
    kept = archive()
    if java_options is None:
        java_options = JAVA_OPTIONS
        if kept.exists():
            java_options += f" -Xshare:auto -XX:SharedArchiveFile={shlex.quote(str(kept))}"
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    local = master.startswith("local")
    _environment(local)
    settings = {
        "spark.master": retrying(master),
        "spark.app.name": "kelda",
        # No dashboard of Spark's own: it takes a port and a second.
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": str(scratch() / "warehouse"),
        # The session has no tables: no Hive, nothing on disk to open.
        "spark.sql.catalogImplementation": "in-memory",
        # Python workers stay from batch to batch: a start costs a second, and they hold the evaluator.
        "spark.python.worker.reuse": "true",
        "spark.python.worker.idleTimeoutSeconds": "0",
        # Workers are forked from a process that has imported everything.
        "spark.python.daemon.module": "kelda.spark.daemon",
        # A shard goes to whichever executor is free: its host there stands up from the state store.
        "spark.locality.wait": "0s",
        # Between the JVM and Python on one machine: sockets that need no network and no port.
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.driver.extraJavaOptions": java_options,
    }
    if local:
        # Listen to this machine alone.
        settings["spark.driver.host"] = settings["spark.driver.bindAddress"] = "127.0.0.1"
        # And of this machine to nobody else: Spark makes a secret of its own, which only its processes have.
        settings["spark.authenticate"] = "true"
        # Scratch files, all in one folder that goes with the process. (On a cluster, its own settings say.)
        settings["spark.local.dir"] = str(scratch() / "local")
        settings |= filesystem.settings()
    else:
        settings |= _for_executors()
    conf = SparkConf()
    for name, value in settings.items():
        conf.set(name, value)
    try:
        with log_path().open("ab") as log:
            gateway = launch_gateway(conf, popen_kwargs={"stdout": log, "stderr": log})
        return SparkSession(SparkContext(conf=conf, gateway=gateway))
    except Exception as problem:  # a master that is none, settings that contradict each other, ...
        from kelda.spark.errors import explain

        raise explain(problem) from problem


def _environment(local: bool) -> None:
    """What the JVM, and by it the Python workers, inherit from this process."""
    python = str(_worker_python()) if local else sys.executable
    os.environ.setdefault("PYSPARK_PYTHON", python)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", python)  # of the workers that plan, beside the JVM
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


def retrying(master: str) -> str:
    """The master with which a task whose worker was killed is run again, as on a cluster.

    Local masters give up at the first failure unless they say how many a task may have.

    >>> retrying("local"), retrying("local[*]"), retrying("local[2]"), retrying("local[2,1]")
    ('local[1,4]', 'local[*,4]', 'local[2,4]', 'local[2,1]')
    """
    found = re.fullmatch(r"local(?:\[\s*(\d+|\*)\s*\])?", master)
    return f"local[{found[1] or 1},{FAILURES}]" if found else master


def _for_executors() -> dict[str, str]:
    """Settings with which workers on a cluster find this package.

    They run the interpreter of the same path (or of PYSPARK_PYTHON). Where the package is not installed
    there but lies in a folder that all machines see, such as a checkout, they are told of that.
    """
    settings = {"spark.executorEnv.PYTHONWARNINGS": "ignore::FutureWarning"}
    here = Path(__file__).absolute().parents[2]
    if here.name not in ("site-packages", "dist-packages"):
        settings["spark.executorEnv.PYTHONPATH"] = str(here)
    return settings


def _worker_python() -> Path:
    """The interpreter of the workers on this machine: this one, by a script that sets the scene.

    Spark puts its zipped copy of PySpark first on the workers' path. A zip holds no bytecode, so
    each of the seven kinds of worker would compile PySpark anew, half a second of it; here they
    import it from where this process did. They are also told where this very package is (workers
    do not inherit sys.path), and not to warn of a pandas newer than PySpark, which we do not use.
    """
    here = Path(__file__).absolute().parents[2]
    path = os.pathsep.join([str(here), *filter(None, [os.environ.get("PYTHONPATH")])])
    script = scratch() / "python"
    script.write_text(
        "#!/bin/sh\n"
        f'PYTHONPATH={shlex.quote(path)} exec {shlex.quote(sys.executable)} -W ignore::FutureWarning "$@"\n'
    )
    script.chmod(0o755)
    return script


@cache
def scratch() -> Path:
    """A folder for what Spark writes beside checkpoints; removed when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="kelda-spark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def log_path() -> Path:
    """The file that Spark's own log goes to."""
    return Path(os.environ.get(LOG) or scratch() / "spark.log")
