"""Taxi rides: the example of the operator-aware paper, and its operators on the same data."""

from __future__ import annotations

from bench.families.base import Family
from bench.families.taxi.generator import PER_RIDE, RIDES_A_SECOND, STREAMS, TAXIS, stored, stream
from bench.families.taxi.queries import QUERIES

FAMILY = Family(
    name="taxi",
    description="taxi rides of a city: pick-ups, drop-offs and fares; stored zones and taxis",
    streams=tuple(STREAMS.values()),
    stream=stream,
    stored=stored,
    queries=QUERIES,
    defaults={"triples": 1_000_000, "rate": RIDES_A_SECOND * PER_RIDE, "scale": TAXIS, "seed": 1},
    source="Le-Phuoc: Operator-aware Approach for Boosting Performance in Processing RDF streams, Journal of "
    "Web Semantics 2016; its data are the rides of New York's taxis of 2013, as opened by C. Whong",
)
