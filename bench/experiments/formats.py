"""Every format beside the fastest, and beside others who read the same files."""

from __future__ import annotations

from bench.experiments.base import Case, Experiment, Plot
from bench.formats import theirs
from bench.formats.readings import FORMATS

READINGS = 200_000
OURS, THEIRS = "bench.formats.ours:measure", "bench.formats.theirs:measure"


def cases(full: bool) -> list[Case]:
    """Each format by us, and then by each of those who read it."""
    params = {"readings": READINGS, "repeats": 5 if full else 3}
    ours = [Case({"format": name, "by": "kelda"}, {"format": name, **params}, OURS) for name in FORMATS]
    others = [
        Case({"format": name, "by": who}, {"who": who, "format": name, **params}, THEIRS)
        for who, name in theirs.cases()
    ]
    return ours + others


EXPERIMENTS = (
    Experiment(
        name="formats",
        title="The same readings in every format, from text to ids and to answers",
        columns=(
            "triples",
            "file_mb",
            "read_cpu_s",
            "read_per_cpu_s",
            "of_tsnt",
            "answered_cpu_s",
            "answered_per_cpu_s",
            "written_cpu_s",
            "written_per_cpu_s",
            "answers",
        ),
        cases=cases,
        differs="Readings of 100 sensors, one a millisecond; the query has the mean of each sensor in "
        "windows of 10 s, each second. *Read* is text to ids for us (beside tsnt in the same process), and "
        "for others whatever they make of the file: pyarrow, polars and duckdb tables, not RDF; pyoxigraph "
        "terms; morph-kgc N-Triples, less what it takes to start. *Answered* is the whole way in this "
        "process with the answers thrown away, *written* with the answers as NDJSON. CPU seconds of all "
        "threads." + theirs.left_out(),
        plots=(Plot("format", "read_per_cpu_s", "by"),),
    ),
)
