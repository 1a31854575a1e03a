"""How many bytes a step may take: asked before large arrays are made, so that a limit holds within a step.

What the queries hold (`held`) is counted between steps. In a step, `take` counts what is made and stays
until the step is over, and `check` asks whether something would fit. If not, the query that has taken most in
this step has taken too much. If that is the one that asks, it hears of it by a `MemoryLimitError` and is
stopped. If it is one that was done before, that one is stopped (`let_go`), what it has taken is free again,
and the one that asks goes on.

Counts are per array, and an array that is made of another one of the same size may be there before it is
counted: a step may take a little more than the limit, not a multiple of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np

from kelda.engine.deltas import Deltas
from kelda.errors import MemoryLimitError

ENDLESS = 1 << 62
ANSWER_BYTES, VALUE_BYTES = 300, 32  # about what an answer takes as an object, and each value of it


class Budget:
    """Without a `limit` everything fits."""

    def __init__(
        self, limit: int | None = None, let_go: Callable[[int, MemoryLimitError], None] | None = None
    ) -> None:
        self.limit = limit
        self.held = 0
        self._let_go = let_go
        self._taken: dict[int, int] = {}  # in this step, by whom: a number that the evaluator gives
        self._who = -1
        self._seen: set[int] = set()  # arrays that were counted in this step

    def begin(self) -> None:
        """A step begins."""
        self._taken.clear()
        self._seen.clear()

    def turn(self, who: int) -> None:
        """Who asks from now on."""
        self._who = who

    def done(self, who: int) -> None:
        """What somebody took in this step is free again."""
        self._taken.pop(who, None)

    @property
    def left(self) -> int:
        """Bytes that fit."""
        return ENDLESS if self.limit is None else self.limit - self.held - sum(self._taken.values())

    def rows(self, columns: int) -> int:
        """How many rows of so many columns fit, if whoever has taken most has to go for them."""
        if self.limit is None:
            return ENDLESS
        return max(self.left, (self.limit - self.held) // 2, 0) // (8 * max(columns, 1))

    def check(self, size: int) -> None:
        """Whether `size` bytes more fit; raises if not."""
        while size > self.left:
            mine = self._taken.get(self._who, 0) + size
            most, whose = max((taken, who) for who, taken in [*self._taken.items(), (self._who, mine)])
            if whose == self._who or self._let_go is None:
                raise self.error(mine)
            self._let_go(whose, self.error(most))
            self.done(whose)

    def error(self, size: int) -> MemoryLimitError:
        """What to say to who would take `size` bytes in a step."""
        return MemoryLimitError(
            f"it would take {size:,} bytes in one step, beside {self.held:,} that are held: more than the "
            f"limit of {self.limit:,}. Raise the limit, or give the query smaller windows or patterns that "
            "have more in common"
        )

    def take(self, size: int) -> None:
        """`size` bytes more, until the step is over."""
        if self.limit is not None:
            self.check(size)
            self._taken[self._who] = self._taken.get(self._who, 0) + size

    def made(self, deltas: Deltas) -> None:
        """A node has made deltas; arrays that it hands on count once."""
        if self.limit is not None and len(deltas):
            for array in (deltas.time, deltas.weight, deltas.values):
                whole = array if array.base is None else array.base
                if id(whole) not in self._seen:
                    self._seen.add(id(whole))
                    self.take(whole.nbytes if isinstance(whole, np.ndarray) else array.nbytes)

    def too_much(self, more: Mapping[int, int]) -> list[tuple[int, int]]:
        """Who has to go, and what they would take, so that the others can have so many bytes `more`."""
        if self.limit is None:
            return []
        wanted = Counter(self._taken) + Counter(more)
        gone = []
        while wanted and sum(wanted.values()) > self.limit - self.held:
            who = max(wanted, key=wanted.__getitem__)
            gone.append((who, wanted.pop(who)))
            self.done(who)
        return gone

    @staticmethod
    def of_answers(count: int, values: int) -> int:
        """What so many answers take as objects, each with so many values."""
        return count * (ANSWER_BYTES + VALUE_BYTES * values)


NO_LIMIT = Budget()


class Limited:
    """An operator whose output may be far larger than its input: it asks before."""

    budget: Budget = NO_LIMIT
