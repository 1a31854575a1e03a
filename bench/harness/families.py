"""The families of benchmarks by name, imported when asked for."""

from __future__ import annotations

import importlib
from pathlib import Path

from bench.families.base import Family
from kelda.errors import UsageError

NAMES = ("lsbench", "taxi", "conference", "srbench", "citybench")
TINY = "tiny"  # the harness's own, for its tests


def available() -> tuple[str, ...]:
    """The families that are there."""
    return tuple(name for name in NAMES if not missing(name))


def missing(name: str) -> str:
    """Why the family cannot be run; empty if it can."""
    if name == TINY:
        return ""
    if name not in NAMES:
        return f"there is no family {name!r}; there are {', '.join(NAMES)}"
    package = Path(__file__).parent.parent / "families" / name / "__init__.py"
    if not package.is_file() or "FAMILY" not in package.read_text(encoding="utf-8"):
        return f"the family {name!r} has not been written yet (bench/families/{name})"
    return ""


def load(name: str) -> Family:
    """The family; UsageError if it is not there."""
    problem = missing(name)
    if problem:
        raise UsageError(problem)
    where = "bench.harness.tiny" if name == TINY else f"bench.families.{name}"
    family: Family = importlib.import_module(where).FAMILY
    return family
