"""Stored data for measurements: N-Triples text as a store of facts that were always there."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kelda.rdf import ntriples
from kelda.store.changes import Changes
from kelda.store.moments import NEVER
from kelda.store.store import Store


def store_of(texts: Iterable[bytes]) -> Store:
    """A store that holds all of it, in the default graph."""
    store = Store()
    for text in texts:
        rows = ntriples.read(text, store.dictionary, quads=False)
        store.apply(facts(rows.s, rows.p, rows.o, NEVER + 1))
    return store


def facts(s: np.ndarray, p: np.ndarray, o: np.ndarray, moment: int) -> Changes:
    """Triples that become facts of the default graph at a moment."""
    size = len(s)
    return Changes(np.zeros(size, np.int64), s, p, o, np.full(size, moment), np.ones(size, np.int64))
