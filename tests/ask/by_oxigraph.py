"""Queries over a view of the store, answered by Oxigraph over a copy of all that is in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from pyoxigraph import Quad

from kelda.ask.updating import quads
from kelda.ask.updating.table import Solutions
from kelda.engine.oneshot import evaluate_ids
from kelda.lang import algebra as A
from kelda.lang.scope import selected
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.graphstore import GraphStore
from kelda.store.changes import Changes, Ids
from kelda.store.store import Store
from kelda.store.view import View


def contents(view: View, dictionary: Dictionary) -> Iterator[Quad]:
    """All quads of a view."""
    for graph in view.graphs():
        g, s, p, o = (dictionary.terms(column) for column in quads.of_graph(view, graph))
        for subject, predicate, object, name in zip(s, p, o, g, strict=True):
            yield Quad(subject, predicate, object, name)  # type: ignore[arg-type]


def added(statements: Iterable[Quad], dictionary: Dictionary, moment: int) -> Changes:
    """Changes that put quads in."""
    rows = [[dictionary.encode(t) for t in (q.graph_name, *q.triple)] for q in statements]
    return quads.changes(quads.NONE, np.array(rows, np.int64).reshape(-1, 4).T, moment)


def by_oxigraph(store: Store) -> Solutions:
    """What `carry_out` answers WHERE with."""

    def solutions(query: A.Query, view: View) -> tuple[tuple[str, ...], Ids]:
        copy = GraphStore(contents(view, store.dictionary))
        return selected(query.pattern), evaluate_ids(query, copy, store.dictionary)

    return solutions
