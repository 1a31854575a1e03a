"""Windows against their definition, computed anew from all elements at every instant."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad

from kelda.engine.window import Element, make_window
from kelda.lang import algebra as A

T0 = 3


def element(number: int, time: int, size: int = 1) -> Element:
    quads = [
        Quad(NamedNode("http://ex/s"), NamedNode("http://ex/p"), Literal(str((number, i))))
        for i in range(size)
    ]
    return Element(number, time, tuple(quads))


def by_time(window: A.TimeWindow, elements: list[Element], t: int) -> set[int]:
    assert isinstance(window.range, int)
    b = t if window.slide is None else T0 + (t - T0) // int(window.slide) * int(window.slide)  # type: ignore[arg-type]
    upper = b - window.until
    return {e.number for e in elements if e.time <= t and upper - window.range < e.time <= upper}


times = st.lists(st.integers(0, 30), max_size=12).map(sorted)
time_windows = st.builds(
    A.TimeWindow,
    range=st.integers(1, 12),
    slide=st.none() | st.integers(1, 8),
    until=st.integers(0, 5),
)


def contents(window: A.Window, elements: list[Element], on_close: bool = False) -> dict[int, list[Element]]:
    """The content at each instant from 0 to 40, the window being moved only where it asks to be."""
    state = make_window(window, t0=T0, on_close=on_close)
    out, waiting = {}, list(elements)
    for t in range(41):
        if state.next_change(t - 1) <= t or (waiting and waiting[0].time == t):
            while waiting and waiting[0].time == t:
                state.add(waiting.pop(0))
            state.move(t)
        out[t] = list(state.content.values())
    return out


@given(time_windows, times)
def test_time_window(window: A.TimeWindow, arrivals: list[int]) -> None:
    elements = [element(i, t) for i, t in enumerate(arrivals)]
    for t, content in contents(window, elements).items():
        assert {e.number for e in content} == by_time(window, elements, t), f"at {t}"


@given(times)
def test_now_and_all(arrivals: list[int]) -> None:
    elements = [element(i, t) for i, t in enumerate(arrivals)]
    now, everything = contents(A.NowWindow(), elements), contents(A.AllWindow(), elements)
    for t in range(41):
        assert {e.number for e in now[t]} == {e.number for e in elements if e.time == t}
        assert {e.number for e in everything[t]} == {e.number for e in elements if e.time <= t}


@given(st.integers(1, 5), st.integers(1, 4), times, st.lists(st.integers(1, 3), min_size=12, max_size=12))
def test_count_window(count: int, step: int, arrivals: list[int], sizes: list[int]) -> None:
    elements = [element(i, t, n) for i, (t, n) in enumerate(zip(arrivals, sizes, strict=False))]
    for unit in A.CountUnit:
        found = contents(A.CountWindow(count, step, unit), elements)
        for t in range(41):
            units = [e.quads for e in elements if e.time <= t]
            if unit is A.CountUnit.TRIPLES:
                units = [(q,) for quads in units for q in quads]
            shown = units[: len(units) // step * step][-count:]
            assert [e.quads for e in found[t]] == shown, f"{unit} at {t}"


@given(st.integers(1, 6), times)
def test_session_window(gap: int, arrivals: list[int]) -> None:
    elements = [element(i, t) for i, t in enumerate(arrivals)]
    running, closed = (contents(A.SessionWindow(gap), elements, on_close) for on_close in (False, True))
    for t in range(41):
        sessions: list[list[Element]] = []
        for e in elements:
            if e.time > t:
                break
            if sessions and e.time - sessions[-1][-1].time < gap:
                sessions[-1].append(e)
            else:
                sessions.append([e])
        over = [s for s in sessions if s[-1].time + gap <= t]
        still = [s for s in sessions if s[-1].time + gap > t]
        assert running[t] == (still[-1] if still else []), f"running at {t}"
        assert closed[t] == (over[-1] if over else []), f"closed at {t}"


def test_time_predicate_moves_the_element() -> None:
    #  arrives at 10, states 6: in (t-5, t] by its own time until 11
    measured = NamedNode("http://ex/measured")
    stamp = Literal("6", datatype=NamedNode("http://www.w3.org/2001/XMLSchema#integer"))
    e = Element(0, 10, (Quad(NamedNode("http://ex/s"), measured, stamp),))
    found = contents(A.TimeWindow(5, time_predicate=measured), [e])
    assert [t for t, content in found.items() if content] == [10]
