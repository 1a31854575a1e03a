"""A hand-written query in a process of its own, with a Spark of its own.

The pipeline starts its JVM to be up soon; these queries get one that is set up for throughput, and a
process has one JVM.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kelda.errors import KeldaError

WARM_BATCH = 2_000  # triples
ROOT = Path(__file__).absolute().parents[2]


def run(
    query: str,
    files: Sequence[str],
    stored: str,
    master: str = "local[2]",
    warm: Sequence[str] = (),
    **how: Any,
) -> dict[str, Any]:
    """The figures of L1 … L6 over `<stream>.tsnt` files (post, postlike, photo, photolike, gps).

    Files of streams that the query does not read are left alone, and not counted. `how`: the keywords of
    `measure` (way, state, batch_triples, copies). Without a way, L4 to L6 are run in both, and the figures
    are those of the faster one, the other's under "slower". With `warm` files, it is run on these first, in a
    hundred batches.
    """
    spec = {
        "query": query,
        "files": _by_stream(files),
        "stored": str(Path(stored).absolute()),
        "master": master,
        "warm": _by_stream(warm),
        **how,
    }
    command = [sys.executable, "-m", "bench.baselines.process", json.dumps(spec)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        last = "\n".join(done.stderr.strip().splitlines()[-20:])
        raise KeldaError(f"the hand-written {query} failed; its process ended with:\n{last}")
    return json.loads(done.stdout.splitlines()[-1])


def _by_stream(files: Sequence[str]) -> dict[str, str]:
    return {Path(path).stem: str(Path(path).absolute()) for path in files}


def best(query: str, files: dict[str, str], stored: str, spark: Any, **how: Any) -> dict[str, Any]:
    """The figures of the faster way, with those of the slower."""
    from bench.baselines.measure import measure
    from bench.baselines.queries import QUERIES, Join

    ways = (
        ["join", "again"]
        if isinstance(QUERIES[query], Join) and "way" not in how
        else [how.get("way", "join")]
    )
    found = [measure(query, files, stored, spark, **how | {"way": way}) for way in ways]
    found.sort(key=lambda figures: -figures["triples_per_second"])
    return found[0] | ({"slower": found[1]} if len(found) > 1 else {})


def main() -> None:
    from bench.baselines.measure import start

    spec = json.loads(sys.argv[1])
    spark, warm = start(spec.pop("master")), spec.pop("warm")
    try:
        if warm:
            best(spark=spark, **spec | {"files": warm, "batch_triples": WARM_BATCH})
        figures = best(spark=spark, **spec)
    finally:
        spark.stop()
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
