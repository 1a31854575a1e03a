"""Which files of a store are read for a query: those that count at the moment at which it is asked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kelda.errors import UsageError
from kelda.store.moments import FOREVER
from kelda.store.truth import Truth


@dataclass(frozen=True, slots=True)
class StoreFiles:
    """The files, in the order of their batches, and the moment up to which they count."""

    quads: tuple[str, ...]
    terms: tuple[str, ...]
    moment: int


def store_files(folder: Path, until_batch: int | None = None, at_moment: int | None = None) -> StoreFiles:
    """Those of a store, as they are now. A compacted file that begins before batch `until_batch` may have
    later ones, too; what these brought is told by its moment."""
    truth = Truth(folder.absolute())
    if not truth.quads.is_dir():
        raise UsageError(f"{folder} holds no store: it has no folder `quads`")
    runs = [run.name for run in truth.runs() if until_batch is None or run.first <= until_batch]
    quads = tuple(str(truth.quads / run) for run in runs)
    terms = tuple(str(truth.terms / run) for run in runs if (truth.terms / run).exists())
    return StoreFiles(quads, terms, FOREVER if at_moment is None else at_moment)
