"""A family as small as can be: rooms that report how warm they are. For the harness's own tests."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bench.families.base import BenchQuery, Block, Family

STREAM = "http://example.org/readings"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
ROOMS = 50
BLOCK = 1000  # triples


def stream(*, triples: int = 10_000, rate: int = 1_000, seed: int = 1) -> Iterator[Block]:
    """Readings of random rooms, `rate` a second."""
    rng = np.random.Generator(np.random.PCG64(seed))
    for first in range(0, triples, BLOCK):
        many = min(BLOCK, triples - first)
        when = 1_000 + (first + np.arange(many)) * 1_000 // rate
        rooms, warm = rng.integers(0, ROOMS, many), rng.integers(10, 30, many)
        text = "".join(
            f'{t}\t<http://example.org/room/{r}> <http://example.org/warm> "{w}"^^<{INTEGER}> .\n'
            for t, r, w in zip(when.tolist(), rooms.tolist(), warm.tolist(), strict=True)
        )
        yield Block(STREAM, text.encode(), many, int(when[-1]))


def stored(*, scale: int = ROOMS, seed: int = 1) -> Iterator[bytes]:
    """On which of five floors each room is."""
    yield b"".join(
        b"<http://example.org/room/%d> <http://example.org/floor> <http://example.org/floor/%d> .\n"
        % (room, room % 5)
        for room in range(scale)
    )


PREFIX = "PREFIX : <http://example.org/> "
FAMILY = Family(
    name="tiny",
    description="rooms that report how warm they are",
    streams=(STREAM,),
    stream=stream,
    stored=stored,
    queries=(
        BenchQuery(
            "hot",
            "rooms above 27 degrees",
            {
                "cqels": PREFIX
                + "SELECT ?r ?w { STREAM :readings [TRIPLES 100] { ?r :warm ?w } FILTER(?w > 27) }",
                "rspql": PREFIX + "REGISTER RSTREAM :out AS SELECT ?r ?w "
                "FROM NAMED WINDOW :w ON :readings [RANGE PT1S STEP PT1S] "
                "WHERE { WINDOW :w { ?r :warm ?w } FILTER(?w > 27) }",
            },
            (STREAM,),
        ),
        BenchQuery(
            "floors",
            "the mean of each floor",
            {
                "cqels": PREFIX
                + "SELECT ?f (AVG(?w) AS ?m) { STREAM :readings [TRIPLES 100] { ?r :warm ?w } "
                "?r :floor ?f } GROUP BY ?f",
            },
            (STREAM,),
            stored=True,
        ),
        BenchQuery(
            "one",
            "one room",
            {
                "cqels": PREFIX
                + "SELECT ?w { STREAM :readings [TRIPLES 100] { <http://example.org/room/7> :warm ?w } }"
            },
            (STREAM,),
        ),
    ),
)
