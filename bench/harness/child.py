"""A measurement in a process of its own, so that memory, caches and compiled code do not mix.

python -m bench.harness.child OUT.json < {"call": "module:function", "params": {…}}
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.harness.resources import adopt_orphans, calibrate, family_of, resident
from kelda.errors import KeldaError

ROOT = Path(__file__).parent.parent.parent
LOOK = 0.2  # seconds between two looks at the child's memory


class MeasurementFailed(KeldaError):
    """The child ended without figures; the message has its last words."""


def run_in_child(call: str, params: dict[str, Any], *, timeout: float | None = None) -> dict[str, Any]:
    """The figures that `module:function`, called with `params`, returns in a new process."""
    task = json.dumps({"call": call, "params": params})
    with tempfile.TemporaryDirectory(prefix="kelda-bench-") as folder:
        out = Path(folder) / "figures.json"
        command = [sys.executable, "-m", "bench.harness.child", str(out)]
        paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
        env = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in paths if p)}
        words = Path(folder) / "words"
        with words.open("w") as errors:
            child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=errors, stderr=errors, text=True, env=env, cwd=folder
            )
            try:
                peak = _feed(child, task, timeout)
            finally:
                _end(child)
        if not out.exists():
            last = [line for line in words.read_text(errors="replace").splitlines() if line.strip()]
            raise MeasurementFailed(last[-1] if last else f"the measurement ended with {child.returncode}")
        figures: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        return {"peak_mb": peak / 1e6} | figures


def _feed(child: subprocess.Popen[str], task: str, timeout: float | None) -> int:
    """Give the child its task and wait; the most memory that it and everything below it had, in bytes."""
    assert child.stdin is not None
    child.stdin.write(task)
    child.stdin.close()
    begin, peak = time.monotonic(), 0
    while child.poll() is None:
        peak = max(peak, resident(child.pid))
        if timeout is not None and time.monotonic() - begin > timeout:
            raise MeasurementFailed(f"no figures after {timeout:.0f} s")
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(LOOK)
    return peak


def _end(child: subprocess.Popen[str]) -> None:
    """No process of a measurement outlives it."""
    if child.poll() is None:
        for pid in reversed(family_of(child.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        child.wait()


def main() -> None:
    adopt_orphans()
    task = json.loads(sys.stdin.read())
    module, _, function = task["call"].partition(":")
    measure = getattr(importlib.import_module(module), function)
    unit = calibrate()
    figures = measure(**task["params"])
    figures["calibration_s"] = min(unit, calibrate())
    Path(sys.argv[1]).write_text(json.dumps(figures), encoding="utf-8")


if __name__ == "__main__":
    main()
