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
        """Make the changes of a batch last; `terms` knows theirs."""
        ids = np.concatenate(changes.columns[:4])
        ids = ids[ids > 0]  # others are in no dictionary
        fresh = terms.entries_of(ids[~self._known.holds(ids)])
        self._truth.write(batch, changes, fresh, about=about)
        self._known.add(fresh.ids)
