"""How many answers a second go out in each format, from columns of ids to bytes or a table, on one core.

python -m bench.answers [--rows N] [--json FILE]

A row has two terms: a thing (one of a thousand IRIs), and a value of the kind that the line names. The best
of some runs, in CPU time; `by answer` is the same by way of answers that are objects.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from pyoxigraph import Literal, NamedNode

from kelda.engine.block import Block
from kelda.engine.columnar import Columnar
from kelda.engine.sent import Sent
from kelda.io.formats import Csv, Format, Messages, Ndjson, NQuads, Parquet, shape_of
from kelda.lang import parse
from kelda.rdf.dictionary import Dictionary

PREFIX = "PREFIX : <http://example.org/> "
SELECT = parse(PREFIX + "SELECT ?x ?y WHERE { STREAM :s [NOW] { ?x :p ?y } }")
CONSTRUCT = parse(PREFIX + "CONSTRUCT { ?x :is ?y } WHERE { STREAM :s [NOW] { ?x :p ?y } }")
DECIMAL = NamedNode("http://www.w3.org/2001/XMLSchema#decimal")
FORMATS: dict[str, Format | None] = {
    "ndjson": Ndjson(),
    "csv": Csv(shape_of(SELECT).columns),
    "nquads": NQuads(),
    "messages": Messages(),
    "parquet": Parquet(shape_of(SELECT).columns, SELECT.form),
    "arrow": None,
}
KINDS = ("an IRI", "an average", "a short decimal", "a string", "ever another number")
BY_ANSWER = 20_000  # rows at most, where each becomes an object


def values(kind: str, dictionary: Dictionary, size: int) -> np.ndarray:
    """So many ids of a kind: of 20,000 terms, or of as many as there are rows."""
    random = np.random.default_rng(1)
    if kind == "ever another number":
        return np.array([dictionary.encode(Literal(i)) for i in range(size)])
    make: Callable[[int], NamedNode | Literal] = {
        "an IRI": lambda i: NamedNode(f"http://example.org/thing/{i % 1000}"),
        "an average": lambda i: Literal(f"{i / 7:.18f}", datatype=DECIMAL),
        "a short decimal": lambda i: Literal(f"{i / 100}", datatype=DECIMAL),
        "a string": lambda i: Literal(f'what "{i}" says'),
    }[kind]
    return random.choice(np.array([dictionary.encode(make(i)) for i in range(20_000)]), size)


def sent(kind: str, dictionary: Dictionary, size: int) -> Sent:
    """Rows of two terms, a thousand at an instant."""
    time_of = 1_700_000_000_000 + 100 * (np.arange(size) // 1000)
    columns = np.array([values("an IRI", dictionary, size), values(kind, dictionary, size)])
    return Sent(("x", "y"), time_of, np.ones(size, np.int64), columns)


def write(format: Format | None, said: Sent, dictionary: Dictionary, by_answer: bool = False) -> None:
    """Bring answers into a format; None: into an Arrow table."""
    query = CONSTRUCT if isinstance(format, NQuads | Messages) else SELECT
    block = Block(query, "average by sensor", said, dictionary)
    if format is None:
        block.to_arrow()
    else:
        format.body(block.answers() if by_answer else Columnar([block]))


def seconds(work: Callable[[], None], times: int) -> float:
    """CPU seconds, the least of some runs."""
    found = []
    for _ in range(times):
        begun = time.process_time()
        work()
        found.append(time.process_time() - begun)
    return min(found)


def measured(size: int) -> Iterator[dict[str, object]]:
    """A line for each kind of row and format."""
    for kind in KINDS:
        dictionary = Dictionary()
        said = sent(kind, dictionary, size)
        few = said.select(np.s_[:BY_ANSWER])
        for name, format in FORMATS.items():
            write(format, few, dictionary)  # compiles
            took = seconds(partial(write, format, said, dictionary), 3)
            line: dict[str, object] = {"value": kind, "format": name, "rows": round(size / took)}
            if format is not None:
                slow = seconds(partial(write, format, few, dictionary, True), 1)
                line["by answer"] = round(len(few) / slow)
            yield line


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--json", type=Path, help="write the numbers to this file as well")
    options.add_argument("--rows", type=int, default=500_000)
    args = options.parse_args()
    lines = []
    print(f"{'value':20} {'format':10} {'rows/CPU-s':>12} {'by answer':>12}")
    for line in measured(args.rows):
        lines.append(line)
        by_answer = f"{line['by answer']:>12,}" if "by answer" in line else ""
        print(f"{line['value']:20} {line['format']:10} {line['rows']:>12,} {by_answer}", flush=True)
    if args.json is not None:
        args.json.write_text(json.dumps(lines, indent=1) + "\n")


if __name__ == "__main__":
    main()
