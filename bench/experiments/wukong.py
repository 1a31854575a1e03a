"""Wukong+S (SOSP 2017), section 6: latency, injection, memory, one-shot queries, stream rates."""

from __future__ import annotations

from bench.experiments.base import Case, Experiment, Paper, Plot, needs
from bench.latency import WUKONG

PAPER = Paper(
    "Wukong+S (Zhang, Chen, Chen, SOSP 2017)",
    "8 nodes with 2 × Xeon E5-2650 v4 (12 cores each), 128 GB, 56 Gbit/s InfiniBand; table 2 on one node",
)
MICRO = "bench.harness.micro:"
OTHERS = {  # table 2: milliseconds of Storm + Wukong and of the C-SPARQL engine
    "L1": (0.20, 155),
    "L2": (1.62, 708),
    "L3": (1.29, 872),
    "L4": (30.38, 291),
    "L5": (51.04, 1984),
    "L6": (65.04, 3395),
}
TABLE_6 = {  # ms per 100 ms of stream: rate, injection, indexing
    "post": (10_000, 0.52, 0.23),
    "postlike": (86_000, 1.77, 0.43),
    "photo": (10_000, 0.45, 0.22),
    "photolike": (7_500, 0.16, 0.21),
    "gps": (20_000, 1.18, 0.34),
}
TABLE_8 = {  # ms, streams off and on
    "S1": (4.12, 4.31),
    "S2": (0.12, 0.11),
    "S3": (0.20, 0.21),
    "S4": (24.1, 25.5),
    "S5": (0.28, 0.29),
    "S6": (61.8, 64.2),
}
DIFFERS = (
    "One core. A step takes in 100 ms of encoded rows and gives one report, as ids; Wukong+S counts taking "
    "in apart (table 6). 230,000 stored triples against 118 million, which is in our favour."
)


def step(query: str, output: str, rate: int, steps: int) -> dict[str, object]:
    return {"query": query, "output": output, "rate": rate, "steps": steps, "users": 10_000}


def table2(full: bool) -> list[Case]:
    """Six queries, whole answers and new ones."""
    return [
        Case(
            {"query": query, "report": {"rstream": "whole", "istream": "new"}[output]},
            step(query, output, 50_000, 300 if full else 60),
            MICRO + "step_latency",
            {"Wukong+S, ms": paper, "Storm+Wukong": OTHERS[query][0], "C-SPARQL engine": OTHERS[query][1]},
        )
        for query, paper in WUKONG.items()
        for output in (("rstream", "istream") if full else ("rstream",))
    ]


def table6(full: bool) -> list[Case]:
    """100 ms of each stream taken in."""
    return [
        Case(
            {"stream": stream, "rate": rate},
            {"stream": stream, "rate": rate, "steps": 200 if full else 50},
            MICRO + "injection",
            {"Wukong+S injection, ms": injection, "Wukong+S indexing, ms": indexing},
        )
        for stream, (rate, injection, indexing) in TABLE_6.items()
    ]


def table8(full: bool) -> list[Case]:
    """Six queries, asked once."""
    return [
        Case(
            {"query": query},
            {
                "query": query,
                "users": 10_000 if full else 1_000,
                "triples": 1_000_000 if full else 100_000,
                "repeats": 20 if full else 5,
            },
            MICRO + "one_shot",
            {"Wukong+S off, ms": off, "Wukong+S on, ms": on},
        )
        for query, (off, on) in TABLE_8.items()
    ]


def fig13(full: bool) -> list[Case]:
    """Rates from 33,000 to 533,000 triples a second."""
    rates = (33_000, 67_000, 133_000, 267_000, 533_000) if full else (33_000, 133_000, 533_000)
    return [
        Case(
            {"query": query, "rate": rate},
            step(query, "rstream", rate, 100 if full else 30),
            MICRO + "step_latency",
            {"Wukong+S": "under 16 ms"} if query in ("L4", "L5", "L6") and rate == 533_000 else {},
        )
        for query in (WUKONG if full else ("L1", "L3", "L5"))
        for rate in rates
    ]


EXPERIMENTS = (
    Experiment(
        name="wukong.table2",
        title="Latency of six LSBench queries, windows of 1 s every 100 ms",
        columns=("p50_ms", "p99_ms", "cpu_ms", "answers"),
        cases=table2,
        paper=PAPER,
        setup="LSBench with 118 million triples, 133,000 triples a second on five streams; medians",
        differs=DIFFERS,
        plots=(Plot("query", "p50_ms", "report"),),
    ),
    Experiment(
        name="wukong.table6",
        title="Taking in 100 ms of each stream",
        columns=("injection_ms", "indexing_ms", "cpu_ms"),
        cases=table6,
        paper=PAPER,
        setup="LSBench with 3.75 billion triples on 8 nodes, default rates",
        differs="One core. Reading text into ids, and putting the ids into a window of 1 s that is indexed "
        "for a join. Nothing is absorbed into the stored graphs.",
        missing=needs("lsbench"),
    ),
    Experiment(
        name="wukong.table7",
        title="Memory of absorbed stream data and its index",
        columns=(),
        cases=lambda full: [],
        paper=PAPER,
        setup="62.73 MB of data and 5.95 MB of index a minute at 133,000 triples a second",
        missing=lambda: "streams are not absorbed into stored graphs yet",
    ),
    Experiment(
        name="wukong.table8",
        title="One-shot queries",
        columns=("p50_ms", "p99_ms", "cpu_ms", "answers", "stored_triples"),
        cases=table8,
        paper=PAPER,
        setup="LSBench with 3.75 billion triples on 8 nodes, with streams off and on",
        differs="Streams off: some of them was loaded before. Queries on snapshots while streams come in "
        "are not available yet. One core, far fewer triples; Oxigraph answers.",
        plots=(Plot("query", "p50_ms"),),
        missing=needs("lsbench"),
    ),
    Experiment(
        name="wukong.fig13",
        title="Latency by stream rate, 33,000 to 533,000 triples a second",
        columns=("p50_ms", "p99_ms", "cpu_ms", "answers"),
        cases=fig13,
        paper=PAPER,
        setup="L1 to L3 stay as they are, L4 to L6 grow with the rate and stay under 16 ms, on 8 nodes",
        differs=DIFFERS
        + " The rate is that of the query's own streams together, so it is higher than the paper's.",
        plots=(Plot("rate", "p50_ms", "query"),),
    ),
)
