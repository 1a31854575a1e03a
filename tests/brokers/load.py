"""A process to be killed: an engine with a checkpoint, from a topic to a topic, until the first is read."""

from __future__ import annotations

import sys
from pathlib import Path

import kelda

STREAM = "http://ex/s"
QUERY = "SELECT ?who ?n WHERE { STREAM <http://ex/s> [RANGE 20s] { ?who <http://ex/said> ?n } }"


def main(server: str, source: str, sink: str, folder: Path) -> None:
    with kelda.connect(checkpoint=folder, batch_events=25) as engine:
        if not engine.streams:
            engine.stream(STREAM, f"kafka://{server}/{source}?end=latest", format="tsnt")
        if not engine.queries:
            engine.register(QUERY, "q", sink=f"kafka://{server}/{sink}?key=who")
        engine.start()
        print("ready", flush=True)
        while not engine.wait(600):
            pass


if __name__ == "__main__":
    main(*sys.argv[1:4], Path(sys.argv[4]))
