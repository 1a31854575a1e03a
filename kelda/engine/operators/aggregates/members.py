"""The members of each group, for aggregates that must know which there are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kelda.engine.deltas import Ids
from kelda.engine.operators.aggregates import members_kernels as kernels
from kelda.engine.operators.aggregates.runs import Members, Runs
from kelda.engine.operators.group_table import LEAST_ROOM, resized, room_for
from kelda.rdf.dictionary import Dictionary


class MemberTable:
    """(group, member) -> count, as laid out in `members_kernels`; `sign` -1 keeps the least, +1 the greatest
    member at hand. With `always`, all members are shown of every group that changes."""

    def __init__(self, dictionary: Dictionary, sign: int = 0, always: bool = False) -> None:
        self.dictionary, self.sign, self.always = dictionary, sign, always
        self.head = np.full(LEAST_ROOM, -1, np.int64)
        self.best = self.head.copy()
        self.classes = np.zeros((kernels.CLASSES, LEAST_ROOM), np.int64)
        self._allocate(LEAST_ROOM)

    def _allocate(self, room: int) -> None:
        self.meta, self.spare = np.zeros(3, np.int64), np.zeros(room, np.int64)
        self.entries, self.slots = np.zeros((kernels.FIELDS, room), np.int64), np.zeros(2 * room, np.int64)

    def __len__(self) -> int:
        return int(self.meta[0])

    @property
    def nbytes(self) -> int:
        """Bytes of state held."""
        arrays = (self.head, self.best, self.classes, self.spare, self.entries, self.slots)
        return sum(array.nbytes for array in arrays)

    def step(self, runs: Runs, members: Members, key: Ids, kind: Ids) -> tuple[Ids, Ids, Ids]:
        """See `members_kernels.members_step`."""
        need, room = len(self) + len(members.run), len(self.spare)
        if need > room or (room > LEAST_ROOM and 16 * need < room):
            self._rebuild(np.arange(len(self.head)), len(self.head), room_for(need + need // 2))
        deltas = (runs.group, members.run, members.value, members.weight, key, kind)
        texts = texts_of(self.dictionary)
        return kernels.members_step(
            self._table, self.classes, self.best, self.sign, self.always, deltas, texts
        )

    def resize(self, kept: Ids, room: int) -> None:
        """Group kept[i] is now group i, and there is room for this many groups."""
        if len(kept) == len(self.head) and (kept == np.arange(len(kept))).all():  # more room, no more
            more = np.full(room - len(kept), -1, np.int64)
            self.head, self.best = np.append(self.head, more), np.append(self.best, more)
            self.classes = resized(self.classes, kept, room)
        else:
            self._rebuild(kept, room, room_for(2 * len(self)))

    def renumber(self, number: Ids) -> None:
        """Member v is now number[v]."""
        live = self.slots[self.slots > 0] - 1
        self.entries[kernels.VALUE, live] = number[self.entries[kernels.VALUE, live]]
        self._rebuild(np.arange(len(self.head)), len(self.head), room_for(2 * len(self)))

    @property
    def _table(self) -> tuple[Ids, Ids, Ids, Ids, Ids]:
        return (self.slots, self.entries, self.spare, self.meta, self.head)

    def _rebuild(self, kept: Ids, groups: int, room: int) -> None:
        old, live = self.entries, self.slots[self.slots > 0] - 1
        number = np.full(len(self.head), -1, np.int64)
        number[kept] = np.arange(len(kept))
        self._allocate(room)
        self.classes = resized(self.classes, kept, groups)
        best = self.best[kept]
        self.head, self.best = np.full(groups, -1, np.int64), np.full(groups, -1, np.int64)
        places = np.full(old.shape[1] + 1, -1, np.int64)  # the last one is where entry -1, none, goes
        kernels.insert_members(self._table, number[old[kernels.GROUP, live]], old, live, places)
        self.best[: len(kept)] = places[best]


def texts_of(dictionary: Dictionary) -> tuple[Ids, Ids, NDArray[np.uint8]]:
    """What kernels need to read a hashed term's text."""
    return dictionary.tables.slots, dictionary.tables.offsets, dictionary.tables.arena
