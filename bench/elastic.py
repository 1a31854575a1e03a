"""Elasticity: a worker joins a running pipeline, later one leaves; throughput over time, answers unchanged.

A standalone cluster on loopback with one worker of one core takes a load as fast as it can. After a third
of the batches a second worker joins; when both have worked for another quarter, the first one is killed
with its executors. The answers must be those of a run without Spark. Figures go to docs/elastic.json, a
drawing to docs/elastic.svg.

    python -m bench.elastic [--batches 60] [--batch-events 20000] [--folder DIR] [--docs docs]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path

import numpy as np

import kelda
from bench.harness.plot import short
from kelda.shards.figures import Figures
from tests.crash import load
from tests.crash.cluster import Cluster
from tests.crash.processes import marked

PREFIX = "PREFIX : <http://ex/>\n"
_BOTH = """{
        STREAM :seen [RANGE 20s SLIDE 2s] { ?s :at ?place }
        STREAM :said [RANGE 20s SLIDE 2s] { ?s :says ?what } } GROUP BY ?s"""
QUERIES = {
    "pairs": f"SELECT ?s (COUNT(*) AS ?n) {_BOTH}",
    "words": f"SELECT ?s (COUNT(DISTINCT ?what) AS ?n) {_BOTH}",
    "last": f"SELECT ?s (MAX(?what) AS ?most) (MIN(?place) AS ?least) {_BOTH}",
    "places": "SELECT ?place (COUNT(?s) AS ?n) { STREAM :seen [RANGE 10s SLIDE 5s] { ?s :at ?place } } "
    "GROUP BY ?place",
}
LONGEST = 20  # seconds, of a window
SUBJECTS, PLACES, PER_SECOND = 1_000, 50, 5_000  # of stream time, and of each stream


@dataclass(frozen=True, slots=True)
class Point:
    """A batch: when it was done, how many events it had, how long it took, how many shards stood up."""

    at: float
    batch: int
    events: int
    seconds: float
    workers: int
    rebuilt: int

    @property
    def rate(self) -> float:
        return self.events / max(self.seconds, 1e-6)


@dataclass(frozen=True, slots=True)
class Change:
    at: float
    batch: int
    what: str


def write(folder: Path, events: int) -> None:
    """Two streams with so many events together."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(1)
    each = events // 2
    for name, predicate, values in (("seen", "at", PLACES), ("said", "says", 10_000)):
        times = 1000 + np.arange(each) * 1000 // PER_SECOND
        subjects, objects = draw.integers(0, SUBJECTS, each), draw.integers(0, values, each)
        with open(folder / f"{name}.tsnt", "w") as file:
            file.writelines(
                f"{t}\t<http://ex/s{s}> <http://ex/{predicate}> <http://ex/{predicate}{o}> .\n"
                for t, s, o in zip(times, subjects, objects, strict=True)
            )


def equip(engine: kelda.Engine, folder: Path, out: Path) -> None:
    """The streams in a folder, and the queries, with their answers in `out`."""
    for name in ("seen", "said"):
        engine.stream(f"http://ex/{name}", str(folder / f"{name}.tsnt"))
    for name, text in QUERIES.items():
        engine.register(PREFIX + text, name, sink=str(out / f"{name}.ndjson"))


def run(folder: Path, batches: int, batch_events: int) -> tuple[list[Point], list[Change], list[str]]:
    """The batches, what happened to the cluster, and what is wrong with the answers (nothing)."""
    write(folder / "load", batches * batch_events)
    mark = uuid.uuid4().hex
    cluster = Cluster(folder / "cluster", mark)
    points: list[Point] = []
    changes: list[Change] = []
    workers = [cluster.join()]
    due = [(batches // 3, True)]  # (batch, whether a worker joins after it)
    begin = time.monotonic()
    busy: list[threading.Thread] = []

    def change(joins: bool) -> None:
        if joins:
            place = cluster.join()
            while not cluster.executors(place):
                time.sleep(0.1)
            workers.append(place)
            due.append((points[-1].batch + batches // 4, False))
        else:
            cluster.leave(workers.pop(0))
        what = "a worker has joined" if joins else "the first worker dies"
        changes.append(Change(time.monotonic() - begin, points[-1].batch, what))

    def look(figures: Figures) -> None:
        if points and figures.batch == points[-1].batch:
            return
        seen, stood_up = sum(p.events for p in points), sum(p.rebuilt for p in points)
        at = time.monotonic() - begin
        new, rebuilt = figures.events - seen, figures.rebuilt - stood_up
        seconds = at - points[-1].at if points else figures.batch_seconds
        points.append(Point(at, figures.batch, new, seconds, len(workers), rebuilt))
        if due and figures.batch >= due[0][0]:  # beside the engine, which does not wait for it
            busy.append(threading.Thread(target=change, args=(due.pop(0)[1],), daemon=True))
            busy[-1].start()

    try:
        os.environ.update(cluster.environment())
        os.environ.setdefault("KELDA_SPARK_LOG", str(folder / "spark.log"))
        with kelda.connect(
            cluster.url, checkpoint=folder / "checkpoint", shards=load.SHARDS, batch_events=batch_events
        ) as engine:
            equip(engine, folder / "load", folder / "out")
            engine.start()
            while not engine.wait(0.05):
                if engine.figures.batches:
                    look(engine.figures)
        for thread in busy:
            thread.join(60)
        from pyspark.sql import SparkSession

        running = SparkSession.getActiveSession()
        if running is not None:
            running.stop()
    finally:
        cluster.stop()
        for process in marked(mark):
            if process.kind in ("executor", "standalone", "master"):
                process.kill()
    with kelda.connect() as engine:
        equip(engine, folder / "load", folder / "undisturbed")
        engine.start()
        engine.wait()
    wanted, found = (load.answers(folder / name, QUERIES) for name in ("undisturbed", "out"))
    return points, changes, load.difference(wanted, found)


def medians(points: Sequence[Point], changes: Sequence[Change]) -> dict[str, float]:
    """Events a second in the middle batch of each phase, without its first, in which processes start, and
    without those in which the windows are still filling up."""
    ends = [*(change.at for change in changes), float("inf")]
    events = np.cumsum([p.events for p in points])
    full = int(np.searchsorted(events, 2 * PER_SECOND * LONGEST))
    found, begin = {}, points[min(full, len(points) - 1)].at
    for name, end in zip(("one worker", "two workers", "one again"), ends, strict=False):
        rates = [p.rate for p in points if begin <= p.at < end]
        if rates:
            found[name] = round(statistics.median(rates[1:] or rates))
        begin = end
    return found


WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 320, 64, 16, 40, 44


def drawing(points: Sequence[Point], changes: Sequence[Change]) -> str:
    """Events a second over time, the changes as lines across, rebuilt shards as rings."""
    start, end = points[0].at - points[0].seconds, points[-1].at
    # The first batch starts everything; it would squeeze the others together.
    start = max(start, points[0].at - 2 * statistics.median(p.seconds for p in points))
    top = max(p.rate for p in points[1:]) * 1.1

    def x(at: float) -> float:
        return LEFT + (at - start) / (end - start) * (WIDTH - LEFT - RIGHT)

    def y(rate: float) -> float:
        return HEIGHT - BOTTOM - min(rate / top, 1.0) * (HEIGHT - TOP - BOTTOM)

    def text(at_x: float, at_y: float, said: str, anchor: str) -> str:
        return f'<text x="{at_x:.1f}" y="{at_y:.1f}" text-anchor="{anchor}">{escape(said)}</text>'

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12" fill="#444">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
    ]
    for i in range(5):
        rate = top * i / 4
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(rate):.1f}" y2="{y(rate):.1f}" stroke="#ddd"/>'
        )
        parts.append(text(LEFT - 6, y(rate) + 4, short(round(rate, -2)), "end"))
    for i in range(7):
        at = start + (end - start) * i / 6
        parts.append(text(x(at), HEIGHT - BOTTOM + 18, f"{at - start:.0f}", "middle"))
    parts.append(text((LEFT + WIDTH) / 2, HEIGHT - 8, "seconds", "middle"))
    parts.append(text(LEFT, 16, "events a second, batch by batch (ring: a shard stood up)", "start"))
    for change in changes:
        parts.append(
            f'<line x1="{x(change.at):.1f}" x2="{x(change.at):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" '
            'stroke="#d9730d" stroke-dasharray="4 3"/>'
        )
        parts.append(text(x(change.at) + 4, TOP + 10, change.what, "start"))
    line = " ".join(f"{x(p.at):.1f},{y(p.rate):.1f}" for p in points)
    parts.append(f'<polyline points="{line}" fill="none" stroke="#0b6e99" stroke-width="2"/>')
    for p in points:
        parts.append(f'<circle cx="{x(p.at):.1f}" cy="{y(p.rate):.1f}" r="2.5" fill="#0b6e99"/>')
        if p.rebuilt:
            parts.append(
                f'<circle cx="{x(p.at):.1f}" cy="{y(p.rate):.1f}" r="6" fill="none" stroke="#ad1a72"/>'
            )
    return "\n".join([*parts, "</svg>\n"])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.elastic", description=__doc__)
    parser.add_argument("--batches", type=int, default=60)
    parser.add_argument("--batch-events", type=int, default=20_000)
    parser.add_argument("--folder", type=Path, default=None, help="where to work (a new one in /tmp)")
    parser.add_argument("--docs", type=Path, default=Path(__file__).parents[1] / "docs")
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="kelda-elastic-"))
    points, changes, wrong = run(folder, given.batches, given.batch_events)
    if wrong:
        shown = "\n".join(wrong[:20])
        raise SystemExit(f"{len(wrong)} answers lost or doubled (kept: {folder})\n{shown}")
    figures = {
        "medians": medians(points, changes),
        "load_average": os.getloadavg(),
        "changes": [asdict(c) for c in changes],
        "batches": [asdict(p) for p in points],
    }
    if len(changes) < 2:
        raise SystemExit(f"the streams ended before both changes had happened: more --batches ({changes})")
    (given.docs / "elastic.json").write_text(json.dumps(figures, indent=1) + "\n")
    (given.docs / "elastic.svg").write_text(drawing(points, changes))
    shutil.rmtree(folder)
    print(json.dumps(figures["medians"]), "answers as without Spark")


if __name__ == "__main__":
    main()
