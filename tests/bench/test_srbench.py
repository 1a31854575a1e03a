"""Weather stations: what is made, and that the queries find something in it."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from bench.families.srbench import FAMILY
from bench.families.srbench.generator import PROPERTIES, place_of
from tests.bench.both_ways import answers_of, digest, load, told

QUERIES = [(q.name, dialect) for q in FAMILY.queries for dialect in q.texts]
SMALL = {"triples": 6000, "rate": 0.1, "stations": 10, "storm": 0.3, "heat": 0.3, "block": 1000}


@pytest.fixture(scope="module")
def store():
    return load(FAMILY, scale=0.02)


@pytest.fixture(scope="module")
def blocks():
    return list(FAMILY.stream(**SMALL))


def test_the_same_seed_gives_the_same_bytes():
    rough = {**SMALL, "rate": 50, "burst": 0.3, "late": 0.1, "twice": 0.05}
    assert digest(FAMILY, 0.1, rough, seed=1) == "2ee1ada3dcfafcd8"  # also on the next machine
    assert digest(FAMILY, 0.1, rough, seed=2) != "2ee1ada3dcfafcd8"


def test_an_observation_has_ten_triples_and_keeps_the_rate():
    (block,) = FAMILY.stream(triples=10_000, rate=50, stations=20)
    lines = block.text.decode().splitlines()
    assert len(lines) == block.triples == 10_000
    first, last = (int(line.split("\t")[0]) for line in (lines[0], lines[-1]))
    assert last - first == (10_000 - 10) * 20
    of = Counter(re.search(r"type> <\S+#(\w+)Observation>", line)[1] for line in lines[::10])
    assert set(of) == set(PROPERTIES) and min(of.values()) > 120
    by = Counter(re.search(r"System_S(\d+)>", line)[1] for line in lines[1::10])
    assert len(by) == 20 and min(by.values()) > 25


def test_skew_makes_some_stations_report_more_often():
    (block,) = FAMILY.stream(triples=20_000, stations=20, skew=1.0)
    by = Counter(re.findall(rb"procedure> <\S+System_S(\d+)>", block.text))
    assert by[b"0"] > 8 * by[b"19"]


def test_the_weather_is_as_bad_as_asked_for_and_moves_on():
    (block,) = FAMILY.stream(triples=20_000, rate=0.8, stations=100, storm=0.1, hours=3)
    snow = [
        (int(t), int(station), int(value))
        for t, station, value in re.findall(
            r'(\d+)\t<\S+MeasureData_Snowfall_S(\d+)_\d+> <\S+floatValue> "(\d+)"', block.text.decode()
        )
    ]
    share = sum(value > 0 for _, _, value in snow) / len(snow)
    assert share == pytest.approx(0.1, abs=0.05)
    start = snow[0][0]
    early = {s for t, s, value in snow if value and t < start + 3 * 3_600_000}
    later = {s for t, s, value in snow if value and t > start + 6 * 3_600_000}
    assert early and later and not early & later


def test_stations_have_18_triples_and_a_place():
    text = b"".join(FAMILY.stored(scale=1))
    assert text.count(b"\n") == 18_000
    latitude, _, altitude = place_of(3)
    assert text.count(f'wgs84_pos#lat> "{latitude}"'.encode()) == 10
    assert f'Point_S3> <http://www.w3.org/2003/01/geo/wgs84_pos#alt> "{altitude}"'.encode() in text


@pytest.mark.parametrize(("name", "dialect"), QUERIES)
def test_every_query_answers_and_as_defined(name, dialect, store, blocks):
    text, prefix = FAMILY.query(name).texts[dialect], blocks[:3]
    found = answers_of(text, blocks, store)
    early = [answer for answer in found if answer.time <= prefix[-1].until]
    assert found
    assert told(early) == told(answers_of(text, prefix, store, by_definition=True))


@pytest.mark.parametrize("name", [q.name for q in FAMILY.queries])
def test_csparql_and_rspql_give_the_same_answers(name, store, blocks):
    csparql, rspql = (answers_of(FAMILY.query(name).texts[d], blocks, store) for d in ("csparql", "rspql"))
    assert told(csparql) == told(rspql)
