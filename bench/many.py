"""Many queries: one network per shape, one core, from files of N-Triples.

python -m bench.many [--triples 1000000]
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
from pyoxigraph import NamedNode

from bench.harness.stores import store_of
from bench.lsbench import PREFIXES, QUERIES, SIB, USERS, blocks, from_files, stored, texts
from kelda.engine.incremental import IncrementalEvaluator
from kelda.lang import prepare
from kelda.rdf import ntriples

Q1 = PREFIXES + "SELECT ?p ?o { STREAM <urn:post> [TRIPLES $w] { $who ?p ?o } }"
# As Wukong+S's L1: what one person does, on two streams.
L1 = PREFIXES + (
    "SELECT ?p ?o { { STREAM <urn:post> [TRIPLES $w] { $who ?p ?o } } "
    "UNION { STREAM <urn:like> [TRIPLES $w] { $who ?p ?o } } }"
)
Q4 = PREFIXES + QUERIES["Q4"].replace("[TRIPLES N]", "[TRIPLES $w]")


def run(
    text: str, values: dict[str, list[object]], known: bytes, data: dict[str, bytes]
) -> tuple[float, float, int]:
    """(seconds of CPU to register, triples/s, answers)."""
    return from_files(lambda engine: engine.register_many(engine.prepare(text), values), known, data)


def run_alone(
    text: str, values: dict[str, list[object]], known: bytes, data: dict[str, bytes]
) -> tuple[float, float]:
    """(seconds of CPU to register, triples/s) of the evaluator: the network without what is around it, such
    as the object that a user holds for each query, and whose answers are apart from those of the others."""
    store = store_of([known])
    names = [f"q{i}" for i in range(len(values["w"]))]
    rate, registering, parts = 0.0, 0.0, blocks(data)
    for some in (parts[:2], parts):  # the first run compiles
        engine = IncrementalEvaluator(store=store)
        for stream in data:
            engine.add_stream(stream, from_start=True)
        begin = time.process_time()
        engine.register_many(prepare(text), names, values)
        registering = time.process_time() - begin
        total = 0
        begin = time.process_time()
        for stream, part in some:
            c = ntriples.read(part, engine.dictionary, timed=True)
            total += len(c)
            assert c.t is not None
            engine.push_batch(stream, c.s, c.p, c.o, c.t)
        rate = total / (time.process_time() - begin)
    return registering, rate


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--triples", type=int, default=1_000_000)
    chosen = arguments.parse_args()
    rng = np.random.default_rng(1)
    known, data = stored(rng), texts(rng, chosen.triples, ("urn:post",))
    rows = []
    print(f"{'':6}{'':>9}{'as a user runs it':>24}{'the network alone':>24}")
    heads = ("register s", "text/s", "register s", "text/s", "answers")
    print(f"{'shape':6}{'queries':>9}" + "".join(f"{head:>12}" for head in heads))

    def tell(shape: str, text: str, values: dict[str, list[object]], data: dict[str, bytes]) -> None:
        count = len(values["w"])
        registering, rate, answers = run(text, values, known, data)
        alone_s, alone = run_alone(text, values, known, data)
        row = {"shape": shape, "queries": count, "register_s": registering, "rate": rate}
        rows.append(row | {"alone_register_s": alone_s, "alone_rate": alone, "answers": answers})
        print(
            f"{shape:6}{count:>9,}{registering:>12.2f}{rate:>12,.0f}{alone_s:>12.2f}{alone:>12,.0f}{answers:>12,}",
            flush=True,
        )

    # People who post, and as many who do not, as among the users of a network.
    who: list[object] = [NamedNode(f"{SIB}user/u{i % USERS if i < 2 * USERS else i}") for i in range(100_000)]
    for count in (1, 1_000, 100_000):
        tell("Q1", Q1, {"who": who[:count], "w": [100] * count}, data)
    two = texts(rng, chosen.triples, ("urn:post", "urn:like"))
    for count in (1, 1_000, 100_000):
        tell("L1", L1, {"who": who[:count], "w": [100] * count}, two)
    tell("Q4", Q4, {"w": [1000]}, data)
    tell("Q4", Q4, {"w": list(range(10, 1010, 10))}, data)
    print(json.dumps({"benchmark": "many", "rows": rows}))


if __name__ == "__main__":
    main()
