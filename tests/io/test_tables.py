"""Answers as tables that people read, and as DataFrames."""

from __future__ import annotations

import sys

import pytest
from pyoxigraph import Literal, NamedNode, Triple

from kelda.engine.answer import Answer
from kelda.engine.block import Block
from kelda.errors import UsageError
from kelda.io.formats import shape_of
from kelda.io.frames import to_pandas, to_polars
from kelda.io.tables import html_table
from kelda.lang import parse

QUERY = parse("PREFIX : <http://ex/> SELECT ?x ?n WHERE { STREAM :s [NOW] { ?x :p ?n } }")
ANSWERS = [
    Answer("q", 1000, "+", bindings={"x": NamedNode("http://ex/a"), "n": Literal(2**56 + 1)}),
    Answer("q", 2000, "-", bindings={"x": Literal("<b>&\nc")}),
]
BLOCK = Block.of_answers(QUERY, "q", ANSWERS)


def test_html_is_escaped_and_short() -> None:
    html = html_table("q", [BLOCK, BLOCK], shape_of(QUERY), limit=3)
    assert html.startswith("<table><caption>q: 4 answers, the first 3 here</caption>")
    assert "<tr><th>time</th><th></th><th>x</th><th>n</th></tr>" in html
    assert "<tr><td>1970-01-01T00:00:01Z</td><td>+</td><td>:a</td><td>72057594037927937</td></tr>" in html
    assert "<tr><td>1970-01-01T00:00:02Z</td><td>-</td><td>&lt;b&gt;&amp;<br>c</td><td></td></tr>" in html
    assert html.count("<tr>") == 4
    empty = html_table("http://ex/q&a", [], shape_of(QUERY))
    assert "<caption>:q&amp;a: 0 answers</caption>" in empty and "<tbody></tbody>" in empty


def test_html_of_triples_and_booleans() -> None:
    built = parse("PREFIX : <http://ex/> CONSTRUCT { ?x :p 1, 2 } WHERE { STREAM :s [NOW] { ?x :p ?n } }")
    triples = tuple(
        t for n in (1, 2) for t in [Triple(NamedNode("http://ex/a"), NamedNode("http://ex/p"), Literal(n))]
    )
    block = Block.of_answers(built, "q", [Answer("q", 0, "+", triples=triples)])
    assert "<td>:a :p 1 .<br>:a :p 2 .</td>" in html_table("q", [block], shape_of(built))
    asked = parse("PREFIX : <http://ex/> ASK { STREAM :s [NOW] { ?x :p ?n } }")
    block = Block.of_answers(asked, "q", [Answer("q", 0, "+", boolean=True)])
    assert "<td>true</td>" in html_table("q", [block], shape_of(asked))


def test_pandas() -> None:
    frame = to_pandas(BLOCK.to_arrow())
    assert frame["n"].tolist()[0] == 2**56 + 1 and str(frame.dtypes["n"]) == "Int64"
    assert str(frame.dtypes["time"]) == "datetime64[ms, UTC]"
    assert frame[frame["sign"] == "+"]["x"].tolist() == ["http://ex/a"]


def test_polars() -> None:
    pytest.importorskip("polars")
    frame = to_polars(BLOCK.to_arrow())
    assert frame["n"].to_list() == [2**56 + 1, None]
    assert frame.filter(frame["sign"] == "+")["x"].to_list() == ["http://ex/a"]


def test_without_polars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(UsageError, match="pip install polars"):
        to_polars(BLOCK.to_arrow())
