"""Changes of stored graphs, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kelda.rdf import wire

Ids = NDArray[np.int64]


@wire.plain
@dataclass(frozen=True, slots=True)
class Changes:
    """Facts that are added (sign 1) and removed (sign -1), in the order in which that is carried out. Moments
    do not fall; within one, removals come first."""

    graph: Ids
    s: Ids
    p: Ids
    o: Ids
    moment: Ids
    sign: Ids

    def __len__(self) -> int:
        return len(self.s)

    @property
    def columns(self) -> tuple[Ids, ...]:
        return (self.graph, self.s, self.p, self.o, self.moment, self.sign)

    @classmethod
    def none(cls) -> Changes:
        """No change at all."""
        return cls(*(np.zeros(0, np.int64) for _ in range(6)))

    @classmethod
    def concat(cls, parts: Sequence[Changes]) -> Changes:
        """One after another."""
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return cls.none()
        return cls(*(np.concatenate(columns) for columns in zip(*(p.columns for p in parts), strict=True)))

    def select(self, which: NDArray[np.bool_] | NDArray[np.int64]) -> Changes:
        """Some of them."""
        return Changes(*(column[which] for column in self.columns))
