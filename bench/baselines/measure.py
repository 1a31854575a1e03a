"""A hand-written query run in this process, on the Spark that is up: how fast, how many answers, which."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from bench.baselines.again import Again
from bench.baselines.pieces import cut
from bench.baselines.queries import QUERIES, Filter, Join, Stored, closed_windows, in_windows, triples
from bench.baselines.windows import EachWindow
from bench.harness.resources import cpu_seconds
from kelda.errors import UsageError

_STATE = "org.apache.spark.sql.execution.streaming.state"
_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing"
SETTINGS = {
    # A batch's plan is always the same; planning it anew in the middle only costs time.
    "spark.sql.adaptive.enabled": "false",
    # Files of a few megabytes go to all cores too.
    "spark.sql.files.openCostInBytes": str(1 << 18),
    # A batch without input would only clear the state.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    # Checkpoint files by plain file operations: Hadoop's FileContext is slower.
    "spark.sql.streaming.checkpointFileManagerClass": f"{_CHECKPOINTS}.FileSystemBasedCheckpointFileManager",
    # All batches are looked at when the query has ended.
    "spark.sql.streaming.numRecentProgressUpdates": "100000",
}
STATE = {
    "memory": {
        "spark.sql.streaming.stateStore.providerClass": f"{_STATE}.HDFSBackedStateStoreProvider",
        "spark.sql.streaming.join.stateFormatVersion": "2",
    },
    "rocksdb": {
        "spark.sql.streaming.stateStore.providerClass": f"{_STATE}.RocksDBStateStoreProvider",
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.join.stateFormatVersion": "3",  # one store for both sides, not four
    },
}


def start(master: str) -> SparkSession:
    """A Spark as one sets it up for throughput."""
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "4g",
        # Less CPU than the default collector takes, a sixth on L6; its pauses do not matter here.
        "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.scheduler.mode": "FAIR",  # copies take turns, each from a pool of its own
    }
    builder = SparkSession.builder.master(master).appName("baselines")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def measure(
    query: str,
    files: Mapping[str, str],
    stored: str,
    spark: SparkSession,
    *,
    way: str = "join",
    state: str = "memory",
    batch_triples: int = 200_000,
    least_batches: int | None = None,
    copies: int = 1,
    sliding: bool = False,
    keep: bool = False,
) -> dict[str, Any]:
    """Run a query to the end of its files (stream -> path).

    `sliding` asks for the answers of every window, which end every SLIDE, instead of each answer once.
    Copies are queries of their own, as of so many users who do not know of each other, all at the same
    time. With `keep`, "rows" are the answers of each copy, counted; it is slower.
    """
    asked = QUERIES[query]
    if missing := set(asked.streams) - set(files):
        raise UsageError(f"{query} reads {', '.join(sorted(missing))} too: give the file of that stream")
    spark = spark.newSession()
    cores = spark.sparkContext.defaultParallelism
    for name, value in {**SETTINGS, **STATE[state], "spark.sql.shuffle.partitions": str(cores)}.items():
        spark.conf.set(name, value)
    folder = Path(tempfile.mkdtemp(prefix="kelda-baseline-"))
    try:
        counts = cut(
            {stream: files[stream] for stream in asked.streams}, folder, batch_triples, least_batches
        )
        lines = {stream: _lines(spark, folder / stream) for stream in asked.streams}
        known = Stored(spark, stored)
        runs = [Run(query, way, lines, known, i, sliding, keep) for i in range(copies)]
        with Usage() as usage:
            for i, run in enumerate(runs):
                spark.sparkContext.setLocalProperty("spark.scheduler.pool", f"copy {i}")
                run.begin(str(folder / f"checkpoint-{i}"))
            for run in runs:
                run.end(counts)
    finally:
        for stream in spark.streams.active:  # of this session alone; there are some if one has failed
            stream.stop()
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", None)
        shutil.rmtree(folder, ignore_errors=True)
    first, last = min(run.begun for run in runs), max(run.ended for run in runs)
    result: dict[str, Any] = {
        "query": query,
        "way": "filter" if isinstance(asked, Filter) and way == "join" else way,
        "copies": copies,
        "triples": sum(counts),
        "batches": len(counts),
        # Copies run side by side: the slowest says what the machine sustains.
        "triples_per_second": round(min(run.rate for run in runs)),
        "triples_per_cpu_second": round(runs[0].steady / max(usage.between(first, last), 1e-9)),
        "batch_ms_median": float(np.median(np.concatenate([run.batch_ms for run in runs]))),
        "answers": sum(run.answers for run in runs),
    }
    if result["way"] in ("join", "windows"):
        result["state"] = state
    if keep:
        result["rows"] = [run.rows for run in runs]
    return result


def _lines(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder))


class Run:
    """One streaming query, and what is known of it when it has ended."""

    def __init__(
        self,
        query: str,
        way: str,
        lines: Mapping[str, DataFrame],
        stored: Stored,
        who: int,
        sliding: bool,
        keep: bool,
    ) -> None:
        asked = QUERIES[query]
        self.answers, self.rows, self.keep = 0, Counter[tuple[str | int, ...]](), keep
        self.columns = [*asked.variables, *(["end"] if sliding else [])]
        self.each: Callable[[DataFrame, int], None] | None = self._keep if keep else None
        if isinstance(asked, Filter) and way == "windows":
            answers = closed_windows(asked.answer(lines, stored, who), asked.variables)
            self.frame = answers.select(*self.columns)
        elif isinstance(asked, Filter):
            self.frame = self._told(asked.answer(lines, stored, who), sliding)
        elif way == "join":
            rows = {read: triples(lines[read[0]], read[1]) for read in asked.reads}
            marked = {read: frame.withWatermark("t", "0 seconds") for read, frame in rows.items()}
            self.frame = self._told(asked.answer(marked, stored), sliding)
        elif way == "again":
            again = (EachWindow if sliding else Again)(query, asked.reads, stored.pairs)
            self.frame = together(asked, lines)
            self.each = lambda batch, _: self._take(again.push(batch.toArrow()))
        else:
            raise UsageError(f'a query is run by "join" or "again" (L1 to L3: or "windows"), not {way!r}')

    def _told(self, answers: DataFrame, sliding: bool) -> DataFrame:
        return (in_windows(answers) if sliding else answers).select(*self.columns)

    def begin(self, checkpoint: str) -> None:
        if self.each is not None:
            writer = self.frame.writeStream.foreachBatch(self.each)
        else:
            observed = self.frame.observe("answers", F.count(F.lit(1)).alias("n"))
            writer = observed.writeStream.format("noop")
        writer = writer.trigger(availableNow=True).option("checkpointLocation", checkpoint)
        self.query: StreamingQuery = writer.start()

    def _keep(self, batch: DataFrame, number: int) -> None:
        self._take(batch.toArrow())

    def _take(self, answers: pa.Table) -> None:
        self.answers += len(answers)
        if self.keep:
            columns = [answers[name].to_pylist() for name in self.columns]
            self.rows.update(zip(*columns, strict=True))

    def end(self, counts: Sequence[int]) -> None:
        """Wait for the end. The steady state is the second half of the batches: code is compiled then."""
        self.query.awaitTermination()
        batches = sorted(self.query.recentProgress, key=lambda p: p["batchId"])
        self.batch_ms = np.array([p["durationMs"]["triggerExecution"] for p in batches], np.float64)
        starts = [datetime.fromisoformat(p["timestamp"].replace("Z", "+00:00")).timestamp() for p in batches]
        ends = np.array(starts) + self.batch_ms / 1000
        skip = len(batches) // 2
        self.begun, self.ended = float(ends[skip - 1] if skip else starts[0]), float(ends[-1])
        self.batch_ms = self.batch_ms[skip:]
        self.steady = sum(counts[p["batchId"]] for p in batches[skip:])
        self.rate = self.steady / max(self.ended - self.begun, 1e-9)
        if self.each is None:
            self.answers = sum(p["observedMetrics"]["answers"]["n"] for p in batches)


def together(asked: Join, lines: Mapping[str, DataFrame]) -> DataFrame:
    """The rows of all of a query's patterns: s, p (the pattern's place in `reads`), o, t in milliseconds."""
    frames = []
    for stream in asked.streams:
        places = [i for i, read in enumerate(asked.reads) if read[0] == stream]
        rows = triples(lines[stream], *(asked.reads[i][1] for i in places))
        # Patterns of one stream lie side by side in `reads`.
        frames.append(
            rows.select("s", (F.col("p") + places[0]).alias("p"), "o", F.unix_millis("t").alias("t"))
        )
    return reduce(DataFrame.union, frames)


class Usage(threading.Thread):
    """CPU seconds of this process and the JVM over time: on a busy machine they say more than the clock."""

    def __init__(self) -> None:
        super().__init__(name="usage", daemon=True)
        self.samples: list[tuple[float, float]] = []
        self.over = threading.Event()

    def __enter__(self) -> Usage:
        self.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self.over.set()
        self.join()

    def run(self) -> None:
        while True:
            self.samples.append((time.time(), cpu_seconds()))
            if self.over.wait(0.2):
                break
        self.samples.append((time.time(), cpu_seconds()))

    def between(self, begin: float, end: float) -> float:
        """What was used from one instant to another."""
        at, used = zip(*self.samples, strict=True)
        return float(np.interp(end, at, used) - np.interp(begin, at, used))
