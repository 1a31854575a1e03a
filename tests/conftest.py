"""Tests that need a JVM are skipped, saying so, where there is no JDK. All of them share one Spark."""

from __future__ import annotations

import pytest

from kelda.doctor import require_java
from kelda.errors import EnvironmentProblem


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    on_spark = [item for item in items if item.get_closest_marker("spark")]
    if not on_spark:
        return
    try:
        require_java()
    except EnvironmentProblem as problem:
        for item in on_spark:
            item.add_marker(pytest.mark.skip(reason=str(problem).splitlines()[0]))
