"""The readings on Spark, in some formats: python -m bench.formats.on_spark [--readings 2000000]

Rates are those of the steady state, the second half of the batches.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from bench.formats.readings import FORMATS, MAPPING, QUERY, STREAM, written
from bench.harness.resources import adopt_orphans
from bench.pipeline import Watch, connected, have_in_memory
from kelda.io.job import StreamSource

SOME = ("tsnt", "json", "messages, Turtle", "messages, N-Triples")


def measure(name: str, readings: int, folder: Path, batch_events: int, shards: int) -> dict[str, object]:
    """One format: triples a second, on the wall and of CPU time."""
    format = FORMATS[name]
    path, mapping = folder / f"readings{format.suffix}", folder / "mapping.yaml"
    path.write_text(written(name, readings))
    mapping.write_text(MAPPING)
    have_in_memory([str(path)])
    source = StreamSource(
        STREAM, str(path), format=format.kelda, mapping=str(mapping) if format.mapped else None
    )
    watch = Watch(cpu=True)
    with connected([source], None, shards, batch_events, "local[2]") as (engine, _):
        engine.register(QUERY, "means", sink="null")
        watch.run(engine)
        events, answers = engine.figures.events, engine.figures.answers
    path.unlink()
    triples = format.triples * readings / events
    rate, of_cpu = (round(some * triples) for some in watch.rates())
    return {
        "format": name,
        "triples": format.triples * readings,
        "answers": answers,
        "triples_per_second": rate,
        "triples_per_cpu_second": of_cpu,
        "batches": len(watch.batches),
    }


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--readings", type=int, default=2_000_000)
    arguments.add_argument("--batch-events", type=int, default=200_000)
    arguments.add_argument("--shards", type=int, default=2)
    chosen = arguments.parse_args()
    adopt_orphans()
    with tempfile.TemporaryDirectory(prefix="kelda-bench-") as name:
        for format in SOME:
            how = (Path(name), chosen.batch_events, chosen.shards)
            print(measure(format, chosen.readings, *how), flush=True)


if __name__ == "__main__":
    main()
