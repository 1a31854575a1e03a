"""CQELS (ISWC 2011), section 5: the conference scenario, one query, stored data, many queries."""

from __future__ import annotations

from typing import Any

from bench.experiments.base import Case, Experiment, Paper, Plot, needs

PAPER = Paper(
    "CQELS (Le-Phuoc et al., ISWC 2011)",
    "1 × Xeon E5410 (4 cores, 2.33 GHz), 8 GB, Java 1.6",
)
# Table 2: milliseconds per execution of CQELS, C-SPARQL and ETALIS.
TABLE_2 = {
    "Q1": (0.47, 332.46, 0.06),
    "Q2": (3.90, 99.84, 27.47),
    "Q3": (0.51, 331.68, 79.95),
    "Q4": (0.53, 395.18, 469.23),
    "Q5": (21.83, 322.64, 160.83),
}
DIFFERS = (
    "Generated sightings and authors in place of the OpenBeacon recording and SP2Bench. "
    "The mean is that of a step of one triple, all that Python does for a step included; "
    "given a thousand triples at a time, one costs the CPU time beside it."
)
EACH = ("mean_ms", "p99_ms", "answers", "stored_triples", "checked")


def _load(query: str, **more: Any) -> dict[str, Any]:
    return {
        "family": "conference",
        "queries": [query],
        "dialect": "cqels",
        "prefix": 600,
        "check_seconds": 2.0,
        "stored": {"scale": 10},
        **more,
    }


def exp1(full: bool) -> list[Case]:
    """Each query alone over 100,000 stored triples."""
    cases = []
    for query, (cqels, csparql, etalis) in TABLE_2.items():
        paper = {"CQELS, ms": cqels, "C-SPARQL, ms": csparql, "ETALIS, ms": etalis}
        one = _load(query, step_triples=1, triples=5_000 if full else 1_000, repeats=3)
        cases.append(Case({"query": query, "step": 1}, one, paper=paper))
        many = _load(query, step_triples=1_000, triples=200_000 if full else 50_000, repeats=3)
        cases.append(Case({"query": query, "step": 1_000}, many, paper=paper))
    return cases


def exp2(full: bool) -> list[Case]:
    """Stored data from 10,000 triples on."""
    scales = (1, 10, 100, 200, 1000) if full else (1, 10)
    return [
        Case(
            {"query": query, "stored": scale * 10_000},
            _load(query, step_triples=100, triples=20_000, repeats=3, stored={"scale": scale}),
        )
        for query in ("Q1", "Q3", "Q4", "Q5")
        for scale in scales
    ]


def exp3(full: bool) -> list[Case]:
    """2^M queries of one template, for different people."""
    from bench.families.conference.queries import ASKING

    counts = [2**m for m in range(11)] if full else [1, 32, 1024]
    return [
        Case(
            {"query": query, "queries": count},
            _load(
                query,
                step_triples=100,
                triples=20_000,
                repeats=3,
                copies=count,
                vary=[f'"{ASKING}"', "bench.families.conference.generator:name_of"] if count > 1 else None,
            ),
            paper={"CQELS": "about 1 s at 1,000 queries"} if count == 1024 else {},
        )
        for query in ("Q1", "Q3", "Q4")
        for count in counts
    ]


EXPERIMENTS = (
    Experiment(
        name="cqels.exp1",
        title="Single queries: time of an execution (table 2)",
        columns=("mean_ms", "p99_ms", "cpu_us", "answers", "stored_triples", "checked"),
        cases=exp1,
        paper=PAPER,
        setup="ten instances of each query, 100,000 DBLP triples, mean time of each re-execution",
        differs=DIFFERS,
        plots=(Plot("query", "mean_ms", "step"),),
        missing=needs("conference"),
    ),
    Experiment(
        name="cqels.exp2",
        title="Stored data from 10,000 to 10 million triples",
        columns=("cpu_us", "load_s", "register_s", "peak_mb", *EACH),
        cases=exp2,
        paper=PAPER,
        setup="as exp1, with 10^4 to 10^7 DBLP triples; the times, which are drawn, hardly grow for CQELS",
        differs=DIFFERS + " Steps of 100 triples.",
        plots=(Plot("stored", "mean_ms", "query"),),
        missing=needs("conference"),
    ),
    Experiment(
        name="cqels.exp3",
        title="1 to 1,024 queries at once",
        columns=("cpu_us", "register_s", "peak_mb", *EACH),
        cases=exp3,
        paper=PAPER,
        setup="2^M instances of Q1, Q3, Q4 for M from 0 to 10, 100,000 DBLP triples",
        differs=DIFFERS + " Steps of 100 triples. All instances run as one network.",
        plots=(Plot("queries", "mean_ms", "query"),),
        missing=needs("conference"),
    ),
)
