"""A city's sensors: what is made, and that the queries find something in it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from pyoxigraph import RdfFormat, parse

from bench.families.citybench import FAMILY
from bench.families.citybench.generator import HOUR, ROUND, WEATHER
from kelda.rdf.graphs import load_graph
from tests.bench.both_ways import answers_of, digest, load, told

QUERIES = [(q.name, dialect) for q in FAMILY.queries for dialect in q.texts]
QUICK = {"triples": 10 * ROUND, "rate": ROUND}  # a report a second: for windows of seconds
SLOW = {"triples": 70 * ROUND, "rate": ROUND / 100}  # one in 100 seconds: for windows of minutes
DATA = Path(os.environ.get("KELDA_DATA", Path(__file__).parents[3] / "shared/data")) / "citybench"


@pytest.fixture(scope="module")
def store():
    return load(FAMILY, scale=0.05)


@pytest.fixture(scope="module")
def blocks():
    return {"3s": list(FAMILY.stream(**QUICK)), "long": list(FAMILY.stream(**SLOW))}


def sample(name, blocks):
    return blocks["long" if name in ("Q10", "Q11", "Q12") else "3s"]


def test_the_same_seed_gives_the_same_bytes():
    rough = {**QUICK, "burst": 0.3, "late": 0.1, "twice": 0.05}
    assert digest(FAMILY, 0.1, rough, seed=1) == "f657a1c32db03afb"  # also on the next machine
    assert digest(FAMILY, 0.1, rough, seed=2) != "f657a1c32db03afb"


def test_every_stream_keeps_its_share_of_the_rate():
    many = list(FAMILY.stream(triples=200 * ROUND))
    triples = {s: sum(b.triples for b in many if b.stream == s) for s in FAMILY.streams}
    assert [triples[s] // 200 for s in FAMILY.streams] == [20, 20, 4, 4, 12, 7, 4, 4, 4, 4, 4]
    assert sum(triples.values()) == 200 * ROUND
    first, last = (min(b.until for b in many), max(b.until for b in many))
    assert last - first < 200_000
    for s in FAMILY.streams:
        times = [int(line.split(b"\t")[0]) for b in many if b.stream == s for line in b.text.splitlines()]
        assert times == sorted(times)


def test_blocks_of_all_streams_go_forward_together():
    until, slowest = {}, 0
    for block in FAMILY.stream(triples=100 * ROUND, rate=ROUND / 10):
        first = int(block.text.split(b"\t", 1)[0])
        assert first >= slowest
        until[block.stream] = block.until
        if len(until) == len(FAMILY.streams):
            slowest = min(until.values()) if block.stream == FAMILY.streams[-1] else slowest


def test_the_weather_is_silent_at_the_end_of_the_hour():
    times = [
        int(line.split(b"\t")[0]) % HOUR
        for b in FAMILY.stream(triples=100 * ROUND, rate=ROUND / 60, silence=20)
        if b.stream == WEATHER
        for line in b.text.splitlines()
    ]
    assert max(times) < 40 * 60_000 and len(times) == (40 + 40) * 12


@pytest.mark.parametrize("scale", [0.2, 1])
def test_the_repository_grows_with_the_scale(scale):
    text = b"".join(FAMILY.stored(scale=scale))
    assert text.count(b"\n") == pytest.approx(45_700 * scale, rel=0.03)
    assert len(list(parse(text, RdfFormat.N_TRIPLES))) == text.count(b"\n")


@pytest.mark.data
@pytest.mark.skipif(not DATA.exists(), reason=f"the readings of Aarhus are not there: {DATA}")
def test_the_repository_speaks_as_that_of_aarhus():
    from pyoxigraph import Store

    real = Store()
    load_graph(real, DATA / "SensorRepository.n3.gz")
    ours = set(re.findall(rb"^<[^>]+> (<[^>]+>)", b"".join(FAMILY.stored(scale=0.05)), re.MULTILINE))
    theirs = {f"<{row['p'].value}>".encode() for row in real.query("SELECT DISTINCT ?p { ?s ?p ?o }")}
    mine = {b"ssn#", b"sao/", b"citytraffic#", b"ces#", b"owl"}
    # Quality of the one service without a road is left out; events have places and prices of their own.
    assert {p for p in theirs - ours if any(m in p for m in mine)} <= {
        b"<http://www.insight-centre.org/ces#hasAvailability>",
        b"<http://www.insight-centre.org/ces#hasFrequency>",
    }


@pytest.mark.parametrize(("name", "dialect"), QUERIES)
def test_every_query_answers_and_as_defined(name, dialect, store, blocks):
    text = FAMILY.query(name).texts[dialect]
    found = answers_of(text, sample(name, blocks), store)
    assert found
    assert told(found) == told(answers_of(text, sample(name, blocks), store, by_definition=True))


@pytest.mark.parametrize("name", [q.name for q in FAMILY.queries])
def test_csparql_and_rspql_give_the_same_answers(name, store, blocks):
    csparql, rspql = (
        answers_of(FAMILY.query(name).texts[d], sample(name, blocks), store) for d in ("csparql", "rspql")
    )
    assert told(csparql) == told(rspql)
