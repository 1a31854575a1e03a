"""CQELS (2011), section 4.1: the five queries of the conference scenario, on a conference of our own.

The hall is connected with room A, room A with room B; both ways. Ana, Ben and Cleo have written
papers together; Eva edited the proceedings of one of them; Dan is alone.

    paper1  Ana, Ben         in proceedings1, edited by Eva
    paper2  Ana, Cleo        in proceedings2, edited by Ben
    paper3  Dan

Sightings on the RFID stream, in seconds:

     0 Ben in hall      1 Ana in A      2 Eva in B      4 Cleo in A
     6 Ana in hall      9 Dan in hall  12 Ana in A     17 Ben in A
"""

from __future__ import annotations

import pytest

from .scenario import Answers, answers, bag, solution

RFID = "http://deri.org/streams/rfid"
FLOORPLAN = "http://deri.org/floorplan/"
GRAPHS = {
    FLOORPLAN: """
        :hall lv:name "Hall" ; lv:desc "where the coffee is" ; lv:connected :A .
        :A lv:name "Room A" ; lv:desc "plenary" ; lv:connected :hall, :B .
        :B lv:name "Room B" ; lv:desc "workshops" ; lv:connected :A .""",
    None: """
        :ana foaf:name "Ana" . :ben foaf:name "Ben" . :cleo foaf:name "Cleo" .
        :dan foaf:name "Dan" . :eva foaf:name "Eva" .
        :paper1 dc:creator :ana, :ben ; dcterms:partOf :proceedings1 .
        :paper2 dc:creator :ana, :cleo ; dcterms:partOf :proceedings2 .
        :paper3 dc:creator :dan .
        :proceedings1 swrc:editor :eva . :proceedings2 swrc:editor :ben .""",
}
SIGHTINGS = [
    (0, ":ben lv:detectedAt :hall"),
    (1, ":ana lv:detectedAt :A"),
    (2, ":eva lv:detectedAt :B"),
    (4, ":cleo lv:detectedAt :A"),
    (6, ":ana lv:detectedAt :hall"),
    (9, ":dan lv:detectedAt :hall"),
    (12, ":ana lv:detectedAt :A"),
    (17, ":ben lv:detectedAt :A"),
]

Q1 = """
SELECT ?locName ?locDesc
FROM NAMED <http://deri.org/floorplan/>
WHERE {
STREAM<http://deri.org/streams/rfid> [NOW] {?person lv:detectedAt ?loc}
GRAPH <http://deri.org/floorplan/>{?loc lv:name ?locName. ?loc lv:desc ?locDesc}
?person foaf:name $Name. }
"""
Q2 = """
CONSTRUCT {?person1 lv:reachable ?person2}
FROM NAMED <http://deri.org/floorplan/>
WHERE {
STREAM<http://deri.org/streams/rfid>[NOW] {?person1 lv:detectedAt ?loc1}
STREAM<http://deri.org/streams/rfid>[RANGE 3s]{?person2 lv:detectedAt ?loc2}
GRAPH <http://deri.org/floorplan/> {?loc1 lv:connected ?loc2} }
"""
# The paper selects ?coAuthName and binds ?coAuthorName: one name here.
Q3 = """
SELECT ?coAuthName
FROM NAMED <http://deri.org/floorplan/>
WHERE {
STREAM <http://deri.org/streams/rfid> [TRIPLES 1] {?auth lv:detectedAt ?loc}
STREAM <http://deri.org/streams/rfid> [RANGE 5s] {?coAuth lv:detectedAt ?loc}
{ ?paper dc:creator ?auth. ?paper dc:creator ?coAuth.
?auth foaf:name $Name. ?coAuth foaf:name ?coAuthName}
FILTER (?auth != ?coAuth) }
"""
Q4 = """
SELECT ?editorName
WHERE {
STREAM <http://deri.org/streams/rfid> [TRIPLES 1] {?auth lv:detectedAt ?loc1}
STREAM <http://deri.org/streams/rfid> [RANGE 15s] {?editor lv:detectedAt ?loc2}
GRAPH <http://deri.org/floorplan/> {?loc1 lv:connected ?loc2}
?paper dc:creator ?auth. ?paper dcterms:partOf ?proceeding.
?proceeding swrc:editor ?editor. ?editor foaf:name ?editorName.
?auth foaf:name $Name }
"""
# The paper has lost a question mark (`loc2 lv:connected`); the missing spaces and parentheses are its own.
Q5 = """
SELECT ?loc2 ?locName count(distinct ?coAuth) as ?noCoAuths
FROM NAMED <http://deri.org/floorplan/>
WHERE {
STREAM<http://deri.org/streams/rfid>[TRIPLES 1]{?auth lv:detectedAt ?loc1}
STREAM<http://deri.org/streams/rfid>[RANGE 30s]{?coAuth lv:detectedAt ?loc2}
GRAPH <http://deri.org/floorplan/>{?loc2 lv:name?locName.?loc2 lv:connected?loc1}
{?paper dc:creator ?auth. ?paper dc:creator ?coAuth. ?auth foaf:name $Name}
FILTER (?auth != ?coAuth)}
GROUP BY ?loc2 ?locName
"""


def at_seconds(query: str, name: str | None = None, output: str | None = None) -> Answers:
    """The answers over the conference, by second, with `$Name` given."""
    found = answers(
        query,
        streams={RFID: [(second * 1000, triple) for second, triple in SIGHTINGS]},
        graphs=GRAPHS,
        params={"Name": f'"{name}"'} if name else None,
        output=output,
    )
    assert all(time % 1000 == 0 for time in found)
    return {time // 1000: bag for time, bag in found.items()}


def test_q1_where_am_i() -> None:
    """Every sighting of Ana, with the room's name and description."""
    room_a = solution(locName="Room A", locDesc="plenary")
    hall = solution(locName="Hall", locDesc="where the coffee is")
    assert at_seconds(Q1, "Ana") == {1: bag(room_a), 6: bag(hall), 12: bag(room_a)}
    assert at_seconds(Q1, "Dan") == {9: bag(hall)}


def test_q2_who_is_next_door() -> None:
    """Who is seen now, with whoever was seen in a connected room in the last three seconds.

    1 Ana in A:     (-2,1] Ben in hall: connected.
    2 Eva in B:     (-1,2] Ben in hall: no; Ana in A: connected.
    4 Cleo in A:    (1,4] Eva in B: connected. Ana's second 1 is just outside.
    6 Ana in hall:  (3,6] Cleo in A: connected.
    9 Dan in hall:  (6,9] nobody else. 12, 17: nobody else.
    """
    reachable = "<http://deri.org/floorplan/vocab#reachable>"
    assert at_seconds(Q2) == {
        1: bag((":ana", reachable, ":ben")),
        2: bag((":eva", reachable, ":ana")),
        4: bag((":cleo", reachable, ":eva")),
        6: bag((":ana", reachable, ":cleo")),
    }


def test_q3_co_authors_here() -> None:
    """Ana's co-authors in the room where Ana is the last one to be seen, five seconds back.

     1 Ana in A: (-4,1] nobody else in A.   6 Ana in hall: (1,6] nobody in hall.
    12 Ana in A: (7,12] nobody in A.        For Ana: never.
     4 Cleo in A: (-1,4] Ana in A, paper2.  For Cleo: Ana.
    17 Ben in A: (12,17] Ana's second 12 is just outside. For Ben: never.
    """
    assert at_seconds(Q3, "Ana") == {}
    assert at_seconds(Q3, "Cleo") == {4: bag(solution(coAuthName="Ana"))}
    assert at_seconds(Q3, "Ben") == {}


def test_q3_last_triple_outlives_its_instant() -> None:
    """[TRIPLES 1] holds the last sighting until the next one; NOW would hold it for an instant.

    Cleo is the last one seen from second 4 up to 6, and Ana, seen at 1, leaves the window at 6,
    when Ana is also the last one seen: what came at 4 goes at 6.
    """
    ana = solution(coAuthName="Ana")
    changes = at_seconds(Q3, "Cleo", output="changes")
    assert {second: dict(found) for second, found in changes.items()} == {4: {ana: 1}, 6: {ana: -1}}


def test_q3_as_printed_has_nothing_to_show() -> None:
    """The paper selects a variable that its pattern does not bind: the row is there, without a value."""
    printed = Q3.replace("?coAuth foaf:name ?coAuthName", "?coAuth foaf:name ?coAuthorName")
    assert printed != Q3
    assert at_seconds(printed, "Cleo") == {4: bag(solution())}


def test_q4_editors_next_door() -> None:
    """The editors of a paper of the author seen last, fifteen seconds back, in a connected room.

    Ana: paper1 is edited by Eva, paper2 by Ben.
     1 Ana in A (hall, B):    (-14,1] Ben in hall: Ben.
     6 Ana in hall (A):       (-9,6] Eva was in B, Ben in hall: none.
    12 Ana in A (hall, B):    (-3,12] Ben in hall at 0, Eva in B at 2: both.
    Then Ana stays the last one seen until 17, and at 15 Ben's second 0 leaves the window.

    Ben: paper1 is edited by Eva.
     0 Ben in hall (A): nobody.   17 Ben in A (hall, B): (2,17] Eva's second 2 is just outside.
    """
    ben, eva = solution(editorName="Ben"), solution(editorName="Eva")
    assert at_seconds(Q4, "Ana") == {1: bag(ben), 12: bag(ben, eva)}
    assert at_seconds(Q4, "Ben") == {}
    gone = at_seconds(Q4, "Ana", output="dstream")
    assert {second: dict(found) for second, found in gone.items()} == {
        2: {ben: -1},  # Eva is the last one seen
        15: {ben: -1},
        17: {eva: -1},
    }


def test_q5_co_authors_next_door_counted() -> None:
    """Different co-authors per connected room, thirty seconds back: nothing expires in this example.

    Ana, co-authors Ben and Cleo:
     1 Ana in A (hall, B): Ben in hall.                             Hall 1
     6 Ana in hall (A): Cleo in A.                                  Room A 1
    12 Ana in A (hall, B): Ben in hall; nobody of them in B.        Hall 1
    Ben, co-author Ana:
     0 Ben in hall (A): nobody.
    17 Ben in A (hall, B): Ana in hall at 6.                        Hall 1
    Cleo, co-author Ana:
     4 Cleo in A (hall, B): Ana was in A only.                      nothing
    """
    hall = solution(loc2=":hall", locName="Hall", noCoAuths=1)
    room_a = solution(loc2=":A", locName="Room A", noCoAuths=1)
    assert at_seconds(Q5, "Ana") == {1: bag(hall), 6: bag(room_a), 12: bag(hall)}
    assert at_seconds(Q5, "Ben") == {17: bag(hall)}
    assert at_seconds(Q5, "Cleo") == {}


def test_q5_counts_people_not_sightings() -> None:
    """Two co-authors in one room, one of them seen twice: two, thanks to `distinct`."""
    found = answers(
        Q5,
        streams={
            RFID: [
                (0, ":ben lv:detectedAt :hall"),
                (1000, ":cleo lv:detectedAt :hall"),
                (2000, ":ben lv:detectedAt :hall"),
                (3000, ":ana lv:detectedAt :A"),
            ]
        },
        graphs=GRAPHS,
        params={"Name": '"Ana"'},
    )
    assert found == {3000: bag(solution(loc2=":hall", locName="Hall", noCoAuths=2))}


@pytest.mark.parametrize("query", [Q1, Q3, Q4, Q5], ids=["Q1", "Q3", "Q4", "Q5"])
def test_a_name_nobody_has(query: str) -> None:
    """Prepared with an unknown name, a query is silent."""
    assert at_seconds(query, "Nobody") == {}
