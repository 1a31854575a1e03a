"""Random queries by operators over columns of ids, against Oxigraph over the same data."""

from __future__ import annotations

import os
from collections import Counter

from hypothesis import given, note, settings
from hypothesis import strategies as st
from pyoxigraph import Quad

from kelda.ask.facts import Stored
from kelda.ask.prepared import prepare
from kelda.engine.oneshot import Result, Solutions, evaluate
from kelda.errors import QueryError
from kelda.lang import algebra as A
from kelda.lang import parse
from kelda.plan.rules.deterministic import deterministic
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.graphstore import GraphStore
from kelda.rdf.sort_text import sort_text
from tests.ask.plain import PlainView
from tests.ask.random_asks import quads, queries
from tests.ask.stored import view_of

CASES = int(os.environ.get("KELDA_CASES", "400"))


@settings(max_examples=CASES)
@given(quads(), queries(), quads(), quads(), st.booleans())
def test_same_answers(
    data: list[Quad], text: str, gone: list[Quad], to_come: list[Quad], plain: bool
) -> None:
    note(text)
    try:
        query = deterministic(parse(text))
    except QueryError:  # a random query may break a rule of SPARQL
        return
    dictionary = Dictionary()
    prepared = prepare(query, dictionary)
    view: Stored = PlainView(data, dictionary)
    if not plain:
        view = view_of(data, dictionary, gone=gone, to_come=to_come)
    found = prepared.answer(view, now_ms=0)
    note(prepared.explain())
    expected = evaluate(query, GraphStore(data), now=0)
    assert comparable(found) == comparable(expected)
    if isinstance(found, Solutions) and isinstance(expected, Solutions):
        assert in_order(query, found) == in_order(query, expected)
    assert comparable(prepared.answer(view, now_ms=0)) == comparable(found), "asked again"


def comparable(result: Result) -> object:
    """What of an answer counts, whatever its order."""
    if isinstance(result, Solutions):
        return (*sorted(result.variables), Counter(frozenset(row.items()) for row in result.rows))
    return set(result) if isinstance(result, list) else result


def in_order(query: A.Query, result: Solutions) -> list[list[str]]:
    """The keys of the order, row by row, as far as they are shown."""
    pattern = query.pattern
    while isinstance(pattern, A.Slice | A.Distinct | A.Reduced | A.Project):
        pattern = pattern.pattern
    keys: list[str] = []
    for expr, _ in pattern.keys if isinstance(pattern, A.OrderBy) else ():
        if not isinstance(expr, A.VarRef) or expr.var.name not in result.variables:
            break
        keys.append(expr.var.name)
    return [[sort_text(row.get(key)) for key in keys] for row in result.rows]
