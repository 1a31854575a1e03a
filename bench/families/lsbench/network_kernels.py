"""Who knows whom, computed and not stored: a network of any size that takes no memory.

In each of a number of rounds every user has at most one partner: users are cut into blocks of a size
that belongs to the round, and a block is folded in the middle. Whether partners become friends is
decided by a hash of both, by how sociable they are. So friendship is symmetric, friends are mostly near
each other (which makes friends of friends friends), and any user's friends are found at once.
"""

from __future__ import annotations

import numpy as np
from numba import njit

# Sizes of the blocks, in turn over the rounds; 0 is all users. Fitted to the distances between friends
# in data of the original generator.
BLOCKS = np.array([24, 850, 0, 31, 40, 0, 19, 750, 35, 600, 640, 27], np.int64)
ROUNDS = 46


@njit(cache=True)
def mixed(a: int, b: int, c: int) -> float:
    """A number in [0, 1) that depends on all three."""
    x = np.uint64(a) * np.uint64(0x9E3779B97F4A7C15)
    x ^= np.uint64(b) * np.uint64(0xC2B2AE3D27D4EB4F)
    x += np.uint64(c) * np.uint64(0x165667B19E3779F9)
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return float(x >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(cache=True)
def sociable(user: int, least: float) -> float:
    """How readily a user makes friends, from `least` to 1; more of the readier ones."""
    x = mixed(user, 1, 7)
    return least + (1 - least) * max(x, mixed(user, 2, 7))


@njit(cache=True)
def partner(user: int, turn: int, users: int, blocks: np.ndarray, least: float) -> int:
    """The friend that a user makes in a round, or -1."""
    size = blocks[turn % len(blocks)]
    if size == 0 or size > users:
        size = users
    shift = (turn * turn * 7 + turn * 13) % size
    at = user + shift  # blocks lie at different places in different rounds
    other = at - at % size + size - 1 - at % size - shift
    if size == users:
        other = (2 * users - 1 - user - shift * 5) % users
    if other < 0 or other >= users or other == user:
        return -1
    low, high = min(user, other), max(user, other)
    if mixed(low, high, turn) < sociable(low, least) * sociable(high, least):
        return other
    return -1


@njit(cache=True)
def some_friends(
    who: np.ndarray,
    start: np.ndarray,
    many: np.ndarray,
    users: int,
    blocks: np.ndarray,
    rounds: int,
    least: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Up to `many[i]` friends of `who[i]`, all different, looked for from round `start[i]` on.

    How many each has got, and all friends one after another.
    """
    found = np.zeros(len(who), np.int64)
    out = np.empty(many.sum(), np.int64)
    at = 0
    for i in range(len(who)):
        first = at
        for j in range(rounds):
            if at - first == many[i]:
                break
            friend = partner(who[i], (start[i] + j) % rounds, users, blocks, least)
            if friend < 0:
                continue
            new = True
            for k in range(first, at):
                if out[k] == friend:
                    new = False
            if new:
                out[at] = friend
                at += 1
        found[i] = at - first
    return found, out[:at]
