"""Each kind of window, as columns, against its definition element by element."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad

from kelda.engine.clock import FOREVER
from kelda.engine.intervals import CountIntervals, Intervals, TimeIntervals, intervals_of
from kelda.engine.stream_rows import Last, StreamRows
from kelda.engine.waiting import Waiting
from kelda.engine.window import Element, make_window
from kelda.lang import algebra as A
from kelda.rdf.dictionary import Dictionary

T0, END = 3, 60
S, P, AT = (NamedNode(f"http://ex/{name}") for name in ("s", "p", "at"))

ranges, slides = st.integers(1, 12), st.none() | st.integers(1, 8)
windows = st.one_of(
    st.just(A.NowWindow()),
    st.just(A.AllWindow()),
    st.builds(A.TimeWindow, range=ranges, slide=slides, until=st.integers(0, 5)),
    st.builds(A.TimeWindow, range=ranges, slide=slides, time_predicate=st.just(AT)),
    st.builds(A.CountWindow, st.integers(1, 5), st.integers(1, 4), st.just(A.CountUnit.TRIPLES)),
    st.builds(A.SessionWindow, st.integers(1, 6)),
)
arrivals = st.lists(st.tuples(st.integers(0, 30), st.none() | st.integers(-5, 35)), max_size=12).map(
    lambda some: sorted(some, key=lambda one: one[0])
)


def elements(some: list[tuple[int, int | None]]) -> list[Element]:
    """One triple each: it states its time or says something else."""
    said = [Quad(S, P, Literal("")) if at is None else Quad(S, AT, Literal(at)) for _, at in some]
    return [Element(i, t, (quad,)) for i, ((t, _), quad) in enumerate(zip(some, said, strict=True))]


def by_definition(window: A.Window, some: list[Element], on_close: bool) -> list[set[int]]:
    """Which elements are inside at each instant."""
    state, left, found = make_window(window, t0=T0, on_close=on_close), list(some), []
    for t in range(END):
        while left and left[0].time == t:
            state.add(left.pop(0))
        state.move(t)
        found.append(set(state.content))
    return found


def steps(some: list[Element], cuts: list[int], dictionary: Dictionary) -> Iterator[tuple[StreamRows, int]]:
    """The elements as rows, in steps that end at these instants."""
    since = -1
    for until in [*sorted(cuts), END]:
        mine = [e for e in some if since < e.time <= until]
        triples = [[dictionary.encode(t) for t in e.quads[0].triple] for e in mine]
        s, p, o = np.array(triples, np.int64).reshape(-1, 3).T
        numbers = np.array([e.number for e in mine], np.int64)
        yield StreamRows(s, p, o, np.array([e.time for e in mine], np.int64), numbers, numbers), until
        since = until


@settings(deadline=None)
@given(windows, arrivals, st.lists(st.integers(0, END - 1), max_size=4), st.booleans())
def test_stays_and_what_is_needed(
    window: A.Window, some: list[tuple[int, int | None]], cuts: list[int], on_close: bool
) -> None:
    every, dictionary = elements(some), Dictionary()
    expected = by_definition(window, every, on_close)
    intervals = intervals_of(window, T0, dictionary, on_close=on_close)
    waiting, stays, spans = Waiting(intervals, 1), {}, []
    open_units: dict[int, int] = {}  # elements inside whose end is not known yet, by number
    for rows, until in steps(every, cuts, dictionary):
        intervals.observe(rows, until)
        if open_units:
            _, leave = intervals.of(np.array(list(open_units.values()), np.int64))
            for number, end in zip(list(open_units), leave.tolist(), strict=True):
                if end < FOREVER:
                    stays[number] = (stays[number][0], end)
                    del open_units[number]
        values, enter, leave, units = waiting.step(intervals.units(rows), rows.row[None, :])
        for number, a, b, unit in zip(*(x.tolist() for x in (values[0], enter, leave, units)), strict=True):
            stays[number] = (a, b)
            if b == FOREVER and intervals.ends_later:
                open_units[number] = unit
        if len(rows):
            numbers = int(rows.row[-1]), int(rows.event[-1])
            spans.append(Last(int(rows.time[-1]), *numbers, intervals.stays_until))
        for span in spans:
            later = set().union(*expected[until + 1 :])
            if min(later, default=END) <= span.row:
                assert intervals.needs(span, until), (span, until)
    inside = [{n for n, (a, b) in stays.items() if a <= t < b} for t in range(END)]
    assert inside == expected


@pytest.mark.parametrize("intervals", [TimeIntervals(2), CountIntervals(2, 1, True)], ids=["time", "count"])
def test_the_largest_of_many_decides(intervals: Intervals) -> None:
    for size in (4, 3):
        intervals.grow(size)
    numbers = np.arange(10, dtype=np.int64)
    intervals.observe(StreamRows(*[numbers] * 6), 9)
    assert intervals.of(numbers)[1][:6].tolist() == [4, 5, 6, 7, 8, 9]
    sizes = np.array([1, 2, 3, 4], np.int64)
    assert intervals.leave_by(numbers[:4], sizes).tolist() == [1, 3, 5, 7]


def test_a_count_goes_on_where_it_began() -> None:
    numbers = np.arange(20, dtype=np.int64)
    whole = CountIntervals(3, 2, True)
    whole.observe(StreamRows(*[numbers[5:]] * 6), 19)
    kept = whole.snapshot()
    assert kept == 5
    again = CountIntervals(3, 2, True)
    again.restore([kept, 7], 12, 12)
    again.observe(StreamRows(*[numbers[12:]] * 6), 19)
    rows = StreamRows(*[numbers[12:]] * 6)
    for one, two in zip(whole.of(whole.units(rows)), again.of(again.units(rows)), strict=True):
        assert one.tolist() == two.tolist()
