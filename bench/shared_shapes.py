"""Queries of different shape over one join: what a hundred cost, relative to one.

All of them join the same four patterns over one window; above that, each has its own filter and its own
aggregate or projection. Measured with the join shared, and with each query having one of its own.

    python -m bench.shared_shapes [--queries 100] [--events 40000]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator

import numpy as np
from pyoxigraph import Literal, NamedNode

from kelda.engine.deltas import Ids
from kelda.engine.incremental import IncrementalEvaluator
from kelda.lang import parse

STREAM = "urn:observations"
JOIN = f"""STREAM <{STREAM}> [RANGE 10s] {{
    ?o <urn:by> ?sensor . ?o <urn:kind> ?kind . ?o <urn:value> ?v . ?o <urn:in> ?room }}"""
ABOVE = (
    ("?room (COUNT(*) AS ?n)", "GROUP BY ?room"),
    ("?kind (AVG(?v) AS ?mean)", "GROUP BY ?kind"),
    ("?room ?kind (SUM(?v) AS ?sum)", "GROUP BY ?room ?kind"),
    ("DISTINCT ?sensor", ""),
    ("?o ?v", ""),
)
SENSORS, KINDS, ROOMS, VALUES = 500, 8, 40, 1000
EVENTS_A_SECOND, BATCH = 1000, 2000


def query(number: int, queries: int) -> str:
    """A query of a shape of its own: its filter keeps from a tenth to nearly nothing."""
    shown, tail = ABOVE[number % len(ABOVE)]
    least = int(VALUES * (0.9 + 0.1 * number / queries))
    return f"SELECT {shown} {{ {JOIN} FILTER(?v >= {least}) }} {tail}"


def batches(engine: IncrementalEvaluator, events: int) -> Iterator[tuple[Ids, ...]]:
    """Events of four triples, as columns."""
    rng = np.random.default_rng(3)
    encode = engine.dictionary.encode
    predicates = [encode(NamedNode(f"urn:{name}")) for name in ("by", "kind", "value", "in")]
    sensors, kinds, rooms = (
        np.array([encode(NamedNode(f"urn:{name}{i}")) for i in range(size)], np.int64)
        for name, size in (("sensor", SENSORS), ("kind", KINDS), ("room", ROOMS))
    )
    values = np.array([encode(Literal(i)) for i in range(VALUES)], np.int64)
    names = np.array([encode(NamedNode(f"urn:observation:{i}")) for i in range(events)], np.int64)
    for first in range(0, events, BATCH):
        numbers = np.arange(first, min(first + BATCH, events))
        size = len(numbers)
        objects = np.stack([rng.choice(some, size) for some in (sensors, kinds, values, rooms)], axis=1)
        yield (
            names[numbers].repeat(4),
            np.tile(np.array(predicates, np.int64), size),
            objects.ravel(),
            (numbers * 1000 // EVENTS_A_SECOND).repeat(4),
            np.arange(size).repeat(4),
        )


def run(queries: list[str], events: int, shared: bool) -> tuple[float, int, int]:
    """(seconds of CPU, bytes held, answers)."""
    engine = IncrementalEvaluator()
    engine.add_stream(STREAM)
    for i, text in enumerate(queries):
        engine.register(f"q{i}", parse(text))
        if not shared:
            engine.apart()
    assert not engine.reasons
    data, answers = list(batches(engine, events)), 0
    begin = time.process_time()
    for columns in data:
        answers += sum(map(len, engine.push_batch(STREAM, *columns)))
    took = time.process_time() - begin
    return took, sum(held.bytes for held in engine.memory() if held.kind != "dictionary"), answers


def best(queries: list[str], events: int, shared: bool) -> tuple[float, int, int]:
    """The least of three runs."""
    return min(run(queries, events, shared) for _ in range(3))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--queries", type=int, default=100)
    arguments.add_argument("--events", type=int, default=40_000)
    chosen = arguments.parse_args()
    texts = [query(i, chosen.queries) for i in range(chosen.queries)]
    run(texts[: len(ABOVE)], 2 * BATCH, True)  # compiles
    # One query costs as the mean of the different shapes, each alone.
    alone = [best([text], chosen.events, True) for text in texts[: len(ABOVE)]]
    one = tuple(float(np.mean([measured[i] for measured in alone])) for i in range(2))
    rows = [{"queries": 1, "shared": True, "cpu_s": one[0], "bytes": one[1]}]
    print(f"{'queries':>8}  {'join':8}{'CPU s':>8}{'of one':>8}{'MB':>9}{'of one':>8}{'answers':>12}")
    print(f"{1:>8}  {'alone':8}{one[0]:>8.2f}{1:>8.1f}{one[1] / 1e6:>9.1f}{1:>8.1f}")
    for shared in (True, False):
        took, held, answers = (best if shared else run)(texts, chosen.events, shared)
        rows.append({"queries": len(texts), "shared": shared, "cpu_s": took, "bytes": held})
        print(
            f"{len(texts):>8}  {'shared' if shared else 'each own':8}{took:>8.2f}{took / one[0]:>8.1f}"
            f"{held / 1e6:>9.1f}{held / one[1]:>8.1f}{answers:>12,}",
            flush=True,
        )
    print(json.dumps({"benchmark": "shared_shapes", "triples": 4 * chosen.events, "rows": rows}))


if __name__ == "__main__":
    main()
