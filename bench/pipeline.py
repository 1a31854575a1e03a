"""The pipeline on Spark: throughput, latency, the cost of an empty batch, many queries, memory over a day.

    python -m bench.pipeline throughput [--queries L1,L2,L3,L4,L5,L6] [--triples 8000000] [--shards 2]
                                        [--format tsnt|messages]
    python -m bench.pipeline against    [--queries L4,L5] [--triples 8000000] [--batch-events 400000]
    python -m bench.pipeline latency    [--rate 133000] [--seconds 30] [--absorb]
    python -m bench.pipeline empty      [--batches 300] [--shards 1]
    python -m bench.pipeline many       [--copies 1,1000]
    python -m bench.pipeline day        [--hours 24] [--rate 20]

Data are LSBench's, made by `bench.families.lsbench`: five streams as N-Triples text files with times, and the
stored network; the queries are Wukong+S's L1 to L6, all registered together: windows of 1 s that slide with
each element and send an answer once (CQELS-QL), or with `--dialect csparql` slide by 100 ms and send all
answers of each window. Throughput is that of the steady state, the second half of the batches: by then code
is compiled. `against` runs each query alone on the streams that it reads, at their rates in the mix of all
five, and the hand-written versions of `bench.baselines` on the same files (where they join: on their
beginning). Latency is open loop: a writer appends each element to its file when it is due by the wall clock,
whatever the pipeline does; an answer's latency is from the instant that it is about to its hand-over in the
driver. With `--absorb` all streams but GPS are stored as they come; with `--format messages` each element is
an RDF Message of two triples, the second of which tells its time.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from pyoxigraph import NamedNode

import bench.families.lsbench.generator as generator
import kelda
from bench.families.lsbench import FAMILY
from bench.families.lsbench.vocabulary import SIB
from bench.harness.resources import PAGE, PROC, adopt_orphans, cpu_seconds, family_of
from kelda.errors import UsageError
from kelda.io.formats import TIME_PREDICATE
from kelda.io.job import StreamSource
from kelda.rdf.times import ms_to_literal
from kelda.shards.deployment import Batch

SIX = "L1,L2,L3,L4,L5,L6"
RATE = 133_000  # triples a second of stream time, of all five streams
JOINS = {
    "L4": 600_000,
    "L5": 1_200_000,
    "L6": 1_200_000,
}  # triples that a join by hand manages
WINDOWS = 2_400_000  # and those by which each window is evaluated anew
FEW_BATCHES = 6  # are enough for a filter that is run in
ABSORBED = "urn:bench:absorbed"  # the graph that streams are stored in
WARM = 200_000  # triples, in batches of 2,000, that both sides are run in with


@contextmanager
def connected(
    streams: Sequence[StreamSource],
    stored: Path | None,
    shards: int,
    batch_events: int,
    master: str,
    absorbs: bool = False,
) -> Iterator[tuple[kelda.Engine, Path]]:
    """An engine on Spark over streams and a graph, and its checkpoint, which goes with it."""
    checkpoint = Path(tempfile.mkdtemp(prefix="kelda-bench-"))
    try:
        with kelda.connect(
            master,
            checkpoint=checkpoint,
            shards=shards,
            batch_events=batch_events,
            fixed_graphs=not absorbs,
        ) as engine:
            for stream in streams:
                absorb = ABSORBED if absorbs and _file(stream.iri) != "gps" else None
                how = {"format": stream.format, "mapping": stream.mapping, "absorb": absorb}
                engine.stream(stream.iri, stream.path, **how)
            if stored is not None:
                engine.load(stored)
            yield engine, checkpoint
    finally:
        shutil.rmtree(checkpoint, ignore_errors=True)


def register(engine: kelda.Engine, names: Sequence[str], dialect: str, copies: int = 1) -> None:
    """The queries, or as many copies of each that differ in the user whom they ask about."""
    for name in names:
        text = FAMILY.query(name).texts[dialect]
        if copies == 1:
            engine.register(text, name, dialect=dialect)
            continue
        values: dict[str, list[object]] = {}
        for kind, letter in (("user", "u"), ("person", "p")):
            if f"{kind}:{letter}0" in text:
                text = text.replace(f"{kind}:{letter}0", f"${letter}0")
                values[f"{letter}0"] = [NamedNode(f"{SIB}{kind}/{letter}{i}") for i in range(copies)]
        prepared = engine.prepare(text, dialect=dialect)
        engine.register_many(prepared, values, [f"{name}-{i}" for i in range(copies)])


def write_data(
    folder: Path, triples: int, rate: float, users: int, seed: int = 1, only: Sequence[str] = ()
) -> list[StreamSource]:
    """The streams as files (`only` some of them, each as dense as among all), and `stored.nt`."""
    folder.mkdir(parents=True)
    streams = list(only) or list(FAMILY.streams)
    if only:
        rate *= share_of(only, users)
    paths = {iri: folder / f"{_file(iri)}.tsnt" for iri in streams}
    files = {iri: path.open("wb") for iri, path in paths.items()}
    for block in FAMILY.stream(triples=triples, rate=rate, scale=users, seed=seed, streams=streams):
        files[block.stream].write(block.text)
    for file in files.values():
        file.close()
    with (folder / "stored.nt").open("wb") as file:
        for text in FAMILY.stored(scale=users, seed=seed):
            file.write(text)
    return [StreamSource(iri, str(path)) for iri, path in paths.items()]


def as_messages(data: Path, iri: str) -> Path:
    """A stream's file as RDF Messages in N-Triples, made once."""
    text, made = data / f"{_file(iri)}.tsnt", data / f"{_file(iri)}.messages"
    if made.exists():
        return made
    with text.open("rb") as lines, made.open("wb") as out:
        out.write(b'VERSION "1.2-messages"\n')
        last, said = b"", b""
        for line in lines:
            ms, _, triple = line.partition(b"\t")
            if ms != last:
                last = ms
                said = f" <{TIME_PREDICATE}> {ms_to_literal(int(ms))} .\nMESSAGE\n".encode()
            out.write(triple + triple[: triple.index(b" ")] + said)
    return made


def share_of(streams: Sequence[str], users: int) -> float:
    """The part that these streams have of all triples."""
    counts = dict.fromkeys(FAMILY.streams, 0)
    for block in FAMILY.stream(triples=400_000, rate=133_000, scale=users):
        counts[block.stream] += block.triples
    return sum(counts[stream] for stream in streams) / sum(counts.values())


def head(folder: Path, triples: int, to: Path) -> list[Path]:
    """The beginning of all streams in a folder, cut at one instant: about so many triples."""
    files = sorted(folder.glob("*.tsnt"))
    size = sum(file.stat().st_size for file in files)
    lines = sum(file.read_bytes()[: 1 << 22].count(b"\n") for file in files)
    read = sum(min(1 << 22, file.stat().st_size) for file in files)
    part = min(1.0, triples / (lines * size / read))
    first, last = zip(*map(_span, files), strict=True)
    until = min(first) + part * (max(last) - min(first))
    to.mkdir(parents=True, exist_ok=True)
    for file in files:
        with file.open("rb") as whole, (to / file.name).open("wb") as begin:
            for line in whole:
                if int(line.partition(b"\t")[0]) > until:
                    break
                begin.write(line)
    return [to / file.name for file in files]


def have_in_memory(files: Sequence[str]) -> None:
    """Read files once, so that no disk is measured: the pieces that others read were just written."""
    for path in files:
        with open(path, "rb", buffering=0) as file:
            while file.read(1 << 24):
                continue


def _span(file: Path) -> tuple[int, int]:
    """The first and the last instant of a file."""
    with file.open("rb") as text:
        first = text.readline()
        text.seek(-4096, os.SEEK_END)
        last = text.read().splitlines()[-1]
    return int(first.partition(b"\t")[0]), int(last.partition(b"\t")[0])


class Watch:
    """When batches were done, and how much each read."""

    def __init__(self, *, cpu: bool = False, latency: bool = False) -> None:
        self.cpu = cpu  # to look at all processes takes some milliseconds
        self.latency = latency  # and so does it to look at the time of each answer
        self.batches: list[tuple[float, int, float]] = []  # wall clock, events, CPU seconds so far
        self.latencies: list[np.ndarray] = []

    def run(self, engine: kelda.Engine, until: float | None = None) -> None:
        """Let an engine run, to the end of its streams or to a moment."""
        self._engine = engine
        engine.watch(self.take)  # at the moment of the hand-over, which no poll would hit
        engine.start()
        engine.wait(None if until is None else until - time.time())

    def take(self, batch: Batch) -> None:
        now = time.time()
        events = sum(count for count, _ in batch.news[0].read.values()) if batch.news else 0
        self.batches.append((now, events, cpu_seconds() if self.cpu else 0.0))
        if self.latency:
            self.latencies.append(now - batch.merged.times / 1000)
        for query in self._engine.queries:
            for _ in query.batches():
                continue  # read is read

    def rates(self) -> tuple[float, float]:
        """Events per second in the steady state, on the wall and of CPU time."""
        some = [b for b in self.batches if b[1]]
        if len(some) < 4:
            raise UsageError(f"{len(some)} batches: give more triples, or smaller batches")
        half = len(some) // 2
        events = sum(events for _, events, _ in some[half:])
        (wall, _, cpu), (first_wall, _, first_cpu) = some[-1], some[half - 1]
        return events / (wall - first_wall), events / max(cpu - first_cpu, 1e-9)

    def batch_ms(self) -> list[float]:
        ends = [b[0] for b in self.batches]
        return [1000 * (b - a) for a, b in pairwise(ends)]


def throughput(
    data: Path,
    names: Sequence[str],
    triples: int,
    shards: int,
    batch_events: int,
    master: str,
    copies: int = 1,
    only: Sequence[str] = (),
    dialect: str = "cqels",
    format: str = "tsnt",
) -> dict[str, object]:
    """All queries together over files, as fast as it goes; `only` some of the streams."""
    if not data.exists():
        write_data(data, triples, RATE, 1_000, only=only)
    streams = [StreamSource(iri, str(data / f"{_file(iri)}.tsnt")) for iri in only or FAMILY.streams]
    if format == "messages":
        streams = [StreamSource(stream.iri, str(as_messages(data, stream.iri))) for stream in streams]
    have_in_memory([stream.path for stream in streams])
    watch = Watch(cpu=True)
    with connected(streams, data / "stored.nt", shards, batch_events, master) as (engine, _):
        register(engine, names, dialect, copies)
        begin = time.time()
        watch.run(engine)
        figures = engine.figures
    rate, of_cpu = watch.rates()
    return {
        "queries": len(names) * copies,
        "shards": shards,
        "format": format,
        "triples": figures.events,
        "answers": figures.answers,
        "triples_per_second": round(rate),
        "triples_per_cpu_second": round(of_cpu),
        "batches": figures.batches,
        "batch_ms_median": round(float(np.median(watch.batch_ms())), 1),
        "first_batch_s": round(watch.batches[0][0] - begin, 1),
    }


def _file(iri: str) -> str:
    return iri.rsplit(":", 1)[-1].rsplit("/", 1)[-1]


def against(
    folder: Path,
    names: Sequence[str],
    triples: int,
    shards: int,
    batch_events: int,
    master: str,
    dialect: str = "cqels",
) -> list[dict[str, object]]:
    """Each query alone on the streams that it reads: this pipeline, and hand-written Structured Streaming
    (`bench.baselines`, a JVM of its own), on the same files in batches of the same size. Where it keeps
    streams in Spark's state to join them, or evaluates each window anew, it reads their beginning, in batches
    of up to 200,000. Each JVM first gets a hundred small batches, to have compiled what a batch takes."""
    from bench.baselines import run as run_baseline

    found: list[dict[str, object]] = []
    for name in names:
        only = FAMILY.query(name).streams
        data = folder / "-".join([*map(_file, only), str(triples)])
        if not data.exists():
            write_data(data, triples, RATE, 1_000, only=only)
        warm = folder / f"{data.name}-head-{WARM}"
        warm_files = list(map(str, head(data, WARM, warm)))
        shutil.copy(data / "stored.nt", warm)
        throughput(warm, [name], WARM, shards, WARM // 100, master, only=only, dialect=dialect)
        files, stored = list(map(str, sorted(data.glob("*.tsnt")))), str(data / "stored.nt")
        ours = throughput(data, [name], triples, shards, batch_events, master, only=only, dialect=dialect)
        by_hand = partial(
            run_baseline, name, stored=stored, master=master, warm=warm_files, sliding=dialect != "cqels"
        )
        if name in JOINS:
            few = min(batch_events, 200_000)

            def beginning(many: int, data: Path = data) -> list[str]:
                return list(map(str, head(data, many, folder / f"{data.name}-head-{many}")))

            ways = [
                by_hand(files, batch_triples=batch_events, way="again")
                if dialect == "cqels"
                else by_hand(beginning(WINDOWS), batch_triples=few, way="again"),
                by_hand(beginning(JOINS[name]), batch_triples=few, way="join"),
            ]
        else:
            ways = [
                by_hand(files, batch_triples=batch_events, least_batches=FEW_BATCHES, way=way)
                for way in (["join"] if dialect == "cqels" else ["join", "windows"])
            ]
        row: dict[str, object] = {"query": name, "dialect": dialect, "batch_ms": ours["batch_ms_median"]}
        for rate in ("triples_per_second", "triples_per_cpu_second"):
            mine = float(str(ours[rate]))
            row[rate] = {"ours": round(mine)} | {way["way"]: way[rate] for way in ways}
            row["times " + rate] = {way["way"]: round(mine / way[rate], 1) for way in ways}
        found.append(row)
        print(found[-1], flush=True)
    return found


# ------------------------------------------------------------------------------ latency

WRITER = """
import pickle, sys, time
blocks = pickle.load(open(sys.argv[1], "rb"))
for due, path, text in blocks:
    wait = due - time.time()
    if wait > 0:
        time.sleep(wait)
    with open(path, "ab", buffering=0) as file:
        file.write(text)
"""


def latency(
    folder: Path,
    names: Sequence[str],
    rate: int,
    seconds: int,
    shards: int,
    batch_events: int,
    master: str,
    dialect: str = "cqels",
    absorbs: bool = False,
) -> dict[str, object]:
    """Elements appear when they are due; how long after its instant is an answer handed over?"""
    import pickle

    data = Path(tempfile.mkdtemp(prefix="latency-", dir=folder))
    lead = 45.0  # seconds for Spark to start
    begin = time.time() + lead
    generator.START = int(begin * 1000)
    schedule = []
    paths = {iri: data / f"{_file(iri)}.tsnt" for iri in FAMILY.streams}
    warm = 10
    for block in FAMILY.stream(
        triples=rate * (seconds + warm), rate=rate, scale=1_000, seed=1, block=max(500, rate // 20)
    ):
        schedule.append((block.until / 1000, str(paths[block.stream]), block.text))
    with (data / "stored.nt").open("wb") as file:
        for text in FAMILY.stored(scale=1_000, seed=1):
            file.write(text)
    for path in paths.values():
        path.touch()
    (data / "schedule").write_bytes(pickle.dumps(sorted(schedule)))
    late_by = time.time() - begin + lead
    watch = Watch(latency=True)
    streams = [StreamSource(iri, f"tail:{path}", "tsnt") for iri, path in paths.items()]
    end = begin + warm + seconds
    with connected(streams, data / "stored.nt", shards, batch_events, master, absorbs) as (engine, _):
        register(engine, names, dialect)
        engine.start()
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(data / "schedule")])
        watch.run(engine, end)
        writer.wait()
    measured = [b for b in watch.batches if begin + warm < b[0] < end]
    found = np.concatenate(
        [lat for lat, b in zip(watch.latencies, watch.batches, strict=True) if begin + warm < b[0] < end]
    )
    shutil.rmtree(data, ignore_errors=True)
    done = sum(b[1] for b in measured) / max(1e-9, measured[-1][0] - measured[0][0])
    return {
        "rate": rate,
        "absorbs": absorbs,
        "done_per_second": round(done),
        "shards": shards,
        "answers": len(found),
        "latency_ms": {f"p{q}": round(1000 * float(np.percentile(found, q))) for q in (50, 90, 99)},
        "batch_ms_median": round(float(np.median(watch.batch_ms()[len(watch.batches) // 3 :])), 1),
        "made_ready_s": round(late_by, 1),
    }


# ------------------------------------------------------------------------------ an empty batch


def empty(folder: Path, batches: int, shards: int, master: str) -> dict[str, object]:
    """One element in each batch, through source, shards, state and sink, with the six queries registered."""
    data = Path(tempfile.mkdtemp(prefix="empty-", dir=folder))
    path = data / "post.tsnt"
    lines = [f"{1_000 * i}\t<urn:s> <urn:p{i % 3}> <urn:o> .\n" for i in range(batches)]
    path.write_text("".join(lines))
    watch = Watch()
    streams = [StreamSource(FAMILY.query("L4").streams[0], str(path))]
    with connected(streams, None, shards, 1, master) as (engine, _):
        register(engine, ["L4"], "cqels")
        watch.run(engine)
    shutil.rmtree(data, ignore_errors=True)
    ms = watch.batch_ms()[batches // 4 :]
    return {
        "batches": len(watch.batches),
        "shards": shards,
        "batch_ms": {f"p{q}": round(float(np.percentile(ms, q)), 1) for q in (10, 50, 90)},
    }


# ------------------------------------------------------------------------------ a day


def day(folder: Path, hours: int, rate: int, shards: int, master: str) -> dict[str, object]:
    """A day of stream time as fast as it goes; resident memory of every process, over time."""
    data = folder / f"day-{hours}-{rate}"
    if not data.exists():
        write_data(data, int(hours * 3600 * rate), rate, 1_000)
    streams = [StreamSource(iri, str(data / f"{_file(iri)}.tsnt")) for iri in FAMILY.streams]
    samples: list[dict[str, float]] = []
    batch_events = max(1_000, int(hours * 3600 * rate) // 200)
    with connected(streams, data / "stored.nt", shards, batch_events, master) as (engine, checkpoint):
        register(engine, SIX.split(","), "cqels")
        engine.watch(lambda batch: samples.append(memory()) if batch.id % 5 == 0 else None)
        begin = time.time()
        Watch().run(engine)
        seconds, triples = time.time() - begin, engine.figures.events
        size = sum(f.stat().st_size for f in checkpoint.rglob("*") if f.is_file()) / 2**20
    third = max(1, len(samples) // 3)
    kinds = sorted({kind for sample in samples for kind in sample})

    def mean(some: list[dict[str, float]], kind: str) -> float:
        return round(sum(s.get(kind, 0) for s in some) / max(1, len(some)), 1)

    return {
        "hours": hours,
        "triples": triples,
        "seconds": round(seconds),
        "mb_in_second_third": {kind: mean(samples[third : 2 * third], kind) for kind in kinds},
        "mb_in_last_third": {kind: mean(samples[2 * third :], kind) for kind in kinds},
        "checkpoint_mb": round(size, 1),
    }


def memory() -> dict[str, float]:
    """Resident megabytes of this process and everything below it, by kind."""
    sums: dict[str, float] = {}
    for pid in family_of(os.getpid()):
        try:
            words = (PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        kind = (
            "driver"
            if pid == os.getpid()
            else "jvm"
            if "java" in words.split(" ", 1)[0]
            else "hosts"
            if int(fields[1]) == os.getpid() and "kelda.spark.daemon" in words  # adopted
            else "workers"
        )
        sums[kind] = sums.get(kind, 0) + int(fields[21]) * PAGE / 2**20
    return sums


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("what", choices=["throughput", "against", "latency", "empty", "many", "day"])
    arguments.add_argument("--queries", default=SIX)
    arguments.add_argument("--triples", type=int, default=8_000_000)
    arguments.add_argument("--shards", type=int, default=2)
    arguments.add_argument("--rate", type=int)
    arguments.add_argument("--seconds", type=int, default=30)
    arguments.add_argument("--batches", type=int, default=300)
    arguments.add_argument("--batch-events", type=int, default=200_000)
    arguments.add_argument("--copies", default="1,1000")
    arguments.add_argument("--query", default="L3", help="whose copies `many` registers")
    arguments.add_argument("--dialect", choices=["cqels", "csparql", "rspql"], default="cqels")
    arguments.add_argument("--format", choices=["tsnt", "messages"], default="tsnt")
    arguments.add_argument("--absorb", action="store_true", help="store all streams but GPS as they come")
    arguments.add_argument("--hours", type=int, default=24)
    arguments.add_argument("--master", default="local[2]")
    arguments.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir(), "kelda-bench-data"))
    chosen = arguments.parse_args()
    adopt_orphans()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    names = chosen.queries.split(",")
    data = chosen.folder / f"data-{chosen.triples}"
    common = (chosen.shards, chosen.batch_events, chosen.master)
    results: list[dict[str, object]] = []
    if chosen.what == "throughput":
        how = {"dialect": chosen.dialect, "format": chosen.format}
        results.append(throughput(data, names, chosen.triples, *common, **how))
    elif chosen.what == "against":
        results += against(chosen.folder, names, chosen.triples, *common, chosen.dialect)
    elif chosen.what == "many":
        for copies in map(int, chosen.copies.split(",")):
            how = {"copies": copies, "dialect": chosen.dialect}
            results.append(throughput(data, [chosen.query], chosen.triples, *common, **how))
    elif chosen.what == "latency":
        rate = chosen.rate or RATE
        results.append(
            latency(chosen.folder, names, rate, chosen.seconds, *common, chosen.dialect, chosen.absorb)
        )
    elif chosen.what == "empty":
        results.append(empty(chosen.folder, chosen.batches, chosen.shards, chosen.master))
    else:
        results.append(day(chosen.folder, chosen.hours, chosen.rate or 20, chosen.shards, chosen.master))
    for result in results:
        for name, value in result.items():
            print(f"{name:22} {value:,}" if isinstance(value, int | float) else f"{name:22} {value}")
        print()
    print(json.dumps({"benchmark": f"pipeline {chosen.what}", "results": results}))


if __name__ == "__main__":
    main()
