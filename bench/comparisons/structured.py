"""Our Spark pipeline beside hand-written Structured Streaming (`bench.baselines`): same files, same cores.

Theirs is the rate after the first batches, as that module measures it; ours is the rate of a whole job, after
a small one has warmed Spark up. Answers are counted on both sides; `bench.baselines` says where they may
differ.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from bench.baselines import run as run_by_hand
from bench.harness import data
from bench.harness.workload import Load, job_of, made


def measure(query: str, triples: int, rate: int, shards: int) -> dict[str, Any]:
    """Triples per second of both, on the wall."""
    from kelda.spark.run import run

    ready = made(Load("lsbench", (query,), "cqels", triples=triples, rate=rate))
    master = f"local[{max(2, shards)}]"
    with tempfile.TemporaryDirectory(prefix="kelda-bench-") as folder:
        small = job_of(ready, Path(folder) / "small", ready.steps[:1])
        for _ in run(small, master=master, shards=shards):
            pass
        job = job_of(ready, Path(folder) / "ours", ready.steps)
        begin = time.perf_counter()
        answers = sum(1 for _ in run(job, master=master, shards=shards))
        ours = data.count(ready.steps) / (time.perf_counter() - begin)
        stored = Path(folder) / "stored.nt"
        stored.write_bytes(ready.text)
        files = []
        for source in job.streams:
            files.append(str(Path(folder) / f"{source.iri.rpartition('/')[2]}.tsnt"))
            Path(files[-1]).write_bytes(Path(source.path).read_bytes())
        theirs = run_by_hand(query, files, str(stored), master)
    return {
        "triples": data.count(ready.steps),
        "triples_per_s": ours,
        "theirs_per_s": theirs["triples_per_second"],
        "ratio": ours / max(theirs["triples_per_second"], 1e-9),
        "way": theirs["way"],
        "answers": answers,
        "theirs_answers": theirs["answers"],
    }
