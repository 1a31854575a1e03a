"""Memory over a long run: an hour of stream time, as fast as it goes, over terms that never come again.

Orders and views of items; both have new names for ever, and the items in fashion change all the time.
Queries with windows of 10 s and 1 min run over them: joins, aggregates, DISTINCT, NOT EXISTS, a filter on
text. Every 5 % of the run are shown: resident memory, state of the queries, size of the dictionary.
What is flat after warm-up (the first 10 %) is bounded; what grows is not. The evaluator is looked into,
operator by operator, so it is driven itself.

    python -m bench.memory [--seconds 3600] [--rate 500]
"""

from __future__ import annotations

import argparse
import gc
import json
import time

import numpy as np

from bench.indexes import resident, state
from kelda.engine.incremental import IncrementalEvaluator
from kelda.lang import parse
from kelda.rdf import ntriples

ORDERS, VIEWS = "urn:orders", "urn:views"
ITEMS = 1000  # in fashion at a time
TURNOVER = 5  # new items a second
SAMPLES = 20
FLAT = 1.10  # flat: at the end at most this many times as much as after warm-up

QUERIES = {
    "join": """SELECT ?o ?v { STREAM <urn:orders> [RANGE 10s] { ?o <urn:of> ?item }
               STREAM <urn:views> [RANGE 1m] { ?v <urn:of> ?item } }""",
    "count": """SELECT ?item (COUNT(*) AS ?n) (AVG(?price) AS ?mean) {
                STREAM <urn:orders> [RANGE 1m] { ?o <urn:of> ?item . ?o <urn:price> ?price } }
                GROUP BY ?item""",
    "min": """SELECT ?item (MIN(?price) AS ?least) {
              STREAM <urn:orders> [RANGE 10s SLIDE 1s] { ?o <urn:of> ?item . ?o <urn:price> ?price }
              STREAM <urn:views> [RANGE 10s SLIDE 1s] { ?v <urn:of> ?item } } GROUP BY ?item""",
    "distinct": """SELECT DISTINCT ?item { STREAM <urn:orders> [RANGE 1m] { ?o <urn:of> ?item }
                   STREAM <urn:views> [RANGE 10s] { ?v <urn:of> ?item } }""",
    "not exists": """SELECT ?v ?item { STREAM <urn:views> [RANGE 10s] { ?v <urn:of> ?item }
                     FILTER NOT EXISTS { STREAM <urn:orders> [RANGE 1m] { ?o <urn:of> ?item } } }""",
    "text": """SELECT ?o { STREAM <urn:orders> [RANGE 10s] { ?o <urn:of> ?item }
               FILTER(CONTAINS(STR(?o), "77")) }""",
}


def second(rng: np.random.Generator, at: int, rate: int) -> dict[str, bytes]:
    """One second of both streams: a third of the triples say what is viewed, two thirds are orders."""
    when = np.sort(rng.integers(0, 1000, rate // 3)) + at * 1000
    items = at * TURNOVER + rng.integers(0, ITEMS, (2, rate // 3))
    prices = rng.integers(1, 10_000, rate // 3)
    orders = "".join(
        f"{t}\t<urn:order:{t}:{i}> <urn:of> <urn:item:{item}> .\n"
        f'{t}\t<urn:order:{t}:{i}> <urn:price> "{price}"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
        for i, (t, item, price) in enumerate(
            zip(when.tolist(), items[0].tolist(), prices.tolist(), strict=True)
        )
    )
    views = "".join(
        f"{t}\t<urn:view:{t}:{i}> <urn:of> <urn:item:{item}> .\n"
        for i, (t, item) in enumerate(zip(when.tolist(), items[1].tolist(), strict=True))
    )
    return {ORDERS: orders.encode(), VIEWS: views.encode()}


def sample(engine: IncrementalEvaluator) -> dict[str, float]:
    """What is held now, in bytes and terms."""
    gc.collect()
    states = {network.name: state(network.root) for network in engine.networks()}
    return {
        "resident": resident(),
        "state": sum(states.values()),
        "dictionary_terms": len(engine.dictionary),
        "dictionary_bytes": engine.dictionary.nbytes,
        **{f"state of {name}": size for name, size in states.items()},
    }


def run(seconds: int, rate: int) -> list[dict[str, float]]:
    """The samples of a run, the first one at 5 %."""
    engine = IncrementalEvaluator()
    for stream in (ORDERS, VIEWS):
        engine.add_stream(stream, from_start=True)
    for name, text in QUERIES.items():
        engine.register(name, parse(text))
    assert not engine.reasons, engine.reasons
    rng, samples, answers, triples = np.random.default_rng(5), [], 0, 0
    print(f"{'at s':>6}{'RSS MB':>9}{'state MB':>10}{'terms':>12}{'dict. MB':>10}{'answers':>12}{'CPU s':>8}")
    for at in range(1, seconds + 1):
        for stream, data in second(rng, at, rate).items():
            c = ntriples.read(data, engine.dictionary, timed=True)
            triples += len(c)
            assert c.t is not None
            answers += sum(map(len, engine.push_batch(stream, c.s, c.p, c.o, c.t)))
        if at * SAMPLES // seconds > (at - 1) * SAMPLES // seconds:
            now = {"at": at, "triples": triples, "answers": answers, **sample(engine)}
            samples.append(now)
            print(
                f"{at:>6}{now['resident'] / 1e6:>9.1f}{now['state'] / 1e6:>10.2f}"
                f"{now['dictionary_terms']:>12,}{now['dictionary_bytes'] / 1e6:>10.1f}"
                f"{answers:>12,}{time.process_time():>8.1f}",
                flush=True,
            )
    return samples


def verdict(samples: list[dict[str, float]]) -> dict[str, bool]:
    """Which of the quantities are flat after warm-up: the last quarter's mean against the second tenth's."""
    quarter = max(1, len(samples) // 4)
    flat = {}
    for what in samples[0]:
        if what in ("at", "triples", "answers"):
            continue
        early = np.mean([s[what] for s in samples[SAMPLES // 10 : SAMPLES // 5]])
        late = np.mean([s[what] for s in samples[-quarter:]])
        flat[what] = bool(late <= FLAT * early)
        print(f"{what:24}{early:>16,.0f}{late:>16,.0f}   {'flat' if flat[what] else 'GROWS'}")
    return flat


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--seconds", type=int, default=3600, help="of stream time")
    arguments.add_argument("--rate", type=int, default=500, help="triples per second of stream time")
    chosen = arguments.parse_args()
    begin = time.perf_counter()
    samples = run(chosen.seconds, chosen.rate)
    took = time.perf_counter() - begin
    print(f"\n{chosen.seconds} s of stream time in {took:.0f} s; after warm-up and at the end:")
    flat = verdict(samples)
    print(json.dumps({"benchmark": "memory", "took_seconds": took, "flat": flat, "samples": samples}))


if __name__ == "__main__":
    main()
