"""The ring index and the stateful operators, one core: the operator-aware paper's figures 9, 10 and 13
and its table 2, done on our structures.

Index: rows per second put into the ring index of a window of `--window` rows that slides, and nanoseconds
per probe (find the key, read its newest row), by number of distinct keys. Operators: elements per CPU-second
through the whole engine, from encoded columns. Memory: bytes of a join's state, by number of windows.

    python -m bench.indexes [--window 1000000] [--elements 1000000] [--parts index,operators,memory]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numba import njit
from pyoxigraph import Literal, NamedNode

from kelda.engine import window_join_kernels as kernels
from kelda.engine.incremental import IncrementalEvaluator
from kelda.engine.nodes import Node
from kelda.lang import parse

KEYS = (1_000, 100_000, 1_000_000)
PAPER_INSERTS, PAPER_PROBE = "0.4-0.8 M/s", "600-800 ns"
PAPER_JOIN_MB = {2: 12.36, 3: 13.41, 4: 14.74, 6: 16.95, 8: 18.69}  # CQELS, windows of 10,000
WINDOW = 10_000


def best(run: Callable[[], float], times: int = 3) -> float:
    """The least of some runs; one before them compiles and touches memory."""
    run()
    return min(run() for _ in range(times))


# ------------------------------------------------------------------------ the index alone


@njit(cache=True)
def probe_newest(keys, slots):  # type: ignore[no-untyped-def]
    """Look up each key by itself; a sum that needs every answer."""
    total = 0
    for key in keys:
        total += kernels.newest(slots, 0, len(slots), kernels.mix(np.uint64(1), key))
    return total


@njit(cache=True)
def probe_in_turn(keys, slots):  # type: ignore[no-untyped-def]
    """As `probe_newest`, but each look-up waits for the one before it: latency, not throughput.

    Row numbers are far below 2**62, so nothing is added to the key; only the compiler does not know."""
    last = np.int64(0)
    for key in keys:
        last = kernels.newest(slots, 0, len(slots), kernels.mix(np.uint64(1), key ^ (last >> 62)))
    return last


@njit(cache=True)
def walk_chains(keys, slots, cells, leaves, chain):  # type: ignore[no-untyped-def]
    """Walk the whole chain of each key; gives the rows met."""
    met = 0
    for key in keys:
        row = kernels.newest(slots, 0, len(slots), kernels.mix(np.uint64(1), key))
        while row >= leaves[0, kernels.OLDEST]:
            met += 1
            row = cells[kernels.address(leaves, 0, row) + chain]
    return met


def index(window: int, distinct: int) -> dict[str, float]:
    """Inserts and probes of one ring index with a full, sliding window."""
    rng = np.random.default_rng(distinct)
    ids = rng.integers(1, 1 << 62, distinct)
    capacity = 1 << (2 * window - 1).bit_length()
    rows = 2 * window  # the first window's worth fills, the second slides
    order = rng.permutation(distinct) if distinct >= window else rng.integers(0, distinct, window)
    slots_used = 1 << (2 * min(distinct, window) - 1).bit_length()  # at most half full, as the engine has it
    slots = np.full((slots_used, 2), kernels.EMPTY)
    chain = kernels.VALUES + 1
    leaves = np.array([[0, capacity - 1, chain + 1, 0, 0, 0, -1, 1, 0]])
    indexes = np.array([[0, 0, len(slots), 0, chain, 1, kernels.VALUES]])
    cells = np.zeros(capacity * (chain + 1), np.int64)
    when = np.arange(rows)
    kernels.append(cells, leaves, 0, ids[np.resize(order, rows)][None, :], when, when + window, when)

    def insert() -> float:
        slots[:] = kernels.EMPTY
        leaves[0, kernels.OLDEST] = indexes[0, kernels.USED] = 0
        kernels.fill(0, window, 0, cells, leaves, indexes, slots)
        spent, step = 0.0, window // 100
        for first in range(window, rows, step):
            leaves[0, kernels.OLDEST] = first + step - window  # what is older than the window goes
            begin = time.process_time()
            kernels.fill(first, first + step, 0, cells, leaves, indexes, slots)
            spent += time.process_time() - begin
        return spent

    seconds = best(insert)
    wanted = ids[rng.integers(0, distinct, window)]
    chains = wanted[: max(1, min(distinct, window) // 10)]

    def timed(run: Callable[[], int]) -> Callable[[], float]:
        def once() -> float:
            begin = time.process_time()
            run()
            return time.process_time() - begin

        return once

    probe = best(timed(lambda: probe_newest(wanted, slots)))
    in_turn = best(timed(lambda: probe_in_turn(wanted, slots)))
    walk = (chains, slots, cells, leaves, chain)
    met = walk_chains(*walk)
    walked = best(timed(lambda: walk_chains(*walk)))
    return {
        "window": window,
        "keys": distinct,
        "inserts_per_second": window / seconds,
        "ns_per_probe": probe / len(wanted) * 1e9,
        "ns_per_probe_in_turn": in_turn / len(wanted) * 1e9,
        "ns_per_row_of_chain": walked / met * 1e9,
    }


# ------------------------------------------------------------------------ operators, through the engine

OPERATORS = {  # N is the window; the streams are urn:s0, urn:s1, …
    "3-way join": """SELECT ?k ?a ?b ?c { STREAM <urn:s0> [TRIPLES N] { ?k <urn:p> ?a }
        STREAM <urn:s1> [TRIPLES N] { ?k <urn:p> ?b } STREAM <urn:s2> [TRIPLES N] { ?k <urn:p> ?c } }""",
    "AVG of a window": """SELECT ?k (AVG(?a) AS ?m) { STREAM <urn:s0> [TRIPLES N] { ?k <urn:p> ?a } }
        GROUP BY ?k""",
    "MIN over a join": """SELECT ?k (MIN(?b) AS ?m) { STREAM <urn:s0> [TRIPLES N] { ?k <urn:p> ?a }
        STREAM <urn:s1> [TRIPLES N] { ?k <urn:p> ?b } } GROUP BY ?k""",
    "AVG over a join": """SELECT ?k (AVG(?b) AS ?m) { STREAM <urn:s0> [TRIPLES N] { ?k <urn:p> ?a }
        STREAM <urn:s1> [TRIPLES N] { ?k <urn:p> ?b } } GROUP BY ?k""",
    "DISTINCT over a join": """SELECT DISTINCT ?k { STREAM <urn:s0> [TRIPLES N] { ?k <urn:p> ?a }
        STREAM <urn:s1> [TRIPLES N] { ?k <urn:p> ?b } }""",
    "NOT EXISTS": """SELECT ?k ?a { STREAM <urn:s0> [TRIPLES N] { ?k <urn:p> ?a }
        FILTER NOT EXISTS { STREAM <urn:s1> [TRIPLES N] { ?k <urn:p> ?b } } }""",
}


def join_of(ways: int) -> str:
    """A join of this many windows on one variable."""
    parts = "".join(f"STREAM <urn:s{i}> [TRIPLES N] {{ ?k <urn:p> ?v{i} }} " for i in range(ways))
    return f"SELECT * {{ {parts} }}"


def engine_for(text: str, window: int) -> tuple[IncrementalEvaluator, list[str]]:
    """An engine that runs the query, and its streams."""
    query = parse(text.replace("[TRIPLES N]", f"[TRIPLES {window}]"))
    streams = list(dict.fromkeys(w.stream.value for w in query.windows))  # type: ignore[union-attr]
    engine = IncrementalEvaluator()
    for stream in streams:
        engine.add_stream(stream, from_start=True)
    engine.register("q", query)
    assert not engine.reasons, engine.reasons
    return engine, streams


def batches(
    engine: IncrementalEvaluator, streams: list[str], elements: int, keys: int, batch: int
) -> Iterator[tuple[str, tuple[np.ndarray, ...]]]:
    """Random elements, in turn on each stream, one a millisecond; `batch` elements of all streams together
    at a time. The values are small numbers, which are written into their ids."""
    rng = np.random.default_rng(7)
    p = engine.dictionary.encode(NamedNode("urn:p"))
    ids = rng.integers(1, 1 << 62, keys)
    numbers = np.array([engine.dictionary.encode(Literal(i)) for i in range(1000)], np.int64)
    each = batch // len(streams)
    for first in range(0, elements // len(streams), each):
        when = 1_000 + np.arange(first, first + each)
        for stream in streams:
            s, o = ids[rng.integers(0, keys, each)], numbers[rng.integers(0, 1000, each)]
            yield stream, (s, np.full(each, p), o, when)


def operator(name: str, elements: int, keys: int, batch: int) -> dict[str, object]:
    """Elements per CPU-second of one query, window full from the beginning of the timed part."""
    sent = 0

    def run(some: int) -> float:
        nonlocal sent
        engine, streams = engine_for(OPERATORS[name], WINDOW)
        input = list(batches(engine, streams, some, keys, batch))
        filling = len(streams) * WINDOW * len(streams) // batch + 1
        sent, spent = 0, 0.0
        for i, (stream, columns) in enumerate(input):
            begin = time.process_time()
            answers = engine.push_batch(stream, *columns)
            if i >= filling:
                spent += time.process_time() - begin
                sent += sum(map(len, answers))
        return spent / ((len(input) - filling) * (batch // len(streams)))

    run(max(elements // 10, 6 * WINDOW + 4 * batch))
    seconds = run(elements)
    return {"query": name, "window": WINDOW, "keys": keys, "batch": batch, "elements_per_second": 1 / seconds,
            "answers": sent}  # fmt: skip


# ------------------------------------------------------------------------ memory


def state(node: Node) -> int:
    """Bytes of state of a node and all below it."""
    return node.nbytes + sum(state(n) for n in node.inputs)


def join_memory(ways: int) -> dict[str, float]:
    """State of an N-way join of windows of 10,000 with 10,000 keys, and what the process grew by at most."""
    small, streams = engine_for(join_of(ways), 100)
    for stream, columns in batches(small, streams, 2_000 * ways, WINDOW, 1_000 * ways):
        small.push_batch(stream, *columns)  # loads the compiled kernels
    engine, streams = engine_for(join_of(ways), WINDOW)
    started, most, grown = resident(), 0, 0
    for stream, columns in batches(engine, streams, 3 * WINDOW * ways, WINDOW, 1_000 * ways):
        engine.push_batch(stream, *columns)
        most = max(most, state(engine.network("q").root))
        grown = max(grown, resident() - started)
    return {"ways": ways, "state_mb": most / 1e6, "rss_growth_mb": grown / 1e6}


def resident() -> int:
    """Bytes of memory that the process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--window", type=int, default=1_000_000)
    arguments.add_argument("--elements", type=int, default=1_000_000)
    arguments.add_argument("--keys", type=int, default=10_000, help="distinct join keys of the operators")
    arguments.add_argument("--batch", type=int, default=60_000, help="elements per step of the operators")
    arguments.add_argument("--parts", default="index,operators,memory")
    arguments.add_argument("--ways", type=int, help="memory of one join alone, in this process")
    chosen = arguments.parse_args()
    if chosen.ways:
        print(json.dumps(join_memory(chosen.ways)))
        return
    result: dict[str, object] = {"benchmark": "indexes"}
    if "index" in chosen.parts:
        print(f"ring index, window of {chosen.window:,} rows (paper: {PAPER_INSERTS}, {PAPER_PROBE} a probe)")
        print(f"{'keys':>10}{'inserts/s':>14}{'ns/probe':>10}{'in turn':>10}{'ns/chain row':>14}")
        rows = []
        for keys in KEYS:
            row = index(chosen.window, min(keys, chosen.window))
            rows.append(row)
            print(
                f"{row['keys']:>10,}{row['inserts_per_second']:>14,.0f}{row['ns_per_probe']:>10.1f}"
                f"{row['ns_per_probe_in_turn']:>10.1f}{row['ns_per_row_of_chain']:>14.1f}",
                flush=True,
            )
        result["index"] = rows
    if "operators" in chosen.parts:
        print(f"\noperators, windows of {WINDOW:,}, {chosen.keys:,} keys, {chosen.batch:,} elements a step")
        print(f"{'query':24}{'elements/s':>14}{'answers':>12}")
        found = []
        for name in OPERATORS:
            one = operator(name, chosen.elements, chosen.keys, chosen.batch)
            found.append(one)
            print(f"{name:24}{one['elements_per_second']:>14,.0f}{one['answers']:>12,}", flush=True)
        result["operators"] = found
    if "memory" in chosen.parts:
        print(f"\njoin of windows of {WINDOW:,}: MB")
        print(f"{'ways':>5}{'state':>10}{'RSS growth':>12}{'CQELS':>10}")
        sizes = []
        for ways, paper in PAPER_JOIN_MB.items():  # each in a process of its own: peak RSS never falls
            command = [sys.executable, "-m", "bench.indexes", "--ways", str(ways)]
            size = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            sizes.append(size)
            print(
                f"{ways:>5}{size['state_mb']:>10.2f}{size['rss_growth_mb']:>12.1f}{paper:>10.2f}", flush=True
            )
        result["memory"] = sizes
    print(json.dumps(result))


if __name__ == "__main__":
    main()
