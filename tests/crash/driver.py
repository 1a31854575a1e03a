"""The process that is killed as the driver: the load on Spark, a line of JSON for each batch.

python -m tests.crash.driver LOAD OUT MASTER BATCH_EVENTS
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from kelda.spark.pipeline import Batch
from tests.crash import load
from tests.crash.power import note_syncs


def main(folder: str, out: str, master: str, batch_events: str) -> None:
    def say(batch: Batch) -> None:
        figures = pipeline.figures
        told = {"batch": batch.id, "events": figures.events, "seconds": round(figures.batch_seconds, 3)}
        print(json.dumps(told | {"rebuilt": figures.rebuilt}), flush=True)

    note_syncs()
    pipeline = load.pipeline(load.job(Path(folder)), Path(out), int(batch_events), say)
    pipeline.start(master)
    try:
        pipeline.wait()
    finally:
        pipeline.stop()
    print(json.dumps({"done": True}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
