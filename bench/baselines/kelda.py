"""The same queries over the same files by Kelda's engine in this process: which answers are right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from bench.baselines.queries import QUERIES
from bench.families.lsbench import FAMILY
from bench.families.lsbench.vocabulary import STREAMS
from kelda.inprocess.run import run
from kelda.io.job import Job, QuerySpec, StreamSource


def answers(
    query: str, files: Mapping[str, str], stored: str, copies: int = 1, sliding: bool = False
) -> list[Counter[tuple[str | int, ...]]]:
    """The answers of each copy, as `measure` keeps them: terms as N-Triples text, in the order of SELECT."""
    dialect = "csparql" if sliding else "cqels"
    text = FAMILY.query(query).texts[dialect]
    specs = tuple(
        QuerySpec(str(i), text.replace("user:u0", f"user:u{i}").replace("person:p0", f"person:p{i}"), dialect)
        for i in range(copies)
    )
    asked = QUERIES[query]
    streams = tuple(StreamSource(STREAMS[name], files[name]) for name in asked.streams)
    found: list[Counter[tuple[str | int, ...]]] = [Counter() for _ in specs]
    for answer in run(Job(specs, streams, ((None, stored),))):
        assert answer.bindings is not None
        terms = tuple(str(answer.bindings[name]) for name in asked.variables)
        found[int(answer.query)][(*terms, answer.time) if sliding else terms] += 1
    return found
