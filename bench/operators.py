"""How fast the keyed operators take signed rows, on one core, in CPU time.

    python bench/operators.py [rows] [rows per step]

A stream of rows in a sliding window: every row comes (+1) and goes (-1) `window` instants later. Rates are
deltas taken per second, of all inputs together; beside them what was sent, and the state held at most.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter, process_time

import numpy as np

from kelda.engine.deltas import Deltas, Operator
from kelda.engine.operators.antijoin import AntiJoin
from kelda.engine.operators.distinct import Distinct
from kelda.engine.operators.join import DeltaJoin

A, B = ("x", "y"), ("x", "z")


def sliding(columns: tuple[str, ...], rows: int, window: int, keys: int, seed: int) -> Deltas:
    """Ten rows per instant, the first column one of `keys` ids, the second hardly ever the same twice."""
    random = np.random.default_rng(seed)
    came = np.arange(rows) // 10
    ids = np.random.default_rng(keys).integers(1, 1 << 62, keys)  # the same on both sides of a join
    values = np.stack([ids[random.integers(0, keys, rows)], random.integers(1, 1 << 62, rows)])
    time = np.concatenate([came, came + window // 10])
    order = np.argsort(time, kind="stable")
    weight = np.repeat(np.array([1, -1]), rows)
    return Deltas(columns, time[order], weight[order], np.concatenate([values, values], axis=1)[:, order])


def steps(inputs: tuple[Deltas, ...], per_step: int) -> list[tuple[int, tuple[Deltas, ...]]]:
    """The inputs, cut after every `per_step` deltas of the first, between two instants."""
    first = inputs[0].time
    ends = sorted(
        {int(first[i]) for i in range(per_step, len(first), per_step)}
        | {int(max(i.time[-1] for i in inputs))}
    )
    cut, before = [], [0] * len(inputs)
    for until in ends:
        after = [int(np.searchsorted(i.time, until, side="right")) for i in inputs]
        parts = tuple(
            Deltas(i.columns, i.time[b:a], i.weight[b:a], i.values[:, b:a])
            for i, b, a in zip(inputs, before, after, strict=True)
        )
        cut.append((until, parts))
        before = after
    return cut


def report(name: str, make: Callable[[], Operator], per_step: int, *inputs: Deltas) -> None:
    cut = steps(inputs, per_step)
    best, sent, held = float("inf"), 0, 0
    for _ in range(2):
        operator, sent, held = make(), 0, 0
        start = process_time()
        for until, parts in cut:
            sent += len(operator.step(*parts, until=until))
            held = max(held, operator.nbytes)
        best = min(best, process_time() - start)
    taken = sum(len(i) for i in inputs)
    print(
        f"{name:<44}{taken / best / 1e6:7.2f} M rows/s in {sent / best / 1e6:8.2f} M rows/s out"
        f"{best / len(cut) * 1e6:10.0f} µs/step {held / 1e6:8.1f} MB"
    )


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
    per_step = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    start = perf_counter()
    little = (sliding(A, 10, 10, 2, 0), sliding(B, 10, 10, 2, 1))
    for operator in (DeltaJoin(A, B, ("x",)), AntiJoin(A, B, ("x",))):
        operator.step(*little, until=10)
    Distinct(A).step(little[0], until=10)
    print(f"first call (compiles, or loads the cache): {perf_counter() - start:.1f} s")
    for window in (1_000, 100_000):
        a, b = sliding(A, rows, window, window, 2), sliding(B, rows, window, window, 6)
        few = sliding(A, rows, window, 100, 3).project(("x",))
        one = sliding(B, rows, window, 1, 5)
        tag = f"window {window:,}"
        report(f"distinct, {tag}, all rows differ", lambda: Distinct(A), per_step, a)
        report(f"distinct, {tag}, 100 rows", lambda: Distinct(("x",)), per_step, few)
        report(f"join, {tag}, about one match", lambda: DeltaJoin(A, B, ("x",)), per_step, a, b)
        many = sliding(A, rows // 10, window, max(window // 100, 1), 4)
        more = sliding(B, rows // 10, window, max(window // 100, 1), 7)
        report(f"join, {tag}, about 100 matches", lambda: DeltaJoin(A, B, ("x",)), per_step, many, more)
        report(f"not exists, {tag}", lambda: AntiJoin(A, B, ("x",)), per_step, a, b)
        report(f"exists, {tag}", lambda: AntiJoin(A, B, ("x",), True), per_step, a, b)
        report(f"not exists, {tag}, one key", lambda: AntiJoin(A, B, ()), per_step, a, one)


if __name__ == "__main__":
    main()
