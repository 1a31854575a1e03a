"""The source cuts streams into bounded batches, and cuts them the same way again. No JVM here."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from kelda.errors import InputError, KeldaError
from kelda.io.job import QuerySpec, StreamSource
from kelda.io.sources import Offset, Piece
from kelda.shards import seen
from kelda.shards.catalog import AddStream, CatalogFolder, DropStream, Register
from kelda.shards.parcel import unpack
from kelda.shards.routing import Routing
from kelda.shards.routing_file import Change, RoutingFile
from kelda.shards.setup import Setup
from kelda.spark.keys import shard_keys, spark_hash
from kelda.spark.run import Run
from kelda.spark.source import CATALOG, Streams
from kelda.spark.ways import Reading, StreamPieces
from kelda.spark.width import Width

Offsets = dict[str, Offset]


def stream(path: Path, count: int) -> StreamSource:
    path.write_text("".join(f"{i}\t<x:{path.stem}{i}> <x:p> <x:o> .\n" for i in range(count)))
    return StreamSource(f"http://ex/{path.stem}", str(path))


SIZES = {"a": 1000, "b": 100, "c": 0}


@pytest.fixture
def reading(tmp_path: Path) -> Reading:
    """Of three files, whose streams have the numbers 0, 1 and 2."""
    streams = [stream(tmp_path / f"{name}.tsnt", size) for name, size in SIZES.items()]
    run = Run("run", Setup(shards=3), str(tmp_path))
    CatalogFolder(run.catalog).add([AddStream(number, source) for number, source in enumerate(streams)])
    return reading_of(run, streams)


def reading_of(run: Run, streams: list[StreamSource]) -> Reading:
    """The first stream goes to the last shard."""
    path, routing = Path(run.folder, "routing"), Routing()
    routing.everything(streams[0].iri, run.setup.shards - 1)
    RoutingFile(path, "run").write(routing)
    return Reading(run, batch_events=150, tasks=2, routing=str(path))


def batches(reader: Streams) -> list[tuple[Offsets, Offsets]]:
    out, start = [], reader.initialOffset()
    while (end := reader.latestOffset(start, reader.getDefaultReadLimit())) != start:
        end = json.loads(json.dumps(end))
        out.append((start, end))
        start = end
    return out


def pieces(reader: Streams, start: Offsets, end: Offsets) -> list[Piece]:
    out = []
    for partition in reader.partitions(start, end):
        assert isinstance(partition, StreamPieces)
        out += partition.unpacked()[0]
    return out


def test_batches_are_bounded_and_complete(reading: Reading) -> None:
    reader = Streams(reading)
    text = dict.fromkeys(range(3), b"")
    ended = set()
    for start, end in batches(reader):
        some = pieces(reader, start, end)
        assert 0 < sum(piece.records for piece in some) <= 150 or any(piece.ends for piece in some)
        for piece in some:
            assert piece.stream not in ended
            text[piece.stream] += piece.chunk.data if piece.chunk else b""
            if piece.ends:
                ended.add(piece.stream)
        reader.commit(end)
    assert ended == {0, 1, 2}, "an empty file ends too"
    for number, name in enumerate(SIZES):
        assert text[number] == Path(reading.run.folder, f"{name}.tsnt").read_bytes()


def test_a_batch_is_the_same_when_read_again(reading: Reading) -> None:
    reader = Streams(reading)
    cuts = batches(reader)
    first = [pieces(reader, *cut) for cut in cuts]
    assert [pieces(reader, *cut) for cut in cuts] == first
    # as after a restart, from the middle, with no latestOffset before
    restarted = Streams(reading)
    assert pieces(restarted, *cuts[3]) == first[3]
    assert restarted.latestOffset(cuts[3][1], restarted.getDefaultReadLimit()) == cuts[4][1]
    # and backwards
    assert pieces(restarted, *cuts[1]) == first[1]


def test_files_keep_the_same_pace(reading: Reading) -> None:
    # a has ten times the events of b: after half the batches, about half of both was read
    cuts = batches(Streams(replace(reading, batch_events=10)))
    half = cuts[len(cuts) // 2][1]
    a, b = (half[f"{number} http://ex/{name}"]["records"] for number, name in enumerate("ab"))
    assert 450 <= a <= 550 and abs(a / 10 - b) <= 10


def test_a_task_makes_a_parcel_for_each_shard(reading: Reading) -> None:
    reader = Streams(reading)
    start, end = batches(reader)[0]
    (partition,) = reader.partitions(start, end)
    found = {key: unpack(parcel) for key, parcel in reader.read(partition)}
    assert list(found) == list(shard_keys(3))
    assert isinstance(partition, StreamPieces)
    records = sum(piece.records for piece in partition.unpacked()[0])
    for shard, (version, parts, _) in enumerate(found.values()):
        assert version == 1
        assert sum(part.size for part in parts) == records, "every shard learns every time"
        sent = sum(len(part.s) for part in parts)
        assert sent == (sum(part.size for part in parts if part.stream == 0) if shard == 2 else 0)


def test_a_new_version_of_the_catalog_is_a_batch_of_its_own(reading: Reading) -> None:
    reader = Streams(reading)
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    while (further := reader.latestOffset(end, ReadMaxRows(10_000))) != end:
        end = further
    assert all(at["ended"] for key, at in end.items() if key != CATALOG)
    CatalogFolder(reading.run.catalog).add([Register("q", QuerySpec("q", "ASK {}"))])
    later = reader.latestOffset(end, ReadMaxRows(10))
    assert later == end | {CATALOG: {"version": 2}}
    (partition,) = reader.partitions(end, later)
    assert [unpack(parcel)[:2] for _, parcel in reader.read(partition)] == [(2, [])] * 3


def test_streams_come_and_go_from_a_batch_on(reading: Reading, tmp_path: Path) -> None:
    """One that is declared again after it was dropped is another one, and is read from its beginning."""
    reader, catalog = Streams(reading), CatalogFolder(reading.run.catalog)
    first = reader.latestOffset(reader.initialOffset(), ReadMaxRows(600))
    catalog.add([DropStream("http://ex/b")])
    without = reader.latestOffset(first, ReadMaxRows(150))
    assert set(without) == {"0 http://ex/a", "2 http://ex/c", CATALOG}
    (tmp_path / "more").mkdir()
    catalog.add([AddStream(3, stream(tmp_path / "more" / "b.tsnt", 7))])
    again = reader.latestOffset(without, ReadMaxRows(2000))
    assert set(again) == {"0 http://ex/a", "2 http://ex/c", "3 http://ex/b", CATALOG}
    assert sum(piece.records for piece in pieces(reader, without, again) if piece.stream == 3) == 7
    # Each batch has the streams of its own version, also when it is read again by another process.
    restarted = Streams(reading)
    cuts = [(reader.initialOffset(), first), (first, without), (without, again)]
    assert [{p.stream for p in pieces(restarted, *cut)} for cut in cuts] == [{0, 1, 2}, {0}, {0, 3}]


def test_a_file_that_shrank_is_noticed(reading: Reading) -> None:
    last = batches(Streams(reading))[-1]
    Path(reading.run.folder, "a.tsnt").write_text("")
    with pytest.raises(InputError, match="has changed since the checkpoint"):
        Streams(reading).partitions(*last)


@pytest.mark.parametrize("shards", [1, 2, 5, 16, 63])
def test_each_shard_has_a_partition_of_its_own(shards: int) -> None:
    keys = shard_keys(shards)
    assert [spark_hash(key) % shards for key in keys] == list(range(shards))


def test_the_hash_is_that_of_spark() -> None:
    # what SELECT hash(0), hash(1) says in Spark SQL
    assert [spark_hash(n) for n in (0, 1)] == [933211791, -559580957]


def test_a_batch_is_cut_as_wide_as_the_cluster_is_then(tmp_path: Path) -> None:
    wide, run = stream(tmp_path / "wide.tsnt", 60_000), Run("run", Setup(), str(tmp_path))
    CatalogFolder(run.catalog).add([AddStream(0, wide)])
    reading = replace(reading_of(run, [wide]), batch_events=30_000)
    reader, width = Streams(reading), Width(tmp_path)
    first, second, *_ = batches(reader)
    assert len(reader.partitions(*first)) == 2, "as at the start, if nobody has told"
    for tasks in (4, 3, 1):
        width.tell(tasks)
        assert len(reader.partitions(*second)) == tasks
    (tmp_path / "width").write_bytes(b"damaged")
    assert len(reader.partitions(*second)) == 2


def test_a_task_waits_for_the_routing_that_its_batch_needs(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Streams(reading)
    start, end = batches(reader)[0]
    (partition,) = reader.partitions(start, end)
    assert isinstance(partition, StreamPieces)
    assert partition.routing == Change("run", 1)
    monkeypatch.setattr(seen, "PATIENCE", 0.05)
    partition.routing = Change("run", 2)  # as if this machine saw the one before
    with pytest.raises(KeldaError, match="change 2 of the routing did not come to be seen"):
        list(reader.read(partition))
