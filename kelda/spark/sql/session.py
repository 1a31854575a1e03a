"""A session for one-shot queries: Spark with its adaptive planner, beside the pipeline's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {
    # ?x and ?X are two variables.
    "spark.sql.caseSensitive": "true",
    # A star comes out of Python: Spark cannot guess its size, and takes it for that of 64 bucket numbers.
    # Which side of a join is sent to all tasks is decided when both are there.
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "32m",
    # A join of what shares no variable is what the query says.
    "spark.sql.crossJoin.enabled": "true",
    # Ids are eight bytes: tasks take many rows at once.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    # Spark writes each plan down, with those of all that is kept in memory below it.
    "spark.sql.maxPlanStringLength": "65536",
    # Python's side of an error is enough; the JVM's frames hide it.
    "spark.sql.pyspark.jvmStacktrace.enabled": "false",
}
TASKS_PER_CORE = 2


def for_queries(spark: SparkSession) -> SparkSession:
    """A session of the same Spark, with these settings."""
    session = spark.newSession()
    for name, value in SETTINGS.items():
        session.conf.set(name, value)
    session.conf.set("spark.sql.shuffle.partitions", str(tasks(session)))
    return session


def tasks(spark: SparkSession) -> int:
    """Into how many tasks work is cut."""
    return TASKS_PER_CORE * spark.sparkContext.defaultParallelism
