"""Records read in two ways come out in their order."""

from __future__ import annotations

import random

import numpy as np
import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kelda.rdf.columnar.found import found_of, without_heads
from kelda.rdf.columnar.weave import Odd, runs, woven
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.event import Event
from tests.rdf.by_columns import check_found


def _event(number: int, size: int, timed: bool, graph: bool) -> Event:
    name = (NamedNode("x:g"),) if graph else ()
    quads = (Quad(NamedNode(f"x:e{number}"), NamedNode("x:p"), Literal(str(i)), *name) for i in range(size))
    return Event(number * 10 if timed else None, tuple(quads))


@pytest.mark.parametrize("seed", range(40))
def test_the_order_of_the_records(seed: int):
    draw = random.Random(seed)
    records: list[list[Event]] = []  # of each record
    for _ in range(draw.randrange(12)):
        some = range(draw.choice([0, 1, 1, 1, 2]))
        records.append(
            [_event(draw.randrange(99), draw.randrange(4), draw.random() < 0.8, seed % 2 > 0) for _ in some]
        )
    odd = np.array([draw.random() < 0.4 for _ in records], np.bool_)
    dictionary = Dictionary()
    usual = [
        (number, event)
        for number, some in enumerate(records)
        if not odd[number]
        for event in some
        if event.quads
    ]
    found = found_of([event for _, event in usual], dictionary)
    numbers = np.array([number for number, _ in usual], np.int64)
    rest = [Odd(begin, [e for some in records[begin:end] for e in some]) for begin, end in runs(odd)]
    together = woven(found, numbers, rest, dictionary)
    check_found(together, dictionary, [event for some in records for event in some], [(None, None, None)])


def test_runs():
    assert list(runs(np.array([1, 0, 1, 1, 0, 1], np.bool_))) == [(0, 1), (2, 4), (5, 6)]
    assert list(runs(np.zeros(3, np.bool_))) == []


@pytest.mark.parametrize("seed", range(20))
def test_events_without_their_heads(seed: int):
    draw = random.Random(seed)
    events = [
        _event(n, draw.choice([1, 1, 2, 4]), draw.random() < 0.5, draw.random() < 0.3)
        for n in range(draw.randrange(9))
    ]
    dictionary = Dictionary()
    found = found_of(events, dictionary)
    some = np.flatnonzero([draw.random() < 0.5 for _ in range(found.size)])
    if draw.random() < 0.5:
        columns = (None if c is None else c[some] for c in (found.s, found.p, found.o, found.g))
        found = found._replace(rows=some, **dict(zip("spog", columns, strict=True)))
    left = [Event(event.time, event.quads[1:]) for event in events]
    check_found(without_heads(found), dictionary, left, [])
