"""The conference: what is made, and that its queries find something in it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from bench.families.conference import FAMILY
from bench.families.conference.generator import ROOMS, floor_plan, neighbours
from bench.families.conference.walk_kernels import walk
from tests.bench.both_ways import answers_of, digest, load, told

QUERIES = [(q.name, dialect) for q in FAMILY.queries for dialect in q.texts]
SMALL = {"triples": 1500, "rate": 15, "people": 60, "block": 300}


@pytest.fixture(scope="module")
def store():
    return load(FAMILY, scale=0.1)


@pytest.fixture(scope="module")
def blocks():
    return list(FAMILY.stream(**SMALL))


def test_the_same_seed_gives_the_same_bytes():
    rough = {**SMALL, "burst": 0.3, "late": 0.1, "twice": 0.05}
    assert digest(FAMILY, 0.1, rough, seed=1) == "934fe783e96d5c6b"  # also on the next machine
    assert digest(FAMILY, 0.1, rough, seed=2) != "934fe783e96d5c6b"


def test_the_floor_plan_is_that_of_the_paper_in_size():
    assert floor_plan().count(b"\n") == 172
    beside = neighbours()
    assert all(a in beside[b] for a in range(ROOMS) for b in beside[a])


@pytest.mark.parametrize("scale", [1, 3])
def test_scale_is_in_ten_thousand_triples(scale):
    text = b"".join(FAMILY.stored(scale))
    assert text.count(b"\n") == pytest.approx(10_000 * scale + 172, rel=0.03)


def test_papers_have_one_to_five_different_writers(store):
    creator = "http://purl.org/dc/elements/1.1/creator"
    writers = Counter(q.subject.value for q in store if q.predicate.value == creator)
    assert set(writers.values()) == {1, 2, 3, 4, 5}


def test_sightings_keep_the_rate_and_move_through_doors():
    many = list(FAMILY.stream(triples=20_000, rate=100, people=50))
    lines = b"".join(b.text for b in many).decode().splitlines()
    assert len(lines) == sum(b.triples for b in many) == 20_000
    times = [int(line.split("\t")[0]) for line in lines]
    assert times == sorted(times) and times[-1] - times[0] == 199_990
    beside, at, moved = neighbours(), {}, 0
    for line in lines:
        who, _, room = line.split("\t")[1].split(" ")[:3]
        now = int(room.rsplit("room")[-1].rstrip(">"))
        if at.get(who, now) != now:
            assert now in beside[at[who]]
            moved += 1
        at[who] = now
    assert moved / len(lines) == pytest.approx(0.1, abs=0.01)


def test_disturbances_are_as_asked_for():
    calm = [int(line.split(b"\t")[0]) for b in FAMILY.stream(**SMALL) for line in b.text.splitlines()]
    rough = [
        int(line.split(b"\t")[0])
        for b in FAMILY.stream(**SMALL, late=0.2, delay=300, twice=0.1)
        for line in b.text.splitlines()
    ]
    assert len(rough) / len(calm) == pytest.approx(1.1, abs=0.03)
    late = np.maximum.accumulate(rough) - rough
    assert 0 < late.max() <= 300
    busy = Counter(
        int(line.split(b"\t")[0]) % 10_000 < 1000
        for b in FAMILY.stream(**SMALL, burst=0.5)
        for line in b.text.splitlines()
    )
    assert busy[True] / busy.total() == pytest.approx(0.1 + 0.5 * 0.9, abs=0.02)


def test_the_walk_kernel_does_what_its_text_says():
    rng = np.random.default_rng(1)
    beside = neighbours()
    degree = np.array([len(b) for b in beside])
    doors = np.array([b + [0] * (degree.max() - len(b)) for b in beside])
    who, moves, door = rng.integers(0, 5, 300), rng.random(300) < 0.5, rng.integers(0, 60, 300)
    at, expected, rooms = np.arange(5), [], [0, 1, 2, 3, 4]
    for w, m, d in zip(who.tolist(), moves.tolist(), door.tolist(), strict=True):
        if m:
            rooms[w] = beside[rooms[w]][d % len(beside[rooms[w]])]
        expected.append(rooms[w])
    assert walk(who, moves, door, at, doors, degree).tolist() == expected
    assert at.tolist() == rooms


@pytest.mark.parametrize(("name", "dialect"), QUERIES)
def test_every_query_answers_and_as_defined(name, dialect, store, blocks):
    text, prefix = FAMILY.query(name).texts[dialect], blocks[:1]
    found = answers_of(text, blocks, store)
    early = [answer for answer in found if answer.time <= prefix[-1].until]
    assert found
    assert told(early) == told(answers_of(text, prefix, store, by_definition=True))


@pytest.mark.parametrize("name", ["Q1", "Q5"])
def test_cqels_and_rspql_agree_where_repetition_does_not_count(name, store, blocks):
    cqels, rspql = (answers_of(FAMILY.query(name).texts[d], blocks, store) for d in ("cqels", "rspql"))
    assert told(cqels) == told(rspql)
