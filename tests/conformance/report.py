"""The conformance page: every number in it comes from a run, none is written by hand."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from . import on_spark
from .ignored import IGNORED, IGNORED_BY_OPERATORS, IGNORED_STREAMED
from .results import Result, Rows
from .w3c import Case, Kind, cases
from .ways import (
    Documents,
    Outcome,
    Verdict,
    absorbed,
    by_operators,
    incremental,
    judge,
    judge_syntax,
    judge_update,
    one_shot,
    oxigraph,
    streamed,
    updated,
    updated_by_oxigraph,
    why_oxigraph,
    why_recomputed,
)


@dataclass(slots=True)
class Run:
    """All outcomes of one way of running, by case."""

    title: str
    ignored: dict[str, str]
    outcomes: dict[Case, Outcome] = field(default_factory=dict)

    def count(self, chosen: Iterable[Case]) -> Counter[str]:
        """How the chosen cases went, by verdict; a failure is either ignored for a reason or open."""
        found: Counter[str] = Counter()
        for case in chosen:
            verdict = self.outcomes[case].verdict
            failed = verdict is Verdict.FAILED
            found["ignored" if failed and case.id in self.ignored else verdict.value] += 1
        return found

    def unexplained(self) -> list[Case]:
        """Failures that no reason covers."""
        return [case for case, o in self.outcomes.items() if not o.ok and case.id not in self.ignored]

    def closed(self) -> list[Case]:
        """Cases that pass though the list says they fail."""
        return [case for case, o in self.outcomes.items() if o.ok and case.id in self.ignored]


@dataclass(slots=True)
class Report:
    """Kelda's runs over the cases in scope, and Oxigraph's own for comparison.

    `recomputed` has the cases that pass by the incremental evaluator, but only because it hands them to
    the reference evaluator, with the reason; `asked` those of which our own operators leave a part to
    Oxigraph."""

    syntax: Run
    one_shot: Run
    by_operators: Run
    absorbed: Run
    streamed: Run
    incremental: Run
    updates: Run
    oxigraph: Run
    updates_by_oxigraph: Run
    recomputed: dict[Case, str]
    asked: dict[Case, str]
    on_spark: on_spark.OnSpark | None  # None: there is no JDK

    @property
    def runs(self) -> tuple[Run, ...]:
        """Kelda's runs."""
        return (
            self.syntax,
            self.one_shot,
            self.by_operators,
            self.absorbed,
            self.streamed,
            self.incremental,
            self.updates,
        )


def run() -> Report:
    """Run everything that is in scope."""
    scope = [case for case in cases() if case.out_of_scope is None]

    def each(title: str, ignored: dict[str, str], way: Callable[[Case], Result]) -> Run:
        return Run(title, ignored, {case: judge(case, way) for case in scope if case.evaluates})

    def each_update(title: str, ignored: dict[str, str], way: Callable[[Case], Rows]) -> Run:
        return Run(
            title, ignored, {case: judge_update(case, way) for case in scope if case.kind is Kind.UPDATE}
        )

    by_changes = each("incremental", IGNORED_STREAMED, incremental)
    reasons = {case: why_recomputed(case) for case, outcome in by_changes.outcomes.items() if outcome.ok}
    operators = each("by operators", IGNORED_BY_OPERATORS, by_operators)
    parts = {case: why_oxigraph(case) for case, outcome in operators.outcomes.items() if outcome.ok}
    return Report(
        syntax=Run("syntax", IGNORED, {case: judge_syntax(case) for case in scope if case.parses}),
        one_shot=each("one-shot", IGNORED, one_shot),
        by_operators=operators,
        absorbed=each("absorbed", IGNORED_BY_OPERATORS, absorbed),
        streamed=each("streamed", IGNORED_STREAMED, streamed),
        incremental=by_changes,
        updates=each_update("updates", IGNORED, updated),
        oxigraph=each("Oxigraph alone", {}, oxigraph),
        updates_by_oxigraph=each_update("Oxigraph alone, updates", {}, updated_by_oxigraph),
        recomputed={case: reason for case, reason in reasons.items() if reason is not None},
        asked={case: reason for case, reason in parts.items() if reason is not None},
        on_spark=on_spark.run_if_possible(),
    )


# ---------------------------------------------------------------------------- the page


def page(report: Report) -> str:
    """`docs/conformance.md`."""
    parts = [INTRODUCTION, "## Evaluation", *evaluation(report)]
    parts += ["## Without Oxigraph", *without_oxigraph(report)]
    parts += ["## Wholly incremental", *wholly(report), "## Updates", *updates(report)]
    parts += ["## Syntax", *syntax(report.syntax)]
    if report.on_spark is not None:
        parts += ["## On Spark", *report.on_spark.lines()]
    parts += ["## Left out", *left_out(), "## Known failures", *known_failures(report)]
    return "\n\n".join(parts) + "\n"


INTRODUCTION = """\
# Conformance

This page is written by `make conformance`; do not edit it. It shows how Kelda does on the W3C test suites
for SPARQL 1.0 and 1.1 Query, and for SPARQL 1.1 Update. Each evaluation test of a query runs five times:

- **one-shot**: Kelda parses the query and Oxigraph answers it once over stored data;
- **by operators**: the same, answered by Kelda's own operators over a view of the store. What has no operator
  goes to Oxigraph; *without Oxigraph* counts the tests passed without;
- **absorbed**: by operators over the store of an engine: the default graph came on a stream, one triple per
  event, and was absorbed, while named graphs were loaded;
- **streamed**: the default graph arrives as a stream, one triple per event, under a window that keeps
  everything, while named graphs are stored. What the query says at the last instant must be the expected
  result. The reference evaluator answers, which recomputes everything at each report;
- **incremental**: the same, answered by the incremental evaluator from the changes alone. What has no
  incremental form it hands to the reference evaluator; *wholly incremental* counts the tests passed without.

A result is right if it equals the expected one up to the names of blank nodes: as a bag of solutions, as a
sequence if the query ends in ORDER BY (asked once; a stream of answers has no order within an instant), as a
graph for CONSTRUCT. *By value* counts results that are right except for another spelling of the same number
or boolean (`1` for `01`): Oxigraph stores numbers by value. Where the default graph is
empty, no element ever comes and the window would never report; there the query reports at a heart-beat.
*Oxigraph alone* is the same test on the query text as it stands, for comparison. Where there is a JDK, each
test is also asked on Spark, over the files of a store."""


def table(head: tuple[str, ...], body: Iterable[tuple[object, ...]]) -> str:
    """A Markdown table; all columns but the first are numbers."""
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return "\n".join(lines + ["| " + " | ".join(map(str, cells)) + " |" for cells in body])


def groups(run: Run) -> list[tuple[str, list[Case]]]:
    """The cases of a run by folder, in the suites' order."""
    found: dict[str, list[Case]] = {}
    for case in run.outcomes:
        found.setdefault(case.group, []).append(case)
    return list(found.items())


def good(run: Run, chosen: Iterable[Case]) -> int:
    """How many of the chosen cases pass, by value included."""
    return sum(run.outcomes[case].ok for case in chosen)


def evaluation(report: Report) -> list[str]:
    """One table for the suites, one for their groups."""
    head = ("way", "total", "passed", "by value", "ignored", "failed")

    def line(label: str, run: Run, chosen: list[Case]) -> tuple[object, ...]:
        n = run.count(chosen)
        return (
            label,
            len(chosen),
            n[Verdict.PASSED.value],
            n[Verdict.BY_VALUE.value],
            n["ignored"],
            n[Verdict.FAILED.value],
        )

    lines = []
    for suite in ("sparql11", "sparql10"):
        for run in (
            report.one_shot,
            report.by_operators,
            report.absorbed,
            report.streamed,
            report.incremental,
            report.oxigraph,
        ):
            lines.append(line(f"{suite}, {run.title}", run, [c for c in run.outcomes if c.suite == suite]))

    by_group = [
        (
            name,
            len(chosen),
            good(report.one_shot, chosen),
            good(report.by_operators, chosen),
            good(report.absorbed, chosen),
            good(report.streamed, chosen),
            good(report.incremental, chosen),
            good(report.incremental, (case for case in chosen if case not in report.recomputed)),
            sum(not Documents.of(case).elements() for case in chosen),
            good(report.oxigraph, chosen),
        )
        for name, chosen in groups(report.one_shot)
    ]
    group_head = (
        "group",
        "total",
        "one-shot",
        "by operators",
        "absorbed",
        "streamed",
        "incremental",
        "wholly incremental",
        "empty default graph",
        "Oxigraph alone",
    )
    return [table(head, lines), "Passed, by value included, in each group:", table(group_head, by_group)]


def without_oxigraph(report: Report) -> list[str]:
    """How many cases our own operators answer alone, and why not the others."""
    passed, others = good(report.by_operators, report.by_operators.outcomes), len(report.asked)
    sentence = (
        f"Of the {passed} tests that pass by operators, {passed - others} need nothing of Oxigraph's but its "
        "functions."
    )
    if not others:
        return [sentence]
    return [
        f"{sentence} Of {others} a part goes to it:",
        table(("why", "tests"), Counter(report.asked.values()).most_common()),
    ]


def wholly(report: Report) -> list[str]:
    """How many cases run from the changes alone, and why the others do not."""
    passed, others = good(report.incremental, report.incremental.outcomes), len(report.recomputed)
    # Which variable it is does not make another reason.
    reasons = Counter(re.sub(r"\?\w+", "?x", reason) for reason in report.recomputed.values())
    sentence = (
        f"Of the {passed} tests that pass by the incremental evaluator, {passed - others} run wholly so."
    )
    if not others:
        return [sentence]
    return [
        f"{sentence} It hands {others} to the reference evaluator:",
        table(("why", "tests"), reasons.most_common()),
    ]


def updates(report: Report) -> list[str]:
    """One table for the groups."""
    run, other = report.updates, report.updates_by_oxigraph
    body = [
        (name, len(chosen), good(run, chosen), good(other, chosen))
        for name, chosen in [*groups(run), ("**all**", list(run.outcomes))]
    ]
    return [
        "An update is carried out on Kelda's own store, and what is stored afterwards must be the expected "
        "dataset, up to the names of blank nodes.",
        table(("group", "total", "passed", "Oxigraph alone"), body),
    ]


def syntax(run: Run) -> list[str]:
    """Positive tests must be taken, negative ones refused."""

    def of(kind: Kind, chosen: list[Case]) -> str:
        mine = [case for case in chosen if case.kind is kind]
        return f"{run.count(mine)[Verdict.PASSED.value]} of {len(mine)}" if mine else ""

    return [
        table(
            ("group", "positive", "negative"),
            [
                (name, of(Kind.POSITIVE_SYNTAX, chosen), of(Kind.NEGATIVE_SYNTAX, chosen))
                for name, chosen in [*groups(run), ("**all**", list(run.outcomes))]
            ],
        )
    ]


def left_out() -> list[str]:
    """What is not run at all, counted by reason."""
    reasons = Counter(case.out_of_scope for case in cases() if case.out_of_scope is not None)
    total = len(cases())
    return [
        f"The suites hold {total} tests; {total - sum(reasons.values())} are run, the others are not about "
        "what Kelda answers:",
        "\n".join(f"- {n} × {reason}" for reason, n in reasons.items()),
    ]


def known_failures(report: Report) -> list[str]:
    """The ignore list by reason, then what no reason covers."""

    def where(id: str, titles: list[str]) -> str:
        ways = [run for run in report.runs if any(case.id == id for case in run.outcomes)]
        return "" if len(titles) == len(ways) else f" ({', '.join(titles)} only)"

    parts = []
    reasons: dict[str, dict[str, list[str]]] = {}
    for run in report.runs:
        for case, outcome in run.outcomes.items():
            if not outcome.ok and case.id in run.ignored:
                reasons.setdefault(run.ignored[case.id], {}).setdefault(case.id, []).append(run.title)
    for reason, found in reasons.items():
        names = "\n".join(f"  - {id}{where(id, titles)}" for id, titles in found.items())
        parts.append(f"- {reason}\n{names}")
    for run in report.runs:
        if run.unexplained():
            names = "\n".join(f"  - {case.id}" for case in run.unexplained())
            parts.append(f"- **not explained yet** ({run.title})\n{names}")
    return ["\n".join(parts)] if parts else ["None."]
