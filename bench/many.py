"""Many queries: one network per shape, one core, from files of N-Triples.

python -m bench.many [--triples 1000000]
"""

from __future__ import annotations

import argparse
import json

import numpy as np
from pyoxigraph import NamedNode

from bench.lsbench import PREFIXES, QUERIES, SIB, USERS, from_files, stored, texts

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


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--triples", type=int, default=1_000_000)
    chosen = arguments.parse_args()
    rng = np.random.default_rng(1)
    known, data = stored(rng), texts(rng, chosen.triples, ("urn:post",))
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
        tell("Q1", count, run(Q1, {"who": who[:count], "w": [100] * count}, known, data))
    two = texts(rng, chosen.triples, ("urn:post", "urn:like"))
    for count in (1, 1_000, 100_000):
        tell("L1", count, run(L1, {"who": who[:count], "w": [100] * count}, known, two))
    tell("Q4", 1, run(Q4, {"w": [1000]}, known, data))
    tell("Q4", 100, run(Q4, {"w": list(range(10, 1010, 10))}, known, data))
    print(json.dumps({"benchmark": "many", "rows": rows}))


if __name__ == "__main__":
    main()
