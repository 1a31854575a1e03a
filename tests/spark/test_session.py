"""The scene that workers start in."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from kelda.doctor import find_java
from kelda.spark import session
from kelda.spark.daemon import SPARKS


def test_workers_import_what_this_process_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    script = session._worker_python()
    monkeypatch.setenv("PYTHONPATH", "/spark/python/lib/pyspark.zip")  # as Spark sets it for them
    asks = "import sys, kelda, pyspark; print(sys.prefix, kelda.__file__, pyspark.__file__, sep='\\n')"
    told = subprocess.run([script, "-c", asks], capture_output=True, text=True, check=True, cwd="/")
    import pyspark

    import kelda

    assert told.stdout.split("\n")[:3] == [sys.prefix, kelda.__file__, pyspark.__file__]


def test_what_spark_imports_in_workers_is_there_under_these_names() -> None:
    """With another PySpark some may be gone: workers would start slowly again, and nobody would see."""
    assert [name for name in SPARKS if find_spec(name) is None] == []


def test_the_log_can_be_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(session.LOG, raising=False)
    assert session.log_path().parent == session.scratch()
    monkeypatch.setenv(session.LOG, str(tmp_path / "spark.log"))
    assert session.log_path() == tmp_path / "spark.log"


@pytest.mark.skipif(find_java() is None, reason="no Java")
def test_the_class_archive_is_in_the_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert session.archive().parent == tmp_path / "kelda"
