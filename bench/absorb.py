"""Absorbing: from text to a durable batch; what a triple takes in memory; loading and opening again.

Streams of LSBench's shape (posts, photos and likes, each like once) as `.tsnt` text become facts of the
default graph of an engine with a checkpoint, in batches of 1,000, 10,000 and 100,000 triples. Some are there
before, and S1 to S6 have been asked: the indexes that they need are kept. CPU seconds of the whole process.
Beside them the single parts on the same text: text to ids, terms to the store, facts into its tables, the
files of a batch.

    python -m bench.absorb [--triples 1000000] [--batches 1000,10000,100000] [--load 10000000] [--profile]
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import json
import pstats
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import kelda
from bench.harness.families import load
from bench.harness.workload import resident_here
from kelda.rdf import ntriples
from kelda.rdf.dictionary import Dictionary
from kelda.shards.storing import Storing
from kelda.store.changes import Changes
from kelda.store.moments import BITS
from kelda.store.store import Store

TIMELESS = ("post", "postlike", "photo", "photolike")
ONE_SHOT = ("S1", "S2", "S3", "S4", "S5", "S6")
PARTS = ("parse", "terms", "apply", "write")


def text_of(triples: int, users: int, seed: int = 1) -> bytes:
    """So many elements of the timeless streams, in the order of time."""
    lines: list[bytes] = []
    family = load("lsbench")
    made = family.stream(
        triples=triples, scale=users, streams=TIMELESS, post_like_copies=1, photo_like_copies=1, seed=seed
    )
    for block in made:
        lines += block.text.splitlines(keepends=True)
    lines.sort(key=lambda line: int(line[: line.index(b"\t")]))
    return b"".join(lines)


def cut(text: bytes, lines: int) -> tuple[bytes, bytes]:
    """The first so many lines, and the rest."""
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == 10)
    at = 0 if lines == 0 else int(ends[lines - 1]) + 1
    return text[:at], text[at:]


def queries() -> list[str]:
    family = load("lsbench")
    return [family.query(name).texts["sparql"] for name in ONE_SHOT]


# ------------------------------------------------------------------------------ the whole


def absorbed(
    text: bytes, users: int, batch: int, *, lasts: bool = True, profile: cProfile.Profile | None = None
) -> dict[str, float]:
    """The engine as users have it: CPU microseconds a triple from the file to the committed batch."""
    before, rest = cut(text, len(text.splitlines()) // 5)
    with tempfile.TemporaryDirectory(prefix="kelda-bench-") as name:
        folder = Path(name)
        (folder / "stored.nt").write_bytes(b"".join(load("lsbench").stored(scale=users)))
        (folder / "before.tsnt").write_bytes(before)
        (folder / "rest.tsnt").write_bytes(rest)
        checkpoint = folder / "state" if lasts else None
        with kelda.connect(checkpoint=checkpoint, batch_events=batch) as engine:
            engine.load(folder / "stored.nt")
            engine.stream("urn:before", str(folder / "before.tsnt"), absorb="default")
            engine.start()
            engine.wait()
            for query in queries():
                engine.query(query)
            driver: Any = engine._driver
            if profile is not None:
                take = driver._next_batch
                driver._next_batch = lambda: profile.runcall(take)
            wall, cpu = time.perf_counter(), time.process_time()
            engine.stream("urn:rest", str(folder / "rest.tsnt"), absorb="default")
            engine.wait()
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            triples = rest.count(b"\n")
            facts = len(driver.levels.store.view())
    return {
        "batch": batch,
        "triples": triples,
        "stored_triples": facts,
        "cpu_us": cpu / triples * 1e6,
        "triples_per_cpu_s": triples / cpu,
        "triples_per_s": triples / wall,
    }


# ------------------------------------------------------------------------------ the parts


def parts(text: bytes, users: int, batch: int) -> dict[str, float]:
    """CPU microseconds a triple of each part, without what is around them."""
    spent = dict.fromkeys(PARTS, 0.0)
    store, dictionary = Store(), Dictionary()
    triples = 0
    with tempfile.TemporaryDirectory(prefix="kelda-bench-") as name:
        storing = Storing(Path(name))
        warm = text.count(b"\n") // 5
        before, rest = cut(text, warm)
        stored = b"".join(load("lsbench").stored(scale=users))
        store.apply(_facts(ntriples.read(stored, store.dictionary, quads=False), store.dictionary))
        _take(before, store, dictionary, storing, 0, dict.fromkeys(PARTS, 0.0))
        _build(store)
        for number, piece in enumerate(_pieces(rest, batch), 1):
            triples += _take(piece, store, dictionary, storing, number, spent)
    return {"batch": batch, **{part: used / triples * 1e6 for part, used in spent.items()}}


def _take(
    text: bytes, store: Store, dictionary: Dictionary, storing: Storing, number: int, spent: dict[str, float]
) -> int:
    begin = time.process_time()

    def tell(part: str) -> None:
        nonlocal begin
        now = time.process_time()
        spent[part] += now - begin
        begin = now

    columns = ntriples.read(text, dictionary, timed=True)
    changes = _facts(columns, dictionary)
    tell("parse")
    store.know(dictionary, changes)
    tell("terms")
    made = store.apply(changes)
    tell("apply")
    storing.write(number, made, store.dictionary, {})
    tell("write")
    return len(columns)


def _facts(columns: ntriples.Columns, dictionary: Dictionary) -> Changes:
    size = len(columns)
    moment = np.zeros(size, np.int64) if columns.t is None else columns.t << BITS
    return Changes(np.zeros(size, np.int64), columns.s, columns.p, columns.o, moment, np.ones(size, np.int64))


def _pieces(text: bytes, batch: int) -> Iterator[bytes]:
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == 10) + 1
    first = 0
    for i in range(batch - 1, len(ends) + batch - 1, batch):
        last = int(ends[min(i, len(ends) - 1)])
        yield text[first:last]
        first = last


def _build(store: Store) -> None:
    """Have the indexes that S1 to S6 need."""
    from kelda.ask.prepared import prepare

    for query in queries():
        prepare(query, store.dictionary).answer(store.view())


# ------------------------------------------------------------------------------ memory, loading


def memory(text: bytes, users: int) -> dict[str, float]:
    """Bytes a fact, with the indexes that S1 to S6 need, terms apart."""
    stored = b"".join(load("lsbench").stored(scale=users))
    dictionary = Dictionary()
    columns = [ntriples.read(stored, dictionary, quads=False), ntriples.read(text, dictionary, timed=True)]
    store = Store(dictionary=dictionary)
    gc.collect()
    before = resident_here()
    for some in columns:
        for first in range(0, len(some), 10_000):
            changes = _facts(some, dictionary)
            store.apply(Changes(*(c[first : first + 10_000] for c in changes.columns)))
        _build(store)
    facts = len(store.view())
    return {
        "stored_triples": facts,
        "bytes_allocated": store.nbytes / facts,
        "bytes_resident": (resident_here() - before) / facts,
        "bytes_of_terms": dictionary.nbytes / facts,
        "terms": len(dictionary),
    }


def loading(triples: int, users: int) -> dict[str, float]:
    """A file of N-Triples loaded into an engine with a checkpoint, and the checkpoint opened again."""
    with tempfile.TemporaryDirectory(prefix="kelda-bench-") as name:
        folder = Path(name)
        size = _write(folder / "stored.nt", triples, users)
        begin, wall = time.process_time(), time.perf_counter()
        with kelda.connect(checkpoint=folder / "state") as engine:
            engine.load(folder / "stored.nt")
            driver: Any = engine._driver
            entered = time.process_time() - begin
            found = engine.query("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }")
            facts = len(driver.levels.store.view())
            loaded, waited = time.process_time() - begin, time.perf_counter() - wall
            allocated = driver.levels.store.nbytes
        del found, driver, engine
        gc.collect()
        begin, wall = time.process_time(), time.perf_counter()
        with kelda.connect(checkpoint=folder / "state") as engine:
            opened, reopened = time.process_time() - begin, time.perf_counter() - wall
            driver = engine._driver
            assert len(driver.levels.store.view()) == facts
        on_disk = sum(p.stat().st_size for p in (folder / "state").rglob("*") if p.is_file())
    return {
        "triples": size,
        "stored_triples": facts,
        "entered_s": entered,
        "load_s": loaded,
        "load_wall_s": waited,
        "open_s": opened,
        "open_wall_s": reopened,
        "bytes_allocated": allocated / facts,
        "bytes_on_disk": on_disk / facts,
    }


def _write(path: Path, triples: int, users: int) -> int:
    """A file of N-Triples: stored data, and so many elements of the streams, likes once."""
    family, written = load("lsbench"), 0
    with path.open("wb") as file:
        for text in family.stored(scale=users):
            written += text.count(b"\n")
            file.write(text)
        made = family.stream(
            triples=triples - written, scale=users, streams=TIMELESS, post_like_copies=1, photo_like_copies=1
        )
        for block in made:
            file.write(b"".join(line.partition(b"\t")[2] for line in block.text.splitlines(keepends=True)))
            written += block.triples
    return written


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--triples", type=int, default=1_000_000)
    arguments.add_argument("--users", type=int, default=10_000)
    arguments.add_argument("--batches", default="1000,10000,100000")
    arguments.add_argument("--repeats", type=int, default=2)
    arguments.add_argument("--load", type=int, default=0, help="triples to be loaded from a file (10000000)")
    arguments.add_argument("--profile", action="store_true", help="tell the time of the whole by function")
    chosen = arguments.parse_args()
    text = text_of(chosen.triples, chosen.users)
    small = cut(text, 50_000)[0]
    report: dict[str, Any] = {"benchmark": "absorb", "whole": [], "parts": []}
    absorbed(small, 100, 10_000)  # compiles
    print(
        f"{'batch':>8}{'triples/CPU-s':>16}{'CPU µs':>9}{'triples/s':>12}   of single parts, CPU µs a triple"
    )
    for batch in map(int, chosen.batches.split(",")):
        profile = cProfile.Profile(time.thread_time) if chosen.profile else None
        runs = [absorbed(text, chosen.users, batch, profile=profile) for _ in range(chosen.repeats)]
        best = min(runs, key=lambda run: run["cpu_us"])
        some = min(
            (parts(text, chosen.users, batch) for _ in range(chosen.repeats)),
            key=lambda run: sum(run[part] for part in PARTS),
        )
        report["whole"].append(best)
        report["parts"].append(some)
        told = ", ".join(f"{part} {some[part]:.2f}" for part in PARTS)
        print(
            f"{batch:>8,}{best['triples_per_cpu_s']:>16,.0f}{best['cpu_us']:>9.2f}{best['triples_per_s']:>12,.0f}"
            f"   {told}",
            flush=True,
        )
        if profile is not None:
            pstats.Stats(profile).sort_stats("tottime").print_stats(30)
    report["memory"] = memory(text, chosen.users)
    found = report["memory"]
    print(
        f"{found['stored_triples']:,} facts: {found['bytes_allocated']:.0f} bytes each allocated, "
        f"{found['bytes_resident']:.0f} resident; {found['bytes_of_terms']:.0f} of terms ({found['terms']:,})"
    )
    if chosen.load:
        report["loading"] = found = loading(chosen.load, chosen.load // 100)
        print(
            f"{found['triples']:,} triples loaded in {found['load_s']:.1f} s of CPU, opened again in "
            f"{found['open_s']:.1f} s; {found['bytes_allocated']:.0f} bytes allocated for a fact, "
            f"{found['bytes_on_disk']:.0f} on disk"
        )
    print(json.dumps(report))


if __name__ == "__main__":
    main()
