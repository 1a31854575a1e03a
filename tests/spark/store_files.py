"""Files of a store, for tests: batches of changes, compacted or not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pyoxigraph import Quad

from kelda.rdf.dictionary import Dictionary
from kelda.store.changes import Changes
from kelda.store.compaction import Compaction
from kelda.store.truth import Truth

Change = tuple[Quad, int, int]  # what, at which moment, and whether it is added (1) or removed (-1)


class StoreWriter:
    """Writes batches into a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._truth, self._dictionary = Truth(folder), Dictionary()

    def batch(self, number: int, changes: Sequence[Change]) -> None:
        """The files of one batch."""
        known = len(self._dictionary)
        encode = self._dictionary.encode
        rows = [
            (encode(q.graph_name), encode(q.subject), encode(q.predicate), encode(q.object), moment, sign)
            for q, moment, sign in changes
        ]
        columns = np.array(rows, np.int64).reshape(len(rows), 6).T
        entries = self._dictionary.entries(known)
        self._truth.write(number, Changes(*columns), entries, about={}, always=True)

    def compacted(self, first: int, last: int, changes: Sequence[Change]) -> None:
        """The files of two batches put together, with all that there were before."""
        half = len(changes) // 2
        self.batch(first, changes[:half])
        self.batch(last, changes[half:])
        self.compact()

    def compact(self) -> None:
        """Put all files together."""
        Compaction(self._truth).run(self._truth.last, whole=True)
