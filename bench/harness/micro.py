"""Measurements of single parts, for the experiments that are about one: an index, an operator, a step.

The work is done by the modules beside this package (`bench.indexes`, `bench.latency`, `bench.many`)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from pyoxigraph import NamedNode

from bench import indexes, latency, many
from bench.harness.families import load
from bench.harness.stores import store_of
from bench.lsbench import SIB, USERS, stored, texts
from kelda.engine.incremental import IncrementalEvaluator
from kelda.lang import algebra as A
from kelda.lang import parse


def ring_index(window: int, keys: int) -> dict[str, Any]:
    """The ring index alone, window full and sliding."""
    found = indexes.index(window, min(keys, window))
    return {
        **found,
        "probes_per_second": 1e9 / found["ns_per_probe"],
        "cost_us": 1e6 / found["inserts_per_second"],
    }


def operator(
    text: str, window: int, keys: int, elements: int, batch: int, repeats: int = 3
) -> dict[str, Any]:
    """Elements per CPU-second through the whole engine from encoded columns, once the windows are full."""
    rates, answers, state = [], 0, 0
    for _ in range(repeats):
        engine, streams = indexes.engine_for(text, window)
        answers, spent, taken = _pushed(
            engine,
            list(indexes.batches(engine, streams, window * len(streams) + elements, keys, batch)),
            window * len(streams),
        )
        rates.append(taken / spent)
        state = sum(engine.nbytes.values())
    return _rate(rates) | {"answers": answers, "state_mb": state / 1e6}


def stored_join(rows: int, window: int, elements: int, batch: int, repeats: int = 3) -> dict[str, Any]:
    """A window joined with so many stored triples, one for each key; elements per CPU-second."""
    text = "SELECT ?k ?a ?b { STREAM <urn:s0> [TRIPLES N] { ?k <urn:p> ?a } ?k <urn:q> ?b }"
    query = parse(text.replace("[TRIPLES N]", f"[TRIPLES {window}]"))

    def texts() -> Iterator[bytes]:
        for first in range(0, rows, 1_000_000):
            last = min(first + 1_000_000, rows)
            yield "".join(f"<urn:k{i}> <urn:q> <urn:v{i % 1000}> .\n" for i in range(first, last)).encode()

    begin = time.process_time()
    store = store_of(texts())
    loading = time.process_time() - begin
    rates, answers, registering, state = [], 0, 0.0, 0
    for _ in range(repeats):
        engine = IncrementalEvaluator(store=store)
        engine.add_stream("urn:s0", from_start=True)
        begin = time.process_time()
        engine.register("q", query)
        registering = time.process_time() - begin
        rng = np.random.default_rng(7)
        some = np.array(
            [engine.dictionary.encode(NamedNode(f"urn:k{i}")) for i in rng.integers(0, rows, 100_000)],
            np.int64,
        )
        p = engine.dictionary.encode(NamedNode("urn:p"))
        input = []
        for first in range(0, window + elements, batch):
            s = some[rng.integers(0, len(some), batch)]
            o = some[rng.integers(0, len(some), batch)]
            input.append(("urn:s0", (s, np.full(batch, p), o, 1_000 + np.arange(first, first + batch))))
        answers, spent, taken = _pushed(engine, input, window)
        rates.append(taken / spent)
        state = sum(engine.nbytes.values())
    return _rate(rates) | {
        "answers": answers,
        "load_s": loading,
        "register_s": registering,
        "stored_triples": rows,
        "state_mb": state / 1e6,
    }


def _pushed(
    engine: IncrementalEvaluator, input: list[tuple[str, tuple[np.ndarray, ...]]], filling: int
) -> tuple[int, float, int]:
    """(answers, CPU seconds, elements) of what comes after the first `filling` elements."""
    answers, spent, taken, at = 0, 0.0, 0, 0
    for stream, columns in input:
        begin = time.process_time()
        sent = engine.push_batch(stream, *columns)
        used = time.process_time() - begin
        at += len(columns[0])
        if at > filling:
            spent += used
            taken += len(columns[0])
            answers += sum(map(len, sent))
    return answers, spent, taken


def _rate(rates: list[float]) -> dict[str, Any]:
    return {
        "elements_per_second": max(rates),
        "cost_us": 1e6 / max(rates),
        "spread": max(rates) / min(rates) - 1,
    }


def join_memory(ways: int) -> dict[str, Any]:
    """State of a join of so many windows of 10,000."""
    found = indexes.join_memory(ways)
    return {"state_mb": found["state_mb"], "grew_mb": found["rss_growth_mb"]}


def step_latency(query: str, output: str, rate: int, steps: int, users: int) -> dict[str, Any]:
    """A step of 100 ms of one of the six queries of Wukong+S."""
    known = latency.network(np.random.default_rng(0), users)
    kind = A.Output(output)
    latency.measure(query, kind, known, rate, 20)  # compiles and touches memory
    found = latency.measure(query, kind, known, rate, steps)
    return {
        "p50_ms": found["median_ms"],
        "p99_ms": found["p99_ms"],
        "cpu_ms": found["cpu_ms"],
        "answers": found["answers_per_step"],
        "stored_triples": len(known.store.view()),
    }


def matching(patterns: int, triples: int) -> dict[str, Any]:
    """So many triple patterns with different subjects, on posts of LSBench's shape, from text."""
    rng = np.random.default_rng(1)
    known, posts = stored(rng), texts(rng, triples, ("urn:post",))
    who = [NamedNode(f"{SIB}user/u{i % USERS if i < 2 * USERS else i}") for i in range(patterns)]
    registering, rate, answers = many.run(many.Q1, {"who": list(who), "w": [100] * patterns}, known, posts)
    return {"triples_per_cpu_s": rate, "cpu_us": 1e6 / rate, "register_s": registering, "answers": answers}


def many_streams(streams: int, queries: int, rate: int, steps: int) -> dict[str, Any]:
    """Queries that each join two of the streams, windows of 3 s: milliseconds for 100 ms of all streams."""
    engine = IncrementalEvaluator()
    names = [f"urn:s{i}" for i in range(streams)]
    for name in names:
        engine.add_stream(name, from_start=True)
    begin = time.process_time()
    for i in range(queries):
        one, other = names[i % streams], names[(i // streams + 1 + i) % streams]
        engine.register(
            f"q{i}",
            parse(
                f"SELECT ?k ?a ?b {{ STREAM <{one}> [RANGE 3s] {{ ?k <urn:p> ?a }} "
                f"STREAM <{other}> [RANGE {2 + i % 3}s] {{ ?k <urn:p> ?b }} }}"
            ),
        )
    registering = time.process_time() - begin
    p, rng = engine.dictionary.encode(NamedNode("urn:p")), np.random.default_rng(3)
    keys = rng.integers(1, 1 << 62, 10 * rate)
    each, warm = max(1, rate // streams // 10), 30
    wall, cpu, answers = [], [], 0
    for step in range(warm + steps):
        at, busy = time.perf_counter(), time.process_time()
        for name in names:
            when = 1_000 + step * 100 + np.arange(each) * 100 // each
            when[-1] = 1_099 + step * 100
            s, o = keys[rng.integers(0, len(keys), each)], keys[rng.integers(0, len(keys), each)]
            answers += sum(map(len, engine.push_batch(name, s, np.full(each, p), o, when)))
        if step >= warm:
            wall.append((time.perf_counter() - at) * 1000)
            cpu.append((time.process_time() - busy) * 1000)
    return {
        "p50_ms": float(np.median(wall)),
        "p99_ms": float(np.percentile(wall, 99)),
        "cpu_ms": float(np.mean(cpu)),
        "register_s": registering,
        "answers": answers,
    }


def registration(family: str, query: str, dialect: str, queries: int) -> dict[str, Any]:
    """Registering a query so many times under new names, text by text."""
    asked = load(family).query(query)
    engine = IncrementalEvaluator()
    for stream in asked.streams:
        engine.add_stream(stream, from_start=True)
    begin = time.process_time()
    for i in range(queries):
        engine.register(f"q{i}", parse(asked.texts[dialect], dialect=dialect))
    spent = time.process_time() - begin
    return {"register_s": spent, "cpu_ms": spent * 1000 / queries}
