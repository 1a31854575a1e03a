"""One run of a deployment on Spark: what all its processes know of it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from kelda.shards.setup import Setup


@dataclass(frozen=True, slots=True)
class Run:
    """Plain data: it travels to tasks and hosts."""

    id: str
    setup: Setup
    folder: str  # of the checkpoint; the catalog lies in it

    @property
    def flag(self) -> Path:
        """Is there as long as the run goes on."""
        return Path(self.folder, f"running-{self.id}")

    def fed(self, stream: int) -> Path:
        """Where the elements of a stream lie that a query feeds."""
        return Path(self.folder, "fed", str(stream))

    @property
    def catalog(self) -> Path:
        return Path(self.folder, "catalog")

    def last_commit(self) -> int:
        """The last batch that Spark has committed; -1 if none."""
        try:
            names = os.listdir(Path(self.folder, "spark", "commits"))
        except OSError:  # not begun, or not to be seen just now
            return -1
        return max((int(name) for name in names if name.isdigit()), default=-1)
