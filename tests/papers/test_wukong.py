"""Wukong+S (2017): the social network of Figure 1, the two queries of Figure 2, the lookups of
Figures 6 and 8, the snapshots of Figure 11.

The paper's clock reads 0802, 0806, …; its windows are in seconds, so 0802 is second 802 here.

What the text says of X-Lab: Logan and Erik follow each other; Logan posted T-13 and T-14, and T-12
is the only other tweet; Logan's tweets liked by Erik with the hashtag #sosp17 are T-13 alone. That
T-12 is Erik's follows; that T-14 has no hashtag is our choice (see docs/papers.md).
"""

from __future__ import annotations

from collections import Counter

import pytest

from kelda.errors import QueryError

from .absorbing import Absorbing, ByDefinition, on_every_side
from .scenario import Answers, answers, bag, iri, solution

X_LAB = """
    :Logan :ty :X-Men ; :fo :Erik ; :po :T-13, :T-14 .
    :Erik :ty :X-Men ; :fo :Logan ; :po :T-12 ; :li :T-13 .
    :T-12 :ht :sosp17 . :T-13 :ht :sosp17 ."""
TWEETS = [
    (802, ":Logan :po :T-15 . :T-15 :ga '[31,121]' ; :ht :sosp17"),
    (805, ":Erik :po :T-16 . :T-16 :ga '[41,-74]'"),
    (808, ":Logan :po :T-17 . :T-17 :ga '[31,121]'"),
]
LIKES = [
    (801, ":Logan :li :T-12"),
    (801, ":Erik :li :T-14"),
    (806, ":Erik :li :T-15"),
    (806, ":Tony :li :T-15"),
    (806, ":Bruce :li :T-15"),
    (810, ":Clint :li :T-15"),
    (810, ":Steve :li :T-15"),
    (810, ":Erik :li :T-17"),
    (812, ":Logan :li :T-16"),
    (812, ":Thor :li :T-15"),
]

QS = "SELECT ?X FROM :X-Lab WHERE { :Logan :po ?X . ?X :ht :sosp17 . :Erik :li ?X }"
QC = """
REGISTER QUERY QC AS
SELECT ?X ?Y ?Z
FROM :Tweet_Stream [RANGE 10s STEP 1s]
FROM :Like_Stream  [RANGE 5s STEP 1s]
FROM :X-Lab
WHERE {
GRAPH :Tweet_Stream  { ?X :po ?Z }
GRAPH :X-Lab         { ?X :fo ?Y }
GRAPH :Like_Stream   { ?Y :li ?Z }
}
"""
FIGURE_8 = """
REGISTER QUERY likers AS
SELECT ?X FROM :Like_Stream [RANGE 5s STEP 1s]
WHERE { GRAPH :Like_Stream { ?X :li :T-15 } }
"""
Rows = Counter[frozenset[tuple[str, object]]]

# Figure 2 with nothing changed but what must be: a base for its bare names.
QC_AS_PRINTED = """
BASE <http://example.org/>
REGISTER QUERY QC
SELECT ?X ?Y ?Z
FROM Tweet_Stream [RANGE 10s STEP 1s]
FROM Like_Stream  [RANGE 5s STEP 1s]
FROM X-Lab
WHERE {
GRAPH Tweet_Stream  { ?X po ?Z }
GRAPH X-Lab         { ?X fo ?Y }
GRAPH Like_Stream   { ?Y li ?Z }
}
"""


def at_seconds(query: str) -> Answers:
    """The answers over the network, by second."""
    found = answers(
        query,
        streams={
            iri("Tweet_Stream"): [(second * 1000, text) for second, text in TWEETS],
            iri("Like_Stream"): [(second * 1000, text) for second, text in LIKES],
        },
        graphs={iri("X-Lab"): X_LAB},
    )
    assert all(time % 1000 == 0 for time in found)
    return {time // 1000: bag for time, bag in found.items()}


def network(side: Absorbing) -> Absorbing:
    """Figure 1: X-Lab is stored and absorbs both streams. Locations stay outside: they matter only for a
    while (the paper's timing data)."""
    side.load(X_LAB, iri("X-Lab"))
    side.stream(iri("Tweet_Stream"), iri("X-Lab"), [iri("po"), iri("ht")])
    side.stream(iri("Like_Stream"), iri("X-Lab"), [iri("li")])
    return side


def bring(side: Absorbing, until: int, since: int = 0) -> None:
    """The streams from a second on up to another, that included."""
    for stream, elements in (("Tweet_Stream", TWEETS), ("Like_Stream", LIKES)):
        some = [(second * 1000, text) for second, text in elements if since < second <= until]
        side.push(iri(stream), some)
        side.beat(iri(stream), until * 1000)


def once(query: str, *, absorbed_until: int = 0) -> Rows:
    """A one-shot query over X-Lab and what it has absorbed of the streams up to a second."""
    side = network(ByDefinition())
    bring(side, absorbed_until)
    return side.ask(query)


def xs(*names: str) -> Rows:
    """Solutions with ?X alone."""
    return bag(*(solution(X=name) for name in names))


T_15 = solution(X=":Logan", Y=":Erik", Z=":T-15")
T_16 = solution(X=":Erik", Y=":Logan", Z=":T-16")
T_17 = solution(X=":Logan", Y=":Erik", Z=":T-17")


# ------------------------------------------------------------------------------ one-shot


def test_qs_on_the_stored_data() -> None:
    """The current result is T-13 alone."""
    assert once(QS) == xs(":T-13")


def test_qs_as_printed_is_refused() -> None:
    """Bare names, no dots, and a hashtag that begins a comment: an error, not a wrong answer."""
    printed = """
        SELECT ?X
        FROM X-Lab
        WHERE {
          Logan po ?X
          ?X    ht #sosp17
          Erik  li ?X
        }"""
    with pytest.raises(QueryError, match="X-Lab"):
        once(printed)


@pytest.mark.parametrize("second, expected", [(802, [":T-13"]), (806, [":T-13", ":T-15"])])
def test_qs_grows_with_the_absorbed_streams(second: int, expected: list[str]) -> None:
    """T-15 is posted with the hashtag at 0802 and counts from 0806 on, when Erik likes it."""
    assert once(QS, absorbed_until=second) == xs(*expected)


def test_figure_6_posts_before_and_after_t_15() -> None:
    """Logan's posts and all posts, before and after <Logan, po, T-15>; T-15 is Logan's."""
    logans, everybodys = (f"SELECT ?X FROM :X-Lab {{ {who} :po ?X }}" for who in (":Logan", "?who"))
    assert once(logans) == xs(":T-13", ":T-14")
    assert once(logans, absorbed_until=802) == xs(":T-13", ":T-14", ":T-15")
    assert once(everybodys) == xs(":T-12", ":T-13", ":T-14")
    assert once(everybodys, absorbed_until=802) == xs(":T-12", ":T-13", ":T-14", ":T-15")
    assert once("SELECT ?X FROM :X-Lab { ?X :po :T-15 }", absorbed_until=802) == xs(":Logan")


# ------------------------------------------------------------------------------ stored data that grows


@on_every_side
def test_t_15_is_stored_after_0802(side: Absorbing) -> None:
    """And QS gives it when Erik likes it: the same query on the same engine, at three times."""
    network(side)
    posts = "SELECT ?X FROM :X-Lab { :Logan :po ?X }"
    bring(side, 801)
    assert side.ask(posts) == xs(":T-13", ":T-14")
    bring(side, 802, since=801)
    assert side.ask(posts) == xs(":T-13", ":T-14", ":T-15")
    assert side.ask(QS) == xs(":T-13")
    bring(side, 806, since=802)
    assert side.ask(QS) == xs(":T-13", ":T-15")
    assert side.ask("SELECT ?X FROM :X-Lab { ?X :ga ?place }") == xs(), "locations are not absorbed"


@on_every_side
def test_figure_6_each_lookup_sees_the_injected_triple(side: Absorbing) -> None:
    """[1|4|1]: Logan's posts; [7|4|0]: who posted T-15; [0|4|0]: all that was posted."""
    network(side)
    lookups = {
        "SELECT ?X FROM :X-Lab { :Logan :po ?X }": ([":T-13", ":T-14"], [":T-15"]),
        "SELECT ?X FROM :X-Lab { ?X :po :T-15 }": ([], [":Logan"]),
        "SELECT ?X FROM :X-Lab { ?who :po ?X }": ([":T-12", ":T-13", ":T-14"], [":T-15"]),
    }
    for query, (before, _) in lookups.items():
        assert side.ask(query) == xs(*before)
    bring(side, 802)
    for query, (before, more) in lookups.items():
        assert side.ask(query) == xs(*before, *more)


@on_every_side
def test_figure_8_windows_go_by_time_and_the_store_keeps_all(side: Absorbing) -> None:
    """From 0807 to 0811 Clint and Steve like T-15; stored at 0811 are also Erik, Tony and Bruce."""
    network(side)
    side.register("likers", FIGURE_8)
    bring(side, 811)
    assert side.answers("likers")[811_000] == xs(":Clint", ":Steve")
    stored = "SELECT ?X FROM :X-Lab { ?X :li :T-15 }"
    assert side.ask(stored) == xs(":Erik", ":Tony", ":Bruce", ":Clint", ":Steve")


@on_every_side
def test_figure_2_both_queries_while_the_store_grows(side: Absorbing) -> None:
    """QC at 0810 includes "Logan Erik T-15"; QS, live beside it, tells T-13 at once and T-15 at 0806."""
    network(side)
    side.register("QC", QC)
    side.register("QS", QS)
    bring(side, 812)
    assert side.answers("QC")[810_000] == bag(T_15, T_17)
    assert {time: rows for time, rows in side.answers("QC").items() if T_15 in rows} == {
        second * 1000: bag(T_15, *([T_17] if second == 810 else [])) for second in range(806, 811)
    }
    assert side.answers("QS") == {801_000: xs(":T-13"), 806_000: xs(":T-15")}


@on_every_side
def test_figure_11_snapshots_2_and_3(side: Absorbing) -> None:
    """SN=2:[S0=3,S1=9] is stable while snapshot 3 is inserted, and is as it was when SN=3:[S0=5,S1=12] is.

    A batch of the paper is an element here. Both streams have said all that belongs to snapshot 2 by second
    9, and to snapshot 3 by second 12: the plan from SN to VTS is a plan of instants.

        second     1 … 3     4 … 9      10      11      12
        S0         1 2 3                 4       5
        S1         1 2 3     4 … 9      10      11      12
    """
    s0, s1 = iri("S0"), iri("S1")
    stored = "SELECT ?X FROM :stored { ?X :of ?stream }"

    def batches(stream: str, numbers: range, second: int) -> list[tuple[int, str]]:
        name = stream.removeprefix(iri(""))
        return [((second + i) * 1000, f":{name}-{n} :of :{name}") for i, n in enumerate(numbers)]

    def names(until_s0: int, until_s1: int) -> Rows:
        return xs(*(f":S0-{n + 1}" for n in range(until_s0)), *(f":S1-{n + 1}" for n in range(until_s1)))

    for stream in (s0, s1):
        side.stream(stream, iri("stored"), None)
    side.push(s0, batches(s0, range(1, 4), 1))
    side.push(s1, batches(s1, range(1, 10), 1))
    for stream in (s0, s1):
        side.beat(stream, 9_000)
    second = side.snapshot()
    assert side.ask(stored) == names(3, 9)

    side.push(s0, batches(s0, range(4, 5), 10))
    side.push(s1, batches(s1, range(10, 13), 10))
    assert side.ask(stored) == names(3, 9), "batch 5 of S0 is missing: nothing of snapshot 3 is seen"

    side.push(s0, batches(s0, range(5, 6), 11))
    for stream in (s0, s1):
        side.beat(stream, 12_000)
    third = side.snapshot()
    assert side.ask(stored) == side.ask(stored, at=third) == names(5, 12)
    assert side.ask(stored, at=second) == names(3, 9)
    assert side.offsets(second) == {s0: 3, s1: 9}
    assert side.offsets(third) == {s0: 5, s1: 12}


# ------------------------------------------------------------------------------ continuous


def test_qc_first_execution() -> None:
    """The result at 0810 includes "Logan Erik T-15"; the data say T-17 too, liked that very second."""
    assert at_seconds(QC)[810] == bag(T_15, T_17)


def test_qc_every_second() -> None:
    """Each pair lives while both of its elements are in their windows.

    T-15: posted 802, in [802, 811]; liked 806, in [806, 810]: 806 to 810.
    T-17: posted 808, liked 810, in [810, 814]: 810 to the end.
    T-16: posted 805, in [805, 814]; liked 812: 812.
    T-12 and T-14, liked at 801, were posted before the stream began; Tony, Bruce, Clint, Steve and
    Thor like T-15, but Logan does not follow them.
    """
    assert at_seconds(QC) == {
        806: bag(T_15),
        807: bag(T_15),
        808: bag(T_15),
        809: bag(T_15),
        810: bag(T_15, T_17),
        811: bag(T_17),
        812: bag(T_16, T_17),
    }


def test_qc_as_printed() -> None:
    """Bare names for streams, graphs and predicates, and no AS."""
    assert at_seconds(QC_AS_PRINTED) == at_seconds(QC)


def test_qc_in_rsp_ql() -> None:
    """The same question in RSP-QL has the same answers."""
    query = """
        REGISTER RSTREAM :QC AS
        SELECT ?X ?Y ?Z
        FROM NAMED WINDOW :tweets ON :Tweet_Stream [RANGE PT10S STEP PT1S]
        FROM NAMED WINDOW :likes ON :Like_Stream [RANGE PT5S STEP PT1S]
        WHERE {
          WINDOW :tweets { ?X :po ?Z }
          GRAPH :X-Lab { ?X :fo ?Y }
          WINDOW :likes { ?Y :li ?Z }
        }"""
    assert at_seconds(query) == at_seconds(QC)


def test_figure_8_who_likes_t_15() -> None:
    """From 0807 to 0811, five seconds, Clint and Steve like T-15: Erik's 0806 is outside."""
    assert at_seconds(FIGURE_8)[811] == xs(":Clint", ":Steve")


def test_timing_data() -> None:
    """Where tweets came from in the last five seconds: locations are read from the window alone."""
    query = """
        REGISTER QUERY places AS
        SELECT ?X ?place FROM :Tweet_Stream [RANGE 5s STEP 5s]
        WHERE { GRAPH :Tweet_Stream { ?X :ga ?place } }"""
    t_15 = solution(X=":T-15", place="[31,121]")
    t_16 = solution(X=":T-16", place="[41,-74]")
    t_17 = solution(X=":T-17", place="[31,121]")
    assert at_seconds(query) == {805: bag(t_15, t_16), 810: bag(t_17)}
