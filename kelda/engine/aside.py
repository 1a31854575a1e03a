"""Rows of a window without a partner among the stored rows: set aside, for stored graphs may change.

Such a row is not joined, and not even indexed: as long as nothing is loaded, it costs its bytes and the
copying of them. When a stored relation changes, the rows that have a partner now are taken back (`back`).
Rows lie in blocks, in the order in which they came; a block whose rows have all left their window is used
again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kelda.engine.aside_kernels import UNIT, VALUES, set_aside
from kelda.engine.clock import NEVER
from kelda.engine.deltas import Ids
from kelda.rdf.keyset import KeySet

LEAST = 1024  # rows of a block


@dataclass
class _Block:
    cells: Ids  # (rows, what the window goes by, then the values)
    count: int = 0
    steps: list[tuple[int, int]] = field(default_factory=list)  # (row, step): rows from here on came in it

    @property
    def last(self) -> int:
        """The unit of the last row."""
        return int(self.cells[self.count - 1, UNIT]) if self.count else NEVER

    def trim(self) -> Ids:
        """No more room than needed; gives the array that has more."""
        cells, self.cells = self.cells, self.cells[: self.count].copy()
        return cells

    def step_of(self) -> Ids:
        """The step of each row."""
        rows, steps = (np.array(part, np.int64) for part in zip(*self.steps, strict=True))
        return steps.repeat(np.diff(np.append(rows, self.count)))


class Aside:
    """Rows of `width` columns."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._blocks: list[_Block] = []

    def __len__(self) -> int:
        return sum(block.count for block in self._blocks)

    def split(
        self,
        which: Ids,
        keys: KeySet,
        place: int,
        parts: tuple[Ids, Ids, Ids],
        units: Ids,
        places: Ids,
        step: int,
        least: int,
    ) -> Ids:
        """Set those of the rows `which` aside that have none of the `keys` at a place, and give the others.
        `parts` are the columns of all rows, `units` what their window goes by, `places` tells which parts the
        values are; rows with a unit below `least` will never be in the window any more."""
        block = self._room(len(which), least)
        first = block.count
        rows = (*parts, units)
        kept, block.count = set_aside(which, rows, keys.table, place, places, least, block.cells, first)
        if block.count > first:
            block.steps.append((first, step))
        return kept

    def _room(self, size: int, least: int) -> _Block:
        """The last block, with room for so many rows more."""
        if self._blocks and self._blocks[-1].count + size <= len(self._blocks[-1].cells):
            return self._blocks[-1]
        free: Ids | None = None
        if self._blocks and 2 * self._blocks[-1].count < len(self._blocks[-1].cells):
            free = self._blocks[-1].trim()
        while self._blocks and self._blocks[0].last < least:
            free = self._blocks.pop(0).cells
        if free is None or not size <= len(free) <= 8 * size + LEAST:
            free = np.empty((max(LEAST, size), VALUES + self._width), np.int64)
        self._blocks.append(_Block(free))
        return self._blocks[-1]

    def all(self) -> tuple[Ids, Ids, Ids]:
        """(step, unit, values) of all rows."""
        full = [block for block in self._blocks if block.count]
        some = [np.concatenate([b.step_of()[:, None], b.cells[: b.count]], axis=1) for b in full]
        rows = np.concatenate([np.zeros((0, 1 + VALUES + self._width), np.int64), *some])
        return rows[:, 0].copy(), rows[:, 1 + UNIT].copy(), np.ascontiguousarray(rows[:, 1 + VALUES :].T)

    def back(self, fits: Callable[[Ids, Ids], NDArray[np.bool_]]) -> tuple[Ids, Ids, Ids]:
        """Take the rows out that fit by their units and values: (step, unit, values)."""
        steps, units, values = self.all()
        which = fits(units, values)
        if which.any():
            self._blocks = []
            self._put(steps[~which], units[~which], values[:, ~which])
        return steps[which], units[which], values[:, which]

    def _put(self, steps: Ids, units: Ids, values: Ids) -> None:
        if len(steps):
            heads = np.flatnonzero(np.diff(steps, prepend=steps[0] - 1))
            cells = np.ascontiguousarray(np.concatenate([units[None, :], values]).T)
            begins = list(zip(heads.tolist(), steps[heads].tolist(), strict=True))
            self._blocks = [_Block(cells, len(steps), begins)]
