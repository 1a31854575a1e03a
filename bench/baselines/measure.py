"""A hand-written query run in this process, on the Spark that is up: how fast, how many answers, which."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, Observation, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from bench.baselines.again import Again as Arrow
from bench.baselines.pieces import cut
from bench.baselines.queries import QUERIES, RANGE, Filter, Join, Rows, Stored, triples
from bench.harness.resources import cpu_seconds
from kelda.errors import UsageError

_STATE = "org.apache.spark.sql.execution.streaming.state"
_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing"
SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    # Batches last a fraction of a second: planning them twice does not pay.
    "spark.sql.adaptive.enabled": "false",
    # Files of a few megabytes go to all cores too.
    "spark.sql.files.openCostInBytes": str(1 << 18),
    "spark.sql.files.minPartitionNum": "2",
    # A batch without input would only clear the state.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.checkpointFileManagerClass": f"{_CHECKPOINTS}.FileSystemBasedCheckpointFileManager",
    "spark.sql.streaming.minBatchesToRetain": "2",
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
        "spark.sql.streaming.join.stateFormatVersion": "3",
    },
}
SKIPPED = 3  # batches, while code is compiled


def start(master: str) -> SparkSession:
    """A Spark as one sets it up for throughput on one machine."""
    return (
        SparkSession.builder.master(master)
        .appName("baselines")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.catalogImplementation", "in-memory")
        .config("spark.scheduler.mode", "FAIR")  # for copies
        .getOrCreate()
    )


@dataclass
class Sent:
    """What a query has sent: how many answers, and which if they are kept."""

    keep: bool
    count: int = 0
    rows: Counter[tuple[str, ...]] = field(default_factory=Counter)

    def take(self, answers: DataFrame) -> None:
        if self.keep:
            found = [tuple(row) for row in answers.collect()]
            self.rows.update(found)
            self.count += len(found)
        else:
            seen = Observation()
            answers.observe(seen, F.count(F.lit(1)).alias("n")).write.format("noop").mode("overwrite").save()
            self.count += seen.get["n"]


class Usage(threading.Thread):
    """CPU seconds of this process and the JVM over time, looked up a few times a second."""

    def __init__(self) -> None:
        super().__init__(name="usage", daemon=True)
        self.samples = [(time.time(), cpu_seconds())]
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.wait(0.2):
            self.samples.append((time.time(), cpu_seconds()))

    def between(self, begin: float, end: float) -> float:
        """CPU seconds used from one instant to another."""
        at, used = zip(*self.samples, strict=True)
        return float(np.interp(end, at, used) - np.interp(begin, at, used))


class Again:
    """Joins anew in each batch: its rows, and those of the batches before that are in a window still."""

    def __init__(self, query: Join, stored: Stored, sent: Sent) -> None:
        self.query, self.stored, self.sent = query, stored, sent
        self.kept: list[tuple[DataFrame, int]] = []  # and the newest time in it
        self.until = -1

    def __call__(self, batch: DataFrame, number: int) -> None:
        batch.persist()
        ends: Row = batch.agg(F.unix_millis(F.min("t")), F.unix_millis(F.max("t"))).head()
        first, last = ends
        if last is None:
            batch.unpersist()
            return
        for frame, newest in self.kept:
            if newest <= first - RANGE:
                frame.unpersist()
        self.kept = [(frame, newest) for frame, newest in self.kept if newest > first - RANGE]
        old = [frame.where(F.unix_millis("t") > first - RANGE) for frame, _ in self.kept]
        rows = reduce(DataFrame.union, [*old, batch])
        which = {read: rows.where(F.col("p") == i) for i, read in enumerate(self.query.reads)}
        answers = self.query.answer(which, self.stored).where(F.col("newest") > self.until)
        self.sent.take(answers.select(*self.query.variables))
        self.kept.append((batch, last))
        self.until = last


def measure(
    query: str,
    files: Mapping[str, str],
    stored: str,
    spark: SparkSession,
    *,
    way: str = "join",
    state: str = "memory",
    batch_triples: int = 200_000,
    copies: int = 1,
    keep: bool = False,
) -> dict[str, Any]:
    """Run a query to the end of its files (stream -> path). `keep`: the answers are in "rows" then, counted.

    Copies are queries of their own, each for another user, all at the same time.
    """
    asked = QUERIES[query]
    if missing := set(asked.streams) - set(files):
        raise UsageError(f"{query} reads {', '.join(sorted(missing))} too: give its file")
    spark = spark.newSession()
    cores = spark.sparkContext.defaultParallelism
    for name, value in {**SETTINGS, **STATE[state], "spark.sql.shuffle.partitions": str(cores)}.items():
        spark.conf.set(name, value)
    folder = Path(tempfile.mkdtemp(prefix="kelda-baseline-"))
    try:
        counts = cut({stream: files[stream] for stream in asked.streams}, folder / "pieces", batch_triples)
        known = Stored(spark, stored)
        running, sent = [], []
        usage = Usage()
        usage.start()
        for copy in range(copies):
            sent.append(Sent(keep))
            lines = {stream: _lines(spark, folder / "pieces" / stream) for stream in asked.streams}
            place = str(folder / f"checkpoint-{copy}")
            running.append(_begin(query, asked, way, lines, known, copy, sent[-1], place))
        for one in running:
            one.awaitTermination()
        progress = [sorted(one.recentProgress, key=lambda p: p["batchId"]) for one in running]
        usage.ended.set()
        usage.join()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    begin, end, many = steady(progress[0], counts)
    result: dict[str, Any] = {
        "query": query,
        "way": "filter" if isinstance(asked, Filter) else way,
        "copies": copies,
        "triples": sum(counts),
        "batches": len(counts),
        # All copies run side by side: the slowest says what the machine sustains.
        "triples_per_second": round(min(_rate(p, counts) for p in progress)),
        "triples_per_cpu_second": round(many / max(usage.between(begin, end), 1e-9)),
        "batch_ms_median": float(sorted(_ms(p) for p in progress[0])[len(counts) // 2]),
        "answers": sum(s.count or _observed(p) for s, p in zip(sent, progress, strict=True)),
    }
    if isinstance(asked, Join) and way == "join":
        result["state"] = state
    if keep:
        result["rows"] = [s.rows for s in sent]
    return result


def _lines(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder))


def _begin(
    name: str,
    asked: Filter | Join,
    way: str,
    lines: Mapping[str, DataFrame],
    stored: Stored,
    who: int,
    sent: Sent,
    checkpoint: str,
) -> StreamingQuery:
    each: Callable[[DataFrame, int], None] | None = None
    if isinstance(asked, Filter):
        answers = asked.answer(lines, stored, who)
    elif way == "join":
        answers = asked.answer(_watermarked(asked, lines), stored).select(*asked.variables)
    elif way == "again":
        answers, each = _together(asked, lines), Again(asked, stored, sent)
    elif way == "arrow":
        answers = _together(asked, lines).withColumn("t", F.unix_millis("t"))
        arrow = Arrow(name, asked.reads, stored.pairs)

        def each(batch, _):
            found = arrow.push(batch.toArrow()).select(asked.variables)
            sent.count += len(found)
            if sent.keep:
                sent.rows.update(zip(*(c.to_pylist() for c in found.columns)))
    else:
        raise UsageError(f'a query is run by "join" or "again", not {way!r}')
    if each is None and sent.keep:
        each = lambda batch, _: sent.take(batch)  # noqa: E731
    if each is not None:
        writer = answers.writeStream.foreachBatch(each)
    else:
        writer = answers.observe("answers", F.count(F.lit(1)).alias("n")).writeStream.format("noop")
    return writer.trigger(availableNow=True).option("checkpointLocation", checkpoint).start()


def _watermarked(asked: Join, lines: Mapping[str, DataFrame]) -> Rows:
    return {
        (stream, p): triples(lines[stream], p).withWatermark("t", "0 seconds") for stream, p in asked.reads
    }


def _together(asked: Join, lines: Mapping[str, DataFrame]) -> DataFrame:
    """The rows of all patterns; p is the pattern's place in `reads`."""
    frames = []
    for stream in asked.streams:
        places = [i for i, (s, _) in enumerate(asked.reads) if s == stream]
        rows = triples(lines[stream], *(asked.reads[i][1] for i in places))
        frames.append(rows.withColumn("p", F.col("p") + places[0]))  # patterns of a stream lie side by side
    return reduce(DataFrame.union, frames)


# ------------------------------------------------------------------------------ progress


def steady(progress: list[Any], counts: list[int]) -> tuple[float, float, int]:
    """From the end of the first batches to the end of the last: both instants, and the triples between."""
    skip = min(SKIPPED, len(progress) - 1)
    ends = [_begun(p) + _ms(p) / 1000 for p in progress]
    begin = ends[skip - 1] if skip else _begun(progress[0])
    return begin, ends[-1], sum(counts[p["batchId"]] for p in progress[skip:])


def _rate(progress: list[Any], counts: list[int]) -> float:
    begin, end, many = steady(progress, counts)
    return many / max(end - begin, 1e-9)


def _begun(progress: Any) -> float:
    return datetime.fromisoformat(progress["timestamp"].replace("Z", "+00:00")).timestamp()


def _ms(progress: Any) -> int:
    return progress["durationMs"]["triggerExecution"]


def _observed(progress: list[Any]) -> int:
    return sum(p["observedMetrics"]["answers"]["n"] for p in progress if "answers" in p["observedMetrics"])
