"""How many triples a second hand-written Structured Streaming sustains on L1 to L6.

    python -m bench.baselines [--queries L1,L4] [--triples 1000000] [--copies 1,50] [--data FOLDER]

Each query reads the streams that it asks for, and no others; `--triples` are those of these streams, as
dense as they are in all five at 133,000 triples a second. With `--data`, the files of a folder that
`bench.pipeline` has made (`post.tsnt` … and `stored.nt`) are read instead. The answers are counted, and
compared with how many Kelda's engine gives.

Figures are of the steady state. Per CPU second is of this process and the JVM: two cores that have nothing
else to do can come to twice that in a second.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.baselines import kelda
from bench.baselines.measure import start
from bench.baselines.process import best
from bench.baselines.queries import QUERIES
from bench.families.lsbench import FAMILY
from bench.families.lsbench.vocabulary import STREAMS

RATE = 133_000  # triples per second of all streams
USERS = 1_000


def write_data(folder: Path, streams: Sequence[str], triples: int) -> None:
    """These streams, so many triples in all, and `stored.nt`."""
    names = {iri: name for name, iri in STREAMS.items()}
    seen = dict.fromkeys(STREAMS, 0)
    for block in FAMILY.stream(triples=100_000, rate=RATE, scale=USERS):
        seen[names[block.stream]] += block.triples
    rate = RATE * sum(seen[name] for name in streams) / sum(seen.values())
    beside = Path(tempfile.mkdtemp(dir=folder.parent))
    files = {name: (beside / f"{name}.tsnt").open("wb") for name in streams}
    for block in FAMILY.stream(triples=triples, rate=rate, scale=USERS, streams=streams):
        files[names[block.stream]].write(block.text)
    for file in files.values():
        file.close()
    (beside / "stored.nt").write_bytes(b"".join(FAMILY.stored(scale=USERS)))
    beside.rename(folder)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--queries", default=",".join(QUERIES))
    arguments.add_argument("--triples", type=int, default=1_000_000)
    arguments.add_argument("--copies", default="1")
    arguments.add_argument("--way", choices=["join", "again"], help="of L4 to L6; both if not given")
    arguments.add_argument("--sliding", action="store_true", help="all answers of each window, every 100 ms")
    arguments.add_argument("--state", choices=["memory", "rocksdb"], default="memory")
    arguments.add_argument("--batch-triples", type=int, default=200_000)
    arguments.add_argument("--data", type=Path)
    arguments.add_argument("--master", default="local[2]")
    arguments.add_argument("--no-check", action="store_true", help="do not compare with Kelda's engine")
    chosen = arguments.parse_args()
    folder = Path(tempfile.gettempdir(), "kelda-bench-data")
    folder.mkdir(exist_ok=True)
    how = {"state": chosen.state, "batch_triples": chosen.batch_triples, "sliding": chosen.sliding}
    how |= {"way": chosen.way} if chosen.way else {}
    spark = start(chosen.master)
    print(
        f"{'query':6}{'copies':>7}{'way':>8}{'triples/s':>11}{'per CPU s':>11}{'batch ms':>10}{'answers':>12}"
    )
    results = []
    for name in chosen.queries.split(","):
        streams = QUERIES[name].streams
        data = chosen.data or folder / f"baselines-{'-'.join(streams)}-{chosen.triples}"
        if not data.exists():
            write_data(data, streams, chosen.triples)
        files, stored = {s: str(data / f"{s}.tsnt") for s in streams}, str(data / "stored.nt")
        for copies in map(int, chosen.copies.split(",")):
            figures: dict[str, Any] = best(name, files, stored, spark, copies=copies, **how)
            if not chosen.no_check:
                figures["kelda_answers"] = sum(
                    c.total() for c in kelda.answers(name, files, stored, copies, chosen.sliding)
                )
            results.append(figures)
            for row in [figures, *([figures["slower"]] if "slower" in figures else [])]:
                right = figures.get("kelda_answers", row["answers"]) == row["answers"]
                print(
                    f"{row['query']:6}{row['copies']:>7}{row['way']:>8}{row['triples_per_second']:>11,}"
                    f"{row['triples_per_cpu_second']:>11,}{row['batch_ms_median']:>10,.0f}{row['answers']:>12,}"
                    + ("" if right else f"  Kelda: {figures['kelda_answers']:,}"),
                    flush=True,
                )
    spark.stop()
    load = [round(x, 1) for x in os.getloadavg()]
    print(json.dumps({"benchmark": "baselines", "load_average": load, "results": results}))


if __name__ == "__main__":
    main()
