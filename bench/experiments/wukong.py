"""Wukong+S (SOSP 2017), section 6: latency, injection, memory, one-shot queries, stream rates."""

from __future__ import annotations

from bench.experiments.base import Case, Experiment, Paper, Plot, needs
from bench.latency import WUKONG

PAPER = Paper(
    "Wukong+S (Zhang, Chen, Chen, SOSP 2017)",
    "8 nodes with 2 × Xeon E5-2650 v4 (12 cores each), 128 GB, 56 Gbit/s InfiniBand; table 2 on one node",
)
MICRO = "bench.harness.micro:"
ABSORBING = "bench.harness.absorbing:"
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
TABLE_7 = {  # MB a minute: data, index
    "post": (6.39, 2.96),
    "postlike": (38.22, 0.60),
    "photo": (4.76, 1.89),
    "photolike": (7.90, 0.51),
    "gps": (5.45, None),
}
TABLE_8 = {  # ms, streams off and on
    "S1": (4.12, 4.31),
    "S2": (0.12, 0.11),
    "S3": (0.20, 0.21),
    "S4": (24.1, 25.5),
    "S5": (0.28, 0.29),
    "S6": (61.8, 64.2),
}
TABLE_9 = {  # ms: Wukong+S, Storm + Wukong, Spark Streaming
    "Q1": (0.24, 4.40, 872),
    "Q2": (0.37, 4.48, 1557),
    "Q3": (0.26, 4.10, 675),
    "Q4": (0.98, 2.67, 802),
    "Q5": (0.94, 4.10, 790),
    "Q6": (0.26, 1.91, 764),
    "Q7": (0.24, 2.23, 762),
    "Q8": (0.27, 2.05, 692),
    "Q9": (1.15, 3.91, 1088),
    "Q10": (0.78, 1.18, 1086),
    "Q11": (0.16, 0.17, 193),
}
SELECTIVE, ALL = ["L1", "L2", "L3"], ["L1", "L2", "L3", "L4", "L5", "L6"]
RATE = 133_000  # of all five streams
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


def absorbing(full: bool) -> list[Case]:
    """Six queries beside all five streams, absorbed or not."""
    return [
        Case(
            {"query": query, "absorbs": absorbs},
            {
                "query": query,
                "absorbs": absorbs,
                "rate": RATE,
                "steps": 100 if full else 20,
                "users": 10_000 if full else 3_000,
            },
            ABSORBING + "step_latency",
            {"Wukong+S, ms": WUKONG[query]},
        )
        for query in ALL
        for absorbs in (False, True)
    ]


def over_time(full: bool) -> list[Case]:
    """A query, hour after hour."""
    return [
        Case(
            {"query": query, "minutes": 60 if full else 5},
            {"query": query, "rate": 1_000, "minutes": 60 if full else 5, "users": 2_000},
            ABSORBING + "over_time",
        )
        for query in (ALL if full else ("L3", "L5"))
    ]


def table6(full: bool) -> list[Case]:
    """100 ms of each stream taken in."""
    return [
        Case(
            {"stream": stream, "rate": rate},
            {"stream": stream, "rate": rate, "steps": 200 if full else 50},
            ABSORBING + "injection",
            {"Wukong+S injection, ms": injection, "Wukong+S indexing, ms": indexing},
        )
        for stream, (rate, injection, indexing) in TABLE_6.items()
    ]


def table7(full: bool) -> list[Case]:
    """A minute of each stream as facts."""
    return [
        Case(
            {"stream": stream, "rate": TABLE_6[stream][0]},
            {"stream": stream, "rate": TABLE_6[stream][0], "seconds": 60 if full else 6},
            ABSORBING + "memory",
            {"Wukong+S data, MB": data, "Wukong+S index, MB": index},
        )
        for stream, (data, index) in TABLE_7.items()
    ]


def table8(full: bool) -> list[Case]:
    """Six queries, asked again and again."""
    return [
        Case(
            {"query": query},
            {
                "query": query,
                "users": 10_000 if full else 2_000,
                "triples": 1_100_000 if full else 200_000,
                "rate": RATE,
                "seconds": 5.0 if full else 2.0,
            },
            ABSORBING + "one_shot",
            {"Wukong+S off, ms": off, "Wukong+S on, ms": on},
        )
        for query, (off, on) in TABLE_8.items()
    ]


def mixed(classes: list[str], paper: str, full: bool) -> list[Case]:
    """More and more queries of several classes."""
    return [
        Case(
            {"queries": count, "one-shot queries a step": one_shots},
            {
                "classes": classes,
                "queries": count,
                "rate": RATE,
                "steps": 50 if full else 20,
                "users": 10_000 if full else 3_000,
                "one_shots": one_shots,
            },
            ABSORBING + "mixed",
            {"Wukong+S, 8 nodes": paper},
        )
        for count in ((100, 1_000, 10_000) if full else (100, 1_000))
        for one_shots in ((0, 60) if count == 1_000 else (0,))
    ]


def lasting(full: bool) -> list[Case]:
    """The mixture of L1 to L3 with and without a checkpoint."""
    return [
        Case(
            {"checkpoint": checkpoint, "batch": batch},
            {
                "classes": SELECTIVE,
                "queries": 1_000,
                "rate": RATE,
                "seconds": 10 if full else 4,
                "users": 10_000 if full else 2_000,
                "checkpoint": checkpoint,
                "batch": batch,
            },
            ABSORBING + "made_to_last",
            {"Wukong+S, 8 nodes": "803,000 queries/s" if checkpoint else "1,070,000 queries/s"},
        )
        for batch in (13_300, 133_000)
        for checkpoint in (False, True)
    ]


def table9(full: bool) -> list[Case]:
    """CityBench's queries, windows of 3 s every 1 s."""
    return [
        Case(
            {"query": query},
            {
                "family": "citybench",
                "queries": [query],
                "dialect": "rspql",
                "step_ms": 1_000,
                "triples": 87 * (600 if full else 120),
                "repeats": 3 if full else 1,
                "check_seconds": 2.0,
                "prefix": 500,
            },
            paper={"Wukong+S, ms": ours, "Storm+Wukong": storm, "Spark Streaming": spark},
        )
        for query, (ours, storm, spark) in TABLE_9.items()
    ]


def stored(full: bool) -> list[Case]:
    """Queries registered over much that is stored."""
    return [
        Case(
            {"query": query, "triples": triples},
            {"query": query, "triples": triples},
            ABSORBING + "registration",
        )
        for query in (("L3", "L6") if full else ("L6",))
        for triples in ((1_000_000, 7_000_000) if full else (500_000,))
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
        name="wukong.absorbing",
        title="Latency of the six queries beside all five streams, absorbed and not",
        columns=("cpu_ms", "p99_ms", "injection_ms", "answers", "stored_triples"),
        cases=absorbing,
        paper=PAPER,
        setup="Table 2: posts, photos and likes are absorbed, GPS is not; taking in counts apart (table 6)",
        differs="In this process, one core: 100 ms of all streams, from ids to answers, absorbing among it.",
        missing=needs("lsbench"),
    ),
    Experiment(
        name="wukong.hour",
        title="A step after an hour of absorbing",
        columns=("first_ms", "last_ms", "ratio", "stored_triples"),
        cases=over_time,
        differs="All five streams, 1,000 triples a second of stream time, as fast as it goes.",
        missing=needs("lsbench"),
    ),
    Experiment(
        name="wukong.table6",
        title="Taking in 100 ms of each stream",
        columns=("injection_ms", "absorb_ms", "indexing_ms", "cpu_ms"),
        cases=table6,
        paper=PAPER,
        setup="LSBench with 3.75 billion triples on 8 nodes, default rates",
        differs="One core, CPU time. Reading text into ids, ids into facts (all but GPS), and ids into "
        "a window of 1 s that is indexed for a join.",
        missing=needs("lsbench"),
    ),
    Experiment(
        name="wukong.table7",
        title="Memory of absorbed stream data and its index",
        columns=("triples", "facts", "text_mb", "data_mb", "index_mb", "index_share", "terms_mb"),
        cases=table7,
        paper=PAPER,
        setup="LSBench, default rates; GPS is not absorbed there",
        differs="Everything is kept as facts, with the times since and until when they hold; indexes by pair,"
        " and by subject or object where S1 to S6 ask for them. A like that comes again is stored once.",
        missing=needs("lsbench"),
    ),
    Experiment(
        name="wukong.table8",
        title="One-shot queries with streams off and on",
        columns=("off_ms", "on_ms", "ratio", "answers", "stored_triples", "offered_per_s"),
        cases=table8,
        paper=PAPER,
        setup="LSBench with 3.75 billion triples on 8 nodes, with streams off and on",
        differs="Prepared, terms decoded, CPU time of the asking thread at the median. On: 133,000 triples a "
        "second are pushed into the same process, absorbed, and made to last. Off: before and after that.",
        plots=(Plot("query", "on_ms"),),
        missing=needs("lsbench"),
    ),
    Experiment(
        name="wukong.table9",
        title="CityBench: a step of each query",
        columns=("p50_ms", "p99_ms", "cpu_us", "answers", "checked"),
        cases=table9,
        paper=PAPER,
        setup="137,000 stored triples, windows of 3 s every 1 s, about 87 triples a second, one node",
        differs="A step is a second of all streams that the query reads, from text to answers.",
        missing=needs("citybench"),
    ),
    *(
        Experiment(
            name=name,
            title=f"Many queries of {len(classes)} classes, each answered every 100 ms",
            columns=(
                "executions_per_cpu_s",
                "p50_ms",
                "p99_ms",
                "kept_up",
                "one_shots_per_cpu_s",
                "register_s",
                "answers",
            ),
            cases=lambda full, classes=classes, paper=paper: mixed(classes, paper, full),  # type: ignore[misc]
            paper=PAPER,
            setup="LSBench with 3.75 billion triples, 133,000 triples a second; as many of a class as 1 to "
            "its latency, with random constants; 16 cores of each node answer",
            differs="One core, all five streams absorbed. Answered: once a query and a step, whether its "
            "answer is empty or not; queries that differ in a constant run as one network.",
            missing=needs("lsbench"),
        )
        for name, classes, paper in (
            ("wukong.fig14", SELECTIVE, "1,080,000 queries/s"),
            ("wukong.fig15", ALL, "802,000 queries/s"),
        )
    ),
    Experiment(
        name="wukong.lasting",
        title="What fault tolerance costs",
        columns=(
            "executions_per_cpu_s",
            "triples_per_cpu_s",
            "triples_per_s",
            "cpu_us",
            "batch_ms",
            "batches",
        ),
        cases=lasting,
        paper=PAPER,
        setup="Section 6.8: the mixture of L1 to L3 with logging and checkpoints: 0.3 ms a batch of 100 ms",
        differs="The engine as users have it, from files, absorbing; without a checkpoint, and with one: "
        "facts, terms and windows of each batch are on the disk before the next one.",
        missing=needs("lsbench"),
    ),
    Experiment(
        name="wukong.stored",
        title="Registering a query over much that is stored",
        columns=("stored_triples", "load_s", "register_s", "first_steps_s", "grew_mb", "state_mb"),
        cases=stored,
        differs="CPU seconds. Indexes of the store are built when first asked for, which is counted.",
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
