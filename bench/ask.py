"""One-shot queries S1 to S6 of Wukong+S over stored LSBench data, prepared, with their terms decoded.

CPU milliseconds at the median of each query, beside those as ids alone and, with `--oxigraph`, of Oxigraph
over the same triples.

    python -m bench.ask [--users 10000] [--triples 1600000] [--repeats 200] [--queries S1,S4] [--profile S1]
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import time
from collections.abc import Callable

import numpy as np

from bench.harness.families import load
from kelda.ask.prepared import PreparedAsk, prepare
from kelda.engine.oneshot import Solutions, evaluate
from kelda.lang import parse
from kelda.rdf import ntriples
from kelda.rdf.graphs import load_graph
from kelda.rdf.graphstore import GraphStore
from kelda.store.changes import Changes
from kelda.store.store import Store
from kelda.store.view import View

QUERIES = ("S1", "S2", "S3", "S4", "S5", "S6")
ENOUGH = 2.0  # seconds that the repeats of one query may take


def texts(users: int, triples: int) -> list[bytes]:
    """Stored data and a while of the streams, as N-Triples."""
    family = load("lsbench")
    found = list(family.stored(scale=users))
    for block in family.stream(triples=triples, scale=users):
        found.append(b"\n".join(line.partition(b"\t")[2] for line in block.text.splitlines()) + b"\n")
    return found


def stored(parts: list[bytes]) -> Store:
    """A store that holds all of it."""
    store = Store()
    for text in parts:
        rows = ntriples.read(text, store.dictionary, quads=False)
        size = len(rows.s)
        nothing, ones = np.zeros(size, np.int64), np.ones(size, np.int64)
        store.apply(Changes(nothing, rows.s, rows.p, rows.o, nothing, ones))
    return store


def timed(run: Callable[[], object], repeats: int) -> list[float]:
    """CPU milliseconds of each run."""
    run()
    spent: list[float] = []
    begun = time.process_time()
    while len(spent) < 3 or (len(spent) < repeats and time.process_time() - begun < ENOUGH):
        begin = time.process_time_ns()
        run()
        spent.append((time.process_time_ns() - begin) / 1e6)
    return spent


def measure(prepared: PreparedAsk, view: View, repeats: int) -> dict[str, float]:
    """One query over one view."""
    answer = prepared.answer(view)
    assert isinstance(answer, Solutions)
    decoded = timed(lambda: prepared.answer(view), repeats)
    ids = timed(lambda: prepared.run(view), repeats)
    return {
        "answers": len(answer.rows),
        "cpu_ms": float(np.median(decoded)),
        "p99_ms": float(np.percentile(decoded, 99)),
        "ids_ms": float(np.median(ids)),
    }


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--users", type=int, default=10_000)
    arguments.add_argument("--triples", type=int, default=2_400_000, help="of the streams, copies included")
    arguments.add_argument("--repeats", type=int, default=200)
    arguments.add_argument("--queries", default=",".join(QUERIES))
    arguments.add_argument("--profile", default="", help="a query whose time is to be told by function")
    arguments.add_argument("--oxigraph", action="store_true")
    arguments.add_argument("--explain", action="store_true")
    chosen = arguments.parse_args()
    parts = texts(chosen.users, chosen.triples)
    store = stored(parts)
    view = store.view()
    triples = len(view)
    print(f"{triples:,} stored triples, {store.nbytes / triples:.0f} bytes each")
    other = GraphStore()
    for text in parts if chosen.oxigraph else []:
        load_graph(other, text, format="ntriples")
    family, rows = load("lsbench"), []
    print(f"{'':6}{'answers':>10}{'CPU ms':>10}{'p99':>10}{'as ids':>10}{'Oxigraph':>10}")
    for name in chosen.queries.split(","):
        text = family.query(name).texts["sparql"]
        prepared = prepare(text, store.dictionary)
        found = measure(prepared, view, chosen.repeats)
        if chosen.oxigraph:
            query = parse(text)
            found["oxigraph_ms"] = float(np.median(timed(lambda q=query: evaluate(q, other), 20)))  # type: ignore[misc]
        rows.append({"query": name, **found})
        print(
            f"{name:6}{found['answers']:>10,}{found['cpu_ms']:>10.3f}{found['p99_ms']:>10.3f}"
            f"{found['ids_ms']:>10.3f}{found.get('oxigraph_ms', 0):>10.3f}",
            flush=True,
        )
        if chosen.explain:
            print(prepared.explain())
        if chosen.profile == name:
            profile = cProfile.Profile()
            profile.enable()
            for _ in range(chosen.repeats):
                prepared.answer(view)
            profile.disable()
            pstats.Stats(profile).sort_stats("tottime").print_stats(25)
    print(json.dumps({"benchmark": "ask", "triples": triples, "queries": rows}))


if __name__ == "__main__":
    main()
