"""The same queries over the same files by Kelda's engine in this process: which answers are right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import kelda
from bench.baselines.queries import QUERIES
from bench.families.lsbench import FAMILY
from bench.families.lsbench.vocabulary import STREAMS


def answers(
    query: str, files: Mapping[str, str], stored: str, copies: int = 1, sliding: bool = False
) -> list[Counter[tuple[str | int, ...]]]:
    """The answers of each copy, as `measure` keeps them: terms as N-Triples text, in the order of SELECT."""
    dialect = "csparql" if sliding else "cqels"
    text = FAMILY.query(query).texts[dialect]
    asked = QUERIES[query]
    found: list[Counter[tuple[str | int, ...]]] = []
    with kelda.connect(fixed_graphs=True) as engine:
        for name in asked.streams:
            engine.stream(STREAMS[name], files[name])
        engine.load(stored)
        for i in range(copies):
            of = text.replace("user:u0", f"user:u{i}").replace("person:p0", f"person:p{i}")
            engine.register(of, str(i), dialect=dialect)
        engine.start()
        engine.wait()
        for asking in engine.queries:
            counts: Counter[tuple[str | int, ...]] = Counter()
            for answer in asking.results():
                assert answer.bindings is not None
                terms = tuple(str(answer.bindings[name]) for name in asked.variables)
                counts[(*terms, answer.time) if sliding else terms] += 1
            found.append(counts)
    return found
