"""CQELS Cloud (ISWC 2013), section 4: operators and many queries, by number of nodes."""

from __future__ import annotations

from bench import indexes
from bench.experiments.base import Case, Experiment, Paper, Plot, needs
from bench.lsbench import SIB

PAPER = Paper(
    "CQELS Cloud (Le-Phuoc et al., ISWC 2013)",
    "Amazon EC2 medium instances (1 virtual core, 3.5 GB), 1 to 32 of them",
)
MICRO = "bench.harness.micro:"
AVERAGE = "SELECT ?k (AVG(?a) AS ?m) { STREAM <urn:s0> [TRIPLES N] { ?k <urn:p> ?a } } GROUP BY ?k"


def fig6(full: bool) -> list[Case]:
    """Five operators, in this process: one shard."""
    over = {"8 nodes": "more than 100,000/s"}
    join, rows, stored = (100_000, 1_000_000, 10_000_000) if full else (10_000, 100_000, 200_000)
    triples = 1_000_000 if full else 300_000
    # One answer for a hundred elements: (window / keys)^4 = 0.01.
    keys = int(join / 0.01**0.25)
    return [
        Case(
            {"operator": "matching 10,000 patterns", "shards": 1},
            {"patterns": 10_000, "triples": triples},
            MICRO + "matching",
            over,
        ),
        Case(
            {"operator": "matching 100,000 patterns", "shards": 1},
            {"patterns": 100_000, "triples": triples},
            MICRO + "matching",
        ),
        Case(
            {"operator": f"join of 5 windows of {join:,}", "shards": 1},
            {
                "text": indexes.join_of(5),
                "window": join,
                "keys": keys,
                "elements": 5 * join,
                "batch": 50_000,
            },
            MICRO + "operator",
        ),
        Case(
            {"operator": f"AVG of a window of {rows:,}", "shards": 1},
            {"text": AVERAGE, "window": rows, "keys": 1_000, "elements": rows, "batch": 50_000},
            MICRO + "operator",
            over,
        ),
        Case(
            {"operator": f"join with {stored:,} stored", "shards": 1},
            {"rows": stored, "window": 10_000, "elements": 500_000, "batch": 10_000},
            MICRO + "stored_join",
        ),
    ]


def fig7(full: bool) -> list[Case]:
    """Many queries over LSBench's streams: Q1 with other constants, the rest with other windows."""
    cases = []
    for count in (100, 1_000, 10_000, 100_000) if full else (100, 10_000):
        params = {
            "family": "lsbench",
            "queries": ["Q1"],
            "dialect": "cqels",
            "copies": count,
            "vary": ["user:u0", f"<{SIB}user/u{{i}}>"],
            "triples": 1_000_000 if full else 100_000,
            "check_seconds": 2.0,
            "prefix": 500,
        }
        cases.append(Case({"query": "Q1", "queries": count}, params))
    for query in ("Q4", "Q5", "Q10"):
        for count in (10, 100, 1_000, 10_000) if full else (10, 100):
            params = {
                "family": "lsbench",
                "queries": [query],
                "dialect": "cqels",
                "copies": count,
                "window": "[TRIPLES 1000 {i}]",
                # A triple has answers for every query: as many queries more, as many triples less at a time.
                "triples": (300_000 if count <= 100 else 30_000_000 // count) if full else 50_000,
                "step_triples": 0 if count <= 100 else 1_000_000 // count,
                "repeats": 1,
                "check_seconds": 2.0,
                "prefix": 300,
            }
            cases.append(Case({"query": query, "queries": count}, params))
    return cases


EXPERIMENTS = (
    Experiment(
        name="cloud.fig6",
        title="Operators: matching, 5-way join, aggregation, join with stored data",
        columns=(
            "triples_per_cpu_s",
            "elements_per_second",
            "answers",
            "register_s",
            "load_s",
            "state_mb",
            "peak_mb",
        ),
        cases=fig6,
        paper=PAPER,
        setup="5 windows of 100,000 with 1 % selectivity, aggregation over 1 million, 10 million mappings in "
        "HBase; throughput grows with the nodes",
        differs="One core in this process; matching from N-Triples text, the others from encoded columns. "
        "`kelda bench spark` measures shards. The paper draws its figures; those beside are from its text.",
        plots=(Plot("operator", "cost_us"),),
    ),
    Experiment(
        name="cloud.fig7",
        title="100 to 100,000 queries on a social network",
        columns=("triples_per_cpu_s", "triples_per_s", "register_s", "peak_mb", "answers", "checked"),
        cases=fig7,
        paper=PAPER,
        setup="LSBench with 100,000 users, 121 million stored triples; throughput grows with the nodes, and "
        "falls far less than the number of queries rises",
        differs="One core in this process, from text, generated data of LSBench's shape with far fewer "
        "stored triples. Window sizes vary from a tenth of 1,000 triples to 1,000.",
        plots=(Plot("queries", "triples_per_cpu_s", "query"),),
        missing=needs("lsbench"),
    ),
)
