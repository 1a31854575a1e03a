"""The operator-aware paper (2016): Figure 2 (single operators), Figures 3, 4 and 6 (a join of three
windows and its expiry), Figure 8 (join and aggregation), and the taxi query with the paper's ride.

The figures' drawings are not in the text; the tests hold every number that the text names, and say
which elements around them are ours.
"""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from .scenario import Answers, Streams, answers, bag, iri, solution

S1, S2, S3 = iri("S1"), iri("S2"), iri("S3")


def at_seconds(query: str, streams: dict[str, list[tuple[int, str]]], output: str | None = None) -> Answers:
    """The answers by second, for streams whose times are seconds."""
    scaled = {name: [(second * 1000, text) for second, text in stream] for name, stream in streams.items()}
    found = answers(query, streams=scaled, output=output)
    assert all(time % 1000 == 0 for time in found)
    return {time // 1000: bag for time, bag in found.items()}


def changes(query: str, streams: dict[str, list[tuple[int, str]]]) -> dict[int, dict[object, int]]:
    """What comes (+1) and goes (-1), by second."""
    return {second: dict(found) for second, found in at_seconds(query, streams, "changes").items()}


# ------------------------------------------------------------------ Figure 2: single operators


def test_figure_2a_selection() -> None:
    """Stateless: an element passes or it does not."""
    query = "SELECT ?v WHERE { STREAM :S1 [NOW] { ?x :value ?v } FILTER(?v > 5) }"
    stream = [(1, ":x :value 3"), (2, ":x :value 8"), (3, ":x :value 5"), (4, ":x :value 6")]
    assert at_seconds(query, {S1: stream}) == {2: bag(solution(v=8)), 4: bag(solution(v=6))}


def test_figure_2b_window_join() -> None:
    """An arrival on either side probes the other; what has expired is skipped."""
    query = """
        SELECT ?x ?y ?v WHERE {
          STREAM :S1 [RANGE 5s] { ?x :value ?v }
          STREAM :S2 [RANGE 5s] { ?y :value ?v }
        }"""
    streams = {
        S1: [(1, ":x1 :value :a"), (4, ":x2 :value :b")],
        S2: [(2, ":y1 :value :b"), (3, ":y2 :value :a"), (6, ":y3 :value :a")],
    }
    assert at_seconds(query, streams) == {
        3: bag(solution(x=":x1", y=":y2", v=":a")),
        4: bag(solution(x=":x2", y=":y1", v=":b")),
        # 6: x1 came at 1 and is gone from (1, 6]
    }


def test_figure_2c_duplicate_elimination() -> None:
    """A second b is dropped, and b stays in the answer until the last b has expired.

    Windows of 5 s: the b of second 1 expires at 6, unseen; the b of second 3 at 8.
    """
    query = "SELECT DISTINCT ?v WHERE { STREAM :S1 [RANGE 5s] { ?x :value ?v } }"
    stream = [(1, ":x1 :value :b"), (2, ":x2 :value :a"), (3, ":x3 :value :b"), (9, ":x4 :value :c")]
    a, b, c = (solution(v=value) for value in (":a", ":b", ":c"))
    assert changes(query, {S1: stream}) == {1: {b: 1}, 2: {a: 1}, 7: {a: -1}, 8: {b: -1}, 9: {c: 1}}


def test_figure_2c_without_duplicate_elimination() -> None:
    """The same without DISTINCT: two b, each with its own life."""
    query = "SELECT ?v WHERE { STREAM :S1 [RANGE 5s] { ?x :value ?v } }"
    stream = [(1, ":x1 :value :b"), (3, ":x3 :value :b"), (9, ":x4 :value :c")]
    b, c = solution(v=":b"), solution(v=":c")
    assert changes(query, {S1: stream}) == {1: {b: 1}, 3: {b: 1}, 6: {b: -1}, 8: {b: -1}, 9: {c: 1}}


def test_figure_2d_count_goes_up_and_down() -> None:
    """COUNT is raised by an arrival and lowered by an expiry."""
    query = "SELECT (COUNT(?x) AS ?n) WHERE { STREAM :S1 [RANGE 5s] { ?x :value ?v } }"
    stream = [(1, ":x1 :value 1"), (2, ":x2 :value 1"), (9, ":x3 :value 1")]
    found = at_seconds(query, {S1: stream})
    counts = {second: [dict(row)["n"] for row in bag] for second, bag in found.items()}
    # 6: the first leaves; 7: the second leaves, none are left; 9: the third comes.
    assert counts == {1: [1], 2: [2], 6: [1], 7: [0], 9: [1]}


def test_figure_2d_unchanged_aggregate_is_not_sent() -> None:
    """A new result is sent only if its value has changed: the third of a window of two changes nothing."""
    query = "SELECT (COUNT(?x) AS ?n) WHERE { STREAM :S1 [TRIPLES 2] { ?x :value ?v } }"
    stream = [(1, ":x1 :value 1"), (2, ":x2 :value 1"), (3, ":x3 :value 1")]
    assert at_seconds(query, {S1: stream}) == {1: bag(solution(n=1)), 2: bag(solution(n=2))}


def test_aggregation_max_falls_back_to_the_younger() -> None:
    """A value below a younger one never shows again (the 3); one below an older one does (the 5)."""
    query = "SELECT (MAX(?v) AS ?max) WHERE { STREAM :S1 [RANGE 5s] { ?x :value ?v } }"
    stream = [(1, ":x1 :value 3"), (2, ":x2 :value 7"), (4, ":x3 :value 5"), (8, ":x4 :value 1")]
    found = at_seconds(query, {S1: stream})
    assert {second: dict(next(iter(row)))["max"] for second, row in found.items()} == {1: 3, 2: 7, 7: 5}


NEGATIONS = pytest.mark.parametrize(
    "negation",
    ["MINUS { STREAM :S2 [RANGE 3s] { ?y :value ?v } }",
     "FILTER NOT EXISTS { STREAM :S2 [RANGE 3s] { ?y :value ?v } }"],
    ids=["minus", "not exists"],
)  # fmt: skip


@NEGATIONS
def test_figure_2e_negation(negation: str) -> None:
    """S1 - S2: d is taken back when d arrives on S2, and comes again when that one expires."""
    query = f"SELECT ?v WHERE {{ STREAM :S1 [RANGE 10s] {{ ?x :value ?v }} {negation} }}"
    streams = {
        S1: [(1, ":x1 :value :d"), (3, ":x2 :value :e"), (12, ":x3 :value :f")],
        S2: [(2, ":y1 :value :d")],
    }
    d, e, f = (solution(v=value) for value in (":d", ":e", ":f"))
    assert changes(query, streams) == {
        1: {d: 1},
        2: {d: -1},  # equation 7
        3: {e: 1},  # equation 6
        5: {d: 1},  # equation 9: the d on S2 has left (2, 5]
        11: {d: -1},  # the d on S1 itself expires
        12: {f: 1},
    }


@NEGATIONS
def test_negation_suppresses_an_arrival(negation: str) -> None:
    """Equation 6, the other case: what S2 already holds never appears, not even when S1 lets it go."""
    query = f"SELECT ?v WHERE {{ STREAM :S1 [RANGE 1s] {{ ?x :value ?v }} {negation} }}"
    streams = {S1: [(2, ":x1 :value :d"), (9, ":x2 :value :e")], S2: [(1, ":y1 :value :d")]}
    assert changes(query, streams) == {9: {solution(v=":e"): 1}}


# ------------------------------------------------ Figures 3, 4, 6: three windows and their expiry

# W1 counts two; W2 and W3 last five. <b1,c1> comes at 1, <c1,d1> at 3, <a3,b1> at 6, as the text
# says; that <a1,b1> comes at 2 is ours, and so are <a2,b2> and <b2,c2> at 4.
FIGURE_3 = {
    S1: [(2, ":a1 :ab :b1"), (4, ":a2 :ab :b2"), (6, ":a3 :ab :b1")],
    S2: [(1, ":b1 :bc :c1"), (4, ":b2 :bc :c2")],
    S3: [(3, ":c1 :cd :d1")],
}
A1, A3 = (solution(a=a, b=":b1", c=":c1", d=":d1") for a in (":a1", ":a3"))


def test_figure_3_expiry_is_that_of_the_oldest_part() -> None:
    """<b1,c1> expires at 1 + 5, <c1,d1> at 3 + 5, so <b1,c1,d1> at the earlier: 6."""
    query = """
        SELECT ?b ?c ?d WHERE {
          STREAM :S2 [RANGE 5s] { ?b :bc ?c }
          STREAM :S3 [RANGE 5s] { ?c :cd ?d }
        }"""
    whole = solution(b=":b1", c=":c1", d=":d1")
    assert changes(query, FIGURE_3) == {3: {whole: 1}, 6: {whole: -1}}


def three_windows(second: str) -> str:
    """((W1 join W2) join W3), with the length of W2."""
    return f"""
        SELECT ?a ?b ?c ?d WHERE {{
          STREAM :S1 [TRIPLES 2] {{ ?a :ab ?b }}
          STREAM :S2 [RANGE {second}] {{ ?b :bc ?c }}
          STREAM :S3 [RANGE 5s] {{ ?c :cd ?d }}
        }}"""


def test_figure_3_result_and_its_invalidation() -> None:
    """<a1,b1,c1,d1> is found when its last part comes and invalid at 6."""
    assert changes(three_windows("5s"), FIGURE_3) == {3: {A1: 1}, 6: {A1: -1}}


def test_figure_6_expiry_from_the_count_window() -> None:
    """With a longer W2 only <a3,b1> pushes <a1,b1> out, and takes its place in the same tick."""
    assert changes(three_windows("10s"), FIGURE_3) == {3: {A1: 1}, 6: {A1: -1, A3: 1}}


# ----------------------------------------------------------- Figure 8: join and aggregation


def figure_8(second_trip: int, last_payment: str) -> Streams:
    """Rides and payments of the figure that the text names; a payment comes with the drop-off.

    The text prints the last payment as 124 and as 125, and the second ride's trip time as 4 (in
    the window) and as 3 (in the join); the named answers are the same for each reading.
    """
    pickups = [(1, ":ride1", ":t201"), (3, ":ride2", ":t202"), (9, ":ride3", ":t202")]
    payments = [(5, ":121", 20, 1), (7, ":122", 12, 3), (13, last_payment, 32, 9)]
    drops = [(5, ":ride1", 4), (7, ":ride2", second_trip), (13, ":ride3", 4)]
    return {
        iri("fare"): [(t * 1000, f"{p} :fare {fare} ; :pickupTime {at}") for t, p, fare, at in payments],
        iri("pickup"): [(t * 1000, f"{ride} :taxi {taxi} ; :pickupTime {t}") for t, ride, taxi in pickups],
        iri("dropoff"): [(t * 1000, f"{ride} :tripTime {trip}") for t, ride, trip in drops],
    }


FIGURE_8_WINDOWS = """
    FROM NAMED WINDOW :W1 ON :fare [ELEMENTS 1000 STEP 1]
    FROM NAMED WINDOW :W2 ON :pickup [RANGE PT12S]
    FROM NAMED WINDOW :W3 ON :dropoff [RANGE PT6S]"""
FIGURE_8_WHERE = """
    WHERE {
      WINDOW :W1 { ?trans :fare ?fare. ?trans :pickupTime ?pTime }
      WINDOW :W2 { ?ride :taxi ?taxi. ?ride :pickupTime ?pTime }
      WINDOW :W3 { ?ride :tripTime ?tripTime }
    }"""
FIGURE_8_READINGS = pytest.mark.parametrize(
    "second_trip, last_payment", [(4, ":124"), (4, ":125"), (3, ":124"), (3, ":125")]
)


@FIGURE_8_READINGS
def test_figure_8_join(second_trip: int, last_payment: str) -> None:
    """<121,20,1,201,4> is made at 5 and invalid at 11, with the <1,4> of W3; 13 makes and ends one."""
    query = f"""
        REGISTER ISTREAM :out AS SELECT ?trans ?fare ?pTime ?taxi ?tripTime
        {FIGURE_8_WINDOWS} {FIGURE_8_WHERE}"""
    found = answers(query, streams=figure_8(second_trip, last_payment), output="changes")
    first = solution(trans=":121", fare=20, pTime=1, taxi=":t201", tripTime=4)
    second = solution(trans=":122", fare=12, pTime=3, taxi=":t202", tripTime=second_trip)
    third = solution(trans=last_payment, fare=32, pTime=9, taxi=":t202", tripTime=4)
    assert {time: dict(bag) for time, bag in found.items()} == {
        5000: {first: 1},
        7000: {second: 1},
        11000: {first: -1},
        13000: {second: -1, third: 1},
    }


@FIGURE_8_READINGS
def test_figure_8_aggregation(second_trip: int, last_payment: str) -> None:
    """One value per taxi and tick: at 13 the old ride leaves, the new one enters, and <202,8> is all."""
    query = f"""
        REGISTER ISTREAM :out AS SELECT ?taxi (AVG(?fare/?tripTime) AS ?rate)
        {FIGURE_8_WINDOWS} {FIGURE_8_WHERE}
        GROUP BY ?taxi"""
    found = answers(query, streams=figure_8(second_trip, last_payment), output="changes")
    taxi_201 = solution(taxi=":t201", rate=5)  # 20 / 4
    taxi_202 = solution(taxi=":t202", rate=12 // second_trip)
    assert {time: dict(bag) for time, bag in found.items()} == {
        5000: {taxi_201: 1},
        7000: {taxi_202: 1},
        11000: {taxi_201: -1},
        13000: {taxi_202: -1, solution(taxi=":t202", rate=8): 1},  # 32 / 4
    }


# ------------------------------------------------------------------------------ the taxi query

TAXI_QUERY = """
    PREFIX nyctaxi: <http://example.org/nyctaxi/>
    SELECT ?taxi (%(average)s(?fare/(?tripTime/3600)) AS ?hourlyRate)
    FROM NAMED WINDOW :W1 ON nyctaxi:fare [%(last_1000)s]
    FROM NAMED WINDOW :W2 ON nyctaxi:pickup
    [RANGE PT2H @:pickupTime]
    FROM NAMED WINDOW :W3 ON nyctaxi:dropoff
    [RANGE PT1H @:dropoffTime]
    WHERE {
      WINDOW :W1{ ?trans :fare ?fare. ?trans :pickupTime ?pTime}
      WINDOW :W2{ ?ride :taxi ?taxi. ?ride :pickupTime ?pTime}
      WINDOW :W3{ ?ride :tripTime ?tripTime}
    }
    GROUP BY ?taxi
"""
AS_PRINTED = {"average": "AVERAGE", "last_1000": "COUNT 1000"}
IN_OUR_WORDS = {"average": "AVG", "last_1000": "ELEMENTS 1000 STEP 1"}


def ms(text: str) -> int:
    """Milliseconds of a time of day on the first of January 2013, UTC."""
    return int(datetime.fromisoformat("2013-01-01T" + text).replace(tzinfo=timezone.utc).timestamp()) * 1000


def rides(*known: tuple[int, str, str, str, int, str]) -> Streams:
    """Pick-up, drop-off and payment events of rides (number, taxi, from, to, seconds, fare).

    The payment comes with the drop-off and names its ride by the pick-up time.
    """
    streams: dict[str, list[tuple[int, str]]] = {"pickup": [], "dropoff": [], "fare": []}
    for number, taxi, start, end, seconds, fare in known:
        started, ended = (f'"2013-01-01T{time}Z"^^xsd:dateTime' for time in (start, end))
        streams["pickup"].append((ms(start), f":ride{number} :taxi {taxi} ; :pickupTime {started}"))
        streams["dropoff"].append((ms(end), f":ride{number} :dropoffTime {ended} ; :tripTime {seconds}"))
        streams["fare"].append((ms(end), f":trans{number} :fare {fare} ; :pickupTime {started}"))
    return {iri("nyctaxi/" + name): sorted(stream) for name, stream in streams.items()}


def rates(found: Answers) -> dict[int, dict[str, float]]:
    """By instant: taxi -> hourly rate."""
    return {
        time: {str(dict(row)["taxi"]): float(dict(row)["hourlyRate"]) for row in bag}
        for time, bag in found.items()
    }


SPELLINGS = pytest.mark.parametrize("words", [AS_PRINTED, IN_OUR_WORDS], ids=["as printed", "in our words"])


@SPELLINGS
def test_taxi_query_on_the_papers_ride(words: dict[str, str]) -> None:
    """A fare of 7 for 382 s: 7 / (382/3600) an hour, known when the ride ends at 15:18:10."""
    streams = rides((1, ":89CF4", "15:11:48", "15:18:10", 382, "7"))
    found = rates(answers(TAXI_QUERY % words, streams=streams))
    assert found == {ms("15:18:10"): {":89CF4": pytest.approx(7 / (382 / 3600))}}


def test_taxi_query_over_a_day() -> None:
    """The average over a taxi's rides in the windows; a ride leaves an hour after its drop-off.

    Ours: taxi A earns 60 an hour on ride 1 and 30 on ride 2, taxi B 20 on ride 3.
        08:10  ride 1 ends                                   A 60
        08:40  ride 2 ends                                   A 45 = (60 + 30) / 2
        09:10  ride 1 is an hour old and leaves              A 30
        09:30  ride 3 ends                                   B 20 (and A 30)
        09:40  ride 2 leaves                                 B 20
        10:00  ride 4 begins: it has no drop-off and no payment, so nothing changes for anybody
    """
    streams = dict(
        rides(
            (1, ":A", "08:00:00", "08:10:00", 600, "10"),
            (2, ":A", "08:20:00", "08:40:00", 1200, "10"),
            (3, ":B", "09:00:00", "09:30:00", 1800, "10"),
        )
    )
    pickup = iri("nyctaxi/pickup")
    last = (ms("10:00:00"), ':ride4 :taxi :C ; :pickupTime "2013-01-01T10:00:00Z"^^xsd:dateTime')
    streams[pickup] = [*streams[pickup], last]
    found = answers(TAXI_QUERY % IN_OUR_WORDS, streams=streams, output="istream")
    assert rates(found) == {
        ms("08:10:00"): {":A": pytest.approx(60)},
        ms("08:40:00"): {":A": pytest.approx(45)},
        ms("09:10:00"): {":A": pytest.approx(30)},
        ms("09:30:00"): {":B": pytest.approx(20)},
    }
