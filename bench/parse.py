"""How long a query takes to parse, and a prepared one to bind (CPU time, median).

python bench/parse.py [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from kelda.lang import parse, prepare

PREFIXES = """PREFIX foaf: <http://xmlns.com/foaf/0.1/>
PREFIX lv: <http://deri.org/floorplan/>
"""
SPARQL = (
    PREFIXES
    + """SELECT ?name (COUNT(?friend) AS ?friends)
WHERE {
  ?person foaf:name ?name ; foaf:knows ?friend .
  OPTIONAL { ?person foaf:mbox ?mbox }
  FILTER (?name != "nobody" && BOUND(?mbox))
}
GROUP BY ?name
ORDER BY DESC(?friends)
LIMIT 10"""
)
CQELS = (
    PREFIXES
    + """SELECT ?person1 ?person2
FROM NAMED <http://deri.org/floorplan/>
WHERE {
  STREAM <http://deri.org/streams/rfid> [NOW] { ?person1 lv:detectedAt ?loc1 }
  STREAM <http://deri.org/streams/rfid> [RANGE 3s] { ?person2 lv:detectedAt ?loc2 }
  GRAPH <http://deri.org/floorplan/> { ?loc1 lv:connected ?loc2 }
  ?person1 foaf:name "Anna" .
}"""
)
CSPARQL = (
    "REGISTER QUERY crowded COMPUTED EVERY 5s AS\n"
    + PREFIXES
    + """SELECT ?loc (COUNT(DISTINCT ?person) AS ?people)
FROM STREAM <http://deri.org/streams/rfid> [RANGE 10s STEP 1s]
FROM <http://deri.org/floorplan/>
WHERE { ?person lv:detectedAt ?loc . ?loc lv:name ?name }
GROUP BY ?loc
HAVING (COUNT(DISTINCT ?person) > 5)"""
)
RSPQL = (
    PREFIXES
    + """REGISTER ISTREAM <http://e/out> AS
SELECT ?person ?loc
FROM NAMED WINDOW lv:w1 ON lv:rfid [RANGE PT10S STEP PT5S]
FROM NAMED WINDOW lv:w2 ON lv:badges [ELEMENTS 100 STEP 10]
WHERE {
  WINDOW lv:w1 { ?person lv:detectedAt ?loc }
  WINDOW lv:w2 { ?person lv:badge ?badge }
}"""
)
PREPARED = CQELS.replace('"Anna"', "$name").replace("3s", "$range")
QUERIES = {"SPARQL": SPARQL, "CQELS-QL": CQELS, "C-SPARQL": CSPARQL, "RSP-QL": RSPQL}


def median_us(run: Callable[[], object], rounds: int) -> float:
    """Median CPU time of one call, in microseconds; a clock reading costs too much for one call."""
    batch = 20
    times = []
    for _ in range(rounds):
        start = time.process_time_ns()
        for _ in range(batch):
            run()
        times.append((time.process_time_ns() - start) / batch / 1000)
    return statistics.median(times)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--json", type=Path, help="write the numbers to this file as well")
    options.add_argument("--rounds", type=int, default=30)
    args = options.parse_args()

    start = time.process_time_ns()
    parse("SELECT * { ?s ?p ?o }")
    rows = [("grammar and first query", (time.process_time_ns() - start) / 1000)]
    for name, text in QUERIES.items():
        parse(text)
        rows.append(
            (f"parse {name}, {len(text.splitlines())} lines", median_us(lambda t=text: parse(t), args.rounds))
        )
    rows.append(("prepare CQELS-QL", median_us(lambda: prepare(PREPARED), args.rounds)))
    prepared = prepare(PREPARED)
    rows.append(
        ("bind, 2 parameters", median_us(lambda: prepared.bind(name="Anna", range=3000), args.rounds))
    )

    for what, us in rows:
        print(f"{what:<28} {us:>12,.1f} us")
    result = {
        "benchmark": "parse",
        "python": platform.python_version(),
        "cpu_us": {what: round(us, 2) for what, us in rows},
    }
    line = json.dumps(result)
    print(line)
    if args.json is not None:
        args.json.write_text(line + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
