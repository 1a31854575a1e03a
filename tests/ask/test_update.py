"""Carrying out updates: what is stored afterwards, and that a replay stores the same."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kelda.ask.updating.loading import Document
from kelda.ask.updating.update import carry_out
from kelda.errors import InputError, KeldaError, QueryError, UsageError
from kelda.lang import parse_update
from kelda.rdf.graphs import read_graph
from kelda.rdf.ids import encode
from kelda.store.changes import Changes
from kelda.store.store import Store

from .by_oxigraph import by_oxigraph, contents

E = "http://e/"
NOW = 1_700_000_000_000


class Graphs:
    """A store, and updates on it, each at a moment of its own."""

    def __init__(self, *updates: str) -> None:
        self.store = Store()
        self.entry = 0
        for text in updates:
            self.update(text)

    def update(self, text: str, base: str | None = None, **options: object) -> Changes:
        self.entry += 1
        return carry_out(
            parse_update(f"PREFIX : <{E}> " + text, base=base),
            self.store,
            self.moment,
            entry=self.entry,
            now=NOW,
            solutions=by_oxigraph(self.store),
            **options,  # type: ignore[arg-type]
        )

    @property
    def moment(self) -> int:
        return 2 * self.entry + 1

    def quads(self, at: int | None = None) -> set[Quad]:
        return set(contents(self.store.view(at), self.store.dictionary))

    def lines(self, at: int | None = None) -> list[str]:
        """What is stored, to be read: IRIs without their prefix."""
        return sorted(f"{quad}".replace(f"<{E}", ":").replace(">", "") for quad in self.quads(at))


def objects(graphs: Graphs, predicate: str) -> list[object]:
    return [quad.object for quad in graphs.quads() if quad.predicate == NamedNode(E + predicate)]


# ---------------------------------------------------------------------------- operations


def test_what_is_there_already_does_not_come_and_what_is_not_does_not_go() -> None:
    graphs = Graphs("INSERT DATA { :a :p :b }")
    assert len(graphs.update("INSERT DATA { :a :p :b . :a :p :c }")) == 1
    assert len(graphs.update("DELETE DATA { :a :p :b . :a :p :d }")) == 1
    assert graphs.lines() == [":a :p :c"]


def test_what_goes_and_comes_stays() -> None:
    graphs = Graphs("INSERT DATA { :a :p 1, 2 }")
    changes = graphs.update("DELETE { ?s :p ?o } INSERT { ?s :p 2, 3 } WHERE { ?s :p ?o }")
    assert sorted(changes.sign.tolist()) == [-1, 1]
    assert graphs.lines(graphs.moment - 1) == Graphs("INSERT DATA { :a :p 1, 2 }").lines()
    assert graphs.lines() == Graphs("INSERT DATA { :a :p 2, 3 }").lines()


def test_changes_are_those_of_the_whole_request() -> None:
    graphs = Graphs("INSERT DATA { :a :p :b . :a :p :c }")
    changes = graphs.update(
        "DELETE DATA { :a :p :b } ; INSERT DATA { :a :p :b . :a :q :x } ; "
        "DELETE WHERE { ?s :q ?o } ; DELETE DATA { :a :p :c } ; INSERT DATA { :n :n :n }"
    )
    assert changes.sign.tolist() == [-1, 1]
    assert set(changes.moment.tolist()) == {graphs.moment}
    assert graphs.lines() == [":a :p :b", ":n :n :n"]


def test_later_operations_see_earlier_ones() -> None:
    graphs = Graphs(
        "INSERT DATA { :a :p :b } ; INSERT { GRAPH :g { ?o :q ?s } } WHERE { ?s :p ?o } ; MOVE :g TO :h"
    )
    assert graphs.lines() == [":a :p :b", ":b :q :a :h"]


def test_a_triple_that_cannot_be_is_left_out() -> None:
    graphs = Graphs("INSERT DATA { :a :p 1, 'x', :b . :a :q [] }")
    graphs.update("INSERT { ?o :r ?s ; ?o ?s . ?s :r ?no GRAPH ?o { ?s :s 1 } } WHERE { ?s :p ?o }")
    new = [line for line in graphs.lines() if " :p " not in line and " :q " not in line]
    assert new == [
        ':a :s "1"^^<http://www.w3.org/2001/XMLSchema#integer :b'.replace("<http", "<http"),
        ":b :b :a",
        ":b :r :a",
    ]
    blank = graphs.update("INSERT { :x ?b 1 . ?b :t 2 } WHERE { :a :q ?b }")
    assert len(blank) == 1


def test_each_solution_has_its_own_blank_nodes() -> None:
    graphs = Graphs("INSERT DATA { :a :p 1, 2 . :b :p 1 }")
    graphs.update("INSERT { _:x :of ?s ; :is _:y } WHERE { ?s :p ?o }")
    subjects = {quad.subject for quad in graphs.quads() if quad.predicate == NamedNode(E + "of")}
    assert len(subjects) == 3, "also for solutions that are equal in what the template has"
    assert len(set(objects(graphs, "is"))) == 3


def test_a_request_that_fails_is_undone() -> None:
    graphs = Graphs("INSERT DATA { :a :p :b GRAPH :g { :a :p :c } }")
    before = graphs.quads()
    with pytest.raises(UsageError, match=r"graph <http://e/none> is not there; write COPY SILENT"):
        graphs.update("CLEAR ALL ; INSERT DATA { :x :y :z } ; DELETE DATA { :x :y :z } ; COPY :none TO :g")
    assert graphs.quads() == before
    assert graphs.quads(graphs.moment) == before
    assert graphs.update("COPY SILENT :none TO :g ; INSERT DATA { :x :y :z }").sign.tolist() == [1]
    with pytest.raises(UsageError, match="is there already; write CREATE SILENT"):
        graphs.update("CREATE GRAPH :g")


def test_graphs_that_queries_keep() -> None:
    graphs = Graphs("INSERT DATA { GRAPH :kept { :a :p :b } }")
    kept = [encode(NamedNode(E + "kept"))]
    for text in (
        "CLEAR ALL",
        "DELETE WHERE { GRAPH ?g { ?s ?p ?o } }",
        "INSERT DATA { GRAPH :kept { :x :y :z } }",
    ):
        with pytest.raises(UsageError, match=r"<http://e/kept> holds what a query makes"):
            graphs.update(f"INSERT DATA {{ :x :y :z }} ; {text}", kept=kept)
    assert graphs.lines() == [":a :p :b :kept"]
    graphs.update("COPY :kept TO :other", kept=kept)


# ---------------------------------------------------------------------------- new values


NEW = """INSERT { ?id :of ?s ; :text ?t ; :random ?r ; :node ?b . _:new :at ?now } WHERE {
  ?s :p ?o BIND(UUID() AS ?id) BIND(CONCAT("x", STRUUID()) AS ?t) BIND(RAND() AS ?r) BIND(BNODE() AS ?b)
  BIND(NOW() AS ?now) }"""
FACTS = [f"INSERT DATA {{ :s{i} :p {i} }}" for i in range(20)]


def test_new_values_are_new() -> None:
    graphs = Graphs(*FACTS, NEW)
    for name in ("text", "random", "node"):
        assert len(set(objects(graphs, name))) == 20
    assert len({quad.subject for quad in graphs.quads() if quad.predicate == NamedNode(E + "of")}) == 20
    numbers = [float(r.value) for r in objects(graphs, "random") if isinstance(r, Literal)]
    assert all(0 <= r < 1 for r in numbers) and max(numbers) - min(numbers) > 0.3
    assert {str(t) for t in objects(graphs, "at")} == {
        '"2023-11-14T22:13:20Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    }


def test_a_replay_makes_the_same_whatever_order_the_store_is_in() -> None:
    first = Graphs(*FACTS, NEW)
    again = Graphs(*reversed(FACTS), NEW)
    assert first.quads() == again.quads()
    first.update(NEW)
    assert len(set(objects(first, "random"))) == 40, "another entry makes others"


@pytest.mark.parametrize(
    ("where", "ids", "solutions"),
    [
        ("?s :p ?o BIND(UUID() AS ?u) FILTER(?o > 3)", 16, 16),
        ("?s :p ?o BIND(UUID() AS ?u) FILTER EXISTS { ?s :p 3 }", 1, 1),
        ("BIND(UUID() AS ?u) ?s :p ?o", 1, 20),
        ("BIND(UUID() AS ?u) ?s :p ?o OPTIONAL { ?s :q ?x } FILTER(?o < 5)", 1, 5),
        ("BIND(UUID() AS ?u)", 1, 1),
        ("SELECT ?s (UUID() AS ?u) { ?s :p ?o } ", 20, 20),
        ("{ SELECT ?s (UUID() AS ?u) { ?s :p ?o } } FILTER(isIRI(?u))", 20, 20),
        ("?s :p ?o BIND(UUID() AS ?a) BIND(IF(?o < 10, ?a, 1/0) AS ?u)", 10, 10),
        ("?s :p ?o BIND(BNODE('a') AS ?u) BIND(BNODE('a') AS ?v) FILTER(sameTerm(?u, ?v))", 20, 20),
        ("?s :p ?o BIND(BNODE(?o) AS ?u)", 0, 0),
        ("?s :p ?o BIND(BNODE(STR(RAND())) AS ?u)", 20, 20),
    ],
)
def test_where_new_values_can_stand(where: str, ids: int, solutions: int) -> None:
    graphs = Graphs(*FACTS, f"INSERT {{ ?s :new ?u . :all :new ?u }} WHERE {{ {where} }}")
    assert len({q.object for q in graphs.quads() if q.subject == NamedNode(E + "all")}) == ids
    if "?s" in where:
        made = [q for q in graphs.quads() if q.predicate == NamedNode(E + "new")]
        assert len(made) == solutions + ids


def test_in_a_graph_too() -> None:
    graphs = Graphs("INSERT DATA { GRAPH :g { :a :p 1, 2 } GRAPH :h { :a :p 3 } }")
    graphs.update("INSERT { ?g :new ?u } WHERE { GRAPH ?g { ?s :p ?o BIND(UUID() AS ?u) FILTER(?o > 1) } }")
    assert len(set(objects(graphs, "new"))) == 2


@pytest.mark.parametrize(
    "where",
    [
        "?s :p ?o OPTIONAL { ?s :p ?x BIND(UUID() AS ?u) }",
        "{ ?s :p ?o BIND(RAND() AS ?u) } UNION { ?s :q ?u }",
        "?s :p ?o BIND(BNODE() AS ?u) ?s :p ?x",
        "SELECT (SUM(RAND()) AS ?u) { ?s :p ?o }",
        "?s :p ?o BIND(STRUUID() AS ?u) FILTER EXISTS { ?s :q ?u }",
        "?s :p ?o FILTER NOT EXISTS { ?s :p ?x FILTER(RAND() < 0.5) }",
    ],
)
def test_where_they_cannot(where: str) -> None:
    graphs = Graphs(*FACTS)
    with pytest.raises(QueryError, match="is made anew for each solution, and a replay must make the same"):
        graphs.update(f"INSERT {{ ?s :new ?u }} WHERE {{ {where} }}")


def test_about_half_of_them() -> None:
    graphs = Graphs("INSERT DATA { " + " ".join(f":s :p {i} ." for i in range(1000)) + " }")
    graphs.update("DELETE { ?s :p ?o } WHERE { ?s :p ?o FILTER(RAND() < 0.5) }")
    assert 400 < len(graphs.quads()) < 600


# ---------------------------------------------------------------------------- LOAD

TURTLE = """@prefix : <http://e/> . :a :p [ :q 1.50, "é\\n" ] . <> :r <other> ."""
TRIPLES = '<http://e/a> <http://e/p> _:b .\n_:b <http://e/q> "1.50"^^<http://e/t> .\n\n# no more\n'
QUADS = "<http://e/a> <http://e/p> _:b <http://e/g> .\n<http://e/a> <http://e/p> <http://e/c> .\n"


@pytest.mark.parametrize(
    ("name", "text"), [("a.ttl", TURTLE), ("a.nt", TRIPLES), ("a.nq", QUADS)], ids=["ttl", "nt", "nq"]
)
@pytest.mark.parametrize("into", [None, "http://e/into"], ids=["", "into"])
def test_a_file(tmp_path: Path, name: str, text: str, into: str | None) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    base = f"{tmp_path.as_uri()}/"
    graphs = Graphs()
    clause = f" INTO GRAPH <{into}>" if into else ""
    graphs.update(f"LOAD <{name}>{clause}", base=base)
    expected = set(read_graph(path, into))
    assert graphs.quads() == expected
    assert not len(graphs.update(f"LOAD <{path.as_uri()}>{clause}")), (
        "the same file gives the same blank nodes"
    )


def test_a_file_in_many_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kelda.ask.updating.loading.BLOCK", 100)
    path = tmp_path / "a.nt"
    path.write_text(
        "".join(
            f'_:b{i % 7} <http://e/p> "{i}" .\n<http://e/a> <http://e/p> {i}.0 .\n'.replace(
                f" {i}.0 ", f' "{i}.0" '
            )
            for i in range(50)
        )
    )
    graphs = Graphs(f"LOAD <{path.as_uri()}>")
    assert graphs.quads() == set(read_graph(path))


@pytest.mark.parametrize("block", [100, 1 << 22])
def test_lines_are_read_as_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    """Graphs and blank nodes included, which are met in one block and again in another."""
    monkeypatch.setattr("kelda.ask.updating.loading.BLOCK", block)
    for name in ("a.nt", "a.nq", "a.nq.gz"):
        graph = [" .", " <http://e/g> .", " _:b3 ."] if ".nq" in name else [" ."]
        text = "".join(
            f'<http://e/a> <http://e/p> "{i}"{graph[i % len(graph)]}\n'
            f"_:b{i % 7} <http://e/p> _:c{i}{graph[i % len(graph)]}\n"
            for i in range(50)
        ).encode()
        path = tmp_path / name
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
        expected = set(read_graph(path))
        with monkeypatch.context() as patch:
            patch.setattr("kelda.ask.updating.loading._ids", pytest.fail)
            assert Graphs(f"LOAD <{path.as_uri()}>").quads() == expected


@pytest.mark.parametrize("name", ["a.ttl", "a.nt"])
def test_a_broken_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("<http://e/a> <http://e/p> <http://e/b> .\n<http://e/a> oops .\n")
    graphs = Graphs()
    with pytest.raises(InputError, match=rf"{name}, line 2"):
        graphs.update(f"LOAD <{path.as_uri()}>")
    assert not len(graphs.update(f"LOAD SILENT <{path.as_uri()}>"))


@pytest.mark.parametrize(
    ("iri", "why"),
    [
        ("http://e/a.ttl", "is not fetched"),
        ("a.ttl", "LOAD takes file: IRIs"),
        ("file:///no/such/file.ttl", "cannot read"),
        ("file:///no/such/file", "cannot tell the RDF format"),
    ],
)
def test_what_is_not_loaded(iri: str, why: str) -> None:
    graphs = Graphs()
    with pytest.raises(KeldaError, match=why):
        graphs.update(f"LOAD <{iri}>")
    assert not len(graphs.update(f"LOAD SILENT <{iri}>"))


def test_documents_from_elsewhere() -> None:
    graphs = Graphs()
    fetch = {"http://e/doc": Document(b"<> <http://e/p> <x> .", "doc", "text/turtle")}
    graphs.update("LOAD <http://e/doc>", fetch=fetch.__getitem__)
    assert graphs.lines() == [":doc :p :x"]


# ---------------------------------------------------------------------------- size


def test_many_solutions_are_filled_in_as_columns() -> None:
    graphs = Graphs("INSERT DATA { " + " ".join(f":s{i} :p {i} ." for i in range(3000)) + " }")
    changes = graphs.update("DELETE { ?s :p ?o } INSERT { ?s :q ?o . [] :of ?s } WHERE { ?s :p ?o }")
    assert np.bincount(changes.sign + 1).tolist() == [3000, 0, 6000]
