"""Settings of the whole suite.

Tests that need a JVM are skipped, saying so, where there is no JDK. All of them share one Spark.

Random tests draw the same cases in every run, so that `make test` does not depend on luck; with
KELDA_RANDOM=1 they draw new ones (and print how to get a failure back), with KELDA_CASES=n more of them.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from kelda.doctor import require_java
from kelda.errors import EnvironmentProblem
from tests.brokers.kafka import Broker, NoBroker, prepare

# No deadline: kernels may have to be compiled, and the machine may be busy.
settings.register_profile(
    "kelda", deadline=None, print_blob=True, derandomize="KELDA_RANDOM" not in os.environ
)
settings.load_profile("kelda")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    with_kafka = [item for item in items if item.get_closest_marker("kafka")]
    if with_kafka and (missing := _no_kafka()) is not None:
        for item in with_kafka:
            item.add_marker(pytest.mark.skip(reason=f"NO KAFKA: {missing}"))
    on_spark = [item for item in items if item.get_closest_marker("spark")]
    if not on_spark:
        return
    try:
        require_java()
    except EnvironmentProblem as problem:
        for item in on_spark:
            item.add_marker(pytest.mark.skip(reason=str(problem).splitlines()[0]))


def _no_kafka() -> str | None:
    """What is missing for a broker, if anything."""
    if importlib.util.find_spec("confluent_kafka") is None:
        return "no confluent-kafka; pip install 'kelda[kafka]'"
    try:
        prepare()
    except NoBroker as problem:
        return str(problem)
    return None


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A Kafka broker, which all tests share: each has topics of its own."""
    with Broker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(autouse=True, scope="session")
def ctrl_c_interrupts() -> None:
    """Also where the tests were started by a shell that lets its background jobs ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def memory_path(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is such a place, for tests that sync thousands of files."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(prefix="kelda-test-", dir="/dev/shm"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
