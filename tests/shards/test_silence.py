"""A stream that was silent and speaks again within one batch was not idle in it, by any evaluator."""

from __future__ import annotations

from kelda.io.job import QuerySpec, StreamSource
from kelda.io.sources import Piece
from kelda.rdf.framings.base import Chunk
from kelda.shards.catalog import Catalog
from kelda.shards.ingest import ingest
from kelda.shards.planner import Planner
from kelda.shards.setup import Setup
from kelda.shards.shard import Shard
from tests.shards.local import declare

INCREMENTAL = "SELECT ?x { STREAM <x:b> [NOW] { ?x <x:p> ?y } }"
BY_REFERENCE = "SELECT ?x { STREAM <x:b> [NOW] { ?x <x:p>+ ?y } }"


def text(stream: int, number: int, *times: int) -> Piece:
    data = b"".join(b"%d\t<x:n%d> <x:p> <x:o> .\n" % (time, time) for time in times)
    return Piece(stream, number, Chunk(1, 0, b"", data), len(times), len(data), format="tsnt")


def test_who_speaks_again_in_the_same_batch_is_not_late() -> None:
    streams = (StreamSource("x:a", "a.tsnt"), StreamSource("x:b", "b.tsnt"))
    planner, catalog = Planner(Setup()), Catalog()
    catalog.add(declare(planner, streams))
    ops = [planner.plan(QuerySpec(name, q)) for name, q in (("i", INCREMENTAL), ("r", BY_REFERENCE))]
    planner.route(ops)
    version = catalog.add(ops)
    shard = Shard(0, Setup())

    def take(batch: int, *pieces: Piece) -> tuple[int, int, list[int]]:
        """How many are late, how far the clock is, and when the reference evaluator has answered."""
        outcome = shard.take(
            batch, catalog, ingest(pieces, planner.declared.streams, planner.routing, 1, version)
        )
        return sum(outcome.news.late.values()), outcome.news.now, [a.time for a in outcome.answers]

    silent = Piece(1, -1, None, 0, 0, idle=True)
    assert take(0, text(0, 0, 1000, 2000), text(1, 0, 1000)) == (0, 999, [])
    assert take(1, text(0, 1, 3000, 9000), silent, text(1, 0, 2000)) == (0, 1999, [1000])
    assert take(2, silent) == (0, 8999, [2000])
    assert take(3, text(1, 0, 3000)) == (1, 8999, [])  # that is late
