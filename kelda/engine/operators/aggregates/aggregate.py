"""What an aggregate is to the operator that groups rows."""

from __future__ import annotations

from typing import Protocol

from kelda.engine.deltas import Ids
from kelda.engine.operators.aggregates.runs import Members, Runs


class Aggregate(Protocol):
    """The state of one aggregate, of all groups."""

    def step(self, runs: Runs, members: Members) -> Ids:
        """Take the deltas; the aggregate's id after each run."""
        ...

    def resize(self, kept: Ids, room: int) -> None:
        """Group kept[i] is now group i, and there is room for this many groups."""
        ...

    @property
    def empty(self) -> int:
        """The aggregate of no members."""
        ...

    @property
    def nbytes(self) -> int:
        """Bytes of state held."""
        ...
