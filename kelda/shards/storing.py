"""The stored graphs of a deployment on the disk: what each batch changed, and the store made of it again."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kelda.errors import CheckpointError
from kelda.kept import RESTORE
from kelda.rdf.dictionary import Dictionary
from kelda.shards.snapshots import Snapshots
from kelda.store.changes import Changes
from kelda.store.compaction import Compaction, moment_of
from kelda.store.image import Image, Images
from kelda.store.moments import NEVER
from kelda.store.store import Store
from kelda.store.tables_kernels import OBJECT, SUBJECT
from kelda.store.truth import Run, Truth

FOLDER = "store"  # in the folder of a deployment


LEAST = 1 << 18  # changes behind an image that a new one is worth


def opened(folder: Path, until: int | None = None) -> tuple[Store, dict[str, Any]]:
    """The store as it was behind a batch, or behind the last, and what is known about that one."""
    found = _opened(Truth(folder / FOLDER), until)
    return found.store, found.about


class _Opened(NamedTuple):
    """A store as the truth tells it, in part by its image. `written`: which of its terms the truth has."""

    store: Store
    about: dict[str, Any]  # what was known about the last batch that is in files
    written: NDArray[np.bool_]
    image: int  # the batch of the image; -1: there was none
    behind: int  # how many changes were made since


def _opened(truth: Truth, until: int | None) -> _Opened:
    if (image := Images(truth).latest(until)) is not None:
        with suppress(CheckpointError):  # else its batch was put together with later ones, just now
            return _carried_on(truth, until, image)
    return _carried_on(truth, until, Image(-1, {}, Store(), np.zeros(0, np.bool_)))


def _carried_on(truth: Truth, until: int | None, image: Image) -> _Opened:
    """What was stored behind the batch of an image, carried out on it."""
    store, about, behind = image.store, image.about, 0
    first = len(store.dictionary)
    for stored in truth.read(until, image.batch):
        store.dictionary.add_entries(stored.entries)
        store.apply(stored.changes)
        about = stored.about[stored.last]
        behind += len(stored.changes)
    # A term that the image has may have been written since. It is written again when it is next met: no harm.
    written = np.concatenate([image.written, np.ones(len(store.dictionary) - first, np.bool_)])
    return _Opened(store, about, written, image.batch, behind)


def note(about: Mapping[int, dict[str, Any]], snapshots: Snapshots) -> None:
    """Have the snapshots that files know about."""
    for number, told in sorted(about.items()):
        snapshots.take(number, told["instant"], told.get("offsets", {}), moment_of(told))


class Storing:
    """Writes what batches change, and puts files together in the background. One process does."""

    def __init__(self, folder: Path) -> None:
        self._truth = Truth(folder / FOLDER)
        self._images = Images(self._truth)
        self._compaction = Compaction(self._truth)
        self._written = np.zeros(64, np.bool_)  # terms, by the numbers of their entries
        self._behind = 0  # changes since the image

    def take_up(self, until: int) -> Store:
        """The store as it was behind a batch, to go on with. What was written for later ones was never
        committed."""
        self._truth.forget_after(until)
        store, _, self._written, image, self._behind = _opened(self._truth, until)
        self._compaction.keep_apart(image)
        return store

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
        if len(terms) > len(self._written):
            more = np.zeros(max(len(terms), 2 * len(self._written)), np.bool_)
            more[: len(self._written)] = self._written
            self._written = more
        fresh = terms.fresh_entries_of(np.concatenate(changes.columns[:4]), self._written)
        self._truth.write(batch, changes, fresh, about=about, always=batch == 0)
        self._behind += len(changes)

    def committed(self, batch: int, snapshots: Snapshots) -> None:
        """A batch will not come again. What nobody can ask for any more may go, now or later."""
        oldest = snapshots.oldest
        self._compaction.start(batch, NEVER if oldest is None else oldest)

    def close(self) -> None:
        """Let go of the files."""
        self._compaction.close()

    def keep_image(self, store: Store, *, part: int = 16, indexed: bool = False) -> None:
        """Have the store opened fast the next time, if it is large and one in `part` of its facts is in no
        image: it is as the last batch in files has left it, and that is committed. `indexed`: with all
        indexes, which each process that maps it would make for itself."""
        if self._behind < LEAST or self._behind < store.facts // part:
            return
        batch = self.last
        self._compaction.keep_apart(batch)
        if indexed:
            for table in store.tables.all():
                for column in (SUBJECT, OBJECT):
                    store.tables.index(table, column)
        with suppress(CheckpointError):  # files are put together, just now: the next time will do
            if (about := self._truth.about(batch)) is not None:
                self._images.write(store, batch, about, self._written)
                self._behind = 0
