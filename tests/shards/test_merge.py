"""What shards say becomes the answers of queries: in time order, and what cancels out is left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pyoxigraph import Literal

from kelda.engine.answer import Answer
from kelda.engine.sent import Sent
from kelda.lang import parse
from kelda.lang.algebra import Output
from kelda.plan.partition import Spread
from kelda.plan.shape import QUERY
from kelda.rdf.dictionary import Dictionary
from kelda.shards.merge import Merged, merge
from kelda.shards.planner import Standing
from kelda.shards.shard import News, Outcome, Told
from tests.shards.worlds import PREFIX

TEXT = PREFIX + "SELECT ?y { STREAM :a [RANGE 5s] { ?x :p ?y } }"

Row = tuple[int, int, str]  # time, sign, value


def standing(output: Output, merged: bool, *names: str) -> dict[str, Standing]:
    spread = Spread((("x", 2),), merged)
    return {name: Standing(name, parse(TEXT), output, spread) for name in names}


def outcome(*rows: Row, names: tuple[str, ...] = ("q",), numbers: list[int] | None = None) -> Outcome:
    """A shard that says these rows, of one query or of those with these numbers."""
    dictionary = Dictionary()
    values = [[dictionary.encode(Literal(f"a value too long for an id: {v}")) for _, _, v in rows]]
    columns: tuple[str, ...] = ("y",)
    if numbers is not None:
        columns, values = (QUERY, "y"), [numbers, *values]
    sent = Sent(
        columns,
        np.array([t for t, _, _ in rows], np.int64),
        np.array([sign for _, sign, _ in rows], np.int64),
        np.array(values, np.int64).reshape(len(columns), len(rows)),
    )
    return Outcome([Told(list(names), sent)], [], dictionary.entries(), News(), 1, {}, [], b"")


def lines(merged: Merged) -> list[str]:
    assert len(merged) == len(merged.answers())
    assert sorted(merged.times.tolist()) == [answer.time for answer in merged.answers()]
    return written(merged.answers())


def written(answers: list[Answer]) -> list[str]:
    return [f"{a.query} {a.time}{a.sign}{a.bindings['y'].value[-1]}" for a in answers if a.bindings]


ONE = outcome((1, 1, "a"), (3, -1, "a"), (3, 1, "b"))
TWO = outcome((1, 1, "c"), (2, 1, "d"), (3, 1, "a"), (4, -1, "d"))


def test_solutions_of_all_shards_in_time_order() -> None:
    found = lines(merge([ONE, TWO], standing(Output.CHANGES, False, "q")))
    assert sorted(found) == sorted(["q 1+a", "q 1+c", "q 2+d", "q 3-a", "q 3+b", "q 3+a", "q 4-d"])
    times = [line.split()[1][0] for line in found]
    assert times == sorted(times)
    assert found.index("q 3-a") < found.index("q 3+b"), "what goes is said before what comes"


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (Output.CHANGES, ["q 1+a", "q 1+c", "q 2+d", "q 3+b", "q 4-d"]),
        (Output.ISTREAM, ["q 1+a", "q 1+c", "q 2+d", "q 3+b"]),
        (Output.DSTREAM, ["q 4-d"]),
    ],
)
def test_what_goes_here_and_comes_there_is_left_out(output: Output, expected: list[str]) -> None:
    assert sorted(lines(merge([ONE, TWO], standing(output, True, "q")))) == expected


def test_rows_of_equal_value_count_as_often_as_they_are() -> None:
    twice = outcome((1, 1, "a"), (1, 1, "a"))
    once = outcome((1, -1, "a"), (2, 1, "b"), (2, 1, "b"))
    assert lines(merge([twice, once], standing(Output.CHANGES, True, "q"))) == ["q 1+a", "q 2+b", "q 2+b"]
    assert len(merge([twice, twice], standing(Output.RSTREAM, True, "q"))) == 4, "what holds is never netted"


def test_queries_of_one_network_keep_their_names() -> None:
    one = outcome((1, 1, "a"), (1, 1, "b"), names=("p", "q"), numbers=[0, 1])
    two = outcome((1, 1, "c"), (2, -1, "b"), names=("q", "r"), numbers=[1, 0])
    known = standing(Output.CHANGES, False, "p", "q", "r")
    found = merge([one, two], known)
    assert sorted(lines(found)) == ["p 1+a", "q 1+b", "q 2-b", "r 1+c"]
    assert written(found.of("q")) == ["q 1+b", "q 2-b"]
    assert sorted(written(found.answers(without={"q"}))) == ["p 1+a", "r 1+c"]


def test_nothing_is_said_of_a_query_that_is_gone() -> None:
    assert lines(merge([ONE, TWO], standing(Output.CHANGES, False, "another"))) == []


def test_what_is_sent_at_several_reports() -> None:
    """It is there once, and counts as often as it is sent; merged with others, and of one query alone."""
    reports = np.array([1, 2, 4, 6])
    one = outcome((1, 1, "a"), (2, 1, "b"), names=("p", "q"), numbers=[0, 1])
    sent = replace(one.told[0].sent, last=np.array([4, 2]), reports=reports)
    one = replace(one, told=[Told(["p", "q"], sent)])
    known = standing(Output.RSTREAM, True, "p", "q", "r")
    assert lines(merge([one], known)) == ["p 1+a", "p 2+a", "q 2+b", "p 4+a"]
    two = outcome((2, 1, "c"), (4, 1, "d"), names=("q", "r"), numbers=[0, 1])
    found = merge([one, two], known)
    assert sorted(lines(found)) == ["p 1+a", "p 2+a", "p 4+a", "q 2+b", "q 2+c", "r 4+d"]
    assert written(found.of("p")) == ["p 1+a", "p 2+a", "p 4+a"]
    assert sorted(written(found.of("q"))) == ["q 2+b", "q 2+c"]
