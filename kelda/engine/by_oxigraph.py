"""A query over a view of the store by Oxigraph, over as much of it as the query needs."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from pyoxigraph import Quad

from kelda.engine.deltas import Ids
from kelda.engine.oneshot import evaluate_ids
from kelda.lang import algebra as A
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.graphstore import GraphStore
from kelda.store.view import View


def solve(
    query: A.Query, view: View, terms: Dictionary, into: Dictionary, predicates: Collection[int] | None
) -> Ids:
    """The table of a SELECT as ids that `into` knows, a row for each variable; `terms` are those of the
    store. `predicates` (None: all) are those that the query reads."""
    return evaluate_ids(query, copied(view, terms, predicates), into)


def copied(view: View, terms: Dictionary, predicates: Collection[int] | None = None) -> GraphStore:
    """The facts of some predicates in a store of their own."""
    store = GraphStore()
    for graph in view.graphs():
        for table in view.tables(graph):
            if predicates is None or table.predicate in predicates:
                subjects, objects = table.scan()
                named, predicate = terms.terms([graph, table.predicate])
                both = terms.terms(np.concatenate([subjects, objects]))
                size = len(subjects)
                store.bulk_extend(
                    Quad(s, predicate, o, named)  # type: ignore[arg-type]
                    for s, o in zip(both[:size], both[size:], strict=True)
                )
    return store
