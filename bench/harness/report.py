"""A report: what was run where, and every figure. As JSON it can be compared with another."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from kelda.errors import InputError

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("kelda", "numpy", "numba", "pyoxigraph", "pyarrow", "pyspark")
VERSION = 1


@dataclass
class Result:
    """An experiment that was run: its rows are label, figures and the paper's figures of each case."""

    name: str
    title: str
    columns: list[str]
    paper: str = ""
    hardware: str = ""
    setup: str = ""
    differs: str = ""
    rows: list[dict[str, Any]] = field(default_factory=list)
    plots: list[dict[str, Any]] = field(default_factory=list)
    missing: str = ""  # why nothing was measured
    seconds: float = 0.0


@dataclass
class Report:
    """Everything of one run of the command."""

    command: str
    parameters: dict[str, Any]
    machine: dict[str, Any]
    versions: dict[str, str]
    commit: str
    started: str
    results: list[Result] = field(default_factory=list)
    version: int = VERSION

    @property
    def names(self) -> list[str]:
        """The experiments in it."""
        return [result.name for result in self.results]

    def save(self, path: Path) -> None:
        """Write it as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.new")
        beside.write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        beside.replace(path)  # whoever is cut off while writing leaves the file as it was

    def measured(self) -> dict[str, dict[str, Any]]:
        """The rows that have figures, by their keys."""
        return {
            key_of(result.name, row): row
            for result in self.results
            for row in result.rows
            if "figures" in row
        }


def key_of(name: str, row: dict[str, Any]) -> str:
    """What a row measures: the experiment, and what is called with what."""
    return json.dumps([name, row["call"], row["params"]], sort_keys=True)


def load(path: Path) -> Report:
    """A report from its file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        found["results"] = [Result(**result) for result in found["results"]]
        report = Report(**found)
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise InputError(
            f"{path} is not a report of `kelda bench --json FILE`: {type(problem).__name__}: {problem}"
        ) from None
    if report.version != VERSION:
        raise InputError(f"{path} is a report of version {report.version}, not {VERSION}: make it anew")
    return report


def begin(command: str, parameters: dict[str, Any]) -> Report:
    """A report without results."""
    return Report(
        command=command,
        parameters=parameters,
        machine=machine(),
        versions=versions(),
        commit=commit(),
        started=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    )


def machine() -> dict[str, Any]:
    """What the figures were taken on."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(memory, 1),
        "system": f"{platform.system()} {platform.release()}",
        "load": [round(x, 2) for x in os.getloadavg()],
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    for line in lines:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def versions() -> dict[str, str]:
    """Python and the packages that matter."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def commit() -> str:
    """The commit of the clone, with + if files differ from it; empty outside a clone."""
    try:
        asked = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+", "--abbrev=12"]
        return subprocess.run(asked, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
