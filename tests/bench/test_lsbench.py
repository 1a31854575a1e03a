"""The social network: the same bytes for a seed, readable, of the declared shape; every query answers."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyoxigraph import RdfFormat, parse

from bench.families.base import BenchQuery, Block
from bench.families.lsbench import FAMILY
from bench.families.lsbench.generator import friends, stored, stream
from bench.families.lsbench.vocabulary import STREAMS
from kelda.engine.oneshot import evaluate
from kelda.lang import parse as parse_query
from kelda.rdf import ntriples
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.graphstore import GraphStore
from tests.bench.both_ways import answers_of, load, told

DATA = Path(os.environ.get("KELDA_DATA", Path(__file__).parents[3] / "shared" / "data")) / "lsbench"
CONTINUOUS = [q for q in FAMILY.queries if "sparql" not in q.texts]
SMALL = {"triples": 24_000, "rate": 1_500, "scale": 60, "seed": 3, "active": 0.3}
TINY = {"triples": 2_400, "rate": 300, "scale": 24, "seed": 29, "active": 0.2, "block": 600}


def whole(blocks: list[Block], name: str) -> bytes:
    return b"".join(b.text for b in blocks if b.stream == STREAMS[name])


@pytest.fixture(scope="module")
def blocks() -> list[Block]:
    return list(stream(**SMALL))


@pytest.fixture(scope="module")
def store() -> GraphStore:
    return load(FAMILY, scale=60)


def fingerprint(blocks: list[Block]) -> str:
    return hashlib.sha256(b"".join(b.stream.encode() + b.text for b in blocks)).hexdigest()[:16]


def test_the_same_seed_gives_the_same_bytes(blocks):
    assert list(stream(**SMALL)) == blocks
    assert list(stream(**SMALL | {"seed": 4})) != blocks
    assert list(stored(scale=60)) == list(stored(scale=60)) != list(stored(scale=60, seed=2))


def test_the_bytes_are_these_everywhere():
    """On another machine, or another version of numpy, they must not change."""
    assert fingerprint(list(stream(**TINY))) == "cc9aaa99f55c8587"
    assert hashlib.sha256(b"".join(stored(scale=30))).hexdigest()[:16] == "2b68530ab62f4909"


def test_every_line_is_read(blocks):
    assert {b.stream for b in blocks} == set(FAMILY.streams)
    for block in blocks:
        columns = ntriples.read(block.text, Dictionary(), timed=True)
        assert len(columns) == block.triples == block.text.count(b"\n") and not columns.rejects
        assert columns.t is not None and columns.t[-1] == block.until and (np.diff(columns.t) >= 0).all()
    assert abs(sum(b.triples for b in blocks) - SMALL["triples"]) < 0.05 * SMALL["triples"]
    times = [b.until for b in blocks]
    assert abs((max(times) - 1_264_982_400_000) / 1000 - SMALL["triples"] / SMALL["rate"]) < 1


def test_blocks_go_forward_together():
    newest: dict[str, int] = {}
    many = 0
    for block in stream(triples=60_000, rate=300_000, block=5_000, burst=0.3):
        first = int(block.text[:13])
        assert first > newest.get(block.stream, 0)  # no instant is in two blocks
        assert all(abs(block.until - until) < 40 for until in newest.values())
        newest[block.stream] = block.until
        many += 1
    assert many == 5 * 12


def test_only_some_streams():
    made = list(stream(triples=20_000, streams=("post",), rate=1_000))
    assert {b.stream for b in made} == {STREAMS["post"]}
    assert abs(sum(b.triples for b in made) - 20_000) < 500
    assert abs(made[-1].until - 1_264_982_400_000 - 20_000) < 200


def test_late_elements_and_duplicates():
    plain = next(stream(triples=5_000, streams=("gps",)))
    block = next(stream(triples=5_000, streams=("gps",), late=0.1, late_by=40, duplicates=0.05))
    assert set(block.text.splitlines()) == set(plain.text.splitlines())
    assert 1.02 < block.triples / plain.triples < 1.08
    times = np.array([int(line[:13]) for line in block.text.splitlines()])
    behind = np.maximum.accumulate(times) - times
    assert 0.05 < (behind > 0).mean() < 0.2 and behind.max() <= 41


def test_likes_may_come_later():
    things, likes = {}, Counter()
    for block in stream(
        triples=20_000, streams=("photo", "photolike"), like_delay=300, photo_like_copies=1, block=2_000
    ):
        for line in block.text.decode().splitlines():
            time, s, p, o, _ = re.split(r"[\t ]", line, maxsplit=4)
            if p.endswith(("usertag>", "ontology/location>")):
                things[s] = int(time)
            elif p.endswith("like>"):
                likes[int(time) - things[o]] += 1
    assert (
        min(likes) >= 0
        and max(likes) < 600
        and 250 < np.average(list(likes), weights=list(likes.values())) < 350
    )


def test_shape_of_posts_and_likes():
    made = list(stream(triples=150_000, scale=500))
    rows = [
        line.split(" ", 2) for line in re.sub(rb"(?m)^\d+\t", b"", whole(made, "post")).decode().splitlines()
    ]
    tags = Counter(s for s, p, _ in rows if p.endswith("hashtag>"))
    assert 3.0 < np.mean(list(tags.values())) < 3.4 and max(tags.values()) <= 12
    by_tag = Counter(o for _, p, o in rows if p.endswith("hashtag>"))
    assert 0.04 < by_tag.most_common(1)[0][1] / by_tag.total() < 0.11
    authors = {o: s for s, p, o in rows if p.endswith("creator_of>")}
    assert len(set(authors.values())) <= 0.42 * 500
    likes = [line.split() for line in whole(made, "postlike").decode().splitlines()]
    assert len(likes) == 10 * len({(s, o) for _, s, _, o, _ in likes})  # each is written ten times
    known = {
        (s, o)
        for s, p, o in (line.split(" ", 2) for line in b"".join(stored(scale=500)).decode().splitlines())
        if p.endswith("knows>")
    }
    assert all((s, f"{authors[o + ' .']} .") in known for _, s, _, o, _ in likes)


def test_friendship_is_symmetric_and_bounded():
    for users in (1, 2, 30, 3_000):
        who = np.arange(users)
        found, friend = friends(who, who * 0, who * 0 + 99, users)
        pairs = set(zip(np.repeat(who, found).tolist(), friend.tolist(), strict=True))
        assert len(pairs) == len(friend) and all((b, a) in pairs and a != b for a, b in pairs)
        assert not pairs or 0 <= friend.min() <= friend.max() < users
    assert 17 < found.mean() < 26 and found.max() < 46


def test_every_user_has_a_profile(store):
    for predicate, many in (
        ("http://rdfs.org/sioc/ns#account_of", 60),
        ("http://rdfs.org/sioc/ns#subscriber_of", 124),
    ):
        found = evaluate(parse_query(f"SELECT ?s ?o {{ ?s <{predicate}> ?o }}"), store)
        assert len(found.rows) == many


def sent(
    query: BenchQuery, dialect: str, blocks: list[Block], store: GraphStore, by_definition: bool = False
) -> Counter[Any]:
    """All answers, as a bag of (time, sign, bindings)."""
    return told(answers_of(query.texts[dialect], blocks, store, by_definition=by_definition))


@pytest.mark.parametrize("query", CONTINUOUS, ids=lambda q: q.name)
def test_every_query_answers_in_every_dialect(query, blocks, store):
    assert tuple(query.texts) == ("cqels", "csparql", "rspql")
    found = {dialect: sent(query, dialect, blocks, store) for dialect in query.texts}
    assert all(found.values())
    assert found["csparql"] == found["rspql"]
    if query.name in ("Q1", "Q2", "Q3"):  # each answer once, but for the last step, which is not complete
        last = max(t for t, _, _ in found["rspql"])
        cqels = Counter({row: n for (t, _, row), n in found["cqels"].items() if t <= last})
        assert cqels == Counter(row for (_, _, row), n in found["rspql"].items() for _ in range(n))


@pytest.fixture(scope="module")
def tiny() -> tuple[list[Block], GraphStore]:
    return list(stream(**TINY)), load(FAMILY, scale=24)


@pytest.mark.parametrize("query", CONTINUOUS, ids=lambda q: q.name)
def test_the_same_answers_by_definition(query, tiny):
    for dialect in ("cqels", "rspql") if query.name.startswith("Q") else ("csparql",):
        found = sent(query, dialect, *tiny)
        assert found and found == sent(query, dialect, *tiny, by_definition=True)


@pytest.mark.parametrize("query", [q for q in FAMILY.queries if "sparql" in q.texts], ids=lambda q: q.name)
def test_one_shot_queries_answer_over_absorbed_streams(query, blocks, store):
    absorbed = GraphStore(store)
    for block in blocks:
        if block.stream in query.streams:
            lines = re.sub(rb"(?m)^\d+\t", b"", block.text)
            absorbed.extend(parse(lines, RdfFormat.N_TRIPLES))
    assert evaluate(parse_query(query.texts["sparql"]), absorbed).rows


@pytest.mark.data
@pytest.mark.skipif(not DATA.is_dir(), reason=f"LSBench data is not in {DATA} (set KELDA_DATA)")
def test_the_sample_has_the_same_predicates():
    made = list(stream(triples=250_000))
    for name in STREAMS:
        original = gzip.decompress((DATA / f"{name}.tsnt.gz").read_bytes())
        one, other = (
            set(re.findall(rb"^\d+\t<[^>]*> <([^>]*)>", t, re.MULTILINE))
            for t in (original, whole(made, name))
        )
        assert one == other, name
    original = gzip.decompress((DATA / "static.nt.gz").read_bytes())
    kept, ours = (
        set(re.findall(rb"^<[^>]*> <([^>]*)>", t, re.MULTILINE)) for t in (original, b"".join(stored()))
    )
    assert ours <= kept
