"""The evaluation cases once more, asked on Spark: the data lie in files of a store, which tasks read.

`python -m tests.conformance.on_spark [PART OF AN ID]` runs these alone.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from kelda.errors import EnvironmentProblem, UsageError
from kelda.lang import parse
from kelda.spark.session import session
from kelda.spark.sql.refused import check
from kelda.spark.sql.store import SparkStore
from tests.spark.store_files import StoreWriter

from .ignored import IGNORED
from .results import Result
from .w3c import Case, cases
from .ways import Documents, Outcome, judge, told

MASTER = "local[2]"


@dataclass(frozen=True, slots=True)
class OnSpark:
    """How the cases went that can be asked there, and why the others cannot."""

    outcomes: dict[Case, Outcome]
    refused: dict[Case, str]

    @property
    def unexplained(self) -> dict[Case, Outcome]:
        """Failures that no reason covers."""
        return {case: o for case, o in self.outcomes.items() if not o.ok and case.id not in IGNORED}

    def lines(self) -> list[str]:
        """What a person wants to know of it."""
        passed = sum(outcome.ok for outcome in self.outcomes.values())
        taken, others = len(self.outcomes), len(self.refused)
        known = taken - passed - len(self.unexplained)
        sentence = (
            f"Asked on Spark, {passed} of {taken} tests pass, {known} fail as they do elsewhere (see below), "
            f"{len(self.unexplained)} otherwise; {others} more are refused:"
        )
        reasons = Counter(self.refused.values())
        return [sentence, "\n".join(f"- {n} × {reason}" for reason, n in reasons.most_common())]


def on_spark(case: Case) -> Result:
    """One case, over the files of a store."""
    with tempfile.TemporaryDirectory() as folder:
        store = StoreWriter(Path(folder) / "store")
        changes = [(quad, 1, 1) for quad in dict.fromkeys(Documents.of(case).all())]
        store.compacted(0, 1, changes[::2])
        store.batch(2, changes[1::2])
        asked = SparkStore(session(MASTER), store.folder)
        return told(asked.query(parse(case.text(), base=case.query)))


def why_refused(case: Case) -> str | None:
    """Why a case cannot be asked there; None: it can."""
    try:
        check(parse(case.text(), base=case.query))
    except UsageError as refusal:
        return str(refusal).partition(" cannot be asked")[0]
    return None


def run(part: str = "") -> OnSpark:
    """All of them, or those with this in their id."""
    chosen = [case for case in cases() if case.out_of_scope is None and case.evaluates and part in case.id]
    reasons = {case: why_refused(case) for case in chosen}
    taken = [case for case, reason in reasons.items() if reason is None]
    refused = {case: reason for case, reason in reasons.items() if reason is not None}
    return OnSpark({case: judge(case, on_spark) for case in taken}, refused)


def run_if_possible() -> OnSpark | None:
    """All of them; None where there is no JDK."""
    try:
        return run()
    except EnvironmentProblem:
        return None


if __name__ == "__main__":
    found = run(*sys.argv[1:2])
    print("\n".join(found.lines()))
    for bad, outcome in found.unexplained.items():
        print(f"\nFAILED {bad.id} ({bad.query})\n{outcome.detail}")
    sys.exit(bool(found.unexplained))
