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
from kelda.lang import parse, parse_update
from kelda.lang.to_sparql import NOTHING, to_sparql
from kelda.rdf.operators import FUNCTIONS

from ..conformance import w3c

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not w3c.available(), reason=f"no W3C suites in {w3c.data_root()} (set KELDA_DATA)"),
]

CASES = [case for case in w3c.cases() if case.kind is not w3c.Kind.OTHER] if w3c.available() else []
WITH_DATA = [case for case in CASES if case.kind is w3c.Kind.EVALUATION and case.out_of_scope is None]

EXACT = "to_sparql keeps the spelling of numbers, which pyoxigraph itself does not"
ZERO = "to_sparql repairs pyoxigraph's zero-length paths"
TAGS = "to_sparql repairs pyoxigraph's GROUP_CONCAT, which keeps language tags"

# Where pyoxigraph is no judge, by the query's file; tests/conformance holds these to W3C's own results.
NOT_COMPARABLE = {
    "expr-builtin/case-insensitive-booleans.rq": "pyoxigraph refuses TRUE",
    "functions/bnode02.rq": "BNODE() makes new blank nodes each time",
    "aggregates/agg-groupconcat-4.rq": TAGS,
    "aggregates/agg-groupconcat-6.rq": TAGS,
    "property-path/zero_or_more_set_start.rq": ZERO,
    "property-path/zero_or_more_set_end.rq": ZERO,
    "property-path/zero_or_one_set_start.rq": ZERO,
    "property-path/zero_or_one_set_end.rq": ZERO,
    "basic/term-4.rq": EXACT,
    "basic/term-5.rq": EXACT,
    "basic/term-6.rq": EXACT,
    "basic/term-7.rq": EXACT,
    "basic/term-8.rq": EXACT,
    "open-world/open-eq-01.rq": EXACT,
    "expr-equals/query-eq-graph-2.rq": EXACT,
}


def test_the_suites_are_complete() -> None:
    kinds = Counter(case.kind for case in CASES)
    assert kinds[w3c.Kind.POSITIVE_SYNTAX] > 200
    assert kinds[w3c.Kind.NEGATIVE_SYNTAX] > 90
    assert sum(case.is_update for case in CASES) > 140


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_syntax(case: w3c.Case) -> None:
    def read() -> None:
        if case.is_update:
            parse_update(case.text(), base=case.query)
        else:
            parse(case.text(), base=case.query, allow_service=True)

    if case.kind is w3c.Kind.NEGATIVE_SYNTAX:
        with pytest.raises(QueryError) as caught:
            read()
        assert caught.value.line is not None and caught.value.column is not None
    else:
        read()


@pytest.mark.parametrize("case", WITH_DATA, ids=lambda case: case.id)
def test_meaning(case: w3c.Case) -> None:
    file = "/".join(case.query.split("/")[-2:])
    if file in NOT_COMPARABLE:
        pytest.skip(NOT_COMPARABLE[file])
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
        to_sparql(query, plain=True),
        base_iri=query.base,
        custom_functions=FUNCTIONS,
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
    names = [v.value for v in answer.variables if not v.value.startswith(NOTHING)]
    rows = Counter(frozenset((n, str(row[n])) for n in names if row[n] is not None) for row in answer)
    return set(names), rows
