"""Routing sends a triple wherever some query wants it, and hardly anywhere else."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode

from kelda.engine.deltas import Ids
from kelda.engine.ownership import shards_of
from kelda.lang import algebra as A
from kelda.plan.partition import Spread, WindowPattern
from kelda.rdf import wire
from kelda.shards.routing import Routing, id_of

STREAM = "http://ex/a"
TERMS = [NamedNode(f"http://ex/{i}") for i in range(4)]
IDS = id_of(TERMS)
terms = st.sampled_from(TERMS)
patterns = st.builds(
    A.TriplePattern, terms | st.just(A.Var("x")), terms | st.just(A.Var("r")), terms | st.just(A.Var("y"))
)
spreads = st.sampled_from([None, None, Spread((("x", 3),)), Spread((("x", 2), ("y", 2)))])
queries = st.lists(st.tuples(patterns, spreads, st.integers(0, 4)), max_size=6)
triples = st.lists(st.tuples(*[st.integers(0, 3)] * 3), max_size=20)


def columns(some: list[tuple[int, ...]]) -> tuple[Ids, Ids, Ids]:
    s, p, o = IDS[np.array(some, np.int64).reshape(-1, 3).T]
    return s, p, o


def matches(pattern: A.TriplePattern, triple: tuple[int, ...]) -> bool:
    parts = zip((pattern.s, pattern.p, pattern.o), triple, strict=True)
    return all(isinstance(part, A.Var) or part == TERMS[i] for part, i in parts)


@given(queries, triples)
def test_no_wanted_triple_is_held_back(
    wanted: list[tuple[A.TriplePattern, Spread | None, int]], some: list[tuple[int, ...]]
) -> None:
    routing = Routing()
    for pattern, spread, shard in wanted:
        routing.add([WindowPattern(STREAM, pattern)], spread, shard)
    parts = columns(some)
    expected = np.zeros(len(some), np.int64)
    for pattern, spread, shard in wanted:
        which = np.array([i for i, triple in enumerate(some) if matches(pattern, triple)], np.int64)
        places = {v.name: i for i, v in enumerate((pattern.s, pattern.p, pattern.o)) if isinstance(v, A.Var)}
        if len(which):
            expected[which] |= 1 << shard if spread is None else shards_of(spread, places, parts, which)
    found = routing.owners(STREAM, *parts)
    assert (found & expected == expected).all()
    if len({id(pattern) for pattern, _, _ in wanted}) == 1:
        assert (found == expected).all(), "a rule of one pattern lets nothing else through"
    again = Routing.of(wire.decode(wire.encode(routing.plain())))
    assert (again.owners(STREAM, *parts) == found).all()
    assert not routing.owners("http://ex/another", *parts).any()


def test_many_queries_of_one_shape_are_one_rule() -> None:
    people = [NamedNode(f"http://ex/p{i}") for i in range(1000)]
    pattern = WindowPattern(STREAM, A.TriplePattern(A.Param("who"), TERMS[0], A.Var("y")))
    routing = Routing()
    routing.add_many([pattern], {"who": id_of(people)}, None, 2)
    assert routing.rules == 1
    s = id_of([people[0], people[999], NamedNode("http://ex/nobody")])
    assert routing.owners(STREAM, s, np.full(3, IDS[0]), np.full(3, IDS[1])).tolist() == [4, 4, 0]
    assert routing.owners(STREAM, s, np.full(3, IDS[1]), np.full(3, IDS[1])).tolist() == [0, 0, 0]


def test_a_parameter_in_the_place_of_the_predicate_is_a_rule_each() -> None:
    pattern = WindowPattern(STREAM, A.TriplePattern(A.Var("x"), A.Param("p"), TERMS[3]))
    routing = Routing()
    routing.add_many([pattern], {"p": IDS[:2]}, Spread((("x", 2),)), 0)
    assert routing.rules == 2
    found = routing.owners(STREAM, IDS[:3].copy(), IDS[:3].copy(), np.full(3, IDS[3]))
    assert [bin(n).count("1") for n in found.tolist()] == [1, 1, 0]


def test_all_of_a_stream_or_of_a_predicate() -> None:
    routing = Routing()
    routing.everything(STREAM, 0)
    routing.predicate(STREAM, int(IDS[1]), 3)
    s, p, o = columns([(0, 0, 0), (0, 1, 0)])
    assert routing.owners(STREAM, s, p, o).tolist() == [1, 1 | 8]
