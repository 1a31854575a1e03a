"""A checkpoint has one process at a time, and none holds it beyond its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kelda.errors import EnvironmentProblem, UsageError
from kelda.io.hold import LOCK, Hold

HOLDS = """
import sys, time
from pathlib import Path
from kelda.io.hold import Hold
hold = Hold(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
"""


def test_a_second_one_is_told_who_has_it(tmp_path: Path) -> None:
    hold = Hold(tmp_path)
    with pytest.raises(UsageError, match=rf"held by pid {os.getpid()} on \S+ since 2\d\d\d-"):
        Hold(tmp_path)
    hold.release()
    Hold(tmp_path).release()


def test_what_nobody_can_reach_holds_nothing(tmp_path: Path) -> None:
    class Knot:
        def __init__(self) -> None:
            self.me, self.hold = self, Hold(tmp_path)

    Knot()
    Hold(tmp_path).release()


def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        with pytest.raises(UsageError, match=f"held by pid {process.pid} "):
            Hold(tmp_path)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert json.loads((tmp_path / LOCK).read_text())["pid"] == process.pid  # it could not clean up
    Hold(tmp_path).release()


def test_a_forked_child_holds_nothing(tmp_path: Path) -> None:
    hold = Hold(tmp_path)
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    try:
        with pytest.raises(UsageError, match="held by"):
            Hold(tmp_path)
        hold.release()
        Hold(tmp_path).release()  # while the child lives
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_only(path: Path, *_: object) -> int:
        raise OSError(30, "Read-only file system", str(path))

    monkeypatch.setattr(os, "open", read_only)
    with pytest.raises(EnvironmentProblem, match=r"cannot write .*\.lock: Read-only file system"):
        Hold(tmp_path)
