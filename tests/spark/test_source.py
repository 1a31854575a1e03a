"""The source cuts files into bounded batches, and cuts them the same way again."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from kelda.errors import InputError
from kelda.runner.job import Job, StreamSource
from kelda.spark.source import Offset, Piece, StreamFiles, StreamPieces, cut


def stream(path: Path, count: int) -> StreamSource:
    path.write_text("".join(f"{i}\t<http://ex/{path.stem}{i}> <http://ex/p> {i} .\n" for i in range(count)))
    return StreamSource(f"http://ex/{path.stem}", str(path))


@pytest.fixture
def job(tmp_path: Path) -> Job:
    streams = (
        stream(tmp_path / "a.tsnt", 1000),
        stream(tmp_path / "b.tsnt", 100),
        stream(tmp_path / "c.tsnt", 0),
    )
    return Job(queries=(), streams=streams, batch_events=150)


def batches(reader: StreamFiles) -> list[tuple[Offset, Offset]]:
    out, start = [], reader.initialOffset()
    while (end := reader.latestOffset(start, reader.getDefaultReadLimit())) != start:
        end = json.loads(json.dumps(end))
        out.append((start, end))
        start = end
    return out


def pieces(reader: StreamFiles, start: Offset, end: Offset) -> list[Piece]:
    out = []
    for partition in reader.partitions(start, end):
        assert isinstance(partition, StreamPieces)
        assert len(list(reader.read(partition))) == len(partition.pieces())
        out += partition.pieces()
    return out


def test_batches_are_bounded_and_complete(job: Job) -> None:
    reader = StreamFiles(job, tasks=2)
    lines: dict[int, bytes] = {0: b"", 1: b"", 2: b""}
    ended = set()
    for start, end in batches(reader):
        some = pieces(reader, start, end)
        assert 0 < sum(p.chunk.data.count(b"\n") for p in some if p.chunk) <= 150 or any(p.ends for p in some)
        for piece in some:
            assert piece.stream not in ended
            lines[piece.stream] += piece.chunk.data if piece.chunk else b""
            if piece.ends:
                ended.add(piece.stream)
        reader.commit(end)
    assert ended == {0, 1, 2}, "an empty file ends too"
    for number, source in enumerate(job.streams):
        assert lines[number] == Path(source.path).read_bytes()


def test_files_keep_the_same_pace(job: Job) -> None:
    # a has ten times the events of b: after half the batches, about half of both was read
    reader = StreamFiles(Job(queries=(), streams=job.streams, batch_events=5), tasks=2)
    cuts = batches(reader)
    half = cuts[len(cuts) // 2][1]
    a, b = (half[f"http://ex/{name}"]["pieces"] for name in "ab")
    assert 90 <= a <= 110 and 9 <= b <= 11


def test_a_batch_is_the_same_when_read_again(job: Job) -> None:
    reader = StreamFiles(job, tasks=2)
    cuts = batches(reader)
    first = [pieces(reader, *cut) for cut in cuts]
    assert [pieces(reader, *cut) for cut in cuts] == first
    # as after a restart, from the middle, with no latestOffset before
    restarted = StreamFiles(job, tasks=2)
    assert pieces(restarted, *cuts[3]) == first[3]
    assert restarted.latestOffset(cuts[3][1], restarted.getDefaultReadLimit()) == cuts[4][1]
    # and backwards
    assert pieces(restarted, *cuts[1]) == first[1]


def test_without_a_limit_all_is_one_batch(job: Job) -> None:
    reader = StreamFiles(job, tasks=2)
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert all(at["ended"] for at in end.values())
    assert reader.latestOffset(end, ReadMaxRows(10)) == end
    assert reader.partitions(end, end) == []


def test_compressed_files_are_cut_alike(tmp_path: Path) -> None:
    plain = stream(tmp_path / "a.tsnt", 300)
    packed = tmp_path / "a.tsnt.gz"
    packed.write_bytes(gzip.compress(Path(plain.path).read_bytes()))
    wanted = [piece.chunk for piece in cut(0, plain, max_records=40)]
    found = list(cut(0, StreamSource("http://ex/a", str(packed)), max_records=40))
    assert [piece.chunk for piece in found] == wanted
    assert sum(piece.bytes for piece in found) == packed.stat().st_size


def test_a_file_that_shrank_is_noticed(job: Job) -> None:
    reader = StreamFiles(job, tasks=2)
    last = batches(reader)[-1]
    Path(job.streams[0].path).write_text("")
    with pytest.raises(InputError, match="has changed since the checkpoint"):
        StreamFiles(job, tasks=2).partitions(*last)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.tsnt"):
        StreamFiles(
            Job(queries=(), streams=(StreamSource("http://ex/a", str(tmp_path / "gone.tsnt")),)), tasks=1
        )
