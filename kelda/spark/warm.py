"""Make Spark start faster from now on: `python -m kelda.spark.warm`.

A third of the time to the first answer is the JVM reading and checking Spark's classes. This runs
a tiny job once and lets the JVM keep the classes it used in an archive (class data sharing), which
later starts map into memory. It takes half a minute and 180 MB in the user's cache folder;
`--forget` takes it away again.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from kelda.errors import EnvironmentProblem
from kelda.io.job import QuerySpec, StreamSource
from kelda.shards.setup import Setup
from kelda.spark.driver import SparkDriver
from kelda.spark.session import JAVA_OPTIONS, archive, start

PATIENCE = 180  # seconds for the JVM to write the archive


def warm() -> Path:
    """Write the archive; returns where it is."""
    path = archive()
    path.parent.mkdir(parents=True, exist_ok=True)
    # Under another name until it is complete: a run that starts meanwhile must not find half of it.
    unfinished = path.with_suffix(".unfinished")
    unfinished.unlink(missing_ok=True)
    spark = start(
        "local[2]",
        java_options=f"{JAVA_OPTIONS} -XX:ArchiveClassesAtExit={shlex.quote(str(unfinished))}",
    )
    with tempfile.TemporaryDirectory(prefix="kelda-warm-") as folder:
        stream = Path(folder, "stream.tsnt")
        stream.write_text("".join(f"{i}000\t<x:s> <x:p> <x:o{i}> .\n" for i in range(1, 10)))
        driver = SparkDriver(Setup(), Path(folder, "state"), master="local[2]", batch_events=3)
        driver.add_stream(StreamSource("x:stream", str(stream)))
        text = "SELECT ?o WHERE { STREAM <x:stream> [RANGE 2s] { ?s ?p ?o } }"
        driver.deployment.register(QuerySpec("warm", text))
        driver.start()
        driver.wait()
        driver.stop()
    jvm: subprocess.Popen[bytes] = spark.sparkContext._gateway.proc
    spark.stop()
    assert jvm.stdin is not None
    jvm.stdin.close()  # the sign for the JVM to go; it writes the archive on the way out
    jvm.wait(PATIENCE)
    if not unfinished.exists():
        raise EnvironmentProblem(f"this Java wrote no class archive to {unfinished}; Spark starts as before")
    unfinished.replace(path)
    return path


def main(arguments: list[str]) -> None:
    if arguments == ["--forget"]:
        archive().unlink(missing_ok=True)
        return
    path = warm()
    print(f"{path}: {path.stat().st_size / 2**20:.0f} MB")


if __name__ == "__main__":
    main(sys.argv[1:])
