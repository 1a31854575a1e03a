"""How people move through a building: a random walk on its rooms."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def walk(
    who: np.ndarray,
    moves: np.ndarray,
    door: np.ndarray,
    at: np.ndarray,
    doors: np.ndarray,
    degree: np.ndarray,
) -> np.ndarray:
    """The room of each sighting, in order; `at`, the room of each person, is moved on.

    Person `who[i]` has moved since the last sighting if `moves[i]`, and then took door number
    `door[i]`, modulo the doors there are; `doors[r]` lists the rooms next to r, the first `degree[r]` count.
    """
    seen = np.empty(len(who), np.int64)
    for i in range(len(who)):
        room = at[who[i]]
        if moves[i]:
            room = doors[room, door[i] % degree[room]]
            at[who[i]] = room
        seen[i] = room
    return seen
