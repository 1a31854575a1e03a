"""What a query must answer, as data: the one suite that every runner passes.

An expected answer is a line `time sign bindings`, IRIs by their last part, sorted by line within a
time. The answers are worked out from docs/semantics.md and the drawings in worlds.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from kelda.io.job import QuerySpec


@dataclass(frozen=True)
class Case:
    name: str
    world: str
    text: str
    expected: str
    output: str | None = None
    params: tuple[tuple[str, str], ...] = ()

    @property
    def spec(self) -> QuerySpec:
        return QuerySpec(self.name, self.text, params=dict(self.params), output=self.output)


PREFIX = "PREFIX : <http://ex/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "

_CASES: list[Case] = []


def case(name: str, world: str, text: str, expected: str, **more: object) -> None:
    _CASES.append(Case(name, world, PREFIX + text, expected, **more))  # type: ignore[arg-type]


# ------------------------------------------------------------------ CQELS-QL: windows

case(
    "cqels_now",
    "building",
    "SELECT ?who WHERE { STREAM :seen [NOW] { ?who :in ?room } }",
    """
    1000 + who=ann
    1500 + who=bob
    2000 + who=ann
    3000 + who=bob
    3000 + who=cyn
    7000 + who=ann
    9000 + who=dan
    """,
)
case(
    # ann@1 and ann@2 are two elements: the second is new although the triple is the same.
    "cqels_range_is_a_bag",
    "building",
    "SELECT ?who WHERE { STREAM :seen [RANGE 3s] { ?who :in :lab } }",
    """
    1000 + who=ann
    1500 + who=bob
    2000 + who=ann
    9000 + who=dan
    """,
)
case(
    # (t-3, t]: elements leave at 4, 4.5, 5 and (hall) 6, 10.
    "cqels_range_deletions",
    "building",
    "SELECT ?who WHERE { STREAM :seen [RANGE 3s] { ?who :in :lab } }",
    """
    4000 - who=ann
    4500 - who=bob
    5000 - who=ann
    """,
    output="dstream",
)
case(
    "cqels_range_changes",
    "building",
    "SELECT ?who WHERE { STREAM :seen [RANGE 2s] { ?who :in :hall } }",
    """
    3000 + who=bob
    3000 + who=cyn
    5000 - who=bob
    5000 - who=cyn
    7000 + who=ann
    9000 - who=ann
    """,
    output="changes",
)
case(
    # boundaries at 2, 4, 6, 8: ann, bob, ann are seen at 2; cyn, bob at 4; ann at 8; dan would be at 10.
    "cqels_range_slide",
    "building",
    "SELECT ?who WHERE { STREAM :seen [RANGE 2s SLIDE 2s] { ?who :in ?room } }",
    """
    2000 + who=ann
    2000 + who=ann
    2000 + who=bob
    4000 + who=cyn
    8000 + who=ann
    """,
)
case(
    "cqels_tumbling",
    "building",
    "SELECT ?room ?t WHERE { STREAM :temp [RANGE 4s TUMBLING] { ?room :temp ?t } }",
    """
    4000 + room=hall t=18
    4000 + room=lab t=20
    4000 + room=lab t=22
    4000 + room=lab t=25
    8000 + room=hall t=30
    """,
)
case(
    "cqels_all",
    "building",
    "SELECT (COUNT(*) AS ?n) WHERE { STREAM :seen [ALL] { ?who :in ?room } }",
    """
    1000 + n=1
    1500 + n=2
    2000 + n=3
    3000 + n=5
    7000 + n=6
    9000 + n=7
    """,
)
case(
    # Last two triples; of the tick at 3 both are taken, and the query reports once.
    "cqels_triples",
    "building",
    "SELECT ?who WHERE { STREAM :seen [TRIPLES 2] { ?who :in ?room } }",
    """
    1000 + who=ann
    1500 + who=bob
    3000 + who=cyn
    7000 + who=ann
    9000 + who=dan
    """,
)
case(
    "cqels_two_windows_on_one_stream",
    "building",
    """SELECT ?a ?b WHERE { STREAM :seen [NOW] { ?a :in ?room } STREAM :seen [RANGE 3s] { ?b :in ?room }
       FILTER(?a != ?b) }""",
    """
    1500 + a=bob b=ann
    2000 + a=ann b=bob
    3000 + a=bob b=cyn
    3000 + a=cyn b=bob
    """,
)
case(
    "cqels_stream_variable",
    "building",
    "SELECT ?s ?x WHERE { STREAM ?s [NOW] { ?x ?p ?o } }",
    """
    1000 + s=seen x=ann
    1000 + s=temp x=lab
    1500 + s=seen x=bob
    2000 + s=seen x=ann
    2000 + s=temp x=lab
    2500 + s=temp x=hall
    3000 + s=seen x=bob
    3000 + s=seen x=cyn
    4000 + s=temp x=lab
    7000 + s=seen x=ann
    8000 + s=temp x=hall
    9000 + s=seen x=dan
    9000 + s=temp x=lab
    """,
)
case(
    # Sessions of at least 2 s of silence: 1..5 (3 + 2), 7..9, and a new one at 9.
    "cqels_session",
    "building",
    "SELECT (COUNT(*) AS ?n) WHERE { STREAM :seen [SESSION GAP 2s] { ?who :in ?room } }",
    """
    1000 + n=1
    1500 + n=2
    2000 + n=3
    3000 + n=5
    5000 + n=0
    7000 + n=1
    """,
)

# ------------------------------------------------------------------ CQELS-QL: operators

case(
    "cqels_join_with_stored_graphs",
    "building",
    """SELECT ?name ?label WHERE { STREAM :seen [NOW] { ?who :in ?room }
       GRAPH :floor { ?room :label ?label } ?who a :Staff ; :name ?name }""",
    """
    1000 + label=Lab name=Ann
    2000 + label=Lab name=Ann
    3000 + label=Hall name=Cyn
    7000 + label=Hall name=Ann
    """,
)
case(
    "cqels_optional_stored",
    "building",
    "SELECT ?who ?name WHERE { STREAM :seen [NOW] { ?who :in :lab } OPTIONAL { ?who :name ?name } }",
    """
    1000 + name=Ann who=ann
    1500 + name=Bob who=bob
    2000 + name=Ann who=ann
    9000 + who=dan
    """,
)
case(
    # A reading appears with no sighting, then with one; the answer changes when windows do.
    "cqels_optional_window",
    "building",
    """SELECT ?t ?who WHERE { STREAM :temp [RANGE 2s] { :hall :temp ?t }
       OPTIONAL { STREAM :seen [RANGE 1s] { ?who :in :hall } } }""",
    """
    2500 + t=18
    3000 + t=18 who=bob
    3000 + t=18 who=cyn
    3000 - t=18
    4000 + t=18
    4000 - t=18 who=bob
    4000 - t=18 who=cyn
    4500 - t=18
    8000 + t=30
    """,
    output="changes",
)
case(
    # A room is reported when its last sighting of the last 2 s leaves.
    "cqels_not_exists_reports_on_expiry",
    "building",
    """SELECT ?room WHERE { GRAPH :floor { ?room :label ?l }
       FILTER NOT EXISTS { STREAM :seen [RANGE 2s] { ?who :in ?room } } }""",
    """
    1000 + room=hall
    4000 + room=lab
    5000 + room=hall
    9000 + room=hall
    """,
)
case(
    "cqels_minus",
    "building",
    """SELECT ?who WHERE { STREAM :seen [RANGE 2s] { ?who :in ?room } MINUS { ?who a :Guest } }""",
    """
    1000 + who=ann
    2000 + who=ann
    3000 + who=cyn
    7000 + who=ann
    9000 + who=dan
    """,
)
case(
    "cqels_union",
    "building",
    """SELECT ?room ?x WHERE { { STREAM :seen [NOW] { ?x :in ?room } } UNION
       { STREAM :temp [NOW] { ?room :temp ?x } } FILTER(?room = :hall) }""",
    """
    2500 + room=hall x=18
    3000 + room=hall x=bob
    3000 + room=hall x=cyn
    7000 + room=hall x=ann
    8000 + room=hall x=30
    """,
)
case(
    "cqels_group_and_having",
    "building",
    """SELECT ?room (AVG(?t) AS ?avg) (MAX(?t) AS ?max) WHERE { STREAM :temp [RANGE 3s] { ?room :temp ?t } }
       GROUP BY ?room HAVING (COUNT(*) > 1)""",
    """
    2000 + avg=21 max=22 room=lab
    4000 + avg=23.5 max=25 room=lab
    """,
)
case(
    "cqels_count_distinct_and_bind",
    "building",
    """SELECT ?twice (COUNT(DISTINCT ?who) AS ?n) WHERE { STREAM :seen [RANGE 3s] { ?who :in :lab }
       BIND(2 AS ?twice) } GROUP BY ?twice""",
    """
    1000 + n=1 twice=2
    1500 + n=2 twice=2
    4500 + n=1 twice=2
    9000 + n=1 twice=2
    """,
)
case(
    "cqels_distinct",
    "building",
    "SELECT DISTINCT ?who WHERE { STREAM :seen [RANGE 3s] { ?who :in :lab } }",
    """
    1000 + who=ann
    1500 + who=bob
    9000 + who=dan
    """,
)
case(
    "cqels_order_and_limit",
    "building",
    """SELECT ?room ?t WHERE { STREAM :temp [RANGE 4s] { ?room :temp ?t } } ORDER BY DESC(?t) LIMIT 1""",
    """
    1000 + room=lab t=20
    2000 + room=lab t=22
    4000 + room=lab t=25
    8000 + room=hall t=30
    """,
)
case(
    "cqels_subselect",
    "building",
    """SELECT ?room ?t WHERE { STREAM :temp [RANGE 3s] { ?room :temp ?t }
       { SELECT (MAX(?v) AS ?t) WHERE { STREAM :temp [RANGE 3s] { ?r :temp ?v } } } }""",
    """
    1000 + room=lab t=20
    2000 + room=lab t=22
    4000 + room=lab t=25
    8000 + room=hall t=30
    """,
)
case(
    "cqels_path_over_stored",
    "building",
    """SELECT ?who ?boss WHERE { STREAM :seen [NOW] { ?who :in :lab } ?who :boss+ ?boss }""",
    """
    1000 + boss=cyn who=ann
    1000 + boss=eve who=ann
    2000 + boss=cyn who=ann
    2000 + boss=eve who=ann
    """,
)
case(
    # From a person to the persons in the same room, by a path through the window.
    "cqels_path_in_window",
    "building",
    "SELECT ?a ?b WHERE { STREAM :seen [NOW] { ?a :in/^:in ?b } FILTER(?a != ?b) }",
    """
    3000 + a=bob b=cyn
    3000 + a=cyn b=bob
    """,
)
case(
    # Alternatives and negated sets are unions of patterns: each element is told once for each way.
    "cqels_path_ways_are_a_bag",
    "building",
    "SELECT ?who WHERE { STREAM :seen [RANGE 3s] { ?who :in|!(:temp|^:in) :lab } }",
    """
    1000 + who=ann
    1000 + who=ann
    1500 + who=bob
    1500 + who=bob
    2000 + who=ann
    2000 + who=ann
    9000 + who=dan
    9000 + who=dan
    """,
)
case(
    # A path of any length sees the window as a graph: the second ann in the lab says nothing new.
    "cqels_path_of_any_length_is_a_set",
    "building",
    "SELECT ?who WHERE { STREAM :seen [RANGE 3s] { ?who (:in|!:temp)+ :lab } }",
    """
    1000 + who=ann
    1500 + who=bob
    9000 + who=dan
    """,
)
case(
    "cqels_exists_in_the_filter_of_an_optional",
    "building",
    """SELECT ?who ?name WHERE {
         ?who a :Staff
         OPTIONAL { ?who :name ?name FILTER EXISTS { STREAM :seen [RANGE 2s] { ?who :in ?room } } } }""",
    """
    1000 + name=Ann who=ann
    1000 + who=cyn
    3000 + name=Cyn who=cyn
    4000 + who=ann
    5000 + who=cyn
    7000 + name=Ann who=ann
    9000 + who=ann
    """,
)
case(
    "cqels_exists_in_bind",
    "building",
    """SELECT ?who ?here WHERE {
         ?who a :Staff BIND(EXISTS { STREAM :seen [RANGE 2s] { ?who :in ?room } } AS ?here) }""",
    """
    1000 + here=false who=cyn
    1000 + here=true who=ann
    3000 + here=true who=cyn
    4000 + here=false who=ann
    5000 + here=false who=cyn
    7000 + here=true who=ann
    9000 + here=false who=ann
    """,
)
case(
    "cqels_values_and_filter_in",
    "building",
    """SELECT ?who WHERE { STREAM :seen [NOW] { ?who :in ?room } VALUES ?room { :hall :yard }
       FILTER(?who IN (:ann, :bob)) }""",
    """
    3000 + who=bob
    7000 + who=ann
    """,
)
case(
    "cqels_construct",
    "building",
    """CONSTRUCT { ?a :near ?b }
       WHERE { STREAM :seen [NOW] { ?a :in ?room } STREAM :seen [RANGE 3s] { ?b :in ?room }
       FILTER(?a != ?b) }""",
    """
    1500 + bob near ann
    2000 + ann near bob
    3000 + bob near cyn
    3000 + cyn near bob
    """,
)
case(
    "cqels_ask_when_it_changes",
    "building",
    "ASK { STREAM :temp [RANGE 3s] { ?room :temp ?t } FILTER(?t > 24) }",
    """
    1000 + false
    4000 + true
    7000 + false
    8000 + true
    """,
)
case(
    "cqels_describe",
    "building",
    "DESCRIBE ?who WHERE { STREAM :seen [NOW] { ?who :in ?room } ?who a :Guest }",
    """
    1500 + bob name Bob
    1500 + bob type Guest
    3000 + bob name Bob
    3000 + bob type Guest
    """,
)
case(
    "cqels_parameters",
    "building",
    "SELECT ?who WHERE { STREAM :seen [RANGE $w] { ?who :in $room } }",
    """
    3000 - who=ann
    3500 - who=bob
    4000 - who=ann
    """,
    output="dstream",
    params=(("room", "<http://ex/lab>"), ("w", '"2000"^^<http://www.w3.org/2001/XMLSchema#integer>')),
)
case(
    "cqels_now_function_is_the_tick",
    "building",
    "SELECT ?at WHERE { STREAM :seen [NOW] { :dan :in ?room } BIND(NOW() AS ?at) }",
    """
    9000 + at=1970-01-01T00:00:09Z
    """,
)

# ------------------------------------------------------------------ C-SPARQL

case(
    "csparql_sliding",
    "building",
    """REGISTER QUERY q AS SELECT ?who FROM STREAM <http://ex/seen> [RANGE 2s STEP 1s]
       WHERE { ?who :in :hall }""",
    """
    3000 + who=bob
    3000 + who=cyn
    4000 + who=bob
    4000 + who=cyn
    7000 + who=ann
    8000 + who=ann
    """,
)
case(
    # A graph: ann is in the lab once, however often she is seen. Non-empty windows at 1 to 4 and 7 to 9.
    "csparql_window_is_a_graph",
    "building",
    """REGISTER QUERY q AS SELECT (COUNT(*) AS ?n) FROM STREAM <http://ex/seen> [RANGE 2s STEP 1s]
       WHERE { ?who :in ?room }""",
    """
    1000 + n=1
    2000 + n=2
    3000 + n=4
    4000 + n=2
    7000 + n=1
    8000 + n=1
    9000 + n=1
    """,
)
case(
    "csparql_two_streams_and_stored_merge",
    "building",
    """REGISTER QUERY q AS SELECT ?name ?t FROM STREAM <http://ex/seen> [RANGE 1s STEP 1s]
       FROM STREAM <http://ex/temp> [RANGE 1s STEP 1s]
       WHERE { ?who :in ?room . ?room :temp ?t . ?who :name ?name }""",
    """
    1000 + name=Ann t=20
    2000 + name=Ann t=22
    2000 + name=Bob t=22
    3000 + name=Bob t=18
    3000 + name=Cyn t=18
    """,
)
case(
    "csparql_tumbling",
    "building",
    """REGISTER QUERY q AS SELECT ?room ?t FROM STREAM <http://ex/temp> [RANGE 4s TUMBLING]
       WHERE { ?room :temp ?t }""",
    """
    4000 + room=hall t=18
    4000 + room=lab t=20
    4000 + room=lab t=22
    4000 + room=lab t=25
    8000 + room=hall t=30
    """,
)
case(
    "csparql_triples",
    "building",
    """REGISTER QUERY q AS SELECT ?t FROM STREAM <http://ex/temp> [RANGE TRIPLES 2]
       WHERE { ?room :temp ?t }""",
    """
    1000 + t=20
    2000 + t=20
    2000 + t=22
    2500 + t=18
    2500 + t=22
    4000 + t=18
    4000 + t=25
    8000 + t=25
    8000 + t=30
    9000 + t=21
    9000 + t=30
    """,
)
case(
    "csparql_computed_every",
    "building",
    """REGISTER QUERY q COMPUTED EVERY 2s AS SELECT ?t FROM STREAM <http://ex/temp> [RANGE 3s STEP 1s]
       WHERE { :lab :temp ?t }""",
    """
    2000 + t=20
    2000 + t=22
    4000 + t=22
    4000 + t=25
    6000 + t=25
    """,
)
case(
    "csparql_construct_stream",
    "building",
    """REGISTER STREAM hot AS CONSTRUCT { ?room a :Hot } FROM STREAM <http://ex/temp> [RANGE 2s STEP 2s]
       WHERE { ?room :temp ?t FILTER(?t > 21) }""",
    """
    2000 + lab type Hot
    4000 + lab type Hot
    8000 + hall type Hot
    """,
)
case(
    "csparql_wukong_form",
    "building",
    """REGISTER QUERY q AS SELECT ?who ?l FROM <http://ex/seen> [RANGE 2s STEP 1s]
       FROM NAMED <http://ex/floor>
       WHERE { GRAPH <http://ex/seen> { ?who :in ?room } GRAPH <http://ex/floor> { ?room :label ?l }
       ?who a :Staff }""",
    """
    1000 + l=Lab who=ann
    2000 + l=Lab who=ann
    3000 + l=Hall who=cyn
    3000 + l=Lab who=ann
    4000 + l=Hall who=cyn
    7000 + l=Hall who=ann
    8000 + l=Hall who=ann
    """,
)

# ------------------------------------------------------------------ RSP-QL

case(
    "rspql_rstream",
    "building",
    """REGISTER RSTREAM :o AS SELECT ?who FROM NAMED WINDOW :w ON :seen [RANGE PT3S STEP PT1S]
       WHERE { WINDOW :w { ?who :in :lab } }""",
    """
    1000 + who=ann
    2000 + who=ann
    2000 + who=bob
    3000 + who=ann
    3000 + who=bob
    4000 + who=ann
    4000 + who=bob
    9000 + who=dan
    """,
)
case(
    "rspql_istream",
    "building",
    """REGISTER ISTREAM :o AS SELECT ?who FROM NAMED WINDOW :w ON :seen [RANGE PT3S STEP PT1S]
       WHERE { WINDOW :w { ?who :in :lab } }""",
    """
    1000 + who=ann
    2000 + who=bob
    9000 + who=dan
    """,
)
case(
    # At 5 nobody is left of the lab; the hall keeps the window non-empty.
    "rspql_dstream",
    "building",
    """REGISTER DSTREAM :o AS SELECT ?who FROM NAMED WINDOW :w ON :seen [RANGE PT3S STEP PT1S]
       WHERE { WINDOW :w { ?who :in :lab } }""",
    """
    5000 - who=ann
    5000 - who=bob
    """,
)
case(
    # The window becomes empty at 5: what has gone is still reported.
    "rspql_dstream_when_the_window_empties",
    "building",
    """REGISTER DSTREAM :o AS SELECT ?who FROM NAMED WINDOW :w ON :seen [RANGE PT2S STEP PT1S]
       WHERE { WINDOW :w { ?who :in :hall } }""",
    """
    5000 - who=bob
    5000 - who=cyn
    9000 - who=ann
    """,
)
case(
    "rspql_two_windows",
    "building",
    """REGISTER RSTREAM :o AS SELECT ?who ?t FROM NAMED WINDOW :p ON :seen [RANGE PT2S STEP PT2S]
       FROM NAMED WINDOW :r ON STREAM :temp [RANGE 4000 STEP 4000] FROM NAMED :floor
       WHERE { WINDOW :p { ?who :in ?room } WINDOW :r { ?room :temp ?t } }""",
    """
    4000 + t=18 who=bob
    4000 + t=18 who=cyn
    8000 + t=30 who=ann
    """,
)
case(
    # Windows that are past: who was in the lab between 3 s and 1 s ago.
    "rspql_past_window",
    "building",
    """REGISTER ISTREAM :o AS SELECT ?who FROM NAMED WINDOW :w ON :seen [FROM NOW-PT3S TO NOW-PT1S]
       WHERE { WINDOW :w { ?who :in :lab } }""",
    """
    2000 + who=ann
    2500 + who=bob
    """,
)
case(
    "rspql_elements",
    "observations",
    """REGISTER RSTREAM :o AS SELECT ?of ?v FROM NAMED WINDOW :w ON :obs [ELEMENTS 2 STEP 2]
       WHERE { WINDOW :w { ?x :of ?of ; :value ?v } }""",
    """
    2000 + of=a v=1
    2000 + of=b v=2
    6000 + of=a v=5
    6000 + of=c v=7
    """,
)
case(
    # By the measured time, the third message (arrived at 4, measured at 2) leaves at 5, not at 7.
    "rspql_time_predicate",
    "observations",
    """REGISTER ISTREAM :o AS SELECT ?v FROM NAMED WINDOW :w ON :obs [RANGE PT3S @:measured]
       WHERE { WINDOW :w { ?x :value ?v } }""",
    """
    1000 + v=1
    2000 + v=2
    4000 + v=5
    4000 - v=1
    5000 - v=2
    5000 - v=5
    6000 + v=7
    """,
    output="changes",
)
case(
    "rspql_session_on_close",
    "building",
    """REGISTER RSTREAM :o AS SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON :seen [SESSION PT2S]
       WHERE { WINDOW :w { ?who :in ?room } }""",
    """
    5000 + n=4
    9000 + n=1
    """,
)
case(
    "rspql_window_variable",
    "building",
    """REGISTER RSTREAM :o AS SELECT ?w ?x FROM NAMED WINDOW :p ON :seen [RANGE PT4S STEP PT4S]
       FROM NAMED WINDOW :q ON :temp [RANGE PT4S STEP PT4S] WHERE { WINDOW ?w { ?x ?y :hall } }""",
    """
    4000 + w=p x=bob
    4000 + w=p x=cyn
    8000 + w=p x=ann
    """,
)

case(
    # Who was seen in a room after whom, by the latest sighting of each that is in the window.
    "csparql_time_stamps",
    "building",
    """REGISTER QUERY q AS PREFIX f: <http://larkc.eu/csparql/sparql/jena/ext#>
       SELECT ?a ?b (timestamp(?b) AS ?at) FROM STREAM <http://ex/seen> [RANGE 2s STEP 2s]
       WHERE { ?a :in ?r . ?b :in ?r FILTER(f:timestamp(?a, :in, ?r) < timestamp(?b)) }""",
    """
    2000 + a=bob at=2000 b=ann
    """,
)
case(
    "rspql_report_and_istream_of_the_form",
    "building",
    """SELECT ISTREAM ?who FROM NAMED WINDOW ON STREAM <http://ex/seen>
       [RANGE 3000 REPORT ON_CONTENT_CHANGE TICK TIME_DRIVEN] AS :w WHERE { WINDOW :w { ?who :in :lab } }""",
    """
    1000 + who=ann
    1500 + who=bob
    9000 + who=dan
    """,
)
case(
    "cqels_construct_quads",
    "building",
    """CONSTRUCT { ?who :seen true . GRAPH ?room { ?who :seen true } }
       WHERE { STREAM :seen [NOW] { ?who :in ?room } FILTER(?who != :bob) }""",
    """
    1000 + ann seen true
    1000 + ann seen true lab
    2000 + ann seen true
    2000 + ann seen true lab
    3000 + cyn seen true
    3000 + cyn seen true hall
    7000 + ann seen true
    7000 + ann seen true hall
    9000 + dan seen true
    9000 + dan seen true lab
    """,
)

# ------------------------------------------------------------------ disorder

case(
    "out_of_order_within_the_lateness",
    "unordered",
    "SELECT ?x WHERE { STREAM :s [TRIPLES 1] { ?x :p ?n } }",
    """
    1000 + x=a
    2000 + x=c
    3000 + x=d
    5000 + x=e
    6000 + x=g
    """,
)

CASES = tuple(_CASES)
