"""How many rows a second an expression takes: from ids alone, and through pyoxigraph with repeated values.

python bench/expressions.py [--rows N] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path

import numpy as np
from pyoxigraph import Literal, NamedNode

from kelda.engine.deltas import Deltas
from kelda.engine.expressions import Expressions
from kelda.lang import algebra as A
from kelda.lang import parse
from kelda.rdf.dictionary import Dictionary

EXPRESSIONS = {
    "ids": "?x > 20 && ?y != <http://example.org/room/7>",
    "decimals": "?t * 2 + 1 >= 40.5",
    "regex, 1,000 strings": 'REGEX(?name, "^name 1.*7$")',
    "both": '?x > 20 && REGEX(?name, "^name 1.*7$")',
}


def expression(text: str) -> A.Expr:
    """The expression of a FILTER."""
    for_filter = parse(f"SELECT * {{ ?x ?y ?t . ?x ?y ?name FILTER({text}) }}")
    pattern = for_filter.pattern
    while not isinstance(pattern, A.Filter):
        pattern = pattern.pattern  # type: ignore[attr-defined]
    return pattern.condition


def rows(dictionary: Dictionary, size: int) -> Deltas:
    """Integers, rooms, temperatures and names at random."""
    random = np.random.default_rng(1)
    decimal = NamedNode("http://www.w3.org/2001/XMLSchema#decimal")
    pools: list[list[Literal] | list[NamedNode]] = [
        [Literal(i) for i in range(100)],
        [NamedNode(f"http://example.org/room/{i}") for i in range(200)],
        [Literal(f"{i / 10}", datatype=decimal) for i in range(400)],
        [Literal(f"name {i:04}") for i in range(1000)],
    ]
    values = [random.choice(np.array([dictionary.encode(t) for t in pool]), size) for pool in pools]
    ones = np.ones(size, np.int64)
    return Deltas(("x", "y", "t", "name"), np.arange(size), ones, np.stack(values))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--json", type=Path, help="write the numbers to this file as well")
    options.add_argument("--rows", type=int, default=1_000_000)
    args = options.parse_args()

    dictionary = Dictionary()
    deltas = rows(dictionary, args.rows)
    rates = {}
    for name, text in EXPRESSIONS.items():
        Expressions(dictionary).compile(expression(text), deltas.columns).holds(deltas.select(np.arange(100)))
        compiled = Expressions(dictionary).compile(expression(text), deltas.columns)
        for moment in ("first", "again"):
            start = time.perf_counter()
            compiled.holds(deltas)
            rates[f"{name}, {moment}"] = args.rows / (time.perf_counter() - start)
    for what, rate in rates.items():
        print(f"{what:<28} {rate / 1e6:>10,.1f} M rows/s")
    result = {
        "benchmark": "expressions",
        "python": platform.python_version(),
        "rows_per_second": {what: round(rate) for what, rate in rates.items()},
    }
    line = json.dumps(result)
    print(line)
    if args.json is not None:
        args.json.write_text(line + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
