"""Rounds without Spark: a process with an engine in it is killed, started again, and must get to its end.

Half of the kills come from outside, at any moment; half are steps on the disk that are the process's last, as
most of what can go wrong lies between two of these.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from kelda.store.check import check
from tests.crash import inprocess_load
from tests.crash.inprocess import AT
from tests.crash.load import Bags
from tests.crash.rounds import Driver, Failure, Rounds

INPROCESS = "inprocess"
STEPS = 1200  # on the disk: a dozen batches or so
DELAY = 1.5  # seconds from the first batch to a kill from outside


class InProcessRounds(Rounds):
    """So many kills, in as many applications as it takes."""

    def _write(self, streams: Path) -> None:
        inprocess_load.write(streams, self.seconds)

    def _expected(self, streams: Path, out: Path) -> Bags:
        return inprocess_load.expected(streams, out)

    def _wrong(self, wanted: Bags, out: Path) -> list[str]:
        return inprocess_load.difference(wanted, inprocess_load.answers(out))

    def _application(self, streams: Path, out: Path) -> None:
        command = [sys.executable, "-m", "tests.crash.inprocess", str(streams), str(out)]
        while True:
            self.starts += 1
            environment, step = dict(os.environ), self._last_step()
            if step is not None:
                environment[AT] = str(step)
            words = [*command, str(self.batch_events), str(self.draw.randrange(10**6))]
            process = Driver(words, environment, out / "process.log")
            process.start()
            killed = self._killed(process, step)
            self._check_store(out / "checkpoint" / "store")
            if not killed:
                return

    def _check_store(self, store: Path) -> None:
        if (store / "quads").is_dir() and (store / "terms").is_dir() and (found := check(store)):
            raise Failure(f"the store {store} is not sound: {found}")

    def _last_step(self) -> int | None:
        """The step on the disk at which the process dies, if nobody kills it before."""
        if self.done >= self.wanted or self.draw.random() < 0.5:
            return None
        return self.draw.randint(1, STEPS)

    def _killed(self, process: Driver, step: int | None) -> bool:
        """Follow a process to its end; whether that came too early."""
        batch = -1
        while (told := process.next()) is not None:
            if "done" in told:
                return False
            if batch < 0:
                self.rebuilt += int(str(told["rebuilt"]))
                if step is None and self.done < self.wanted:
                    time.sleep(self.draw.uniform(0, DELAY))
                    process.process.kill()
            batch = int(str(told["batch"]))
        if process.process.wait() != -signal.SIGKILL:
            process.check()
        self.done += 1
        self.say(f"{self.done}/{self.wanted}: killed after batch {batch}, {_how(step)}")
        return True


def _how(step: int | None) -> str:
    return "from outside" if step is None else f"at step {step} on the disk"
