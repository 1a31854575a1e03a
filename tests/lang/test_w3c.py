"""The W3C suites as text: every query parses or is refused as its manifest says, and parsing loses nothing.

`test_meaning` sends the algebra back to SPARQL and asks pyoxigraph both: the answers must be the same.
"""

from __future__ import annotations

from collections import Counter

import pytest
from pyoxigraph import (
    CanonicalizationAlgorithm,
    Dataset,
    DefaultGraph,
    NamedNode,
    Quad,
    QueryBoolean,
    QuerySolutions,
    QueryTriples,
    Store,
)

from kelda.errors import QueryError
from kelda.lang import parse
from kelda.lang.to_sparql import NOTHING, to_sparql

from ..conformance import w3c

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not w3c.available(), reason=f"no W3C suites in {w3c.data_root()} (set KELDA_DATA)"),
]

CASES = [case for case in w3c.cases() if case.kind is not w3c.Kind.OTHER] if w3c.available() else []
WITH_DATA = [case for case in CASES if case.kind is w3c.Kind.EVALUATION and case.out_of_scope is None]

NOT_COMPARABLE = {
    "case-insensitive-booleans": "pyoxigraph refuses TRUE",
    "bnode02": "BNODE() makes new blank nodes each time",
    "agg-groupconcat-04": "pyoxigraph keeps the language tag of GROUP_CONCAT, which to_sparql repairs",
    "agg-groupconcat-06": "pyoxigraph keeps the language tag of GROUP_CONCAT, which to_sparql repairs",
}


def test_the_suites_are_complete() -> None:
    kinds = Counter(case.kind for case in CASES)
    assert kinds[w3c.Kind.POSITIVE_SYNTAX] > 200
    assert kinds[w3c.Kind.NEGATIVE_SYNTAX] > 90


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_syntax(case: w3c.Case) -> None:
    if case.kind is w3c.Kind.NEGATIVE_SYNTAX:
        with pytest.raises(QueryError) as caught:
            parse(case.text(), base=case.query, allow_service=True)
        assert caught.value.line is not None and caught.value.column is not None
    else:
        parse(case.text(), base=case.query, allow_service=True)


@pytest.mark.parametrize("case", WITH_DATA, ids=lambda case: case.id)
def test_meaning(case: w3c.Case) -> None:
    name = case.id.rpartition("/")[2]
    if name in NOT_COMPARABLE:
        pytest.skip(NOT_COMPARABLE[name])
    store = Store()
    for document in case.data:
        store.extend(Quad(t.subject, t.predicate, t.object) for t in w3c.load(document, "d"))
    for n, document in enumerate(case.graphs):
        graph = NamedNode(document)
        store.add_graph(graph)
        store.extend(Quad(t.subject, t.predicate, t.object, graph) for t in w3c.load(document, f"g{n}"))
    query = parse(case.text(), base=case.query)
    dataset = query.dataset
    said = dataset.default is not None
    answer = store.query(
        to_sparql(query),
        base_iri=query.base,
        default_graph=list(dataset.default or ()) if said else None,
        named_graphs=list(dataset.named or ()) if said else None,
    )
    assert plain(answer) == plain(store.query(case.text(), base_iri=case.query))


def plain(answer: QuerySolutions | QueryTriples | QueryBoolean) -> object:
    """An answer as something that can be compared."""
    if isinstance(answer, QueryBoolean):
        return bool(answer)
    if isinstance(answer, QueryTriples):
        graph = Dataset(Quad(t.subject, t.predicate, t.object, DefaultGraph()) for t in answer)
        graph.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
        return {str(quad) for quad in graph}
    names = [v.value for v in answer.variables if f"?{v.value}" != NOTHING]
    rows = Counter(frozenset((n, str(row[n])) for n in names if row[n] is not None) for row in answer)
    return set(names), rows
