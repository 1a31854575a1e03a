"""Taxi rides: the same bytes for a seed, readable, rides that fit together; every query answers."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest

from bench.families.base import BenchQuery, Block
from bench.families.taxi import FAMILY
from bench.families.taxi.generator import START, STREAMS, TAXI, ZONES, stored, stream
from kelda.engine.oneshot import evaluate
from kelda.lang import parse as parse_query
from kelda.rdf import ntriples
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.graphstore import GraphStore
from tests.bench.both_ways import answers_of, load, told

SMALL = {"triples": 20_000, "rate": 8.0, "scale": 50, "seed": 3, "block": 4_000}
TINY = {"triples": 1_500, "rate": 0.8, "scale": 12, "seed": 3, "block": 600}


@pytest.fixture(scope="module")
def blocks() -> list[Block]:
    return list(stream(**SMALL))


@pytest.fixture(scope="module")
def store() -> GraphStore:
    return load(FAMILY, scale=50)


def facts(blocks: list[Block]) -> dict[str, dict[str, tuple[int, dict[str, str]]]]:
    """Stream -> subject -> its time and what is said of it."""
    found: dict[str, dict[str, tuple[int, dict[str, str]]]] = defaultdict(dict)
    for block in blocks:
        for line in block.text.decode().splitlines():
            time, triple = line.split("\t")
            s, p, o = triple[:-2].split(" ", 2)
            name = block.stream.rsplit("/", 1)[1]
            found[name].setdefault(s, (int(time), {}))[1][p[len(TAXI) + 1 : -1]] = o
    return found


def test_the_same_seed_gives_the_same_bytes(blocks):
    assert list(stream(**SMALL)) == blocks
    assert list(stream(**SMALL | {"seed": 4})) != blocks


def test_the_bytes_are_these_everywhere():
    """On another machine, or another version of numpy, they must not change."""
    made = b"".join(b.stream.encode() + b.text for b in stream(**TINY))
    assert hashlib.sha256(made).hexdigest()[:16] == "dd4d93ec614657bb"
    assert hashlib.sha256(b"".join(stored(scale=30))).hexdigest()[:16] == "e36588ae5d1d6f21"


def test_every_line_is_read(blocks):
    assert {b.stream for b in blocks} == set(FAMILY.streams)
    newest: dict[str, int] = {}
    for block in blocks:
        columns = ntriples.read(block.text, Dictionary(), timed=True)
        assert len(columns) == block.triples == block.text.count(b"\n") and not columns.rejects
        assert columns.t is not None and columns.t[-1] == block.until and (np.diff(columns.t) >= 0).all()
        assert columns.t[0] > newest.get(block.stream, 0)
        newest[block.stream] = block.until
    assert 0 <= sum(b.triples for b in blocks) - SMALL["triples"] < 4_000


def test_rides_fit_together(blocks):
    found = facts(blocks)
    assert len({say["pickupTime"] for _, say in found["pickup"].values()}) == len(found["pickup"])
    at = {say["pickupTime"]: ride for ride, (_, say) in found["pickup"].items()}
    driven = Counter(say["taxi"] for _, say in found["pickup"].values())
    assert len(driven) == 50 and max(driven.values()) - min(driven.values()) <= 1  # taxis drive in turn
    for ride, (dropped, say) in found["dropoff"].items():
        begun, _ = found["pickup"][ride]
        seconds = int(say["tripTime"].split('"')[1])
        assert dropped == begun + 1000 * seconds and 60 <= seconds < 91 * 60
    for payment, (paid, say) in found["fare"].items():
        ride = at[say["pickupTime"]]
        assert ride.rsplit("/", 1)[1] == payment.rsplit("/", 1)[1]
        assert paid == found["dropoff"][ride][0] and float(say["fare"].split('"')[1]) >= 2.5
    minutes = [int(say["tripTime"].split('"')[1]) / 60 for _, say in found["dropoff"].values()]
    assert 9 < np.mean(minutes) < 16


def test_the_rate_is_what_was_asked_for():
    made = [b for b in stream(triples=66_000) if b.stream == STREAMS["pickup"]]
    rides = sum(b.triples for b in made) / 4
    assert abs(rides / ((made[-1].until - START) / 1000) - 5.5) < 0.02


def test_skewed_taxis_and_late_elements():
    made = list(stream(triples=24_000, scale=200, taxi_skew=1.0, late=0.1, duplicates=0.1, burst=0.5))
    taxis = Counter(say["taxi"] for _, say in facts(made)["pickup"].values())
    assert taxis.most_common(1)[0][1] > 5 * np.median(list(taxis.values()))
    times = np.array([int(line[:13]) for b in made[:1] for line in b.text.splitlines()])
    assert (np.diff(times) < 0).any()


def test_every_zone_and_taxi_is_stored(store):
    for predicate, many in (("borough", ZONES), ("garage", 50)):
        found = evaluate(parse_query(f"SELECT ?s ?o {{ ?s <{TAXI}{predicate}> ?o }}"), store)
        assert len(found.rows) == many


def sent(
    query: BenchQuery, dialect: str, blocks: list[Block], store: GraphStore, by_definition: bool = False
) -> Counter[Any]:
    """All answers, as a bag of (time, sign, bindings)."""
    return told(answers_of(query.texts[dialect], blocks, store, by_definition=by_definition))


@pytest.mark.parametrize("query", FAMILY.queries, ids=lambda q: q.name)
def test_every_query_answers_in_every_dialect(query, blocks, store):
    assert tuple(query.texts) == ("cqels", "csparql", "rspql")
    found = {dialect: sent(query, dialect, blocks, store) for dialect in query.texts}
    assert all(found.values())
    assert found["rspql"] == found["cqels" if query.name == "T1" else "csparql"]


@pytest.mark.parametrize("query", FAMILY.queries, ids=lambda q: q.name)
def test_the_same_answers_by_definition(query, store):
    tiny = list(stream(**TINY))
    for dialect in ("cqels", "rspql"):
        found = sent(query, dialect, tiny, store)
        assert found and found == sent(query, dialect, tiny, store, by_definition=True)
