"""What stored data say about the triples of a window, shards are not sent what they rule out."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyoxigraph import NamedNode

from kelda.io.job import QuerySpec, StreamSource
from kelda.lang import parse
from kelda.plan.narrow import MOST, narrowings
from kelda.rdf.ids import encode
from kelda.shards.planner import Planner
from kelda.shards.routing import id_of
from kelda.shards.setup import Setup
from tests.shards.local import declare

EX = "http://ex/"
STORED = """
@prefix : <http://ex/> .
:ann :is :me ; :knows :bob, :cid . :bob :is :you ; :knows :ann . [] :is :hidden .
GRAPH :g { :dan :is :me . }
"""
W = "STREAM :s [RANGE 1s] { %s }"
POSTS = W % "?u :wrote ?post"


def narrowed(tmp_path: Path, where: str, dialect: str = "cqels", head: str = "SELECT *") -> list[set[str]]:
    """For each place of a pattern over the window: the subjects (or objects) that are left."""
    path = tmp_path / "stored.trig"
    path.write_text(STORED)
    planner = Planner(Setup(fixed_graphs=True))
    declare(planner, [StreamSource(EX + "s", "")], [(None, str(path))])
    spec = QuerySpec("q", f"PREFIX : <{EX}> {head} {where}", dialect)
    planner.route([planner.plan(spec)])
    names = {encode(NamedNode(EX + name)): name for name in ("ann", "bob", "cid", "dan", "p1", "p2")}
    return [
        {names[id] for id in ids.tolist()}
        for each in planner._narrowed_to.get("q", {}).values()
        for keys in each
        for ids in keys.values()
    ]


@pytest.mark.parametrize(
    ("where", "left"),
    [
        (f"{{ ?u :is :me {POSTS} }}", [{"ann"}]),
        (f"{{ {POSTS} ?u :is :me }}", [{"ann"}]),
        (f"{{ ?me :is :me ; :knows ?u {POSTS} }}", [{"bob", "cid"}]),
        (f"{{ ?me :is :me . {{ ?me :knows ?u }} {POSTS} }}", [{"bob", "cid"}]),
        (f"{{ ?u :is :me {W % '?post :by ?u'} }}", [{"ann"}]),
        (f"{{ GRAPH :g {{ ?u :is :me }} {POSTS} }}", [{"dan"}]),
        (f"{{ VALUES ?u {{ :ann :cid }} {POSTS} }}", [{"ann", "cid"}]),
        (f"{{ VALUES ?post {{ :p1 :p2 }} ?u :is :me {POSTS} }}", [{"ann"}, {"p1", "p2"}]),
        (f"{{ ?u :is :nobody {POSTS} }}", [set()]),
        (f"{{ ?u :is :me {POSTS} FILTER(?post != :p1) }}", [{"ann"}]),
        (f"{{ ?u :is :me {{ {POSTS} }} UNION {{ {W % '?u :likes ?post'} }} }}", [{"ann"}, {"ann"}]),
        # On the right of an OPTIONAL by the left, not by what stands outside.
        (f"{{ ?u :is :me OPTIONAL {{ {POSTS} }} }}", [{"ann"}]),
        (f"{{ {{ {W % '?x :wrote ?post'} OPTIONAL {{ {POSTS} }} }} ?u :is :me }}", []),
        # Patterns that the stored part has nothing to do with.
        (f"{{ ?other :is :me {POSTS} }}", []),
        (f"{{ {POSTS} OPTIONAL {{ ?u :is :me }} }}", []),
        (f"{{ {POSTS} MINUS {{ ?u :is :me }} }}", []),
        (f"{{ {POSTS} FILTER NOT EXISTS {{ ?u :is :me }} }}", []),
        (f"{{ ?u :is :me FILTER NOT EXISTS {{ {POSTS} }} }}", []),
        (f"{{ ?u :is :me MINUS {{ {POSTS} }} }}", []),
        (f"{{ ?u :is :me {{ SELECT ?u (COUNT(*) AS ?n) {{ {POSTS} }} GROUP BY ?u }} }}", []),
        (f"{{ ?u :is :me {{ SELECT ?u {{ {POSTS} }} LIMIT 1 }} }}", []),
        # Nothing selective, or nothing that can be said.
        (f"{{ ?u :is ?me {POSTS} }}", []),
        (f"{{ ?u :is :hidden {POSTS} }}", []),
        (f"{{ VALUES ?u {{ :ann UNDEF }} {POSTS} }}", []),
        (f"{{ GRAPH ?g {{ ?u :is :me }} {POSTS} }}", []),
        # One pattern at two places: both, or none.
        (f"{{ {{ ?u :is :me {POSTS} }} UNION {{ ?u :is :you {POSTS} }} }}", [{"ann"}, {"bob"}]),
        (f"{{ {{ ?u :is :me {POSTS} }} UNION {{ {POSTS} }} }}", []),
    ],
)
def test_what_is_left(tmp_path: Path, where: str, left: list[set[str]]) -> None:
    assert narrowed(tmp_path, where) == left


def test_windows_that_are_merged_with_stored_graphs_are_not_narrowed(tmp_path: Path) -> None:
    head = "SELECT * FROM STREAM <http://ex/s> [RANGE 1s STEP 1s]"
    assert narrowed(tmp_path, "{ ?u :is :me . ?u :wrote ?post }", "csparql", head) == []
    head = "SELECT * FROM NAMED STREAM <http://ex/s> [RANGE 1s STEP 1s]"
    assert narrowed(tmp_path, "{ ?u :is :me GRAPH :s { ?u :wrote ?post } }", "csparql", head) == [{"ann"}]


def test_it_is_said_and_sent(tmp_path: Path) -> None:
    path = tmp_path / "stored.trig"
    path.write_text(STORED)
    planner = Planner(Setup(fixed_graphs=True))
    declare(planner, [StreamSource(EX + "s", "")], [(None, str(path))])
    planner.route([planner.plan(QuerySpec("q", f"PREFIX : <{EX}> SELECT * {{ ?u :is :me {POSTS} }}"))])
    assert "<http://ex/s>: stored data leave ?u 1 value(s)" in planner.explain("q")
    ann, bob, wrote, post = (id_of([NamedNode(EX + n)]) for n in ("ann", "bob", "wrote", "p1"))
    assert planner.routing.owners(EX + "s", ann, wrote, post).tolist() == [1]
    assert planner.routing.owners(EX + "s", bob, wrote, post).tolist() == [0]
    planner.route([planner.plan(QuerySpec("all", f"PREFIX : <{EX}> SELECT * {{ {POSTS} }}"))])
    assert planner.routing.owners(EX + "s", bob, wrote, post).tolist() == [1]


def test_too_many_values_say_nothing(tmp_path: Path) -> None:
    path = tmp_path / "stored.nt"
    path.write_text("".join(f"<{EX}{i}> <{EX}is> <{EX}me> .\n" for i in range(MOST + 1)))
    planner = Planner(Setup(fixed_graphs=True))
    declare(planner, [StreamSource(EX + "s", "")], [(None, str(path))])
    text = f"PREFIX : <{EX}> SELECT * {{ ?u :is :me {POSTS} }}"
    planner.route([planner.plan(QuerySpec("q", text))])
    assert any(narrowings(parse(text)).values()) and not planner._narrowed_to["q"]
