"""Quads in a store, among facts that are gone or that have not come yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from pyoxigraph import Quad

from kelda.rdf.dictionary import Dictionary
from kelda.store.changes import Changes
from kelda.store.store import Store
from kelda.store.view import View

LOADED, REMOVED, LATER = 1, 2, 4


def view_of(
    quads: Iterable[Quad], dictionary: Dictionary, *, gone: Sequence[Quad] = (), to_come: Sequence[Quad] = ()
) -> View:
    """The view of a store that holds these quads; `gone` were there before, `to_come` come afterwards."""
    store = Store(dictionary=dictionary)
    there = list(dict.fromkeys(quads))
    store.apply(_changes(gone, dictionary, LOADED, 1))
    store.apply(_changes(gone, dictionary, REMOVED, -1))
    store.apply(_changes(there, dictionary, REMOVED, 1))
    view = store.view(REMOVED)
    store.apply(_changes(to_come, dictionary, LATER, 1))
    store.apply(_changes(there[::2], dictionary, LATER + 1, -1))
    return view


def _changes(quads: Sequence[Quad], dictionary: Dictionary, moment: int, sign: int) -> Changes:
    parts = [(q.graph_name, q.subject, q.predicate, q.object) for q in quads]
    ids = np.array([[dictionary.encode(term) for term in part] for part in parts], np.int64).reshape(-1, 4)
    graph, s, p, o = (np.ascontiguousarray(column) for column in ids.T)
    many = len(quads)
    return Changes(graph, s, p, o, np.full(many, moment), np.full(many, sign))
