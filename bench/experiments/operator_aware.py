"""Operator-aware data structures (JWS 2016), section 5: indexes, operators, real queries, memory."""

from __future__ import annotations

from bench import indexes
from bench.experiments.base import Case, Experiment, Paper, Plot, needs
from bench.experiments.loads import SHAPES
from bench.harness.families import load, missing

PAPER = Paper(
    "Operator-aware structures (Le-Phuoc, JWS 2016)",
    "2 × Xeon E5606 (4 cores each, 2.13 GHz), 16 GB, Java 1.7",
)
MICRO = "bench.harness.micro:"
TABLE_1 = {  # triples per second of CQELS and of its relational ancestor
    "srbench": {
        "Q1": (25_147, 1_214),
        "Q4": (20_161, 820),
        "Q5": (13_966, 47),
        "Q8": (22_278, 1_774),
        "Q10": (29_463, 3_343),
    },
    "lsbench": {
        "Q1": (118_924, 24_122),
        "Q2": (96_789, 8_462),
        "Q3": (88_647, 9_828),
        "Q4": (60_467, 1_304),
        "Q5": (52_890, 7_459),
        "Q6": (44_391, 3_491),
        "Q10": (103_698, 2_326),
    },
}
TABLE_2 = {  # MB of CQELS, ESPER, R-CQELS
    2: (12.36, 8.93, 25.61),
    3: (13.41, 12.04, 28.67),
    4: (14.74, 15.13, 38.95),
    6: (16.95, 21.26, 49.24),
    8: (18.69, 27.44, 54.61),
}
FLAT = "Flat arrays, at most half full, in place of Java objects; the index alone, without other columns."


def ring(window: int, keys: int, paper: dict[str, str]) -> Case:
    return Case(
        {"window": window, "keys": keys}, {"window": window, "keys": keys}, MICRO + "ring_index", paper=paper
    )


def fig9(full: bool) -> list[Case]:
    windows = (100_000, 1_000_000, 10_000_000) if full else (1_000_000,)
    keys = (1_000, 10_000, 100_000, 1_000_000) if full else (1_000, 1_000_000)
    return [ring(w, k, {"paper": "0.4 to 0.8 M/s"}) for k in keys for w in windows if k <= w]


def fig10(full: bool) -> list[Case]:
    keys = (1_000, 10_000, 100_000, 1_000_000) if full else (1_000, 1_000_000)
    return [ring(1_000_000, k, {"paper": "600 to 800 ns"}) for k in keys]


def grid(full: bool) -> list[Case]:
    sizes = (10_000, 100_000, 1_000_000) if full else (10_000, 100_000)
    return [ring(window, keys, {}) for window in sizes for keys in sizes if keys <= window]


def fig13(full: bool) -> list[Case]:
    """The stateful operators over sliding windows."""
    window, elements = (100_000, 600_000) if full else (10_000, 120_000)
    cases = []
    for name, text in indexes.OPERATORS.items():
        params = {"text": text, "window": window, "keys": 10_000, "elements": elements, "batch": 60_000}
        if full and ("MIN" in name or "AVG over" in name or "DISTINCT" in name or "3-way" in name):
            params["keys"] = 100_000  # about one match
        cases.append(Case({"operator": name, "window": window}, params, MICRO + "operator"))
    return cases


def table1(full: bool) -> list[Case]:
    """The queries of SRBench and LSBench that the paper ran, in count windows."""
    cases = []
    for family, queries in TABLE_1.items():
        if missing(family):
            continue
        there = {q.name for q in load(family).queries}
        for query, (cqels, relational) in queries.items():
            if query not in there:
                continue
            params = {
                "family": family,
                "queries": [query],
                "dialect": "cqels",
                "window": "[TRIPLES 1000]",
                "triples": 1_000_000 if full else 100_000,
                "check_seconds": 10.0 if full else 1.5,
                "prefix": 3_000 if full else 500,
            }
            params |= SHAPES.get(family, {})
            paper = {"CQELS, triples/s": cqels, "R-CQELS, triples/s": relational}
            cases.append(Case({"family": family, "query": query}, params, paper=paper))
    return cases


def table2(full: bool) -> list[Case]:
    """State of a join of windows of 10,000."""
    return [
        Case(
            {"windows": ways},
            {"ways": ways},
            MICRO + "join_memory",
            {"CQELS, MB": cqels, "ESPER, MB": esper, "R-CQELS, MB": relational},
        )
        for ways, (cqels, esper, relational) in TABLE_2.items()
    ]


def a_family() -> str:
    problems = [needs(family)() for family in TABLE_1]
    return "; ".join(problems) if all(problems) else ""


EXPERIMENTS = (
    Experiment(
        name="operators.fig9",
        title="Inserts into the ring index, by keys and window",
        columns=("inserts_per_second", "ns_per_probe", "ns_per_probe_in_turn"),
        cases=fig9,
        paper=PAPER,
        setup="hash table, windows up to ten million",
        differs=FLAT,
        plots=(Plot("keys", "inserts_per_second", "window"),),
    ),
    Experiment(
        name="operators.fig10",
        title="Probing a window of a million, by keys",
        columns=("ns_per_probe", "ns_per_probe_in_turn"),
        cases=fig10,
        paper=PAPER,
        setup="hash table, a window of one million",
        differs=FLAT + " One after another: each probe waits for the one before.",
        plots=(Plot("keys", "ns_per_probe"),),
    ),
    Experiment(
        name="operators.fig11",
        title="Insert throughput, window sizes by numbers of keys",
        columns=("inserts_per_second",),
        cases=grid,
        paper=PAPER,
        setup="10,000 to a million keys and rows; drawn as contour maps",
        differs=FLAT,
        plots=(Plot("window", "inserts_per_second", "keys"),),
    ),
    Experiment(
        name="operators.fig12",
        title="Probe throughput, window sizes by numbers of keys",
        columns=("probes_per_second",),
        cases=grid,
        paper=PAPER,
        setup="10,000 to a million keys and rows; drawn as contour maps",
        differs=FLAT,
        plots=(Plot("window", "probes_per_second", "keys"),),
    ),
    Experiment(
        name="operators.fig13",
        title="Stateful operators",
        columns=("elements_per_second", "state_mb", "answers", "spread"),
        cases=fig13,
        paper=PAPER,
        setup="3-way join, AVG of a window of a million, MIN and DISTINCT over a binary join; drawn only",
        differs="The whole engine from encoded columns, 60,000 elements a step; windows of 100,000 at most.",
        plots=(Plot("operator", "elements_per_second"),),
    ),
    Experiment(
        name="operators.table1",
        title="Queries of SRBench and LSBench",
        columns=("triples_per_cpu_s", "triples_per_s", "answers", "spread", "checked"),
        cases=table1,
        paper=PAPER,
        setup="SRBench on a recorded hurricane, LSBench's generator; count windows",
        differs="From N-Triples text to answers, one core, windows of 1,000 triples; generated data of the "
        "benchmarks' shapes, and their queries in our words.",
        plots=(Plot("query", "triples_per_cpu_s", "family"),),
        missing=a_family,
    ),
    Experiment(
        name="operators.table2",
        title="Memory of a join of 2 to 8 windows of 10,000",
        columns=("state_mb", "grew_mb"),
        cases=table2,
        paper=PAPER,
        setup="2-way to 8-way join, windows of 10,000",
        differs="State is what the join's arrays take at most; the process also grew by what a step needs.",
        plots=(Plot("windows", "state_mb", log=False),),
    ),
)
