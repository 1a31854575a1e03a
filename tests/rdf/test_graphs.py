"""Stored graphs in: all formats, compressed or not, with errors that say where."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad

from kelda.errors import InputError, UsageError
from kelda.rdf.exact import Needs
from kelda.rdf.graphs import load_graph, read_graph
from kelda.rdf.graphstore import GraphStore

DATA = Path(os.environ.get("KELDA_DATA", Path(__file__).parents[3] / "shared" / "data"))

TEXTS = {
    "g.nt": "<a:s> <a:p> <a:o> .",
    "g.nq": "<a:s> <a:p> <a:o> .",
    "g.ttl": "@prefix a: <a:> . a:s a:p a:o .",
    "g.trig": "@prefix a: <a:> . a:s a:p a:o .",
    "g.n3": "@prefix a: <a:> . a:s a:p a:o .",
    "g.rdf": '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:a="a:">'
    '<rdf:Description rdf:about="a:s"><a:p rdf:resource="a:o"/></rdf:Description></rdf:RDF>',
    "g.jsonld": '{"@id": "a:s", "a:p": {"@id": "a:o"}}',
}


def load(path: Path, *args, **options) -> GraphStore:
    store = GraphStore()
    load_graph(store, path, *args, **options)
    return store


@pytest.mark.parametrize("name", list(TEXTS))
def test_formats(tmp_path, name):
    plain, packed = tmp_path / name, tmp_path / f"{name}.gz"
    plain.write_text(TEXTS[name])
    packed.write_bytes(gzip.compress(TEXTS[name].encode()))
    for path in (plain, packed):
        assert [str(quad) for quad in load(path)] == ["<a:s> <a:p> <a:o>"]
        assert [str(quad) for quad in load(path, "a:g")] == ["<a:s> <a:p> <a:o> <a:g>"]


def test_graph_names_are_kept_unless_a_graph_is_given(tmp_path):
    path = tmp_path / "g.trig"
    path.write_text("<a:s> <a:p> <a:o> . <a:g1> { <a:s> <a:p> <a:o1> }")
    assert {quad.graph_name for quad in load(path)} == {DefaultGraph(), NamedNode("a:g1")}
    assert {quad.graph_name for quad in load(path, "a:mine")} == {NamedNode("a:mine")}


def test_blank_nodes_are_apart_between_files_and_the_same_each_time(tmp_path):
    one, two = tmp_path / "one.ttl", tmp_path / "two.ttl"
    for path in (one, two):
        path.write_text("_:b <a:p> [ <a:q> _:b ] .")
    assert set(load(one)) == set(load(one))
    store = load(one)
    load_graph(store, one)
    assert len(store) == 2
    load_graph(store, two)
    assert len({quad.subject for quad in store if isinstance(quad.subject, BlankNode)}) == 4


def test_relative_iris_have_the_file_as_their_base(tmp_path):
    path = tmp_path / "g.ttl"
    path.write_text("<> <#p> <other> .")
    (quad,) = load(path)
    assert quad.subject.value == path.as_uri()
    assert quad.object.value == (tmp_path / "other").as_uri()
    (quad,) = load(path, base="http://b/x")
    assert quad.predicate.value == "http://b/x#p"


def test_errors_say_file_and_line(tmp_path):
    path = tmp_path / "bad.nt"
    path.write_text("<a:s> <a:p> <a:o> .\n<a:s> <a:p> .\n")
    with pytest.raises(InputError, match=r"bad\.nt, line 2: .*read as N-Triples"):
        load(path)
    with pytest.raises(InputError, match=r"nowhere\.ttl"):
        load(tmp_path / "nowhere.ttl")
    with pytest.raises(UsageError, match="say one of: ntriples"):
        load(tmp_path / "g.docx")
    with pytest.raises(UsageError, match="unknown RDF format 'word'"):
        load(path, format="word")
    with pytest.raises(UsageError, match="cannot name a graph"):
        load(path, "no iri")
    (tmp_path / "cut.ttl.gz").write_bytes(gzip.compress(b"<a:s> <a:p> <a:o> ." * 100)[:-10])
    with pytest.raises(InputError, match="broken gzip"):
        load(tmp_path / "cut.ttl.gz")


def test_format_can_be_told(tmp_path):
    path = tmp_path / "g.txt"
    path.write_text("<a:s> <a:p> <a:o> .")
    for told in ("turtle", "ttl", "text/turtle", "ntriples"):
        assert len(load(path, format=told)) == 1


@pytest.mark.data
@pytest.mark.skipif(not (DATA / "citybench").is_dir(), reason=f"no CityBench data at {DATA}")
def test_citybench_n3():
    assert len(load(DATA / "citybench" / "AarhusCulturalEvents.n3.gz")) == 1490


@pytest.mark.parametrize("graph", [None, "a:g"])
def test_ntriples_by_lines_and_by_statements(tmp_path, graph, monkeypatch):
    """Lines that the store reads by itself, and those it cannot: the same quads as one by one."""
    monkeypatch.setattr("kelda.rdf.graphs.BLOCK", 100)
    integer = "<http://www.w3.org/2001/XMLSchema#integer>"
    objects = [
        "<a:o>",
        '"text"',
        '"Text"@EN-gb',
        f'"01"^^{integer}',
        '"x"^^<a:t>',
        "_:b",
        '"^^ _: # \\n"',
        '"é"',
    ]
    lines = [f"<a:s{i}> <a:p> {o} ." for i in range(5) for o in objects] + [
        "# no statement",
        "",
        "_:b <a:p> _:c .",
    ]
    path = tmp_path / "g.nt"
    path.write_text("\n".join(lines))
    one_by_one = GraphStore(read_graph(path, graph))
    assert set(load(path, graph)) == set(one_by_one) and load(path, graph).needs & Needs.SPELLING
    assert len(one_by_one) == 5 * len(objects) + 1


@pytest.mark.parametrize(
    "bad", ["<a:s> <a:p> <a o> .", '<a:s> <a:p> "1"^^<a t> .', "<a:s> <a:p> .", "_:b _:b _:b ."]
)
def test_a_broken_line_is_named(tmp_path, bad):
    path = tmp_path / "g.nt"
    path.write_text(f"<a:s> <a:p> <a:o> .\n<a:s> <a:p> _:b .\n{bad}\n<a:s> <a:p> <a:o2> .\n")
    with pytest.raises(InputError, match=r"g\.nt, line 3"):
        load(path)


def test_what_the_literals_of_a_store_need() -> None:
    def needs(text: str, datatype: str) -> Needs:
        literal = Literal(text, datatype=NamedNode("http://www.w3.org/2001/XMLSchema#" + datatype))
        return GraphStore([Quad(NamedNode("http://ex/s"), NamedNode("http://ex/p"), literal)]).needs

    assert needs("7", "integer") == needs("a", "string") == needs("1.5", "decimal") == Needs.NOTHING
    assert needs("true", "boolean") == needs("2020-01-01T00:00:00Z", "dateTime") == Needs.NOTHING
    assert needs("07", "integer") == needs("7", "int") == Needs.SPELLING
    assert needs("2020-01-01T00:00:00", "dateTime") == Needs.ZONES
    assert needs("99999999999999999999", "integer") == needs("0.5", "double") == Needs.SUMS
