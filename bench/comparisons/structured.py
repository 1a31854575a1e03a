"""Our Spark pipeline beside hand-written Structured Streaming (`bench.baselines`).

Same files, same cores, batches of the same size. Both rates are those of the steady state: of ours the second
half of the batches, of theirs what comes after the first ones. Answers are counted on both sides;
`bench.baselines` says where they may differ.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from bench import pipeline
from bench.baselines import run as run_by_hand
from bench.families.lsbench import FAMILY
from bench.harness import data
from bench.harness.workload import Load, made, write

BATCHES = 10  # at least that many: with fewer there is no steady state


def measure(query: str, triples: int, rate: int, shards: int) -> dict[str, Any]:
    """Triples per second of both, on the wall."""
    ready = made(Load("lsbench", (query,), "cqels", triples=triples, rate=rate))
    master, batch = f"local[{max(2, shards)}]", triples // BATCHES
    with tempfile.TemporaryDirectory(prefix="kelda-bench-") as name:
        folder = Path(name)
        files = [str(path) for path in write(ready, folder / "made", ready.steps).values()]
        only = FAMILY.query(query).streams
        ours = pipeline.throughput(folder / "made", [query], triples, shards, batch, master, only=only)
        theirs = run_by_hand(query, files, str(folder / "made" / "stored.nt"), master, batch_triples=batch)
    rate_of_ours = float(str(ours["triples_per_second"]))
    return {
        "triples": data.count(ready.steps),
        "triples_per_s": rate_of_ours,
        "theirs_per_s": theirs["triples_per_second"],
        "ratio": rate_of_ours / max(theirs["triples_per_second"], 1e-9),
        "way": theirs["way"],
        "answers": ours["answers"],
        "theirs_answers": theirs["answers"],
    }
