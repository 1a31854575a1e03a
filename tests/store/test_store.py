"""The store beside a Python set with a history, whatever is added and removed and however it is cut."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import pytest

from kelda.store.changes import Changes
from kelda.store.moments import FOREVER
from kelda.store.store import Store

CASES = int(os.environ.get("KELDA_CASES", "30"))
BEGIN = int.from_bytes(os.urandom(4), "big") if "KELDA_RANDOM" in os.environ else 0


def random_changes(rng: random.Random, size: int) -> Changes:
    many = rng.choice([2, 5, 40, 400])
    columns = [
        [rng.randrange(3) for _ in range(size)],
        [rng.randrange(1, many) for _ in range(size)],
        [rng.randrange(1, 4) for _ in range(size)],
        [-rng.randrange(1, many) for _ in range(size)],
        sorted(rng.randrange(100) for _ in range(size)),
        [rng.choice([1, 1, 1, -1]) for _ in range(size)],
    ]
    changes = Changes(*(np.array(column, np.int64) for column in columns))
    return changes.select(np.lexsort((changes.sign, changes.moment)))


class History:
    """Facts and their stays."""

    def __init__(self) -> None:
        self.stays: dict[tuple[int, ...], list[list[int]]] = {}

    def take(self, change: list[int]) -> bool:
        *fact, moment, sign = change
        stays = self.stays.setdefault(tuple(fact), [])
        there = bool(stays) and stays[-1][1] == FOREVER
        if there == (sign > 0):
            return False
        if sign > 0:
            stays.append([moment, FOREVER])
        else:
            stays[-1][1] = moment
        return True

    def at(self, moment: int) -> set[tuple[int, ...]]:
        return {fact for fact, stays in self.stays.items() if any(a <= moment < b for a, b in stays)}


def facts(store: Store, at: int) -> list[tuple[int, ...]]:
    view = store.view(at)
    found = []
    for graph in view.graphs():
        for table in view.tables(graph):
            found += [(graph, s, table.predicate, o) for s, o in zip(*map(list, table.scan()), strict=True)]
    return found


@pytest.mark.parametrize("seed", range(BEGIN, BEGIN + CASES))
def test_any_changes(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    changes = random_changes(rng, rng.choice([10, 300, 3000]))
    store = Store(tmp_path / "heap" if seed % 2 else None)
    history, at = History(), 0
    while at < len(changes):
        end = min(len(changes), at + rng.choice([1, 7, 500]))
        part = changes.select(np.arange(at, end))
        made = store.apply(part)
        rows = np.array(part.columns).T.tolist()
        assert np.array(made.columns).T.tolist() == [row for row in rows if history.take(row)], f"seed {seed}"
        at = end
        if rng.random() < 0.2:
            for table in (t for g in range(3) for t in store.view().tables(g)):
                rng.choice([table.by_subject, table.by_object])(np.array([1]))
    for moment in [*rng.sample(range(-1, 101), 6), FOREVER - 1]:
        wanted = history.at(moment)
        assert sorted(facts(store, moment)) == sorted(wanted), f"seed {seed}, moment {moment}"
        assert len(store.view(moment)) == len(wanted)
        _lookups(store, moment, wanted)
    if seed % 2:  # another process would see the same
        assert sorted(facts(Store(tmp_path / "heap"), 50)) == sorted(history.at(50))


def _lookups(store: Store, moment: int, wanted: set[tuple[int, ...]]) -> None:
    view = store.view(moment)
    assert sorted(view.graphs()) == sorted({fact[0] for fact in wanted})
    keys = np.arange(0, 12)
    for graph in range(4):
        for predicate in range(1, 4):
            mine = {(s, o) for g, s, p, o in wanted if (g, p) == (graph, predicate)}
            table = view.table(graph, predicate)
            if table is None:
                assert not mine
                continue
            which, values = table.by_subject(keys)
            assert sorted(zip(keys[which], values, strict=True)) == sorted(x for x in mine if x[0] < 12)
            assert (np.diff(which) >= 0).all()
            which, values = table.by_object(-keys)
            assert sorted(zip(values, -keys[which], strict=True)) == sorted(x for x in mine if x[1] > -12)
            s, o = (a.ravel().copy() for a in np.meshgrid(keys, -keys))
            assert table.holds(s, o).tolist() == [pair in mine for pair in zip(s, o, strict=True)]


def test_the_last_moment_of_changes_that_levels_made():
    """A level that lags behind makes its changes after those of an update, for earlier moments."""
    later, earlier = (2099 << 20) + 1, 2000 << 20
    one, two = np.array([1, 1]), np.array([1, 2])
    store = Store()
    store.apply(Changes(two, one, one, one, np.array([later, earlier]), one))
    assert store.latest == later
