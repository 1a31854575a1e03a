"""Our own loads: the queries of each family; many queries; stored data; rates; shards."""

from __future__ import annotations

from bench.experiments.base import Case, Experiment, Plot, needs
from bench.harness.families import NAMES, load, missing
from bench.harness.workload import continuous

THROUGHPUT = (
    "triples_per_cpu_s",
    "triples_per_s",
    "p50_ms",
    "p99_ms",
    "peak_mb",
    "answers",
    "spread",
    "checked",
)


# SRBench's windows are hours and days: a tenth of the stations, so that a run is long enough for them.
SHAPES = {"srbench": {"rate": 5, "stream": {"stations": 100}, "stored": {"scale": 0.1}}}


def family_cases(name: str, full: bool) -> list[Case]:
    """Each query in its first dialect; with `full` on more, and in its other dialects on a tenth of that."""
    cases = []
    for query in continuous(load(name)):
        for i, dialect in enumerate(query.texts if full else list(query.texts)[:1]):
            large = full and i == 0
            params = {
                "family": name,
                "queries": [query.name],
                "dialect": dialect,
                "triples": 1_000_000 if large else 100_000,
                "repeats": 3 if i == 0 else 1,
                "check_seconds": 5 if large else 1.5,
                "prefix": 5_000 if large else 1_000,
                **SHAPES.get(name, {}),
            }
            cases.append(Case({"query": query.name, "dialect": dialect}, params))
    return cases


def family(name: str) -> Experiment:
    return Experiment(
        name=name,
        title=f"The queries of {name}, one at a time",
        columns=THROUGHPUT,
        cases=lambda full: family_cases(name, full),
        differs="In this process, one core, from text to answers, as fast as it goes. Generated data.",
        plots=(Plot("query", "triples_per_cpu_s", "dialect"),),
        missing=needs(name),
    )


def first_query(name: str) -> str:
    return load(name).queries[0].name


def rate_cases(full: bool) -> list[Case]:
    name = next(n for n in NAMES if not missing(n))
    rates = (10_000, 50_000, 100_000, 200_000, 400_000) if full else (20_000, 100_000)
    seconds = 10 if full else 4
    some = ("L2", "L3", "L4", "L5") if name == "lsbench" else tuple(q.name for q in load(name).queries)
    if not full:
        some = some[1:3]
    return [
        Case(
            {"family": name, "query": query, "rate": rate},
            {
                "family": name,
                "queries": [query],
                "dialect": "rspql",
                "loop": "open",
                "rate": rate,
                "triples": rate * seconds,
                "step_ms": 100,
                "check_seconds": 1.5,
                "prefix": 1_000,
            },
        )
        for query in some
        for rate in rates
    ]


def some_family() -> str:
    return "" if any(not missing(n) for n in NAMES) else "no family of benchmarks has been written yet"


def spark_cases(full: bool) -> list[Case]:
    name = next(n for n in NAMES if not missing(n))
    shards = (1, 2, 4) if full else (1, 2)
    return [
        Case(
            {"family": name, "query": first_query(name), "runner": "spark", "shards": n},
            {
                "family": name,
                "queries": [first_query(name)],
                "runner": "spark",
                "shards": n,
                "triples": 1_000_000 if full else 50_000,
                "repeats": 3 if full else 1,
                "prefix": 500,
            },
        )
        for n in shards
    ]


EXPERIMENTS = (
    *map(family, NAMES),
    Experiment(
        name="rates",
        title="Latency at a fixed rate, counted from when an element was due",
        columns=("offered_per_s", "p50_ms", "p95_ms", "p99_ms", "kept_up", "cpu_us", "answers", "checked"),
        cases=rate_cases,
        differs="Steps of 100 ms of the stream are given when their last instant is due, and end with a "
        "heart-beat; the clock of the stream is the clock on the wall. The first fifth is warm-up. Kept up: "
        "less than a second behind, at the median and at the end.",
        plots=(Plot("rate", "p99_ms", "query"),),
        missing=some_family,
    ),
    Experiment(
        name="spark",
        title="The Spark pipeline on this machine, by number of shards",
        columns=(
            "shards",
            "triples_per_s",
            "triples_per_cpu_s",
            "wall_s",
            "cpu_s",
            "peak_mb",
            "answers",
            "checked",
        ),
        cases=spark_cases,
        differs="From files to answers, after a small job has warmed Spark up. CPU seconds and memory are "
        "those of the JVM and all Python workers together.",
        plots=(Plot("shards", "triples_per_s", log=False),),
        missing=some_family,
    ),
)
