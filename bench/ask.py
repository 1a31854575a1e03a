"""One-shot queries S1 to S6 of Wukong+S over stored LSBench data, prepared, with their terms decoded.

CPU milliseconds at the median of each query: over one view, with a new view for each time, and with a new
view and no term remembered from the time before; beside them those of one view as ids alone and, with
`--oxigraph`, of Oxigraph over the same triples.

    python -m bench.ask [--users 10000] [--triples 1100000] [--repeats 200] [--queries S1,S4] [--profile S1]
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
from kelda.ask.prepared import prepare
from kelda.engine.oneshot import Solutions, evaluate
from kelda.lang import parse
from kelda.rdf import ntriples
from kelda.rdf.graphs import load_graph
from kelda.rdf.graphstore import GraphStore
from kelda.store.changes import Changes
from kelda.store.store import Store

QUERIES = ("S1", "S2", "S3", "S4", "S5", "S6")
COLUMNS = {
    "answers": "answers",
    "cpu_ms": "CPU ms",
    "p99_ms": "p99",
    "new_view_ms": "new view",
    "forgetful_ms": "new terms",
    "ids_ms": "as ids",
    "oxigraph_ms": "Oxigraph",
}
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


def measure(text: str, store: Store, repeats: int) -> dict[str, float]:
    """One query."""
    prepared, view = prepare(text, store.dictionary), store.view()
    answer = prepared.answer(view)
    assert isinstance(answer, Solutions)

    def forgetful() -> None:
        prepared.forget()
        prepared.answer(store.view())

    decoded = timed(lambda: prepared.answer(view), repeats)
    return {
        "answers": len(answer.rows),
        "cpu_ms": float(np.median(decoded)),
        "p99_ms": float(np.percentile(decoded, 99)),
        "new_view_ms": float(np.median(timed(lambda: prepared.answer(store.view()), repeats))),
        "forgetful_ms": float(np.median(timed(forgetful, repeats))),
        "ids_ms": float(np.median(timed(lambda: prepared.run(view), repeats))),
    }


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--users", type=int, default=10_000)
    arguments.add_argument("--triples", type=int, default=1_100_000, help="of the streams, copies included")
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
    print(f"{'':6}" + "".join(f"{title:>12}" for title in COLUMNS.values()))
    for name in chosen.queries.split(","):
        text = family.query(name).texts["sparql"]
        found = measure(text, store, chosen.repeats)
        if chosen.oxigraph:
            query = parse(text)
            found["oxigraph_ms"] = float(np.median(timed(lambda q=query: evaluate(q, other), 20)))  # type: ignore[misc]
        rows.append({"query": name, **found})
        print(f"{name:6}" + "".join(f"{found[key]:>12,.5g}" for key in COLUMNS if key in found), flush=True)
        if chosen.explain or chosen.profile == name:
            prepared = prepare(text, store.dictionary)
            prepared.answer(view)
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
