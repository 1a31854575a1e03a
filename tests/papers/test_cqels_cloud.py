"""CQELS Cloud (2013): Figure 2 (multiway join), Figure 3 (shared windows), Figure 4 (shared network).

Figure 3 is also Figure 1 of CQELS+ (2017). Three queries join the same two streams with windows of
growing size. When <a1,b6> arrives, the largest windows yield <a1,b6,c1> and <a1,b6,c5>; the small
queries get only the second. The figure's other elements are ours: they only push <b6,c1> back.
"""

from __future__ import annotations

import pytest

from .scenario import Answers, answers_together, bag, iri, solution

S1, S2, S3, S4 = (iri(f"S{number}") for number in (1, 2, 3, 4))

FIGURE_3 = {
    S1: [(6000, ":a1 :in :b6")],
    S2: [(1000, ":b6 :to :c1"), (2000, ":b2 :to :c2"), (3000, ":b3 :to :c3"), (4000, ":b4 :to :c4"),
         (5000, ":b6 :to :c5")],
}  # fmt: skip


def two_way(first: str, second: str) -> str:
    """The join of a window on each of the two streams."""
    return f"""
        SELECT ?a ?b ?c WHERE {{
          STREAM :S1 [{first}] {{ ?a :in ?b }}
          STREAM :S2 [{second}] {{ ?b :to ?c }}
        }}"""


WINDOWS = pytest.mark.parametrize(
    "sizes",
    [("RANGE 2s", "RANGE 3s", "RANGE 6s"), ("TRIPLES 1", "TRIPLES 3", "TRIPLES 5")],
    ids=["time", "count"],
)


@WINDOWS
def test_figure_3_router(sizes: tuple[str, str, str]) -> None:
    """<a1,b6,c5> goes to all three queries, <a1,b6,c1> to the one with the largest windows."""
    queries = {f"Q{number}": two_way(size, size) for number, size in enumerate(sizes, 1)}
    found = answers_together(queries, streams=FIGURE_3)
    c1, c5 = solution(a=":a1", b=":b6", c=":c1"), solution(a=":a1", b=":b6", c=":c5")
    assert found == {"Q1": {6000: bag(c5)}, "Q2": {6000: bag(c5)}, "Q3": {6000: bag(c1, c5)}}


@WINDOWS
def test_containment(sizes: tuple[str, str, str]) -> None:
    """At every instant a query with smaller windows holds nothing that the largest does not."""
    streams = {
        S1: [(time * 1000, f":a{time} :in :b{time % 3}") for time in range(1, 12)],
        S2: [(time * 1000, f":b{time % 2} :to :c{time}") for time in range(1, 12)],
    }
    queries = {f"Q{number}": two_way(size, size) for number, size in enumerate(sizes, 1)}
    small, middle, large = answers_together(queries, streams=streams, output="rstream").values()
    assert large
    for inner, outer in ((small, middle), (middle, large)):
        assert all(bag <= outer[time] for time, bag in inner.items())


def test_figure_2_each_input_probes_the_others() -> None:
    """Whichever of the three mappings of a result comes last, the result appears with it, once."""
    query = {
        "q": """
        SELECT ?a ?b ?c ?d WHERE {
          STREAM :S1 [RANGE 10s] { ?a :in ?b }
          STREAM :S2 [RANGE 10s] { ?b :to ?c }
          STREAM :S3 [RANGE 10s] { ?c :by ?d }
        }"""
    }
    texts = {S1: ":a :in :b", S2: ":b :to :c", S3: ":c :by :d"}
    result = bag(solution(a=":a", b=":b", c=":c", d=":d"))
    for last in texts:
        streams = {stream: [(3000 if stream == last else 1000, text)] for stream, text in texts.items()}
        assert answers_together(query, streams=streams)["q"] == {3000: result}


def test_figure_2_one_empty_buffer_ends_the_probing() -> None:
    """No compatible mapping in one buffer: no result, whatever the others hold."""
    query = """
        SELECT * WHERE {
          STREAM :S1 [RANGE 10s] { ?a :in ?b }
          STREAM :S2 [RANGE 10s] { ?b :to ?c }
          STREAM :S3 [RANGE 10s] { ?c :by ?d }
        }"""
    streams = {S1: [(1000, ":a :in :b")], S2: [(2000, ":b :to :c")], S3: [(3000, ":other :by :d")]}
    assert answers_together({"q": query}, streams=streams) == {"q": {}}


PATTERNS = {
    1: "STREAM :S1 [RANGE %ds] { ?a :in ?b }",
    2: "STREAM :S2 [RANGE %ds] { ?b :to ?c }",
    3: "STREAM :S3 [RANGE %ds] { ?c :by ?d }",
    4: "STREAM :S4 [RANGE %ds] { ?d :of ?e }",
}


def joined(seconds: int, *streams: int) -> str:
    """The join of windows of one size over some of the four streams."""
    return "SELECT * WHERE { " + " ".join(PATTERNS[number] % seconds for number in streams) + " }"


def test_figure_4_sharing_changes_no_answer() -> None:
    """Four queries that share streams answer side by side as each does alone.

    One chain a-b-c-d-e arrives at seconds 1 to 4, and a second :by edge at 6. With windows of
    3 s the elements of seconds 1, 2, 3 expire at 4, 5, 6; with 6 s at 7, 8, 9.
    """
    streams = {
        S1: [(1000, ":a :in :b")],
        S2: [(2000, ":b :to :c")],
        S3: [(3000, ":c :by :d"), (6000, ":c :by :d2")],
        S4: [(4000, ":d :of :e")],
    }
    queries = {
        "Q1": joined(6, 1, 2, 3),
        "Q2": joined(3, 2, 3),
        "Q3": joined(3, 2, 3, 4),
        "Q4": joined(6, 2, 3, 4),
    }
    abcd = solution(a=":a", b=":b", c=":c", d=":d")
    bcd, bcde = solution(b=":b", c=":c", d=":d"), solution(b=":b", c=":c", d=":d", e=":e")
    together = answers_together(queries, streams=streams)
    assert together == {
        "Q1": {3000: bag(abcd), 6000: bag(solution(a=":a", b=":b", c=":c", d=":d2"))},
        "Q2": {3000: bag(bcd)},
        "Q3": {4000: bag(bcde)},
        "Q4": {4000: bag(bcde)},
    }
    alone: dict[str, Answers] = {}
    for name, query in queries.items():
        alone |= answers_together({name: query}, streams=streams)
    assert together == alone
