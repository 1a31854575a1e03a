"""The stored graphs of a deployment on the disk: what each batch changed, and the store made of it again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kelda.errors import CheckpointError
from kelda.kept import RESTORE
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.keyset import KeySet
from kelda.shards.snapshots import Snapshots
from kelda.store.changes import Changes
from kelda.store.compaction import Compaction, moment_of
from kelda.store.moments import NEVER
from kelda.store.store import Store
from kelda.store.truth import Run, Truth

FOLDER = "store"  # in the folder of a deployment


def opened(folder: Path, until: int) -> Store:
    """The store as it was behind a batch."""
    store = Store()
    for stored in Truth(folder / FOLDER).read(until):
        store.dictionary.add_entries(stored.entries)
        store.apply(stored.changes)
    return store


def note(about: Mapping[int, dict[str, Any]], snapshots: Snapshots) -> None:
    """Have the snapshots that files know about."""
    for number, told in sorted(about.items()):
        snapshots.take(number, told["instant"], told.get("offsets", {}), moment_of(told))


class Storing:
    """Writes what batches change, and puts files together in the background. One process does."""

    def __init__(self, folder: Path) -> None:
        self._truth = Truth(folder / FOLDER)
        self._compaction = Compaction(self._truth)
        self._known = KeySet()  # ids whose terms are written

    def take_up(self, until: int, store: Store) -> None:
        """Go on behind a batch; what was written for later ones was never committed."""
        self._truth.forget_after(until)
        ids = store.dictionary.ids()
        if len(ids):
            self._known.add(ids)

    @property
    def last(self) -> int:
        """The last batch that is in files; -1: none."""
        return self._truth.last

    def check(self, last: int) -> None:
        """Refuse files without those of the batch that was the last one. Others name the one before them."""
        if self._truth.last < last:
            name = Run(last, last, False).name
            raise CheckpointError(f"{self._truth.quads / name} is missing; {RESTORE}")

    def remember(self, snapshots: Snapshots) -> None:
        """Have the snapshots of an earlier run, as far as they are to be kept."""
        for quads, _ in self._truth.opened():
            note(quads.label.about, snapshots)

    def write(self, batch: int, changes: Changes, terms: Dictionary, about: dict[str, Any]) -> None:
        """Make the changes of a batch last; `terms` knows theirs. `about` tells its `instant`, the `moment`
        up to which a snapshot sees, and the `version` of the catalog that held. The first is written whether
        or not it has any: it is the oldest that can be asked for."""
        ids = np.concatenate(changes.columns[:4])
        ids = ids[ids > 0]  # others are in no dictionary
        fresh = terms.entries_of(ids[~self._known.holds(ids)])
        self._truth.write(batch, changes, fresh, about=about, always=batch == 0)
        self._known.add(fresh.ids)

    def committed(self, batch: int, snapshots: Snapshots) -> None:
        """A batch will not come again. What nobody can ask for any more may go, now or later."""
        oldest = snapshots.oldest
        self._compaction.start(batch, NEVER if oldest is None else oldest)

    def close(self) -> None:
        """Let go of the files."""
        self._compaction.close()
