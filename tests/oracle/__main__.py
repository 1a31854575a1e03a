"""Put random queries to Apache Jena and to Kelda, and say where they differ."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from .jena import Jena, NoOracle, prepare
from .run import CURRENT, Finding, run


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m tests.oracle", description=__doc__)
    options.add_argument("--cases", type=int, default=4000, help="queries that are asked once")
    options.add_argument("--streamed", type=int, default=None, help="continuous queries (default: a quarter)")
    options.add_argument("--seed", type=int, default=None, help="default: the time")
    options.add_argument("--only", type=int, help="the case of this number alone")
    options.add_argument("--most", type=int, default=40, help="stop after so many differences")
    options.add_argument(
        "--whole", action="store_true", help="show cases as they are, do not make them small"
    )
    options.add_argument("--prepare", action="store_true", help="only fetch and compile what is needed")
    chosen = options.parse_args()
    try:
        prepare()
    except NoOracle as problem:
        print(f"no oracle here: {problem}", file=sys.stderr)
        return 0 if chosen.prepare else 2
    if chosen.prepare:
        return 0
    seed = int(time.time()) if chosen.seed is None else chosen.seed
    streamed = chosen.cases // 4 if chosen.streamed is None else chosen.streamed
    counts: Counter[str] = Counter()
    found: list[Finding] = []
    print(f"seed {seed}: {chosen.cases} cases asked once, {streamed} streamed (now: see {CURRENT})")
    with Jena() as jena:
        for kind, cases in (("oneshot", chosen.cases), ("streamed", streamed)):
            numbers = range(cases) if chosen.only is None else range(chosen.only, chosen.only + bool(cases))
            for finding in run(jena, kind, seed, numbers, counts, small=not chosen.whole):
                print(finding, flush=True)
                found.append(finding)
                if len(found) >= chosen.most:
                    break
    print(", ".join(f"{n} {what}" for what, n in counts.most_common()))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
