"""Rows of ids and their numbers, and room for what is kept by number."""

from __future__ import annotations

import numpy as np

from kelda.engine.deltas import Ids
from kelda.engine.operators import group_table_kernels as kernels

LEAST_ROOM = 64


def resized(array: Ids, kept: Ids | slice, room: int) -> Ids:
    """`array[..., kept]`, with zeros after it."""
    some = array[..., kept]
    out = np.zeros((*array.shape[:-1], room), array.dtype)
    out[..., : some.shape[-1]] = some
    return out


def room_for(many: int) -> int:
    """The least power of two that has room for so many."""
    return max(LEAST_ROOM, 1 << (many - 1).bit_length())


class GroupTable:
    """Numbers rows, as laid out in `group_table_kernels`."""

    def __init__(self, width: int) -> None:
        self.meta = np.zeros(3, np.int64)
        self.keys = np.zeros((width, LEAST_ROOM), np.int64)
        self.spare = np.zeros(LEAST_ROOM, np.int64)
        self.slots = np.zeros(2 * LEAST_ROOM, np.int64)

    def __len__(self) -> int:
        return int(self.meta[0])

    @property
    def room(self) -> int:
        """All numbers are below."""
        return len(self.spare)

    @property
    def sparse(self) -> bool:
        """Whether it is time to `compact`."""
        return self.room > LEAST_ROOM and 8 * len(self) < self.room

    @property
    def nbytes(self) -> int:
        """Bytes of state held."""
        return self.keys.nbytes + self.spare.nbytes + self.slots.nbytes

    def find(self, rows: Ids) -> Ids:
        """The numbers of rows, new ones where need be."""
        done, parts = 0, []
        while True:
            rest = np.ascontiguousarray(rows[:, done:])
            parts.append(kernels.find_groups(self.slots, self.keys, self.spare, self.meta, rest))
            done += len(parts[-1])
            if done == rows.shape[1]:
                break
            self._grow(2 * self.room)
        return np.concatenate(parts)

    def drop(self, numbers: Ids) -> None:
        """These rows are gone."""
        kernels.drop_groups(self.slots, self.keys, self.spare, self.meta, numbers)

    def numbers(self) -> Ids:
        """All numbers in use."""
        return np.sort(self.slots[self.slots > 0] - 1)

    def compact(self) -> Ids:
        """Number the rows anew, without gaps; the old numbers in the order of the new ones."""
        kept = self.numbers()
        self.keys = np.ascontiguousarray(self.keys[:, kept])
        self.spare, self.meta = np.zeros(0, np.int64), np.array([len(kept), len(kept), 0], np.int64)
        self._grow(room_for(2 * len(kept)), np.arange(len(kept)))
        return kept

    def _grow(self, room: int, numbers: Ids | None = None) -> None:
        numbers = self.numbers() if numbers is None else numbers
        self.keys, self.spare = (resized(array, slice(None), room) for array in (self.keys, self.spare))
        self.slots = np.zeros(2 * room, np.int64)
        kernels.place_groups(self.slots, self.keys, numbers)
