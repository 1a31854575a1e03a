"""How a query is cut for a cluster, and what is read for it: without Spark."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kelda.errors import UsageError
from kelda.lang import parse
from kelda.lang.walk import transform
from kelda.rdf.ids import encode
from kelda.spark.sql.conjunction import Star, conjunction
from kelda.spark.sql.evaluated import by_identity, looked_at
from kelda.spark.sql.explain import explained
from kelda.spark.sql.facts import Wanted, read_facts
from kelda.spark.sql.files import store_files
from kelda.spark.sql.refused import check
from kelda.store.moments import FOREVER
from kelda.store.parquet import BUCKETS
from tests.spark.store_files import Change, StoreWriter

EX = "http://ex/"


def node(name: str) -> NamedNode:
    return NamedNode(EX + name)


def stars(text: str) -> list[tuple[str, int, int]]:
    """The stars of a WHERE clause, in order: subject, patterns, conditions."""
    query = parse(f"PREFIX : <{EX}> SELECT * {{ {text} }}")
    parts = conjunction(query.pattern.pattern).parts  # type: ignore[attr-defined]
    return [
        (str(getattr(part.subject, "name", part.subject)), len(part.patterns), len(part.conditions))
        for part in parts
        if isinstance(part, Star)
    ]


def test_patterns_with_one_subject_are_one_star() -> None:
    assert stars("?s :p ?o ; :q ?t . ?t :r ?u . ?s :r ?v") == [("s", 3, 0), ("t", 1, 0)]


def test_what_is_likely_to_be_small_comes_first_and_then_what_touches_it() -> None:
    found = stars("?a :p ?b . ?c :p ?d . ?d :p :x . ?b :p ?c")
    assert found[0] == ("d", 1, 0)
    assert found[1:] == [("c", 1, 0), ("b", 1, 0), ("a", 1, 0)]


def test_conditions_go_to_the_star_that_binds_what_they_look_at() -> None:
    assert stars("?s :p ?o . ?t :q ?u FILTER(?o < 3) FILTER(?u > ?t) FILTER(?o = ?u)") == [
        ("s", 1, 1),
        ("t", 1, 1),
    ]


@pytest.mark.parametrize(
    ("condition", "terms"),
    [
        ("?x", ("x",)),
        ("?x < ?y", ("x", "y")),
        ("BOUND(?x) && ?y = :a", ()),
        ("?x != :a || ?y IN (:a, :b)", ()),
        ("?x IN (:a, 1)", ("x",)),
        ("sameTerm(?x, ?y)", ()),
        ("sameTerm(STR(?x), ?y)", ("x", "y")),
    ],
)
def test_terms_are_termswhere_ids_do_not_tell(condition: str, terms: tuple[str, ...]) -> None:
    query = parse(f"PREFIX : <{EX}> SELECT * {{ ?x :p ?y FILTER({condition}) }}")
    whole = query.pattern.pattern.condition  # type: ignore[attr-defined]
    assert looked_at(transform(whole, by_identity), ("x", "y")) == terms


def test_explain_tells_stars_joins_and_filters() -> None:
    query = parse(
        f"PREFIX : <{EX}> SELECT ?s {{ ?s :p ?o ; :q ?t . ?t :p ?n OPTIONAL {{ ?t :r ?w }} "
        "FILTER(?o < 3) FILTER(BOUND(?w)) }"
    )
    text = explained(query)
    lines = [line.strip() for line in text.splitlines()]
    assert "star of ?s" in lines
    assert "star of ?t, join on ?t" in lines
    assert "optional on ?t" in lines
    assert any(line.startswith("filter in the task <(?o") and "looks at terms: ?o" in line for line in lines)
    assert "filter BOUND(?w)" in lines


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT * { ?s :p* ?o }", "a property path"),
        ("DESCRIBE ?s { ?s :p ?o }", "DESCRIBE"),
        ("SELECT (RAND() AS ?r) { }", "RAND"),
        ("SELECT * { ?s :p ?o FILTER(EXISTS { ?s :q ?o } || ?o = 1) }", "EXISTS inside an expression"),
        ("SELECT * { ?s :p ?o FILTER EXISTS { ?s :q ?x FILTER(?x < ?o) } }", "EXISTS whose group looks"),
        ("SELECT * { GRAPH ?g { SELECT ?s { ?s :p ?o } LIMIT 1 } }", "LIMIT or OFFSET inside GRAPH"),
        ("SELECT * { GRAPH ?g { SELECT (COUNT(*) AS ?n) { ?s :p ?o } } }", "an aggregate without GROUP BY"),
    ],
)
def test_what_is_refused_says_why_and_the_way_out(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason) as refusal:
        check(parse(f"PREFIX : <{EX}> {text}"))
    assert 'without on="spark"' in str(refusal.value)


# ---------------------------------------------------------------------------- files and facts


def names(paths: tuple[str, ...]) -> list[str]:
    return [Path(path).stem for path in paths]


def test_each_batch_is_read_once(tmp_path: Path) -> None:
    store = StoreWriter(tmp_path / "store")
    for batch in range(3):
        store.batch(batch, [(Quad(node("a"), node("p"), Literal(batch)), batch, 1)])
    small = store.folder / "quads" / "000000000001.parquet"
    saved = small.read_bytes()
    store.compact()
    small.write_bytes(saved)  # as if somebody had died before it was removed
    for batch in range(3, 5):
        store.batch(batch, [(Quad(node("a"), node("p"), Literal(batch)), batch, 1)])
    assert names(store_files(store.folder).quads) == [
        "000000000000-000000000002",
        "000000000003",
        "000000000004",
    ]
    assert names(store_files(store.folder, until_batch=3).quads)[-1] == "000000000003"
    with pytest.raises(UsageError, match="holds no store"):
        store_files(tmp_path)


def random_changes(random: Random, size: int) -> list[Change]:
    """Additions and removals that each make a difference, in the order of their moments."""
    there: set[Quad] = set()
    found: list[Change] = []
    for i in range(size):
        graph = random.choice([None, None, node("g"), node("h")])
        s, p = node(f"s{random.randrange(20)}"), node(f"p{random.randrange(3)}")
        quad = Quad(s, p, Literal(random.randrange(4)), graph)
        there ^= {quad}
        found.append((quad, 2 * i, 1 if quad in there else -1))
    return found


def facts_at(changes: list[Change], moment: int) -> set[Quad]:
    there: set[Quad] = set()
    for quad, at, sign in changes:
        if at <= moment:
            (there.add if sign > 0 else there.remove)(quad)
    return there


@pytest.mark.parametrize("seed", range(10))
def test_facts_of_a_moment(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    changes = random_changes(random, 200)
    store = StoreWriter(tmp_path / "store")
    first, second = sorted(random.sample(range(200), 2))
    store.compacted(0, 3, changes[:first])
    store.batch(4, changes[first:second])
    store.batch(5, changes[second:])
    paths = store_files(store.folder).quads
    moment = random.choice([FOREVER, random.randrange(400)])
    graphs = random.choice([(0,), (encode(node("g")),), (0, encode(node("h"))), None])
    predicates = random.choice([None, (encode(node("p1")),), (encode(node("p0")), encode(node("p2")))])
    each = random.random() < 0.5
    cut = random.randrange(BUCKETS)
    expected = set()
    for quad in facts_at(changes, moment):
        graph, p = encode(quad.graph_name), encode(quad.predicate)
        if (graph != 0 if graphs is None else graph in graphs) and (predicates is None or p in predicates):
            row = (encode(quad.subject), p, encode(quad.object))
            expected.add((graph, *row) if each else row)
    found: list[tuple[int, ...]] = []
    for buckets in (list(range(cut)), list(range(cut, BUCKETS))):
        for facts in read_facts(paths, buckets, Wanted(moment, graphs, each, predicates)):
            assert {s % BUCKETS for s in facts.s.tolist()} <= set(buckets)
            columns = (facts.graph, facts.s, facts.p, facts.o) if each else (facts.s, facts.p, facts.o)
            found += zip(*(column.tolist() for column in columns), strict=True)
    assert sorted(found) == sorted(expected), f"seed {seed}"
