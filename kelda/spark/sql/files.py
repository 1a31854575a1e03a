"""Which files make up a store.

A batch is a file `{batch}.parquet` in `quads` and, if it brought any, in `terms`; compaction makes one file
`{first}-{last}.parquet` of several. While it does, both are there, and the larger file counts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from kelda.errors import UsageError
from kelda.store.moments import FOREVER

_NAME = re.compile(r"(\d+)(?:-(\d+))?\.parquet")


@dataclass(frozen=True, slots=True)
class StoreFiles:
    """The files to read, in the order of their batches, and the moment up to which they count."""

    quads: tuple[str, ...]
    terms: tuple[str, ...]
    moment: int


def store_files(folder: Path, until_batch: int | None = None, at_moment: int | None = None) -> StoreFiles:
    """Those of a store, as they are now."""
    if not (folder / "quads").is_dir():
        raise UsageError(f"{folder} holds no store: it has no folder `quads`")
    quads, terms = (_chosen(folder / part, until_batch) for part in ("quads", "terms"))
    return StoreFiles(quads, terms, FOREVER if at_moment is None else at_moment)


def _chosen(folder: Path, until_batch: int | None) -> tuple[str, ...]:
    """The files that together hold each batch once."""
    found: list[tuple[int, int, str]] = []
    for path in folder.iterdir() if folder.is_dir() else ():
        name = _NAME.fullmatch(path.name)
        if name is not None:
            found.append((int(name[1]), int(name[2] or name[1]), str(path.absolute())))
    chosen: list[str] = []
    covered = -1
    for first, last, file in sorted(found, key=lambda run: (run[0], -run[1])):
        if last > covered and (until_batch is None or first <= until_batch):
            chosen.append(file)
            covered = last
    return tuple(chosen)
