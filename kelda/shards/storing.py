"""The stored graphs of a deployment on the disk: what each batch changed, and the store made of it again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from kelda.rdf.dictionary import Dictionary
from kelda.rdf.keyset import KeySet
from kelda.store.changes import Changes
from kelda.store.store import Store
from kelda.store.truth import Truth

FOLDER = "store"  # in the folder of a deployment


def opened(folder: Path, until: int) -> Store:
    """The store as it was behind a batch."""
    store = Store()
    for stored in Truth(folder / FOLDER).read(until):
        store.dictionary.add_entries(stored.entries)
        store.apply(stored.changes)
    return store


def told(folder: Path, until: int) -> list[tuple[int, dict[str, Any]]]:
    """What was told about batches up to one, when they were written; those that changed nothing are left out."""
    labels = [pair.quads.label for pair in Truth(folder / FOLDER).opened(until)]
    return [(batch, about) for label in labels for batch, about in label.about.items() if batch <= until]


class Storing:
    """Writes what batches change. One process does."""

    def __init__(self, folder: Path) -> None:
        self._truth = Truth(folder / FOLDER)
        self._known = KeySet()  # ids whose terms are written

    def take_up(self, until: int, store: Store) -> None:
        """Go on behind a batch; what was written for later ones was never committed."""
        self._truth.forget_after(until)
        ids = store.dictionary.ids()
        if len(ids):
            self._known.add(ids)

    def write(self, batch: int, changes: Changes, terms: Dictionary, about: dict[str, Any]) -> None:
        """Make the changes of a batch last; `terms` knows theirs. The first is written whether or not it has
        any: it is the oldest that can be asked for."""
        ids = np.unique(np.concatenate(changes.columns[:4]))
        fresh = ids[(ids > 0) & ~self._known.holds(ids)] if len(ids) else ids
        self._truth.write(batch, changes, terms.entries_of(fresh), about=about, always=batch == 0)
        if len(fresh):
            self._known.add(fresh)
