"""Rows in order, by labels and a skip list: as by sorting all of them at each instant."""

from __future__ import annotations

import os
from collections import Counter
from functools import cmp_to_key
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode

from kelda.engine import labels as labels_module
from kelda.engine import ranked as ranked_module
from kelda.engine.budget import NO_LIMIT
from kelda.engine.deltas import Deltas, Ids
from kelda.engine.labels import Labels
from kelda.engine.operators import rows as rows_module
from kelda.engine.ranked import By, Ranked
from kelda.engine.ranked_kernels import GONE, NEW, WHOLE
from kelda.engine.term_order import Aspect, TermOrder
from kelda.rdf.dictionary import Dictionary
from tests.engine.test_term_order import IN_ORDER, TERMS

CASES = int(os.environ.get("KELDA_CASES", "150"))

DICTIONARY = Dictionary()
XSD = "http://www.w3.org/2001/XMLSchema#"
NUMBERS = [DICTIONARY.encode(Literal(i)) for i in (-2, -1, 0, 1, 2, 3)]
NUMBERS += [
    DICTIONARY.encode(Literal(t, datatype=NamedNode(XSD + "decimal"))) for t in ("2.0", "2.5", "-0.1")
]
NUMBERS += [DICTIONARY.encode(Literal(x)) for x in (2.5, 1e-3, 1.0)]
MOMENTS = [
    DICTIONARY.encode(Literal(f"2024-01-0{day}T00:00:00{zone}", datatype=NamedNode(XSD + "dateTime")))
    for day in (1, 2)
    for zone in ("", "Z", "+02:00")
]
ANY = [DICTIONARY.encode(t) for t in dict.fromkeys((*TERMS, *IN_ORDER))]
KINDS = (NUMBERS, MOMENTS, NUMBERS + MOMENTS, ANY, [*NUMBERS, 0])
Change = tuple[int, tuple[int, ...], int]  # when, which row, how often more


@pytest.fixture(autouse=True)
def _little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gaps, memories and tables are used up soon."""
    monkeypatch.setattr(labels_module, "_END", 1 << 6)
    monkeypatch.setattr(labels_module, "_STEP", 4)
    monkeypatch.setattr(labels_module, "_MOST_KNOWN", 8)
    monkeypatch.setattr(labels_module, "_FEW", 2)
    monkeypatch.setattr(ranked_module, "MOST_SENT", 4)
    monkeypatch.setattr(rows_module, "_WORTH_SHRINKING", 1)


@st.composite
def changes(draw: st.DrawFn, width: int) -> list[Change]:
    """Changes in time order, which never take away what is not there."""
    terms = st.sampled_from(draw(st.sampled_from(KINDS)))
    rows = draw(st.lists(st.tuples(*[terms] * width), min_size=1, max_size=12, unique=True))
    held: Counter[tuple[int, ...]] = Counter()
    found: dict[tuple[int, tuple[int, ...]], int] = {}
    for time in range(1, draw(st.integers(2, 8))):
        for row in draw(st.lists(st.sampled_from(rows), max_size=6, unique=True)):
            weight = draw(st.integers(-held[row], 2))
            held[row] += weight
            if weight:
                found[time, row] = weight
    return [(time, row, weight) for (time, row), weight in found.items()]


@st.composite
def keys(draw: st.DrawFn, width: int) -> list[By]:
    by = st.tuples(st.integers(0, width - 1), st.sampled_from([*Aspect, *3 * [Aspect.TERM]]), st.booleans())
    return draw(st.lists(by, max_size=3))


def deltas(some: list[Change], width: int) -> Deltas:
    columns = tuple(f"c{i}" for i in range(width))
    values = np.array([row for _, row, _ in some], np.int64).reshape(len(some), width).T
    time, weight = (np.array([change[i] for change in some], np.int64) for i in (0, 2))
    return Deltas(columns, time, weight, values)


def by_sorting(
    some: list[Change],
    instants: list[int],
    by: list[By],
    shown: int,
    part: slice,
    wanted: int,
    *,
    distinct: bool,
) -> list[tuple[int, ...]]:
    order = TermOrder(DICTIONARY)

    def compared(a: tuple[int, ...], b: tuple[int, ...]) -> int:
        for at, aspect, down in by:
            mine, other = order.place(a[at], aspect), order.place(b[at], aspect)
            if mine != other:
                return -1 if (mine < other) is not down else 1
        return -1 if a < b else 1

    last: list[tuple[int, ...]] = []
    sent: list[tuple[int, ...]] = []
    for instant in instants:
        held: Counter[tuple[int, ...]] = Counter()
        for time, row, weight in some:
            held[row] += weight if time <= instant else 0
        rows = [row[:shown] for row in sorted(held.elements(), key=cmp_to_key(compared))]
        rows = (list(dict.fromkeys(rows)) if distinct else rows)[part]
        if wanted & WHOLE:
            sent += [(instant, 1, *row) for row in rows]
            continue
        if wanted & GONE:
            sent += [(instant, -1, *row) for row in (Counter(last) - Counter(rows)).elements()]
        new = Counter(rows) - Counter(last)
        fresh = []
        for row in reversed(rows):
            if new[row] > 0:
                new[row] -= 1
                fresh.append((instant, 1, *row))
        if wanted & NEW:
            sent += fresh[::-1]
        last = rows
    return sent


@settings(max_examples=CASES)
@given(st.data())
def test_as_by_sorting(data: st.DataObject) -> None:
    width = data.draw(st.integers(1, 3))
    shown = data.draw(st.integers(1, width))
    some, by = data.draw(changes(width)), data.draw(keys(width))
    offset = data.draw(st.integers(0, 3))
    end = data.draw(st.one_of(st.none(), st.integers(offset, offset + 4)))
    distinct, wanted = data.draw(st.booleans()), data.draw(st.sampled_from([WHOLE, NEW, GONE, NEW | GONE]))
    ranked = Ranked(
        width, by, TermOrder(DICTIONARY), shown=shown, offset=offset, end=end, distinct=distinct
    )  # fmt: skip
    instants = sorted(data.draw(st.sets(st.integers(1, 9), min_size=1)) | {9})
    expected = by_sorting(some, instants, by, shown, slice(offset, end), wanted, distinct=distinct)
    found: list[tuple[int, ...]] = []
    cuts = sorted(data.draw(st.sets(st.sampled_from(instants))) | {9})
    for before, until in pairwise([0, *cuts]):
        now = np.array([t for t in instants if before < t <= until], np.int64)
        step = deltas([change for change in some if before < change[0] <= until], width)
        if data.draw(st.booleans()):
            other, ranked = ranked, ranked.apart()
            sent = other.step(step, now, wanted, NO_LIMIT)
            assert sent.tolist() == ranked.step(step, now, wanted, NO_LIMIT).tolist()
        else:
            sent = ranked.step(step, now, wanted, NO_LIMIT)
        found += [tuple(row) for row in sent.tolist()]
    assert found == expected


@settings(max_examples=CASES)
@given(st.data())
def test_labels_are_in_the_order_of_terms(data: st.DataObject) -> None:
    order, aspect = TermOrder(DICTIONARY), data.draw(st.sampled_from(Aspect))
    labels = Labels(order, aspect)
    known: dict[int, int] = {}
    for _ in range(data.draw(st.integers(1, 6))):
        ids = data.draw(st.lists(st.sampled_from(data.draw(st.sampled_from(KINDS))), max_size=10))
        epoch = labels.epoch
        found = labels.of(np.array(ids, np.int64)).tolist()
        if labels.epoch != epoch:
            found, known = labels.of(np.array(ids, np.int64)).tolist(), {}
        known |= dict(zip(ids, found, strict=True))
        if labels.are_many:
            some: Ids = np.array(ids, np.int64)
            labels.keep(some)
            known = dict(zip(ids, labels.of(some).tolist(), strict=True))
        pairs = sorted((order.place(id, aspect), label) for id, label in known.items())
        for (place, label), (other, more) in pairwise(pairs):
            assert (place < other) == (label < more) and (place == other) == (label == more)


def test_many_terms_before_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each new one goes into the smallest gap."""
    monkeypatch.setattr(labels_module, "_END", 1 << 10)
    order = TermOrder(DICTIONARY)
    labels = Labels(order, Aspect.TERM)
    ids = [DICTIONARY.encode(NamedNode(f"http://ex/{'a' * i}b")) for i in range(200)]
    for i in range(len(ids)):
        labels.of(np.array(ids[i : i + 1]))
    found = labels.of(np.array(ids))
    assert (np.diff(found) < 0).all() and labels.epoch > 1
