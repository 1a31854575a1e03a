"""The operator-aware paper's taxi query, and one query over taxi data for each operator that it measures.

Le-Phuoc, Operator-aware Approach for Boosting Performance in Processing RDF streams, Journal of Web
Semantics 2016: T1 is its example; T2 to T6 are the operators of its figure 13 (a join of three windows,
an aggregate over a window, MIN and DISTINCT over a join of two) and negation, which it measures on random
numbers. T7 adds stored data.
"""

from __future__ import annotations

from bench.families.base import BenchQuery
from bench.families.dialects import Dialects
from bench.families.taxi.generator import STREAMS, TAXI

MINUTE = 60_000
PAYMENTS, LINES = 1_000, 4  # of a payment, in its stream
DIALECTS = Dialects({"x": TAXI}, STREAMS, "urn:taxi:")
continuous = DIALECTS.continuous
TEN = (10 * MINUTE, MINUTE)

_SELECT = "?taxi (AVG(?fare / (?tripTime / 3600)) AS ?hourlyRate)"
_RATE = """{{
  {fare} {{ ?payment x:fare ?fare ; x:pickupTime ?time }}
  {pickup} {{ ?ride x:taxi ?taxi ; x:pickupTime ?time }}
  {dropoff} {{ ?ride x:tripTime ?tripTime }}
}}
GROUP BY ?taxi"""
_IRI = {name: f"<{iri}>" for name, iri in STREAMS.items()}
_LAST = PAYMENTS * LINES

HOURLY_RATE = BenchQuery(
    "T1",
    "What active taxis earn in an hour, over the last 1,000 payments: rides picked up in the last two hours "
    "and dropped off in the last hour.",
    {
        "cqels": f"PREFIX x: <{TAXI}>\nSELECT {_SELECT}\nWHERE "
        + _RATE.format(
            fare=f"STREAM {_IRI['fare']} [TRIPLES {_LAST}]",
            pickup=f"STREAM {_IRI['pickup']} [RANGE 2h]",
            dropoff=f"STREAM {_IRI['dropoff']} [RANGE 1h]",
        ),
        "csparql": "REGISTER QUERY T1 COMPUTED EVERY 10m AS\n"
        f"PREFIX x: <{TAXI}>\nSELECT {_SELECT}\n"
        f"FROM NAMED STREAM {_IRI['fare']} [RANGE TRIPLES {_LAST}]\n"
        f"FROM NAMED STREAM {_IRI['pickup']} [RANGE 2h STEP 10m]\n"
        f"FROM NAMED STREAM {_IRI['dropoff']} [RANGE 1h STEP 10m]\nWHERE "
        + _RATE.format(**{name: f"GRAPH {iri}" for name, iri in _IRI.items()}),
        "rspql": f"PREFIX : <urn:taxi:>\nPREFIX x: <{TAXI}>\nREGISTER ISTREAM :T1 AS\nSELECT {_SELECT}\n"
        f"FROM NAMED WINDOW :fare ON {_IRI['fare']} [TRIPLES {_LAST}]\n"
        f"FROM NAMED WINDOW :pickup ON {_IRI['pickup']} [RANGE PT2H @x:pickupTime]\n"
        f"FROM NAMED WINDOW :dropoff ON {_IRI['dropoff']} [RANGE PT1H @x:dropoffTime]\nWHERE "
        + _RATE.format(**{name: f"WINDOW :{name}" for name in _IRI}),
    },
    tuple(STREAMS.values()),
    notes=f"a payment is {LINES} triples, so its 1,000 payments are {_LAST:,} triples; CQELS-QL and RSP-QL "
    "send what is new whenever a window changes and agree in number; C-SPARQL sends all every ten minutes",
)

QUERIES = (
    HOURLY_RATE,
    continuous(
        "T2",
        "Rides with what was paid for them: a join of three windows.",
        "?taxi ?ride ?fare ?tip",
        """{
  @pickup { ?ride x:taxi ?taxi ; x:pickupTime ?time }
  @dropoff { ?ride x:tripTime ?tripTime }
  @fare { ?payment x:pickupTime ?time ; x:fare ?fare ; x:tip ?tip }
}""",
        {"pickup": (30 * MINUTE, MINUTE), "dropoff": (MINUTE, MINUTE), "fare": (MINUTE, MINUTE)},
    ),
    continuous(
        "T3",
        "The mean fare for each way of paying: an aggregate over one window.",
        "?type (AVG(?fare) AS ?mean)",
        "{ @fare { ?payment x:fare ?fare ; x:paymentType ?type } }",
        {"fare": TEN},
        after="GROUP BY ?type",
    ),
    continuous(
        "T4",
        "The shortest ride from each zone: MIN over a join of two windows.",
        "?zone (MIN(?tripTime) AS ?least)",
        """{
  @pickup { ?ride x:pickupZone ?zone }
  @dropoff { ?ride x:tripTime ?tripTime }
}""",
        {"pickup": (30 * MINUTE, 5 * MINUTE), "dropoff": (10 * MINUTE, 5 * MINUTE)},
        after="GROUP BY ?zone",
    ),
    continuous(
        "T5",
        "From which zones to which zones people ride: DISTINCT over a join of two windows.",
        "DISTINCT ?from ?to",
        """{
  @pickup { ?ride x:pickupZone ?from }
  @dropoff { ?ride x:dropoffZone ?to }
}""",
        {"pickup": (30 * MINUTE, 5 * MINUTE), "dropoff": (10 * MINUTE, 5 * MINUTE)},
    ),
    continuous(
        "T6",
        "Rides that began in the last five minutes and are still under way: negation of two windows.",
        "?ride ?taxi",
        """{
  @pickup { ?ride x:taxi ?taxi }
  FILTER NOT EXISTS { @dropoff { ?ride x:tripTime ?tripTime } }
}""",
        {"pickup": (5 * MINUTE, MINUTE), "dropoff": (5 * MINUTE, MINUTE)},
    ),
    continuous(
        "T7",
        "How many rides began in each borough: a window joined with stored data, and an aggregate.",
        "?borough (COUNT(?ride) AS ?rides)",
        """{
  @pickup { ?ride x:pickupZone ?zone }
  ?zone x:borough ?borough
}""",
        {"pickup": TEN},
        after="GROUP BY ?borough",
        stored=True,
    ),
)
