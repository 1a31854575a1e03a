"""Errors out of Spark are short, and Kelda's own come back as what they were."""

from __future__ import annotations

import pytest

from kelda.errors import InputError, KeldaError, UsageError
from kelda.spark.errors import cause_of, explain

FROM_A_WORKER = """\
[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Job aborted due to stage failure: Task 0
in stage 1.0 failed 1 times, most recent failure: Lost task 0.0: org.apache.spark.api.python.PythonException:
Traceback (most recent call last):
  File "/x/kelda/spark/shard.py", line 90, in handleInputRows
    answers, news = feed(cached.evaluator, self.job, parts)
  File "/x/kelda/engine/reference.py", line 12, in push
    raise UsageError("an event has no time:
kelda.errors.UsageError: an event has no time:
  give it one

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:581)
\tat org.apache.spark.scheduler.Task.run(Task.scala:147)
Driver stacktrace:
"""

FROM_A_QUERY = """\
[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: [FOREACH_BATCH_USER_FUNCTION_ERROR] An
error
Traceback (most recent call last):
  File "/x/kelda/spark/driver.py", line 7, in take
pyspark.errors.exceptions.captured.PythonException: An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/x/kelda/engine/reference.py", line 12, in push
ZeroDivisionError: division by zero
 SQLSTATE: 39000 SQLSTATE: XXKST
=== Streaming Query ===
Identifier: [id = 1]
Logical Plan:
~WriteToMicroBatchDataSourceV1 ForeachBatchSink
"""

FROM_PY4J = """\
[STREAM_FAILED] Query terminated
Traceback (most recent call last):
  File "x", line 7, in take
py4j.protocol.Py4JJavaError: An error occurred while calling o117.collectToPython.
: org.apache.spark.SparkException: Job aborted
\tat org.apache.spark.X.y(X.scala:1)
Caused by: java.io.IOException: disk full
\tat org.apache.spark.X.y(X.scala:1)
"""

FROM_THE_JVM = """\
Writing job aborted
=== Streaming Query ===
Identifier: [id = 1]
\tat org.apache.spark.X.y(X.scala:1)
Caused by: java.lang.RuntimeException: outer
\tat org.apache.spark.X.y(X.scala:1)
Caused by: java.io.IOException: No space left on device
\tat org.apache.spark.X.y(X.scala:1)
"""


def test_our_own_error_comes_back() -> None:
    error = explain(RuntimeError(FROM_A_WORKER))
    assert type(error) is UsageError
    assert str(error) == "an event has no time:\n  give it one"


def test_the_innermost_traceback_counts() -> None:
    assert cause_of(FROM_A_QUERY) == ("ZeroDivisionError", "division by zero")


def test_the_innermost_cause_in_the_jvm() -> None:
    error = explain(RuntimeError(FROM_THE_JVM))
    assert type(error) is KeldaError
    assert "IOException: No space left on device" in str(error)
    assert len(str(error).splitlines()) <= 2 and "KELDA_SPARK_LOG" in str(error)


def test_an_error_that_is_explained_already() -> None:
    error = InputError("line 3")
    assert explain(error) is error


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("Traceback (most recent call last):\n  File 'x'\nKeyError: 'a'\n", ("KeyError", "'a'")),
        ("Traceback (most recent call last):\n  File 'x'\nMemoryError\n", ("MemoryError", "")),
        ("", ("SparkException", "no reason given")),
        ("only this", ("SparkException", "only this")),
    ],
)
def test_causes(text: str, cause: tuple[str, str]) -> None:
    assert cause_of(text) == cause


def test_py4j_is_only_the_messenger() -> None:
    assert cause_of(FROM_PY4J) == ("IOException", "disk full")
