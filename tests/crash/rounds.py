"""Rounds: run the load, kill something at a random moment, again and again, and compare the answers."""

from __future__ import annotations

import json
import os
import queue
import random
import shutil
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.crash import load
from tests.crash.cluster import Cluster
from tests.crash.load import Bags
from tests.crash.power import SYNCED, lose
from tests.crash.processes import MARK, Process, marked

KINDS = ("worker", "host", "driver", "power", "executor", "standalone")  # of processes on Spark
ON_CLUSTER = ("executor", "standalone")
PATIENCE = 900.0  # seconds without a batch: something hangs (a busy machine may take minutes to start Spark)


class Failure(Exception):
    """The load did not get to its end, or its answers are not the right ones."""


@dataclass
class Driver:
    """The driver's process and what it says."""

    command: list[str]
    environment: dict[str, str]
    log: Path
    said: queue.SimpleQueue[dict[str, object] | None] = field(default_factory=queue.SimpleQueue)

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command, env=self.environment, stdout=subprocess.PIPE, stderr=log, start_new_session=True
            )
        self.said = queue.SimpleQueue()
        threading.Thread(target=self._listen, args=(self.process, self.said), daemon=True).start()

    @staticmethod
    def _listen(process: subprocess.Popen[bytes], said: queue.SimpleQueue[dict[str, object] | None]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            said.put(json.loads(line))
        said.put(None)

    def next(self, timeout: float = PATIENCE) -> dict[str, object] | None:
        """The last thing it has said since it was asked before; None if it has ended."""
        try:
            told = self.said.get(timeout=timeout)
            while told is not None and "done" not in told and not self.said.empty():
                told = self.said.get()
        except queue.Empty:
            raise Failure(f"nothing happened for {timeout:.0f} s; the log is {self.log}") from None
        return told

    def check(self) -> None:
        """It must have ended well."""
        code = self.process.wait(60)
        if code != 0:
            tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-12:])
            raise Failure(f"the driver ended with {code}:\n{tail}")


@dataclass
class Rounds:
    """So many kills, of these kinds in turn, in as many applications as it takes."""

    kinds: tuple[str, ...]
    wanted: int
    folder: Path
    batch_events: int = 40
    seed: int = 0
    seconds: int = 240  # of stream time
    say: Callable[[str], None] = print
    done: int = 0
    applications: int = 0
    starts: int = 0
    rebuilt: int = 0

    def __post_init__(self) -> None:
        self.name = "-".join(self.kinds)
        self.draw = random.Random(f"{self.seed} {self.name}")

    @property
    def kind(self) -> str:
        """Of the next kill."""
        return self.kinds[self.done % len(self.kinds)]

    def run(self) -> None:
        """Raises `Failure`, with the difference, at the first application that is not right."""
        streams = self.folder / "load"
        self._write(streams)
        wanted = self._expected(streams, self._empty("undisturbed"))
        while self.done < self.wanted:
            self.applications += 1
            out = self._empty(str(self.applications))
            self._application(streams, out)
            wrong = self._wrong(wanted, out)
            if wrong:
                (out / "difference.txt").write_text("\n".join(wrong) + "\n")
                shown = "\n".join(wrong[:20])
                raise Failure(f"{len(wrong)} answers lost or doubled, see {out}/difference.txt\n{shown}")
            shutil.rmtree(out)

    def _write(self, streams: Path) -> None:
        load.write(streams, self.seconds)

    def _expected(self, streams: Path, out: Path) -> Bags:
        return load.expected(streams, out)

    def _wrong(self, wanted: Bags, out: Path) -> list[str]:
        return load.difference(wanted, load.answers(out))

    def _empty(self, name: str) -> Path:
        folder = self.folder / f"{self.name}-{name}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    # -------------------------------------------------------------------- one application

    def _application(self, streams: Path, out: Path) -> None:
        mark = uuid.uuid4().hex
        cluster = None
        try:
            if set(self.kinds) & set(ON_CLUSTER):
                cluster = Cluster(out / "cluster", mark)
                # Two executors of one core: on one worker, or on one each.
                one = self.kinds == ("executor",)
                places = [cluster.join(2)] if one else [cluster.join(), cluster.join()]
                environment, master = cluster.environment(), cluster.url
            else:
                places, environment, master = [], os.environ | {MARK: mark}, "local[2]"
            environment["KELDA_SPARK_LOG"] = str(out / "spark.log")
            self.out, environment[SYNCED] = out, str(out / "synced")
            command = [sys.executable, "-m", "tests.crash.driver", str(streams), str(out), master]
            driver = Driver([*command, str(self.batch_events)], environment, out / "driver.log")
            self._rounds(driver, mark, cluster, places)
        finally:
            self._sweep(mark, cluster)

    def _rounds(self, driver: Driver, mark: str, cluster: Cluster | None, places: list[int]) -> None:
        """Kill, wait for progress, kill again, to the end of the streams."""
        self._start(driver)
        pace, rebuilt = 1.0, 0
        due = self.draw.randint(0, 2)  # the batch after which something is killed next
        while (told := driver.next()) is not None:
            if "done" in told:
                break
            pace += 0.3 * (float(str(told["seconds"])) - pace)
            self.rebuilt += int(str(told["rebuilt"])) - rebuilt
            rebuilt = int(str(told["rebuilt"]))
            batch = int(str(told["batch"]))
            if batch < due or self.done >= self.wanted:
                continue
            kind = self.kind
            # Most that is not synced is written just behind a batch.
            soon = kind == "power" and self.draw.random() < 0.7
            time.sleep(self.draw.uniform(0, 0.2 if soon else 1.5 * min(pace, 5.0)))
            killed = self._kill(kind, driver, mark, cluster, places)
            if not killed:
                continue
            self.done += 1
            what = ", ".join(f"{p.kind} {p.pid}" for p in killed)
            self.say(
                f"{self.done}/{self.wanted}: after batch {batch} killed {what} "
                f"(shards stood up {self.rebuilt} times before)"
            )
            due = batch + self.draw.randint(2, 4)
            if kind in ("driver", "power"):
                self._start(driver)
                due, rebuilt = batch + self.draw.randint(0, 4), 0
        driver.check()

    def _start(self, driver: Driver) -> None:
        self.starts += 1
        driver.start()

    def _kill(
        self, kind: str, driver: Driver, mark: str, cluster: Cluster | None, places: list[int]
    ) -> list[Process] | None:
        """Something of a kind; None if there was nothing, such as at the very end."""
        if kind in ("driver", "power"):
            gone = [p for p in marked(mark) if p.kind in ("driver", "jvm")]
            killed = [p for p in gone if p.kill()]
            driver.process.wait()
            self._wait_until_gone(mark)
            if kind == "power":
                fates = lose(self.out / "checkpoint", self.out / "synced", self.draw)
                self.say(f"lost: {', '.join(fates) or 'nothing'}")
            return killed
        if kind == "standalone":
            assert cluster is not None
            used = [place for place in places if cluster.executors(place)]
            if not used:
                return None
            places.remove(place := self.draw.choice(used))
            killed = cluster.leave(place)
            places.append(cluster.join())
            return killed
        # With a worker goes, now and then, the daemon that forks workers.
        wanted = self.draw.choice(("worker", "worker", "worker", "daemon") if kind == "worker" else (kind,))
        there = [p for p in marked(mark) if p.kind == wanted]
        if not there:
            return None
        victim = self.draw.choice(sorted(there, key=lambda p: p.pid))
        return [victim] if victim.kill() else None

    def _wait_until_gone(self, mark: str) -> None:
        """Nothing of a driver that was killed may live on: it would disturb the next one."""
        until = time.monotonic() + 60
        while left := marked(mark):
            if time.monotonic() > until:
                raise Failure(f"a minute after the driver was killed there are still {left}")
            time.sleep(0.1)

    def _sweep(self, mark: str, cluster: Cluster | None) -> None:
        if cluster is not None:
            cluster.stop()
        until = time.monotonic() + 20
        while marked(mark) and time.monotonic() < until:
            time.sleep(0.2)
        for process in marked(mark):
            self.say(f"left over: {process}")
            process.kill()
