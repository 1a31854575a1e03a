"""The experiments by name: the families' queries, the papers' experiments, and comparisons."""

from __future__ import annotations

from bench.experiments import cloud, comparisons, cqels, formats, loads, operator_aware, plus, wukong
from bench.experiments.base import Experiment
from kelda.errors import UsageError

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for module in (loads, formats, cqels, cloud, plus, wukong, operator_aware, comparisons)
    for experiment in module.EXPERIMENTS
}

# What `--quick` runs: every family, one experiment of each paper, one comparison. Under five minutes.
QUICK = (
    "lsbench",
    "taxi",
    "conference",
    "srbench",
    "citybench",
    "operators.fig9",
    "wukong.table2",
    "cloud.fig7",
    "rates",
    "vs.oxigraph",
    "spark",
)


def find(names: list[str]) -> list[Experiment]:
    """The experiments called so; a name before the dot stands for all of a paper."""
    found: dict[str, Experiment] = {}
    for name in names:
        some = [e for e in EXPERIMENTS.values() if e.name == name or e.name.startswith(name + ".")]
        if not some:
            raise UsageError(f"there is no benchmark {name!r}; `kelda bench --list` shows those there are")
        found.update({e.name: e for e in some})
    return list(found.values())
