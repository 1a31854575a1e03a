"""How many rows a second GROUP BY takes: COUNT, AVG and MIN over a sliding window, 1,000 groups.

python bench/aggregate.py [--json FILE]

Each row comes at one instant and leaves `--window` instants later, so every row is two deltas; rows/s counts
deltas of both signs (CPU time).
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
from pyoxigraph import NamedNode

from kelda.engine.deltas import Deltas
from kelda.engine.operators.aggregates.spec import AggregateSpec
from kelda.engine.operators.group_by import GroupBy
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.ids import Kind

COLUMNS = ("k", "x")


def inline(kind: Kind, values: np.ndarray, scale: int = 0) -> np.ndarray:
    """Ids of integers, or of decimals and doubles with this many places."""
    value = values if kind is Kind.INTEGER else (values & (1 << 54) - 1) | scale << 54
    return np.int64(-(2**63)) | np.int64(kind << 58) | (value & (1 << 58) - 1)


def batches(
    rows: int, window: int, per_instant: int, batch: int, groups: int, values: np.ndarray
) -> list[Deltas]:
    """Insertions and the deletions that follow them, cut into batches of `batch` rows."""
    keys = np.random.default_rng(1).integers(1, groups + 1, rows)
    instant = np.arange(rows) // per_instant
    table = np.stack([keys, values])
    coming = Deltas(COLUMNS, instant, np.ones(rows, np.int64), table)
    going = Deltas(COLUMNS, instant + window, -np.ones(rows, np.int64), table)
    both = Deltas.concat([coming, going], COLUMNS)
    step = batch // per_instant
    bounds = np.searchsorted(both.time, np.arange(0, int(both.time[-1]) + step + 1, step))
    return [both.select(np.arange(a, b)) for a, b in pairwise(bounds)]


def rate(parts: list[Deltas], spec: AggregateSpec, dictionary: Dictionary) -> float:
    """Deltas a second, once compiled."""
    for timed in (parts[:2], parts):
        operator = GroupBy(COLUMNS, ("k",), (("r", spec),), dictionary)
        start = time.process_time()
        for part in timed:
            operator.step(part, until=int(part.time[-1]) if len(part) else 0)
        seconds = time.process_time() - start
    return sum(map(len, parts)) / seconds


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--json", type=Path, help="write the numbers to this file as well")
    options.add_argument("--rows", type=int, default=500_000)
    options.add_argument("--window", type=int, default=5_000, help="instants that a row stays")
    options.add_argument("--groups", type=int, default=1_000)
    args = options.parse_args()

    numbers = np.random.default_rng(2).integers(-10_000, 10_000, args.rows)
    integers = inline(Kind.INTEGER, numbers)
    decimals, doubles = inline(Kind.DECIMAL, numbers, 2), inline(Kind.DOUBLE, numbers, 2)
    dictionary = Dictionary()
    iris = np.array([dictionary.encode(NamedNode(f"http://example.org/thing/{i}")) for i in range(5_000)])
    cases = {
        "COUNT": ("COUNT", integers, False),
        "COUNT DISTINCT": ("COUNT", integers, True),
        "SUM, integers": ("SUM", integers, False),
        "AVG, integers": ("AVG", integers, False),
        "AVG, decimals": ("AVG", decimals, False),
        "AVG, doubles": ("AVG", doubles, False),
        "MIN, integers": ("MIN", integers, False),
        "SAMPLE, IRIs": ("SAMPLE", iris[numbers % 5_000], False),
        "MIN, rising": ("MIN", np.sort(integers), False),
    }
    results = {}
    for name, (op, values, distinct) in cases.items():
        for batch in (1_000, 50_000):
            parts = batches(args.rows, args.window, 10, batch, args.groups, values)
            what = f"{name}, batches of {batch:,}"
            results[what] = rate(parts, AggregateSpec(op, "x", distinct), dictionary)
            print(f"{what:<40} {results[what]:>14,.0f} rows/s", flush=True)
    line = json.dumps(
        {
            "benchmark": "aggregate",
            "python": platform.python_version(),
            "rows_per_s": {what: round(value) for what, value in results.items()},
        }
    )
    print(line)
    if args.json is not None:
        args.json.write_text(line + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
