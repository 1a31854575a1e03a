"""A Spark standalone cluster on loopback: a master and workers as child processes."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import time
from pathlib import Path

import pyspark

from kelda.spark.session import _worker_python
from tests.crash.processes import MARK, Process, marked

PATIENCE = 120.0  # seconds for a master or worker to say that it is up

# What a small executor on a small machine needs; the rest is Kelda's own session.
DEFAULTS = """\
spark.driver.host 127.0.0.1
spark.driver.bindAddress 127.0.0.1
spark.executor.memory 512m
spark.executor.cores 1
spark.executor.extraJavaOptions -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
spark.authenticate true
spark.authenticate.secret {secret}
spark.network.crypto.enabled true
"""


class Cluster:
    """Starts with a master; workers come and go."""

    def __init__(self, folder: Path, mark: str) -> None:
        self.folder, self.mark = folder, mark
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "spark-defaults.conf").write_text(DEFAULTS.format(secret=secrets.token_hex(32)))
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._started = 0
        log, _ = self._start("master", "deploy.master.Master", "--port", "0", "--webui-port", "0")
        self.url = self._said(log, r"Starting Spark master at (spark://\S+)")

    def environment(self) -> dict[str, str]:
        """In which the driver finds the settings."""
        return os.environ | {
            MARK: self.mark,
            "SPARK_CONF_DIR": str(self.folder),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(self.folder / "local"),
            # All machines are this one, so the script that starts Python quickly here does so for all. Spark
            # gives the Python beside the driver ten seconds to start, which a busy machine exceeds.
            "PYSPARK_PYTHON": str(_worker_python()),
        }

    def join(self, cores: int = 1) -> int:
        """One more worker; returns its process id when it has joined."""
        work = str(self.folder / "work")
        log, pid = self._start(
            "worker", "deploy.worker.Worker", "--port", "0", "--webui-port", "0", "--work-dir", work,
            "--cores", str(cores), "--memory", f"{600 * cores}m", self.url,
        )  # fmt: skip
        self._said(log, r"Successfully registered with (master)")
        return pid

    def executors(self, pid: int) -> list[Process]:
        """Those of a worker."""
        return [p for p in marked(self.mark) if p.kind == "executor" and _under(p.pid, pid)]

    def leave(self, pid: int) -> list[Process]:
        """A worker and its executors die at once."""
        gone = [Process(pid, "standalone"), *self.executors(pid)]
        for process in gone:
            process.kill()
        self._running.pop(pid).wait()
        return gone

    def stop(self) -> None:
        """Everything, workers first."""
        for child in reversed(list(self._running.values())):
            child.terminate()
        for child in self._running.values():
            child.wait(30)
        self._running.clear()

    def _start(self, name: str, what: str, *arguments: str) -> tuple[Path, int]:
        self._started += 1
        log = self.folder / f"{name}-{self._started}.log"
        home = Path(pyspark.__file__).parent
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.{what}", "--host", "127.0.0.1"]
        environment = self.environment() | {"SPARK_HOME": str(home), "SPARK_DAEMON_MEMORY": "256m"}
        with log.open("wb") as out:
            child = subprocess.Popen(
                [*command, *arguments], env=environment, stdout=out, stderr=out, stdin=subprocess.DEVNULL
            )
        self._running[child.pid] = child
        return log, child.pid

    def _said(self, log: Path, pattern: str) -> str:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            found = re.search(pattern, log.read_text(errors="replace"))
            if found:
                return found[1]
            time.sleep(0.1)
        raise TimeoutError(f"{log} does not say {pattern!r} after {PATIENCE:.0f} s")


def _under(pid: int, ancestor: int) -> bool:
    """Whether a process is a child, or a child's child, of another."""
    while pid > 1:
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return False
        if pid == ancestor:
            return True
    return False
