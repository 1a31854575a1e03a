"""Kill real processes under load: python -m tests.crash --rounds 20 [--only KIND] [--seed N].

For each kind of process, so many of them are killed with SIGKILL at random moments, several in one
application. The answers in the files of the sinks, as bags, must be those of a run that nobody disturbs.
With `power` the driver is killed, and files that nobody had synced are lost. `inprocess` is without Spark.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.crash.inprocess_rounds import INPROCESS, InProcessRounds
from tests.crash.rounds import KINDS, Failure, Rounds


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="kills of each kind (20)")
    parser.add_argument(
        "--only", choices=(INPROCESS, *KINDS), action="append", help="this kind alone; may be repeated"
    )
    parser.add_argument("--seed", type=int, default=None, help="to draw the same moments again")
    parser.add_argument("--folder", type=Path, default=None, help="where to work (a new one in /tmp)")
    given = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
    folder = given.folder or Path(tempfile.mkdtemp(prefix="kelda-crash-"))
    print(f"seed {seed}, working in {folder}", flush=True)
    failed = False
    for kind in given.only or (INPROCESS, *KINDS):
        begin = time.monotonic()
        print(f"{kind}:", flush=True)
        rounds = (InProcessRounds if kind == INPROCESS else Rounds)(
            (kind,), given.rounds, folder, seed=seed, say=lambda line: print(line, flush=True)
        )
        try:
            rounds.run()
        except Failure as failure:
            failed = True
            print(f"{kind}: FAILED after {rounds.done} kills: {failure}\nkept: {folder}", flush=True)
            continue
        print(
            f"{kind}: {rounds.done} kills, {rounds.applications} applications, {rounds.starts} drivers, "
            f"shards stood up {rounds.rebuilt} times, {time.monotonic() - begin:.0f} s: "
            "nothing lost, nothing doubled",
            flush=True,
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
