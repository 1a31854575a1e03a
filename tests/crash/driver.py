"""The process that is killed as the driver: the load on Spark, a line of JSON for each batch.

python -m tests.crash.driver LOAD OUT MASTER BATCH_EVENTS
"""

from __future__ import annotations

import sys
from pathlib import Path

import kelda
from tests.crash import load
from tests.crash.power import note_syncs
from tests.crash.saying import say_done, wait_and_say


def main(folder: str, out: str, master: str, batch_events: str) -> None:
    note_syncs()
    with kelda.connect(
        master, checkpoint=Path(out) / "checkpoint", shards=load.SHARDS, batch_events=int(batch_events)
    ) as engine:
        load.equip(engine, Path(folder), Path(out))
        engine.start()
        wait_and_say(engine)
    say_done()


if __name__ == "__main__":
    main(*sys.argv[1:])
