"""Queries on a cluster say what the same queries say at once in this process.

Random data with a history, and the random queries of the oracle's tests; KELDA_CASES=n for another number."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kelda.engine.oneshot import Result, Solutions, evaluate
from kelda.errors import InputError, KeldaError, UsageError
from kelda.lang import parse
from kelda.rdf.graphstore import GraphStore
from kelda.spark.session import session
from kelda.spark.sql import store as sql_store
from kelda.spark.sql.files import StoreFiles, store_files
from kelda.spark.sql.refused import check
from kelda.spark.sql.store import SparkStore
from kelda.store.moments import FOREVER
from tests.oracle.cases import Case, Slice, compare, quads, random_oneshot
from tests.oracle.compare import from_kelda
from tests.spark.scene import MASTER
from tests.spark.store_files import Change, StoreWriter

pytestmark = pytest.mark.spark

CASES = int(os.environ.get("KELDA_CASES", "16"))
EX = "http://ex/"
NOW = 1_000


def node(name: str) -> NamedNode:
    return NamedNode(EX + name)


def asked(folder: Path, text: str, **at: int) -> Result:
    return SparkStore(session(MASTER), folder, **at).query(parse(f"PREFIX : <{EX}> {text}"), now=NOW)


def rows(found: Result) -> list[dict[str, str]]:
    assert isinstance(found, Solutions)
    return [{name: str(value) for name, value in row.items()} for row in found.rows]


# ---------------------------------------------------------------------------- random queries


def history(random: Random, data: list[Quad]) -> list[Change]:
    """How data came: some of it goes, some comes again."""
    there: set[Quad] = set()
    found: list[Change] = []
    for i in range(2 * len(data)):
        quad = data[i] if i < len(data) else random.choice(data)
        if i < len(data) or random.random() < 0.4:
            there ^= {quad}
            found.append((quad, i, 1 if quad in there else -1))
    return found


def written(random: Random, changes: list[Change], folder: Path) -> None:
    """The changes in some batches, the first of them compacted, or not."""
    store = StoreWriter(folder)
    cuts = sorted(random.randint(0, len(changes)) for _ in range(3))
    parts = [changes[a:b] for a, b in zip([0, *cuts], [*cuts, len(changes)], strict=True)]
    if random.random() < 0.7:
        store.compacted(0, 1, parts[0] + parts[1])
    else:
        store.batch(0, parts[0])
        store.batch(1, parts[1])
    store.batch(2, parts[2])
    store.batch(3, parts[3])


def facts_at(changes: list[Change], moment: int) -> set[Quad]:
    there: set[Quad] = set()
    for quad, at, sign in changes:
        if at <= moment:
            (there.add if sign > 0 else there.remove)(quad)
    return there


def taken(seed: int) -> tuple[Case, Result, list[Change], int] | None:
    """A random case that can be asked here, what its answer is without its slice, its history, its moment."""
    random = Random(seed)
    case = random_oneshot(random)
    changes = history(random, quads(case.data))
    moment = random.choice([FOREVER, FOREVER, random.randint(0, 2 * len(case.data))])
    whole, _ = Slice.of(case.kelda())
    try:
        check(parse(case.kelda()))
        answer = evaluate(parse(whole), GraphStore(facts_at(changes, moment)), now=NOW)
    except KeldaError:
        return None
    return case, answer, changes, moment


def seeds() -> list[int]:
    """Those of the first cases that can be asked here."""
    found: list[int] = []
    seed = Random().randrange(10**9) if "KELDA_RANDOM" in os.environ else 0
    while len(found) < CASES:
        if taken(seed) is not None:
            found.append(seed)
        seed += 1
    return found


def test_random_queries(tmp_path: Path) -> None:
    for seed in seeds():
        found = taken(seed)
        assert found is not None
        case, expected, changes, moment = found
        whole, end = Slice.of(case.kelda())
        folder = tmp_path / f"{seed}"
        written(Random(seed), changes, folder)
        told = f"seed {seed}, at moment {moment}\n{case}"
        try:
            got = SparkStore(session(MASTER), folder, at_moment=moment).query(parse(case.kelda()), now=NOW)
        except Exception as problem:
            raise AssertionError(told) from problem
        difference = compare(from_kelda(got), from_kelda(expected), end, lax="REDUCED" in whole)
        assert difference is None, f"{told}\n{difference}"


# ---------------------------------------------------------------------------- the store


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some people in two batches: the first compacted, in the second one leaves."""
    store = StoreWriter(tmp_path_factory.mktemp("people") / "store")
    knows, age, name = node("knows"), node("age"), node("name")
    came: list[Change] = []
    for i in range(100):
        came.append((Quad(node(f"p{i}"), age, Literal(i)), 10, 1))
        came.append((Quad(node(f"p{i}"), name, Literal(f"a rather long name {i}")), 10, 1))
        came.append((Quad(node(f"p{i}"), knows, node(f"p{(i * 7) % 100}")), 10, 1))
    store.compacted(0, 4, came)
    store.batch(5, [(Quad(node("p7"), knows, node("p49")), 21, -1)])
    return store.folder


TWO_STARS = "SELECT ?a ?b { ?a :age ?x ; :knows ?b . ?b :age ?y ; :name ?n FILTER(?x < 3) FILTER(?y > 5) }"


def test_two_stars(people: Path) -> None:
    assert sorted(row["b"] for row in rows(asked(people, TWO_STARS))) == [f"<{EX}p14>", f"<{EX}p7>"]


def test_the_past(people: Path) -> None:
    text = "ASK { :p7 :knows :p49 }"
    assert asked(people, text) is False
    assert asked(people, text, at_moment=20) is True
    assert asked(people, text, at_moment=21) is False
    assert asked(people, text, until_batch=4) is True
    assert asked(people, text, at_moment=9) is False


def test_only_terms_that_are_looked_at_are_read(people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers are inside their ids: no terms are needed to count who is older than whom."""
    reads: list[int] = []
    of = sql_store.Terms._of
    monkeypatch.setattr(sql_store.Terms, "_of", lambda *args: (reads.append(args[2]), of(*args))[1])
    text = "SELECT (COUNT(*) AS ?n) { ?a :age ?x ; :knows ?b . ?b :age ?y FILTER(?x < ?y) FILTER(?x > 50) }"
    (row,) = rows(asked(people, text))
    expected = sum(50 < i < i * 7 % 100 for i in range(100))
    assert row["n"].startswith(f'"{expected}"') and reads == []
    asked(people, "SELECT ?n { :p1 :name ?n FILTER(STRLEN(?n) > 3) }")
    assert reads == [1, 1]


def test_a_bare_variable_as_condition(people: Path) -> None:
    """Of a number its id tells whether it is true, of a long text the text."""
    assert len(rows(asked(people, "SELECT ?a { ?a :age ?x FILTER(?x) }"))) == 99
    assert len(rows(asked(people, "SELECT ?a { ?a :name ?x FILTER(?x) }"))) == 100
    assert len(rows(asked(people, "SELECT ?a { ?a :knows ?x FILTER(?x) }"))) == 0


def test_order_and_slices(people: Path) -> None:
    text = "SELECT ?a ?n { ?a :age ?x ; :name ?n } ORDER BY DESC(?x) OFFSET 2 LIMIT 3"
    assert [row["a"] for row in rows(asked(people, text))] == [f"<{EX}p97>", f"<{EX}p96>", f"<{EX}p95>"]


def test_what_is_refused_is_refused(people: Path) -> None:
    with pytest.raises(UsageError, match='without on="spark"'):
        asked(people, "SELECT * { ?a :knows+ ?b }")


def test_a_term_that_is_lost_is_missed(people: Path, tmp_path: Path) -> None:
    store = StoreWriter(tmp_path / "store")
    store.batch(0, [(Quad(node("a"), node("p"), node("b")), 1, 1)])
    (store.folder / "terms" / "000000000000.parquet").unlink()
    with pytest.raises(InputError, match="lacks the terms"):
        asked(store.folder, "SELECT * { ?s ?p ?o }")


def test_files_that_are_put_together_meanwhile(people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is gone when a task comes to it is looked for again under the name of the larger one."""
    looks: list[StoreFiles] = []

    def looked(folder: Path, *at: int | None) -> StoreFiles:
        files = store_files(folder, *at)
        looks.append(files)
        gone = str(folder / "quads" / "000000000003.parquet")
        return StoreFiles((gone,), (), files.moment) if len(looks) == 1 else files

    monkeypatch.setattr(sql_store, "store_files", looked)
    assert asked(people, "ASK { :p1 :knows :p7 }") is True
    assert len(looks) == 3  # the first, whether that has changed, the next
