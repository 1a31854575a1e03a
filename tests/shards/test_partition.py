"""How queries are spread, and the law of the grid: a solution arises on exactly one shard."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelda.engine.ownership import Owner, shards_of
from kelda.io.job import QuerySpec
from kelda.lang import parse
from kelda.plan.partition import Spread, partition, streams_of, window_patterns
from tests.engine.random_queries import STREAMS
from tests.shards.worlds import PREFIX, event, local_shards

A = "STREAM :a [RANGE 5s]"
B = "STREAM :b [RANGE 5s]"

SPREAD = {
    "one variable in all patterns": (
        f"SELECT * {{ {A} {{ ?x :p ?y }} {B} {{ ?x :q ?z }} }}",
        Spread((("x", 8),)),
    ),
    "a chain": (f"SELECT * {{ {A} {{ ?x :p ?y . ?y :q ?z . ?y :r ?w }} }}", Spread((("y", 8),))),
    "a triangle": (
        f"SELECT * {{ {A} {{ ?x :p ?y . ?y :q ?z . ?z :r ?x }} }}",
        Spread((("x", 2), ("y", 2), ("z", 2))),
    ),
    "the variable is not shown": (f"SELECT ?y {{ {A} {{ ?x :p ?y . ?x :q 1 }} }}", Spread((("x", 8),), True)),
    "a group by its key": (
        f"SELECT ?x (COUNT(*) AS ?n) {{ {A} {{ ?x :p ?y }} }} GROUP BY ?x",
        Spread((("x", 8),)),
    ),
    "stored triples are everywhere": (f"SELECT * {{ {A} {{ ?x :p 1 }} ?x :k ?z }}", Spread((("x", 8),))),
    "what is looked up binds it too": (
        f"SELECT * {{ {A} {{ ?x :p ?y }} MINUS {{ {B} {{ ?x :q ?z }} }} }}",
        Spread((("x", 8),)),
    ),
    "both branches bind it": (
        f"SELECT * {{ {{ {A} {{ ?x :p ?y }} }} UNION {{ {B} {{ ?z :q ?x }} }} }}",
        Spread((("x", 8),)),
    ),
    "a sub-select shows it": (
        f"SELECT * {{ {{ SELECT ?x (MAX(?y) AS ?m) {{ {A} {{ ?x :p ?y }} }} GROUP BY ?x }} }}",
        Spread((("x", 8),)),
    ),
    "a template": (f"CONSTRUCT {{ ?x :is ?x }} {{ {A} {{ ?x :p 1 }} }}", Spread((("x", 8),))),
}


@pytest.mark.parametrize(("text", "spread"), SPREAD.values(), ids=SPREAD.keys())
def test_spread(text: str, spread: Spread) -> None:
    found = partition(parse(PREFIX + text), 8)
    assert found.spread == spread
    assert f"over 8 shards by ?{spread.axes[0][0]}" in found.say()
    assert ("netted" in found.say()) == spread.merged


WHOLE = {
    "no variable": f"SELECT * {{ {A} {{ :x :p :y }} }}",
    "all solutions": f"ASK {{ {A} {{ ?x :p ?y }} }}",
    "order or a limit": f"SELECT * {{ {A} {{ ?x :p ?y }} }} LIMIT 3",
    "no variable of its windows": f"SELECT (COUNT(*) AS ?n) {{ {A} {{ ?x :p ?y }} }}",
    "branch of a UNION reads no window": f"SELECT * {{ {{ {A} {{ ?x :p ?y }} }} UNION {{ ?x :k ?y }} }}",
    "stored data is compared": f"SELECT * {{ ?x :k ?y MINUS {{ {A} {{ ?x :p ?y }} }} }}",
    "property path": f"SELECT * {{ {A} {{ ?x :p+ ?y }} }}",
    "every stream": "SELECT * { STREAM ?s [RANGE 5s] { ?x :p ?y } }",
    "no window": "SELECT * { ?x :k ?y }",
    "times that events state": "REGISTER RSTREAM :o AS SELECT * FROM NAMED WINDOW :w ON :a [RANGE PT4S @:at] "
    "WHERE { WINDOW :w { ?x :p ?y } }",
}


@pytest.mark.parametrize(("why", "text"), WHOLE.items(), ids=WHOLE.keys())
def test_whole(why: str, text: str) -> None:
    found = partition(parse(PREFIX + text), 8)
    assert found.spread is None
    assert why in found.why and found.say().startswith("whole on one shard: ")


def test_what_a_lookup_alone_mentions_is_no_axis() -> None:
    text = f"SELECT * {{ {A} {{ ?x :p ?y }} FILTER NOT EXISTS {{ {B} {{ ?y :q ?z . ?z :r ?w }} }} }}"
    spread = partition(parse(PREFIX + text), 4).spread
    assert spread is not None and not {"z", "w"} & dict(spread.axes).keys()


def test_one_shard_and_merged_graphs_leave_a_query_whole() -> None:
    assert partition(parse(PREFIX + f"SELECT * {{ {A} {{ ?x :p ?y }} }}"), 1).why == "there is one shard"
    merged = "REGISTER QUERY q AS SELECT * FROM STREAM <http://ex/a> [RANGE 3s STEP 1s] WHERE { ?x :p 1 }"
    assert partition(parse(PREFIX + merged), 4, stored_default=False).spread == Spread((("x", 4),))
    assert "merged" in partition(parse(PREFIX + merged), 4, stored_default=True).why


def test_patterns_and_streams_of_a_query() -> None:
    query = parse(
        PREFIX
        + f"SELECT * {{ {A} {{ ?x :p ?y }} ?x :k ?n GRAPH :g {{ ?x :in ?r }} "
        + f"FILTER EXISTS {{ {B} {{ ?x :q ?z }} }} }}"
    )
    assert streams_of(query) == ("http://ex/a", "http://ex/b")
    assert [(p.stream, sorted(p.variables)) for p in window_patterns(query)] == [
        ("http://ex/a", ["x", "y"]),
        ("http://ex/b", ["x", "z"]),
    ]


def test_a_path_that_may_stay_reads_every_triple() -> None:
    """Each term of a window is at the end of a path of no length, whatever its triples are about."""
    text = PREFIX + "SELECT ?x ?y { STREAM :a [RANGE 5ms] { ?x :p? ?y } }"
    expected = None
    for shards in (1, 2, 5):
        local = local_shards(shards)
        local.apply([local.planner.plan(QuerySpec("q", text))])
        answers = local.push({STREAMS[0]: [event(1, "n0", "q", 7)]}, ends=STREAMS)
        found = sorted(str(sorted((a.bindings or {}).items(), key=str)) for a in answers)
        expected = expected or found
        assert found == expected and len(found) == 2  # n0 and 7, each to itself


# ------------------------------------------------------------------------------ the law

NAMES = ("x", "y", "z")
ids = st.integers(-(2**63), 2**63 - 1).filter(bool)


@given(
    st.dictionaries(st.sampled_from(NAMES), st.integers(2, 3), min_size=1),
    st.lists(st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True), min_size=1, max_size=4),
    st.fixed_dictionaries(dict.fromkeys(NAMES, ids)),
)
def test_a_solution_arises_on_exactly_one_shard(
    axes: dict[str, int], patterns: list[list[str]], values: dict[str, int]
) -> None:
    spread = Spread(tuple(axes.items()))
    patterns = [*patterns, *([name] for name in axes)]  # every solution binds every axis
    everywhere = (1 << spread.shards) - 1
    meet = everywhere
    for names in patterns:
        columns = {name: i for i, name in enumerate(names)}
        row = [values[name] for name in names] + [7] * (3 - len(names))
        parts = tuple(np.array([value], np.int64) for value in row)
        which = np.zeros(1, np.int64)
        wanted = int(shards_of(spread, columns, parts, which)[0])  # type: ignore[arg-type]
        assert wanted & ~everywhere == 0
        assert wanted.bit_count() == spread.copies(frozenset(names))
        for shard in range(spread.shards + 1):
            mine = Owner(spread, shard).mine(columns, parts, which)[0]  # type: ignore[arg-type]
            assert mine == bool(wanted >> shard & 1)
        meet &= wanted
    assert meet.bit_count() == 1


def test_values_spread_evenly() -> None:
    spread = Spread((("x", 5),))
    parts = tuple(np.arange(1, 10_001) for _ in range(3))
    owners = shards_of(spread, {"x": 0}, parts, np.arange(10_000))  # type: ignore[arg-type]
    counts = [int((owners >> shard & 1).sum()) for shard in range(5)]
    assert sum(counts) == 10_000 and max(counts) < 1.1 * min(counts)
