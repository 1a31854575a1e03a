"""Each rule against its fixture, `tests/fixtures/plan/<rule>.txt`: queries, and what the rule makes of them.

An entry is a comment, a query, `=>`, and the rewritten query as SPARQL in which a window is a graph. After a
change that is meant, `python -m tests.plan.test_rules` writes the second halves anew: read the difference.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
from pyoxigraph import NamedNode

from kelda.lang import parse
from kelda.lang.to_sparql import WindowGraph, to_sparql
from kelda.plan.optimize import RULES, Rule, optimize
from kelda.plan.rules.each_stream import each_stream

FIXTURES = Path(__file__).parents[1] / "fixtures" / "plan"
PREFIX = "http://ex/"
STREAMS = (PREFIX + "a", PREFIX + "b")

UNDER_TEST: dict[str, Rule] = {rule.__name__: rule for rule in RULES}
UNDER_TEST |= {
    "each_stream": partial(each_stream, streams=STREAMS),
    "optimize": partial(optimize, streams=STREAMS),
}


class Entry(NamedTuple):
    comment: str
    query: str
    expected: str


def entries(rule: str) -> Iterator[Entry]:
    for block in (FIXTURES / f"{rule}.txt").read_text(encoding="utf-8").strip().split("\n\n"):
        before, _, expected = block.partition("\n=>")
        lines = before.splitlines()
        comments = [line for line in lines if line.startswith("#")]
        yield Entry("\n".join(comments), "\n".join(lines[len(comments) :]), expected.strip())


def rewritten(rule: str, text: str) -> str:
    query = UNDER_TEST[rule](parse(f"PREFIX : <{PREFIX}> {text}"))
    stream = NamedNode(f"{PREFIX}any")  # shown where a window is still on every stream
    windows = {w.name: (WindowGraph(stream, w.name.replace(PREFIX, ":")),) for w in query.windows}
    found = to_sparql(query, windows=windows, plain=True)
    short = re.sub(f"<{PREFIX}([a-z]*)>", r":\1", found)
    short = re.sub(r'"(\d+)"\^\^<[^>]*#integer>', r"\1", short)
    return textwrap.fill(short, 108, break_long_words=False, break_on_hyphens=False)


@pytest.mark.parametrize(("rule", "entry"), [(rule, e) for rule in UNDER_TEST for e in entries(rule)])
def test_rule(rule: str, entry: Entry) -> None:
    assert rewritten(rule, entry.query) == entry.expected, entry.comment


def test_every_fixture_is_of_a_rule() -> None:
    assert {path.stem for path in FIXTURES.glob("*.txt")} == UNDER_TEST.keys()


def write_anew() -> None:
    for rule in UNDER_TEST:
        blocks = [f"{e.comment}\n{e.query}\n=>\n{rewritten(rule, e.query)}\n" for e in entries(rule)]
        (FIXTURES / f"{rule}.txt").write_text("\n".join(blocks), encoding="utf-8")


if __name__ == "__main__":
    write_anew()
