"""The process that is killed: an engine with a checkpoint, in it, a line of JSON for each batch.

python -m tests.crash.inprocess LOAD OUT BATCH_EVENTS SEED

With KELDA_CRASH_AT=N in the environment it kills itself at its N-th step on the disk: before it, behind it,
or when it is half done.
"""

from __future__ import annotations

import os
import random
import sys
import threading
from pathlib import Path

import kelda
from kelda.inprocess import log
from kelda.store import compaction
from tests.crash import inprocess_load
from tests.crash.last_step import die_at
from tests.crash.saying import say_done, wait_and_say

AT = "KELDA_CRASH_AT"
PAUSE = 0.005  # seconds between two pushes


def run(folder: Path, out: Path, batch_events: int, draw: random.Random, pause: float = PAUSE) -> None:
    """Go on with the load, from where it was to its end."""
    log.MOST_FILES = compaction.MOST_FILES = 5  # so that the log and the store are put together now and then
    with kelda.connect(checkpoint=out / "checkpoint", batch_events=batch_events) as engine:
        inprocess_load.equip(engine, folder, out)
        engine.start()
        problems: list[Exception] = []

        def pushing() -> None:
            try:
                inprocess_load.push(engine, folder, out, draw, pause)
            except Exception as problem:  # noqa: BLE001 - raised below
                problems.append(problem)
                engine.stop()

        pusher = threading.Thread(target=pushing, daemon=True)
        pusher.start()
        try:
            wait_and_say(engine)
        finally:
            pusher.join(10)
            if problems:
                raise problems[0]
        inprocess_load.tell_stored(engine, out)


def main(folder: str, out: str, batch_events: str, seed: str) -> None:
    draw = random.Random(seed)
    if (step := os.environ.get(AT)) is not None:
        die_at(int(step), draw)
    run(Path(folder), Path(out), int(batch_events), draw)
    say_done()


if __name__ == "__main__":
    main(*sys.argv[1:])
