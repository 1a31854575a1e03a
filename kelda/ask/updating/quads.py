"""Sets of quads as columns: arrays of shape (4, n) with graph, subject, predicate, object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kelda.engine.deltas import Deltas
from kelda.store.changes import Changes, Ids
from kelda.store.view import View

NONE: Ids = np.zeros((4, 0), np.int64)

_PARTS = ("graph", "s", "p", "o")


def of_graph(view: View, graph: int) -> Ids:
    """All that a graph holds."""
    parts = [NONE]
    for table in view.tables(graph):
        s, o = table.scan()
        parts.append(np.stack([np.full(len(s), graph), s, np.full(len(s), table.predicate), o]))
    return np.concatenate(parts, axis=1)


def into(graph: int, quads: Ids) -> Ids:
    """The same triples in one graph."""
    moved = quads.copy()
    moved[0] = graph
    return moved


def without(quads: Ids, others: Ids) -> Ids:
    """Those that are not among the others, each once."""
    if not quads.size or not others.size:
        return quads
    mine, theirs = _summed(quads, 1)[0], _summed(others, 1)[0]
    whose = np.repeat([1, 2], [mine.shape[1], theirs.shape[1]])
    all_, total = _summed(np.concatenate([mine, theirs], axis=1), whose)
    return all_[:, total == 1]


def changes(gone: Ids, come: Ids, moment: int) -> Changes:
    """These go, and then those come; what does both comes."""
    gone = without(gone, come)
    quads = np.concatenate([gone, come], axis=1)
    sign = np.ones(quads.shape[1], np.int64)
    sign[: gone.shape[1]] = -1
    graph, s, p, o = quads
    return Changes(graph, s, p, o, np.full(len(sign), moment), sign)


def undone(made: Changes) -> Changes:
    """What takes changes back that have made a difference, all at one moment."""
    back = made.select(np.arange(len(made))[::-1])
    return replace(back, sign=-back.sign)


def net(made: Sequence[Changes]) -> Changes:
    """The difference between before and after changes at one moment, each of which has made one itself."""
    made = [some for some in made if len(some)]
    if len(made) < 2:
        return Changes.concat(made)
    all_ = Changes.concat(made)
    quads, total = _summed(np.stack(all_.columns[:4]), all_.sign)
    return changes(quads[:, total < 0], quads[:, total > 0], int(all_.moment[0]))


def _summed(quads: Ids, weight: int | Ids) -> tuple[NDArray[np.int64], Ids]:
    """Each quad once, with the sum of its weights; none whose sum is 0."""
    size = quads.shape[1]
    weights = np.ascontiguousarray(np.broadcast_to(weight, size), np.int64)
    found = Deltas(_PARTS, np.zeros(size, np.int64), weights, quads).consolidated()
    return found.values, found.weight
