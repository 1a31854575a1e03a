"""Many queries: one network per shape, one core, from N-Triples text.

python -m bench.many [--triples 1000000]
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
from pyoxigraph import NamedNode

from bench.lsbench import PREFIXES, QUERIES, SIB, USERS, blocks, stored, texts
from kelda.engine.incremental import IncrementalEvaluator
from kelda.lang import prepare
from kelda.rdf import ntriples
from kelda.rdf.graphstore import GraphStore

Q1 = PREFIXES + "SELECT ?p ?o { STREAM <urn:post> [TRIPLES $w] { $who ?p ?o } }"
# As Wukong+S's L1: what one person does, on two streams.
L1 = PREFIXES + (
    "SELECT ?p ?o { { STREAM <urn:post> [TRIPLES $w] { $who ?p ?o } } "
    "UNION { STREAM <urn:like> [TRIPLES $w] { $who ?p ?o } } }"
)
Q4 = PREFIXES + QUERIES["Q4"].replace("[TRIPLES N]", "[TRIPLES $w]")


def run(
    text: str, values: dict[str, list[object]], store: GraphStore, data: list[tuple[str, bytes]]
) -> tuple[float, float, int]:
    """(seconds of CPU to register, triples/s, answers)."""
    names = [f"q{i}" for i in range(len(values["w"]))]
    rate, answers, registering = 0.0, 0, 0.0
    for some in (data[:2], data):  # the first run compiles
        engine = IncrementalEvaluator(store=store)
        for stream in dict.fromkeys(stream for stream, _ in data):
            engine.add_stream(stream, from_start=True)
        begin = time.process_time()
        engine.register_many(prepare(text), names, values)
        registering = time.process_time() - begin
        total = answers = 0
        begin = time.process_time()
        for stream, part in some:
            c = ntriples.read(part, engine.dictionary, timed=True)
            total += len(c)
            assert c.t is not None
            answers += sum(map(len, engine.push_batch(stream, c.s, c.p, c.o, c.t)))
        rate = total / (time.process_time() - begin)
    return registering, rate, answers


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--triples", type=int, default=1_000_000)
    chosen = arguments.parse_args()
    rng = np.random.default_rng(1)
    store, data = stored(rng), blocks(texts(rng, chosen.triples, ("urn:post",)))
    rows = []
    print(f"{'shape':6}{'queries':>9}{'register s':>12}{'text/s':>12}{'answers':>12}")

    def tell(shape: str, count: int, measured: tuple[float, float, int]) -> None:
        registering, rate, answers = measured
        rows.append(
            {"shape": shape, "queries": count, "register_s": registering, "rate": rate, "answers": answers}
        )
        print(f"{shape:6}{count:>9,}{registering:>12.2f}{rate:>12,.0f}{answers:>12,}", flush=True)

    # People who post, and as many who do not, as among the users of a network.
    who: list[object] = [NamedNode(f"{SIB}user/u{i % USERS if i < 2 * USERS else i}") for i in range(100_000)]
    for count in (1, 1_000, 100_000):
        tell("Q1", count, run(Q1, {"who": who[:count], "w": [100] * count}, store, data))
    two = blocks(texts(rng, chosen.triples, ("urn:post", "urn:like")))
    for count in (1, 1_000, 100_000):
        tell("L1", count, run(L1, {"who": who[:count], "w": [100] * count}, store, two))
    tell("Q4", 1, run(Q4, {"w": [1000]}, store, data))
    tell("Q4", 100, run(Q4, {"w": list(range(10, 1010, 10))}, store, data))
    print(json.dumps({"benchmark": "many", "rows": rows}))


if __name__ == "__main__":
    main()
