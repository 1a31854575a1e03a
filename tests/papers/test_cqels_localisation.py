"""CQELS (2011), section 3: the localisation scenario, its Table 1 and its Figure 2.

Three rooms, four people who are seen one after another, and the question who can reach whom. The
paper counts time in ticks; a tick is a second here, and again a millisecond, the smallest there is.
"""

from __future__ import annotations

import pytest

from .scenario import Answers, answers, bag, iri, solution

STREAM = iri("S")
ROOMS = {iri("G"): ":r1 :conn :r2, :r3 . :r2 :conn :r1 . :r3 :conn :r1 ."}
SIGHTINGS = [":m0 :detectedAt :r1", ":m1 :detectedAt :r2", ":m2 :detectedAt :r1", ":m3 :detectedAt :r2"]

TICKS = pytest.mark.parametrize("tick, window", [(1000, "2s"), (1, "2ms")], ids=["seconds", "milliseconds"])


def at_ticks(query: str, tick: int, output: str | None = None) -> Answers:
    """The answers of a query over the scenario, by tick."""
    stream = [(number * tick, sighting) for number, sighting in enumerate(SIGHTINGS)]
    found = answers(query, streams={STREAM: stream}, graphs=ROOMS, output=output)
    assert all(time % tick == 0 for time in found)
    return {time // tick: bag for time, bag in found.items()}


@TICKS
def test_table_1_output_stream(tick: int, window: str) -> None:
    """The rightmost column: each newcomer is reached by the one seen just before next door."""
    query = f"""
        CONSTRUCT {{ ?person2 :reaches ?person1 }}
        FROM NAMED :G
        WHERE {{
          STREAM :S [NOW] {{ ?person1 :detectedAt ?loc1 }}
          STREAM :S [RANGE {window}] {{ ?person2 :detectedAt ?loc2 }}
          GRAPH :G {{ ?loc1 :conn ?loc2 }}
        }}"""
    assert at_ticks(query, tick) == {
        1: bag((":m0", ":reaches", ":m1")),
        2: bag((":m1", ":reaches", ":m2")),
        3: bag((":m2", ":reaches", ":m3")),
    }


@TICKS
def test_table_1_now_window(tick: int, window: str) -> None:
    """The column of the first window operator: whoever is seen at this very tick."""
    query = "SELECT ?p1 ?l1 WHERE { STREAM :S [NOW] { ?p1 :detectedAt ?l1 } }"
    assert at_ticks(query, tick, output="rstream") == {
        0: bag(solution(p1=":m0", l1=":r1")),
        1: bag(solution(p1=":m1", l1=":r2")),
        2: bag(solution(p1=":m2", l1=":r1")),
        3: bag(solution(p1=":m3", l1=":r2")),
    }


@TICKS
def test_table_1_range_window(tick: int, window: str) -> None:
    """The column of the second: two ticks back, the older end open, so never three people."""
    query = f"SELECT ?p2 ?l2 WHERE {{ STREAM :S [RANGE {window}] {{ ?p2 :detectedAt ?l2 }} }}"
    m0, m1 = solution(p2=":m0", l2=":r1"), solution(p2=":m1", l2=":r2")
    m2, m3 = solution(p2=":m2", l2=":r1"), solution(p2=":m3", l2=":r2")
    assert at_ticks(query, tick, output="rstream") == {
        0: bag(m0),
        1: bag(m0, m1),
        2: bag(m1, m2),
        3: bag(m2, m3),
    }


@TICKS
def test_figure_2_join_of_the_windows(tick: int, window: str) -> None:
    """The first plan's intermediate result: one pair at tick 0, two at tick 1."""
    query = f"""
        SELECT ?p1 ?l1 ?p2 ?l2 WHERE {{
          STREAM :S [NOW] {{ ?p1 :detectedAt ?l1 }}
          STREAM :S [RANGE {window}] {{ ?p2 :detectedAt ?l2 }}
        }}"""
    found = at_ticks(query, tick, output="rstream")
    assert found[0] == bag(solution(p1=":m0", l1=":r1", p2=":m0", l2=":r1"))
    assert found[1] == bag(
        solution(p1=":m1", l1=":r2", p2=":m0", l2=":r1"),
        solution(p1=":m1", l1=":r2", p2=":m1", l2=":r2"),
    )


@TICKS
def test_figure_2_join_with_the_rooms(tick: int, window: str) -> None:
    """The second plan's intermediate result: two at tick 0, one at tick 1."""
    query = """
        SELECT ?p1 ?l1 ?l2 FROM NAMED :G WHERE {
          STREAM :S [NOW] { ?p1 :detectedAt ?l1 }
          GRAPH :G { ?l1 :conn ?l2 }
        }"""
    found = at_ticks(query, tick, output="rstream")
    assert found[0] == bag(solution(p1=":m0", l1=":r1", l2=":r2"), solution(p1=":m0", l1=":r1", l2=":r3"))
    assert found[1] == bag(solution(p1=":m1", l1=":r2", l2=":r1"))


@TICKS
def test_window_in_front_of_the_stream(tick: int, window: str) -> None:
    """The paper's grammar puts the window first, its queries put it last: both are read."""
    behind = f"SELECT ?p WHERE {{ STREAM :S [RANGE {window}] {{ ?p :detectedAt ?l }} }}"
    in_front = f"SELECT ?p WHERE {{ STREAM [RANGE {window}] :S {{ ?p :detectedAt ?l }} }}"
    assert at_ticks(in_front, tick) == at_ticks(behind, tick)


def test_a_stream_is_a_bag() -> None:
    """Section 3.1: the same triple at two instants is two elements, and two mappings of a window."""
    query = "SELECT ?p WHERE { STREAM :S [RANGE 5s] { ?p :detectedAt ?l } }"
    twice = [(1000, ":m0 :detectedAt :r1"), (2000, ":m0 :detectedAt :r1")]
    found = answers(query, streams={STREAM: twice}, output="rstream")
    m0 = solution(p=":m0")
    assert found == {1000: bag(m0), 2000: bag(m0, m0)}
