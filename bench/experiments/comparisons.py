"""Others beside us, in the same run on the same machine: as ratios of CPU time."""

from __future__ import annotations

import importlib.util

from bench.comparisons import oxigraph, rspjs
from bench.experiments.base import Case, Experiment, Plot
from bench.experiments.loads import SHAPES
from bench.harness.families import NAMES, load, missing

TYPICAL = {  # a join or an aggregate of each family
    "lsbench": ("L3", "L4", "L5"),
    "srbench": ("Q4",),
    "citybench": ("Q1",),
    "taxi": ("T1", "T2"),
    "conference": (),
}


def windowed(full: bool) -> list[Case]:
    """One query of each family, in RSP-QL or C-SPARQL, whose windows move in steps."""
    cases = []
    for name in NAMES:
        if missing(name):
            continue
        some = [q for q in load(name).queries if oxigraph.can_say(q)]
        for query in some if full else [q for q in some if q.name in TYPICAL[name]]:
            params = {"family": name, "queries": [query.name], "triples": 100_000 if full else 30_000}
            params |= SHAPES.get(name, {})
            cases.append(
                Case({"family": name, "query": query.name}, params, "bench.comparisons.oxigraph:measure")
            )
    return cases


def structured(full: bool) -> list[Case]:
    """Three of the six queries of Wukong+S, or all of them."""
    params = {"triples": 2_000_000 if full else 200_000, "rate": 100_000, "shards": 2}
    return [
        Case({"query": query}, {"query": query, **params}, "bench.comparisons.structured:measure")
        for query in (("L1", "L2", "L3", "L4", "L5", "L6") if full else ("L2", "L4", "L5"))
    ]


def in_node(full: bool) -> list[Case]:
    """A filter, a self-join and an aggregate, each over one window and as small as rsp-js needs it."""
    sizes = {
        ("srbench", "Q1"): {"triples": 40_000, "rate": 5, "stream": {"stations": 100}},
        ("lsbench", "Q4"): {"triples": 3_000, "rate": 100},
        ("taxi", "T3"): {"triples": 30_000},
    }
    cases = []
    for (name, query), size in sizes.items():
        params = {"family": name, "queries": [query], **size, "triples": size["triples"] * (2 if full else 1)}
        cases.append(Case({"family": name, "query": query}, params, "bench.comparisons.rspjs:measure"))
    return cases


def no_baselines() -> str:
    if importlib.util.find_spec("bench.baselines") is None:
        return "the hand-written Structured Streaming programs (bench/baselines) have not been written yet"
    return ""


EXPERIMENTS = (
    Experiment(
        name="vs.oxigraph",
        title="Asking Oxigraph again at each report",
        columns=("cpu_us", "theirs_cpu_us", "ratio", "reports", "answers", "same_answers"),
        cases=windowed,
        differs="The same windows, kept up to date in an Oxigraph store (what came is added, what left is "
        "removed), and the query asked of it as SPARQL at each report. Both send whole "
        "answers. The ratio is of CPU times.",
        plots=(Plot("family", "ratio"),),
        missing=lambda: "" if any(not missing(n) for n in NAMES) else "no family has been written yet",
    ),
    Experiment(
        name="vs.structured",
        title="Hand-written Structured Streaming",
        columns=("triples_per_s", "theirs_per_s", "ratio", "way", "answers", "theirs_answers"),
        cases=structured,
        differs="Our Spark pipeline and the same query written for Structured Streaming (the faster of two "
        "ways), same files and cores, batches of a tenth of all triples; rates without the first batches.",
        missing=no_baselines,
    ),
    Experiment(
        name="vs.rspjs",
        title="rsp-js, an RSP-QL engine for Node",
        columns=("triples", "cpu_us", "theirs_cpu_us", "ratio", "reports", "answers", "same_answers"),
        cases=in_node,
        differs=f"The same events, the same text; rsp-js {rspjs.VERSION} from the npm registry, in a process "
        "of its own. Its windows are [from, to), ours (from, to], so its events are told 1 ms earlier; then "
        "each window must have the same answers. It is not charged for reading text, we are. The ratio is of "
        "CPU times, each side's second run.",
        plots=(Plot("query", "ratio"),),
        missing=rspjs.missing,
    ),
)
