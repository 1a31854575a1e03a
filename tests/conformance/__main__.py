"""`python -m tests.conformance`: run the W3C suites and write `docs/conformance.md`.

Ends with 1 if a case fails without a reason in the ignore list, or passes in spite of one.
"""

from __future__ import annotations

import sys
from pathlib import Path

from . import report as conformance
from .w3c import available, data_root

PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"


def main() -> int:
    if not available():
        print(f"No W3C suites in {data_root()}: set KELDA_DATA to where w3c/sparql lies.", file=sys.stderr)
        return 5
    report = conformance.run()
    PAGE.write_text(conformance.page(report), encoding="utf-8")
    bad = 0
    for run in (*report.runs, report.oxigraph, report.updates_by_oxigraph):
        print(f"{run.title:>23}: " + ", ".join(f"{n} {how}" for how, n in run.count(run.outcomes).items()))
    for run in report.runs:
        for case in run.unexplained():
            print(f"\nFAILED {run.title} {case.id}\n{run.outcomes[case].detail}".rstrip())
        for case in run.closed():
            print(f"\nPASSES NOW {run.title} {case.id}: take it off the list in tests/conformance/ignored.py")
        bad += len(run.unexplained()) + len(run.closed())
    if report.on_spark is not None:
        print("\n" + "\n".join(report.on_spark.lines()))
        for case, outcome in report.on_spark.unexplained.items():
            print(f"\nFAILED on Spark {case.id}\n{outcome.detail}".rstrip())
            bad += 1
    print(f"\nWritten: {PAGE}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
