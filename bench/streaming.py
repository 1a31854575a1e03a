"""One-shot queries while streams are absorbed: S1 to S6 of Wukong+S on an engine with a checkpoint.

Stored LSBench data, then all five streams at a rate, pushed as text every 100 ms and absorbed in this
process. CPU milliseconds of the asking thread at the median, terms decoded, with streams off and on; and how
many point queries a second one process answers, and two that have mapped the same store.

    python -m bench.streaming [--rate 133000] [--users 10000] [--triples 1100000] [--queries S1,S4] [--points]
"""

from __future__ import annotations

import argparse
import cProfile
import json
import multiprocessing
import pstats
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import kelda
from bench.ask import texts
from bench.harness import data
from bench.harness.families import load
from bench.harness.stores import facts
from kelda.ask.prepared import prepare
from kelda.rdf import ntriples
from kelda.rdf.dictionary import Dictionary
from kelda.store.moments import NEVER
from kelda.store.store import Store

QUERIES = ("S1", "S2", "S3", "S4", "S5", "S6")
STEP = 100  # ms
PAUSE = 0.001  # seconds between two queries: who asks leaves the others their turn
ALL = "http://example.org/all"
POINT = "S2"  # by a constant subject, with few answers


class Feeder(threading.Thread):
    """Pushes the streams' text, a step when it is due."""

    def __init__(self, engine: kelda.Engine, steps: list[bytes], triples: list[int]) -> None:
        super().__init__(daemon=True)
        self._stream, self._steps, self._triples = engine.stream(ALL), steps, triples
        self._ending = threading.Event()
        self.given, self.seconds = 0, 0.0

    def run(self) -> None:
        begin = time.perf_counter()
        for i, (text, many) in enumerate(zip(self._steps, self._triples, strict=True)):
            if self._ending.wait(max(0.0, begin + i * STEP / 1000 - time.perf_counter())):
                break
            self._stream.push(text)
            self.given += many
            self.seconds = time.perf_counter() - begin + STEP / 1000

    def end(self) -> None:
        """No further step."""
        self._ending.set()
        self.join()


@contextmanager
def stored(users: int, triples: int) -> Iterator[kelda.Engine]:
    """An engine with a checkpoint, over stored data to which a while of the streams was added before."""
    with tempfile.TemporaryDirectory(prefix="kelda-bench-") as name:
        path = Path(name) / "stored.nt"
        with path.open("wb") as file:
            file.writelines(texts(users, triples))
        with kelda.connect(checkpoint=Path(name) / "state", batch_events=20_000) as engine:
            engine.load(path)
            engine.stream(ALL, format="tsnt", absorb="default")
            engine.start()
            yield engine


def steps(rate: int, seconds: float, users: int) -> tuple[list[bytes], list[int]]:
    """The five streams, 100 ms at a time, and how many triples each step has."""
    family = load("lsbench")
    blocks = family.stream(triples=int(rate * seconds), rate=rate, scale=users, seed=2)
    made = data.by_time(blocks, family.streams, STEP)
    merged = []
    for step in made:
        lines = [line for piece in step for line in piece.text.splitlines(keepends=True)]
        merged.append(b"".join(sorted(lines, key=lambda line: int(line[: line.index(b"\t")]))))
    return merged, [sum(piece.triples for piece in step) for step in made]


def timed(run: Callable[[], object], seconds: float) -> np.ndarray:
    """CPU milliseconds that this thread takes for each of the runs of some seconds."""
    spent: list[float] = []
    until = time.perf_counter() + seconds
    while len(spent) < 3 or time.perf_counter() < until:
        begin = time.thread_time_ns()
        run()
        spent.append((time.thread_time_ns() - begin) / 1e6)
        time.sleep(PAUSE)
    return np.array(spent)


def measure(queries: list[str], users: int, triples: int, rate: int, seconds: float) -> dict[str, Any]:
    """Each query with streams off, on, and off again: more is stored by then."""
    family, rows = load("lsbench"), []
    made, counts = steps(rate, (seconds + 1) * len(queries), users)
    each = len(made) // len(queries)
    given, fed, behind, busy = 0, 0.0, [], 0.0
    with stored(users, triples) as engine:
        count = engine.prepare_query("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }")
        before = _number(count.ask())
        for i, name in enumerate(queries):
            query = engine.prepare_query(family.query(name).texts["sparql"])
            timed(query.ask, 0.2)
            off = [float(np.median(timed(query.ask, seconds / 2)))]
            some = slice(i * each, (i + 1) * each)
            feeder = Feeder(engine, made[some], counts[some])
            feeder.start()
            time.sleep(0.5)
            began = time.process_time()
            on = timed(query.ask, seconds)
            busy += time.process_time() - began
            feeder.end()
            waits = time.perf_counter()
            engine._driver.flush()
            behind.append(time.perf_counter() - waits)
            given, fed = given + feeder.given, fed + feeder.seconds
            after = timed(query.ask, seconds / 2)
            off.append(float(np.median(after)))
            answer: Any = query.ask()
            rows.append(
                {
                    "query": name,
                    "answers": len(answer.rows),
                    "off_ms": float(np.mean(off)),
                    "on_ms": float(np.median(on)),
                    "off_p99_ms": float(np.percentile(after, 99)),
                    "on_p99_ms": float(np.percentile(on, 99)),
                    "ratio": float(np.median(on) / np.mean(off)),
                }
            )
        facts_then = _number(count.ask())
    return {
        "rate": given / fed,
        "stored_triples": before,
        "absorbed": facts_then - before,
        "behind_s": max(behind),
        "process_cpu_s": busy,
        "queries": rows,
    }


def _number(answer: Any) -> int:
    return int(answer.rows[0]["n"].value)


# ------------------------------------------------------------------------------ point queries


def points(users: int, triples: int, seconds: float, processes: int) -> dict[str, Any]:
    """Point queries a second, prepared, terms decoded: by so many processes that have mapped one store."""
    with tempfile.TemporaryDirectory(prefix="kelda-bench-") as name:
        path = Path(name) / "heap"
        store, parts = Store(path), texts(users, triples)
        for text in parts:
            rows = ntriples.read(text, store.dictionary, quads=False)
            store.apply(facts(rows.s, rows.p, rows.o, NEVER + 1))
        prepare(load("lsbench").query(POINT).texts["sparql"], store.dictionary).answer(store.view())
        np.savez(Path(name) / "terms.npz", *store.dictionary.entries())
        context = multiprocessing.get_context("spawn")
        with context.Pool(processes) as pool:
            jobs = [pool.apply_async(asking, (str(path), seconds)) for _ in range(processes)]
            found = [job.get() for job in jobs]
    return {
        "processes": processes,
        "queries_per_s": sum(queries / wall for queries, wall, _ in found),
        "queries_per_cpu_s": sum(queries for queries, _, _ in found) / sum(cpu for _, _, cpu in found),
    }


def asking(path: str, seconds: float, profile: cProfile.Profile | None = None) -> tuple[int, float, float]:
    """(queries, seconds, CPU seconds) of one process."""
    store = Store(Path(path), dictionary=Dictionary())
    with np.load(Path(path).with_name("terms.npz")) as kept:
        ids, text, offsets = (kept[name] for name in kept.files)
        store.dictionary.add_batch(ids, text.tobytes(), offsets[:-1], offsets[1:])
    prepared = prepare(load("lsbench").query(POINT).texts["sparql"], store.dictionary)
    for _ in range(200):
        prepared.answer(store.view())
    if profile is not None:
        profile.enable()
    queries, begin, busy = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() < begin + seconds:
        for _ in range(50):
            prepared.answer(store.view())
        queries += 50
    wall, cpu = time.perf_counter() - begin, time.process_time() - busy
    if profile is not None:
        profile.disable()
    return queries, wall, cpu


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--users", type=int, default=10_000)
    arguments.add_argument("--triples", type=int, default=1_100_000, help="of the streams, stored before")
    arguments.add_argument("--rate", type=int, default=133_000)
    arguments.add_argument("--seconds", type=float, default=2.0, help="that each query is asked")
    arguments.add_argument("--queries", default=",".join(QUERIES))
    arguments.add_argument("--points", action="store_true", help="point queries a second instead")
    arguments.add_argument("--profile", action="store_true", help="of point queries, by function")
    chosen = arguments.parse_args()
    if chosen.points:
        for processes in (1, 2):
            found = points(chosen.users, chosen.triples, chosen.seconds, processes)
            print(
                f"{found['processes']} processes: {found['queries_per_s']:,.0f} point queries/s, "
                f"{found['queries_per_cpu_s']:,.0f} a CPU-second",
                flush=True,
            )
        if chosen.profile:
            with tempfile.TemporaryDirectory() as name:
                path, profile = Path(name) / "heap", cProfile.Profile()
                store = Store(path)
                for text in texts(chosen.users, chosen.triples):
                    rows = ntriples.read(text, store.dictionary, quads=False)
                    store.apply(facts(rows.s, rows.p, rows.o, NEVER + 1))
                np.savez(path.with_name("terms.npz"), *store.dictionary.entries())
                asking(str(path), chosen.seconds, profile)
                pstats.Stats(profile).sort_stats("tottime").print_stats(25)
        return
    found = measure(chosen.queries.split(","), chosen.users, chosen.triples, chosen.rate, chosen.seconds)
    print(
        f"{found['stored_triples']:,} stored triples; {found['rate']:,.0f} triples/s given, "
        f"{found['absorbed']:,} new facts absorbed, {found['behind_s']:.2f} s behind at the end"
    )
    print(f"{'':6}{'answers':>9}{'off ms':>9}{'on ms':>9}{'ratio':>7}{'off p99':>9}{'on p99':>9}")
    for row in found["queries"]:
        print(
            f"{row['query']:6}{row['answers']:>9,}{row['off_ms']:>9.3f}{row['on_ms']:>9.3f}{row['ratio']:>7.2f}"
            f"{row['off_p99_ms']:>9.2f}{row['on_p99_ms']:>9.2f}"
        )
    print(json.dumps({"benchmark": "streaming", **found}))


if __name__ == "__main__":
    main()
