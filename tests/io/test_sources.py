"""Every source hands out the same pieces for the same offsets, and no record is lost or told twice."""

from __future__ import annotations

import gzip
import json
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad

from kelda.errors import InputError, UsageError
from kelda.io.elements import ELEMENTS
from kelda.io.elements import unpack as unpacked
from kelda.io.job import StreamSource
from kelda.io.sources import (
    SCHEMES,
    BusyError,
    Offset,
    Opening,
    Piece,
    PushReader,
    Reader,
    cutter,
    open_reader,
    push_reader,
    runs,
)
from kelda.io.sources.replay_kernels import NO_TIME, line_times
from kelda.io.sources.spool import Spool
from kelda.io.sources.spot import Spot
from kelda.io.sources.tcp import TcpReader
from kelda.rdf.event import Event, Reject
from kelda.rdf.framing import read_chunk, read_events
from kelda.rdf.framings.nquads import RunSplitter
from kelda.shards.ingest import ingest
from kelda.shards.parcel import unpack
from kelda.shards.routing import Routing


class Clock:
    """A wall clock that is set by hand."""

    def __init__(self) -> None:
        self.time = 1_000_000.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


Open = Callable[..., Reader]


@pytest.fixture
def opened(tmp_path: Path, clock: Clock) -> Iterator[Open]:
    """Opens readers; opening the same address again is what a restart does."""
    readers: list[Reader] = []

    def open_it(
        url: str,
        *,
        format: str | None = None,
        idle_ms: int | None = None,
        rate: int | None = None,
        piece_records: int = 4096,
        mapping: str | None = None,
        time: str | None = None,
    ) -> Reader:
        source = StreamSource("http://ex/s", url, format, time, mapping, idle_ms=idle_ms, rate=rate)
        reader = open_reader(url, source, 0, spool=tmp_path / "spool", piece_records=piece_records, now=clock)
        readers.append(reader)
        return reader

    yield open_it
    for reader in readers:
        reader.close()


def line(time: int) -> bytes:
    return b'%d\t<http://ex/s%d> <http://ex/p> "%d" .\n' % (time, time, time)


def lines(*times: int) -> bytes:
    return b"".join(map(line, times))


def through_json(offset: Offset) -> Offset:
    return json.loads(json.dumps(offset))


def batches(reader: Reader, most: int | None = None, at: Offset | None = None) -> list[tuple[Offset, Offset]]:
    """All batches that can be made now."""
    out = []
    at = reader.start() if at is None else at
    while (end := reader.latest(at, most)) != at:
        end = through_json(end)
        out.append((at, end))
        at = end
    return out


def read(reader: Reader, found: list[tuple[Offset, Offset]]) -> list[Piece]:
    """The pieces of batches, without when they arrived."""
    return [replace(piece, arrived=None) for begin, end in found for piece in reader.pieces(begin, end)]


def text(pieces: list[Piece]) -> bytes:
    return b"".join(piece.chunk.data for piece in pieces if piece.chunk)


def numbers_grow(pieces: list[Piece]) -> bool:
    numbers = [piece.number for piece in pieces]
    return all(a < b for a, b in pairwise(numbers))


# ------------------------------------------------------------------------------------ files

FORMATS: dict[str, tuple[bytes, dict | None]] = {
    "tsnt": (b"# times\n" + lines(*range(60)) + b"broken\n\n" + lines(7).strip(), None),
    "nquads": (
        b"".join(
            b'<http://ex/s%d> <http://ex/p> "%d" .\n<http://ex/s%d> <http://ex/q> "x" .\n' % (i, i, i)
            for i in range(40)
        )
        + b"what is this\n"
        + lines(5, 6),
        None,
    ),
    "messages": (
        b"PREFIX ex: <http://ex/>\n"
        + b"MESSAGE\n".join(
            b"PREFIX p%d: <http://ex/%d/>\nex:s%d ex:p [ ex:q p%d:x ] .\n" % (i // 9, i, i, i // 9)
            for i in range(40)
        )
        + b"\nMESSAGE\n# the end\n\n",
        None,
    ),
    "ndjsonld": (
        b"".join(
            b'{"@context": {"@vocab": "http://ex/%d/"}}\n{"speed": %d}\n{"speed": [1, {"x": 2}]}\n' % (i, i)
            for i in range(20)
        ),
        {"@context": {"@vocab": "http://first/"}},
    ),
    "csv": (
        b"id,name\n" + b"".join(b'%d,"a ""quoted""\nname %d"\n' % (i, i) for i in range(40)) + b"\n1\n",
        {
            "triples": [
                ["_:x", "http://ex/name", {"column": "name"}],
                ["_:x", "http://ex/id", {"column": "id"}],
            ]
        },
    ),
    "json": (
        b"".join(b'{"id": %d}\n' % i for i in range(40)) + b"\n{}\n",
        {"triples": [["_:x", "http://ex/id", {"column": "id"}]]},
    ),
}


def written(
    folder: Path, format: str, data: bytes | None = None, *, packed: bool = False
) -> tuple[Path, str | None]:
    """A file of a format, and the file of its mapping."""
    sample, mapping = FORMATS[format]
    path = folder / (f"sample.{format}" + (".gz" if packed else ""))
    sample = sample if data is None else data
    path.write_bytes(gzip.compress(sample) if packed else sample)
    if mapping is None:
        return path, None
    where = folder / f"{format}.mapping.json"
    where.write_text(json.dumps(mapping))
    return path, str(where)


def events_of(pieces: list[Piece], format: str, mapping: str | None) -> tuple[list[Event], list[Reject]]:
    rejects: list[Reject] = []
    events = [
        event
        for piece in pieces
        if piece.chunk
        for event in read_chunk(piece.chunk, format, mapping=mapping, on_reject=rejects.append, name="s")
    ]
    return events, rejects


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("format", FORMATS)
def test_any_format_is_cut_the_same_from_any_place(
    format: str, packed: bool, tmp_path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cutter, "PIECE_BYTES", 400)
    path, mapping = written(tmp_path, format, packed=packed)
    rejects: list[Reject] = []
    events = list(read_events(path, format=format, mapping=mapping, on_reject=rejects.append, name="s"))
    for most in (1, 7, 4096):
        reader = opened(str(path), format=format, mapping=mapping, piece_records=most)
        steps = batches(reader, 1)
        pieces = read(reader, steps)
        assert events_of(pieces, format, mapping) == (events, rejects)
        assert sum(piece.bytes for piece in pieces) == path.stat().st_size
        assert [piece.ends for piece in pieces] == [False] * (len(pieces) - 1) + [True]
        assert numbers_grow(pieces) and max(piece.records for piece in pieces) <= most
        # in one batch, or in others
        assert read(reader, [(steps[0][0], steps[-1][1])]) == pieces
        again = opened(str(path), format=format, mapping=mapping, piece_records=most)
        assert read(again, batches(again, 12)) == pieces
        # as after a restart, at any place, and going back
        for number in (len(steps) - 1, len(steps) // 2, 0):
            cold = opened(str(path), format=format, mapping=mapping, piece_records=most)
            rest = batches(cold, None, steps[number][0])
            assert read(cold, rest) == pieces[number:]
            assert read(cold, [steps[0]]) == pieces[:1]
            assert cold.finished(rest[-1][1])


@settings(max_examples=30, deadline=None)
@given(
    data=st.lists(
        st.sampled_from([b"1\t<s> <p> <o> .\n", b"\n", b"#" + b"x" * 90 + b"\n", b"12\tx"]), max_size=40
    ),
    most=st.integers(1, 9),
    limit=st.integers(1, 20),
    piece_bytes=st.integers(20, 200),
)
def test_line_pieces_tile_the_file(
    data: list[bytes], most: int, limit: int, piece_bytes: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "random.tsnt"
    path.write_bytes(b"".join(data))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cutter, "PIECE_BYTES", piece_bytes)
        source = StreamSource("http://ex/s", str(path))
        reader = open_reader(str(path), source, 3, spool=path.parent, piece_records=most)
        found = read(reader, batches(reader, limit))
        whole = open_reader(str(path), source, 3, spool=path.parent, piece_records=most)
        assert found == read(whole, batches(whole))
        reader.close()
        whole.close()
    assert text(found) == path.read_bytes()
    assert found[-1].ends and {piece.stream for piece in found} == {3}
    before = 0
    for piece in found:
        if piece.chunk:
            assert piece.chunk.ordinal == before and piece.chunk.first_line == before + 1
            assert len(piece.chunk.data) <= piece_bytes or piece.records == 1
        before += piece.records


PLAIN = [b'<http://ex/%s> <http://ex/p> "1" .\n' % name for name in (b"a", b"b", b"c")]
ODD = [b"broken\n", b"\n", b"# said\n", line(1), b'<http://ex/a> <http://ex/p> "1" <http://ex/b> .\n']


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from(PLAIN * 3 + ODD), max_size=30),
    st.integers(0, 1200),
    st.booleans(),
    st.sampled_from([40, 200]),
)
def test_the_last_cut_is_one_of_all_cuts(parts: list[bytes], target: int, at_end: bool, back: int) -> None:
    data = b"".join(parts)
    target = min(target, len(data))
    cuts = [cut.end for cut in RunSplitter().cuts(data, at_end) if cut.end <= target]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "BACK", back)
        found = runs.last_cut(data, target, at_end)
    assert found == 0 or found in cuts
    # A boundary that only shows behind a comment may be missed for an earlier one.
    if not any(part in (b"\n", b"# said\n") for part in parts):
        assert found == (cuts[-1] if cuts else 0)


def test_batches_are_bounded(tmp_path: Path, opened: Open) -> None:
    path, _ = written(tmp_path, "tsnt", lines(*range(1000)))
    reader = opened(str(path), piece_records=10)
    found = batches(reader, 95)
    assert [sum(p.records for p in reader.pieces(*batch)) for batch in found] == [90] * 11 + [10]
    assert reader.part(found[5][1]) == pytest.approx(0.54, abs=0.02)
    assert reader.part(found[-1][1]) == 1


def test_an_empty_file_ends(tmp_path: Path, opened: Open) -> None:
    for format in ("tsnt", "messages"):
        path, _ = written(tmp_path, format, b"")
        reader = opened(f"file:{path}")
        (piece,) = read(reader, batches(reader))
        assert piece.ends and piece.chunk is None and piece.records == 0


def test_a_byte_order_mark_is_no_text(tmp_path: Path, opened: Open) -> None:
    for format in ("tsnt", "nquads"):
        path, _ = written(tmp_path, format, b"\xef\xbb\xbf" + lines(1, 2))
        reader = opened(str(path), piece_records=1)
        pieces = read(reader, batches(reader))
        assert text(pieces) == lines(1, 2)
        assert sum(p.bytes for p in pieces) == path.stat().st_size


def test_a_plain_file_is_not_read_again_after_a_restart(
    tmp_path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = written(tmp_path, "tsnt", lines(*range(1000)))
    first = batches(opened(str(path), piece_records=10), 500)
    asked: list[int] = []
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda f, size, at: asked.append(at) or pread(f, size, at))
    restarted = opened(str(path), piece_records=10)
    assert restarted.pieces(*first[1])[0].chunk.ordinal == 500
    assert min(at for at in asked if at) > first[0][1]["bytes"] - 100


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_that_changed_is_noticed(packed: bool, tmp_path: Path, opened: Open) -> None:
    path, _ = written(tmp_path, "tsnt", lines(*range(100)), packed=packed)
    begin, end = batches(opened(str(path), piece_records=10), 50)[0]
    written(tmp_path, "tsnt", lines(*range(10)), packed=packed)
    with pytest.raises(InputError, match="has changed since the checkpoint was written: it is shorter now"):
        opened(str(path), piece_records=10).latest(end)
    with pytest.raises(InputError, match="has changed"):
        opened(str(path), piece_records=10).pieces(begin, end)
    written(tmp_path, "tsnt", lines(*range(100, 200)), packed=packed)
    with pytest.raises(InputError, match="other text stands before byte"):
        opened(str(path), piece_records=10).latest(end)


def test_what_is_wrong_is_said_when_it_is_opened(tmp_path: Path, opened: Open) -> None:
    path, _ = written(tmp_path, "tsnt")
    for url, error, said in (
        (str(tmp_path / "gone.tsnt"), InputError, r"cannot read .*gone\.tsnt"),
        (f"tail:{tmp_path}/gone.tsnt", InputError, r"cannot read .*gone\.tsnt"),
        ("kafka://broker/topic", UsageError, "write kafka://host:port/topic"),
        ("mqtt://broker/topic", UsageError, "comes with"),
        ("gopher://old", UsageError, "unknown kind of stream 'gopher:'; there are: file"),
        (f"replay:{path}?sped=3", UsageError, "no option 'sped'; it takes: speed, rate, catchup"),
        (f"replay:{path}?speed=fast", UsageError, "'fast' is no value for the option 'speed'"),
        (f"replay:{path}?speed=0", UsageError, "greater than 0"),
        (f"replay:{path}?speed=1&rate=2", UsageError, "not both"),
        (f"replay:{path}?speed", UsageError, r"write options as \?name=value"),
        ("replay:", UsageError, "name a file"),
        ("tcp://127.0.0.1:9", UsageError, "say the format"),
        (f"folder:{tmp_path}/nowhere", InputError, "there is no folder"),
    ):
        with pytest.raises(error, match=said):
            opened(url)
    with pytest.raises(UsageError, match="tcp://host:port"):
        opened("tcp://nowhere", format="tsnt")
    with pytest.raises(UsageError, match="rate of <http://ex/s> must be at least 1"):
        opened(str(path), rate=0)


def test_a_scheme_of_ones_own(tmp_path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    path, _ = written(tmp_path, "tsnt", lines(1))

    def elsewhere(opening: Opening) -> Reader:
        return open_reader(str(path), opening.source, opening.number, spool=opening.spool)

    monkeypatch.setitem(SCHEMES, "mine", elsewhere)
    reader = opened("mine://x", format="tsnt")
    assert text(read(reader, batches(reader))) == lines(1)


# ----------------------------------------------------------------------------- growing files


def test_a_growing_file(tmp_path: Path, opened: Open) -> None:
    path, _ = written(tmp_path, "tsnt", lines(1, 2) + b"3\t<http://ex/s3> <ht")
    reader = opened(f"tail:{path}")
    found = batches(reader)
    assert text(read(reader, found)) == lines(1, 2), "a half-written line waits"
    with path.open("ab") as file:
        file.write(b'tp://ex/p> "3" .\n' + lines(4))
    found += batches(reader, at=found[-1][1])
    pieces = read(reader, found)
    assert text(pieces[1:]) == b'3\t<http://ex/s3> <http://ex/p> "3" .\n' + lines(4)
    assert numbers_grow(pieces) and not reader.finished(found[-1][1])
    # after a restart, when the file has grown further
    with path.open("ab") as file:
        file.write(lines(5))
    restarted = opened(f"tail:{path}")
    assert read(restarted, found) == pieces
    assert text(read(restarted, batches(restarted, at=found[-1][1]))) == lines(5)
    both = restarted.pieces(found[0][0], found[1][1])
    assert both == opened(f"tail:{path}").pieces(found[0][0], found[1][1])
    assert text(both) == text(pieces)


@pytest.mark.parametrize("format", FORMATS)
def test_any_format_may_grow(
    format: str, tmp_path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cutter, "PIECE_BYTES", 400)
    data = FORMATS[format][0]
    path, mapping = written(tmp_path, format, b"")
    reader = opened(f"tail:{path}", format=format, mapping=mapping)
    found: list[tuple[Offset, Offset]] = []
    at = reader.start()
    for begin in range(0, len(data), 333):
        with path.open("ab") as file:
            file.write(data[begin : begin + 333])
        found += batches(reader, 5, at)
        at = found[-1][1] if found else at
    pieces = read(reader, found)
    assert read(opened(f"tail:{path}", format=format, mapping=mapping), found) == pieces
    rejects: list[Reject] = []
    whole = (
        list(read_events(path, format=format, mapping=mapping, on_reject=rejects.append, name="s")),
        rejects,
    )
    events, rejected = events_of(pieces, format, mapping)
    # The last record may be waiting for its end.
    assert events == whole[0][: len(events)] and len(events) >= len(whole[0]) - 1
    assert rejected == whole[1][: len(rejected)]


def test_a_growing_file_must_only_grow(tmp_path: Path, opened: Open) -> None:
    path, _ = written(tmp_path, "tsnt", lines(1, 2))
    reader = opened(f"tail:{path}")
    end = reader.latest(reader.start())
    path.write_bytes(lines(1))
    for one in (reader, opened(f"tail:{path}")):
        with pytest.raises(InputError, match="it is shorter now"):
            one.latest(end)
    path.write_bytes(lines(7, 8, 9))
    with pytest.raises(InputError, match="other text stands before"):
        reader.latest(end)
    path.write_bytes(lines(1, 2, 3))
    assert text(reader.pieces(end, reader.latest(end))) == lines(3)
    other = tmp_path / "other"
    other.write_bytes(lines(1, 2, 3, 4))
    other.rename(path)
    with pytest.raises(InputError, match="another file bears its name"):
        reader.latest(end)


def test_a_compressed_file_cannot_be_followed(tmp_path: Path, opened: Open) -> None:
    path, _ = written(tmp_path, "tsnt", packed=True)
    with pytest.raises(UsageError, match="compressed"):
        opened(f"tail:{path}")


# ------------------------------------------------------------------------------------ folders


def test_a_folder_is_read_in_the_order_of_names(tmp_path: Path, opened: Open) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name, times in (("b", (3, 4)), ("a", (1, 2)), ("c", ()), ("d", (5,))):
        (folder / f"{name}.tsnt.gz").write_bytes(gzip.compress(lines(*times)))
    (folder / "README").write_text("not for you")
    (folder / ".half.tsnt.gz").write_text("not yet")
    url = f"{folder}?pattern=*.tsnt.gz"
    reader = opened(url, piece_records=1)
    found = batches(reader, 2)
    pieces = read(reader, found)
    assert text(pieces) == lines(1, 2, 3, 4, 5)
    assert [Path(p.name).name for p in pieces if p.chunk] == ["a.tsnt.gz"] * 2 + ["b.tsnt.gz"] * 2 + [
        "d.tsnt.gz"
    ]
    assert [p.chunk.first_line for p in pieces if p.chunk] == [1, 2, 1, 2, 1]
    assert [p.chunk.ordinal for p in pieces if p.chunk] == [0, 1, 2, 3, 4]
    assert pieces[-1].ends and sum(p.ends for p in pieces) == 1 and numbers_grow(pieces)
    assert reader.finished(found[-1][1]) and reader.part(found[-1][1]) == 1
    restarted = opened(f"folder:{url}", piece_records=1)
    assert read(restarted, found[2:]) == pieces[len(read(reader, found[:2])) :]
    assert read(restarted, found[:1]) == read(reader, found[:1])


def test_files_that_come_late(tmp_path: Path, opened: Open, clock: Clock) -> None:
    folder = tmp_path / "in"
    folder.mkdir()

    def put(name: str, *times: int, age: float = 10) -> None:
        (folder / f".{name}").write_bytes(lines(*times))
        os.utime(folder / f".{name}", (clock() - age, clock() - age))
        (folder / f".{name}").rename(folder / name)

    url = f"folder:{folder}?watch=true&pattern=*.tsnt"
    reader = opened(url)
    assert batches(reader) == []
    put("b.tsnt", 1, 2)
    found = batches(reader)
    put("d.tsnt", 5, age=0)
    assert batches(reader, at=found[-1][1]) == [], "it may still be written to"
    clock.time += 0.5
    put("c.tsnt", 4)
    found += batches(reader, at=found[-1][1])
    clock.time += 0.6
    found += batches(reader, at=found[-1][1])
    put("a.tsnt", 3)  # in front of all that were taken
    found += batches(reader, at=found[-1][1])
    pieces = read(reader, found)
    assert [p.name for p in pieces] == [f"{folder}/{name}.tsnt" for name in "bcda"]
    assert numbers_grow(pieces) and not any(p.ends for p in pieces)
    # a batch that is read again knows nothing of what came after it
    put("bb.tsnt", 6)
    restarted = opened(url)
    assert restarted.pieces(found[0][0], found[-1][1]) == pieces
    assert text(read(restarted, batches(restarted, at=found[-1][1]))) == lines(6)
    (folder / "b.tsnt").write_bytes(lines(1, 2, 3))
    with pytest.raises(InputError, match="changed after it was taken for complete"):
        restarted.latest(found[-1][1])


def test_a_folder_whose_memory_is_gone(tmp_path: Path, opened: Open) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.tsnt").write_bytes(lines(1, 2))
    reader = opened(f"{folder}/")
    end = reader.latest(reader.start())
    (log,) = tmp_path.glob("spool/*/taken.jsonl")
    log.unlink()
    with pytest.raises(InputError, match="is not what it was"):
        opened(f"{folder}/").latest({**end, "ended": False})


def test_files_of_another_format_are_refused(tmp_path: Path, opened: Open) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.tsnt").write_bytes(lines(1, 2))
    (folder / "b.nq").write_bytes(b"")
    reader = opened(str(folder))
    with pytest.raises(UsageError, match=r"b\.nq is not tsnt"):
        reader.latest(reader.start())


# ------------------------------------------------------------------------------------ sockets


class Server:
    """Speaks to one client after the other."""

    def __init__(self, *said: bytes) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self._run, args=said, daemon=True)
        self.thread.start()

    def _run(self, *said: bytes) -> None:
        for data in said:
            client, _ = self.socket.accept()
            with client:
                client.sendall(data)
        self.socket.close()


def wait_for(reader: Reader, at: Offset, records: int) -> Offset:
    until = time.monotonic() + 20
    end = reader.latest(at)
    while end["records"] < records and time.monotonic() < until:
        time.sleep(0.01)
        end = reader.latest(end)
    assert end["records"] == records
    return through_json(end)


def test_a_socket(opened: Open) -> None:
    server = Server(lines(*range(500)) + b"500\thalf a li", lines(*range(501, 600)))
    url = f"tcp://127.0.0.1:{server.port}"
    reader = opened(url, format="tsnt", piece_records=100)
    start = reader.start()
    end = wait_for(reader, start, 600)
    pieces = reader.pieces(start, end)
    assert text(pieces) == lines(*range(500)) + b"500\thalf a li" + lines(*range(501, 600))
    assert max(p.records for p in pieces) <= 100 and numbers_grow(pieces)
    assert [p.chunk.ordinal for p in pieces if p.chunk] == list(
        np.cumsum([0] + [p.records for p in pieces[:-1]])
    )
    middle = reader.latest(start, 250)
    assert 150 < middle["records"] <= 250
    reader.close()
    # the server is gone; what it said is not
    restarted = opened(url, format="tsnt", piece_records=100)
    assert restarted.pieces(start, end) == pieces
    assert restarted.pieces(start, middle) + restarted.pieces(middle, end) == pieces
    restarted.commit(end)
    assert restarted.latest(end) == end


def test_a_socket_may_end(opened: Open) -> None:
    server = Server(b"PREFIX ex: <http://ex/>\nex:a ex:b 1 .\nMESSAGE\nex:a ex:b 2 .")
    reader = opened(f"tcp://127.0.0.1:{server.port}/?reconnect=false", format="messages")
    end = wait_for(reader, reader.start(), 2)
    until = time.monotonic() + 20
    while not reader.finished(end) and time.monotonic() < until:
        end = reader.latest(end)
    pieces = reader.pieces(reader.start(), end)
    assert pieces[-1].ends
    events, rejects = events_of(pieces, "messages", None)
    assert [event.quads[0].object.value for event in events] == ["1", "2"] and not rejects


def test_a_server_that_is_not_there_is_tried_again(opened: Open, caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    reader = opened(f"tcp://127.0.0.1:{port}", format="tsnt")
    assert reader.latest(reader.start()) == reader.start()
    until = time.monotonic() + 20
    while len(caplog.records) < 2 and time.monotonic() < until:
        time.sleep(0.02)
    assert "no connection to tcp://" in caplog.records[0].getMessage()
    assert "next try in 0.2 s" in caplog.records[1].getMessage()


def test_a_socket_is_left_alone_while_much_waits(tmp_path: Path) -> None:
    server = Server(lines(*range(200_000)))
    source = StreamSource("http://ex/s", "tcp://", "tsnt")
    reader = TcpReader(f"127.0.0.1:{server.port}", source, 0, format="tsnt", spool=tmp_path, max_waiting=1000)
    at = reader.latest(reader.start())
    until = time.monotonic() + 20
    while at["records"] <= 1000 and time.monotonic() < until:
        at = reader.latest(at)
    time.sleep(0.1)
    assert reader.latest(at)["records"] < 20_000
    while at["records"] < 200_000 and time.monotonic() < until:
        reader.commit(at)
        at = reader.latest(at)
    assert at["records"] == 200_000
    reader.close()


# -------------------------------------------------------------------------------------- spool


def test_a_spool_lets_go_of_what_was_committed(tmp_path: Path) -> None:
    source = StreamSource("http://ex/s", "push:", "tsnt")
    reader = PushReader(source, 0, format="tsnt", spool=tmp_path)
    reader._spool._segment_size = 100
    ends = [reader.start()]
    for i in range(20):
        reader.push(lines(i))
        ends.append(reader.latest(ends[-1]))
    before = len(list(tmp_path.glob("*.spool")))
    reader.commit(ends[10])
    assert len(list(tmp_path.glob("*.spool"))) == before // 2
    assert reader.waiting == 10
    reader.commit(ends[20])
    assert len(list(tmp_path.glob("*.spool"))) == 1 and reader.waiting == 0
    with pytest.raises(InputError, match="do not belong together"):
        reader.pieces(ends[3], ends[4])
    reader.close()
    # the numbers go on
    restarted = PushReader(source, 0, format="tsnt", spool=tmp_path)
    restarted.push(lines(20))
    (piece,) = restarted.pieces(ends[20], restarted.latest(ends[20]))
    assert (piece.number, piece.chunk.ordinal, piece.chunk.first_line) == (20, 20, 21)
    restarted.close()
    for segment in tmp_path.glob("*.spool"):
        segment.unlink()
    emptied = PushReader(source, 0, format="tsnt", spool=tmp_path)
    with pytest.raises(InputError, match="do not belong together"):
        emptied.latest(ends[20])
    emptied.close()


def test_a_half_written_entry_is_cut_off(tmp_path: Path) -> None:
    source = StreamSource("http://ex/s", "push:", "tsnt")
    reader = PushReader(source, 0, format="tsnt", spool=tmp_path)
    reader.push(lines(1))
    reader.push(lines(2))
    reader.close()
    (segment,) = tmp_path.glob("*.spool")
    for shorter in (1, 30):
        os.truncate(segment, segment.stat().st_size - shorter)
        again = PushReader(source, 0, format="tsnt", spool=tmp_path)
        assert text(again.pieces(again.start(), again.latest(again.start()))) == lines(1)
        again.push(lines(3))
        assert text(again.pieces(again.start(), again.latest(again.start()))) == lines(1, 3)
        again.close()


def test_a_spool_that_cannot_be_written_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = StreamSource("http://ex/s", "push:", "tsnt")
    reader = PushReader(source, 0, format="tsnt", spool=tmp_path)
    reader.push(lines(1))

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(InputError, match=r"cannot write the spool .* No space left on device"):
            reader.push(lines(2))
    reader.push(lines(3))
    found = reader.pieces(reader.start(), reader.latest(reader.start()))
    assert text(found) == lines(1, 3) and [p.chunk.ordinal for p in found if p.chunk] == [0, 1]
    reader.close()


def test_two_spools_of_one_folder_agree(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 5, "tsnt")
    spool.append(None, heartbeat=7)
    spool.append(None, ends=True)
    end = spool.latest(spool.start())
    other = Spool(tmp_path, 5, "tsnt")
    assert other.pieces(spool.start(), end) == spool.pieces(spool.start(), end)
    assert other.latest(spool.start()) == end and end["ended"]


# --------------------------------------------------------------------------------------- push


def test_push(opened: Open) -> None:
    reader = opened("push:", format="tsnt")
    assert isinstance(reader, PushReader)
    start = reader.start()
    assert reader.latest(start) == start
    assert reader.push("1\t<http://ex/a> <http://ex/b> <http://ex/c> .") == 1
    reader.push([Event(2, (Quad(NamedNode("http://ex/a"), NamedNode("http://ex/b"), Literal("x")),) * 2)])
    reader.heartbeat(5)
    reader.end()
    end = reader.latest(start)
    pieces = reader.pieces(start, end)
    events, rejects = events_of(pieces[:1], "tsnt", None)
    assert [event.time for event in events] == [1] and not rejects
    assert [piece.format for piece in pieces[:2]] == ["tsnt", ELEMENTS]
    assert unpacked(pieces[1].chunk.data)[0].time.tolist() == [2, 2]  # one event of two triples
    assert [piece.heartbeat for piece in pieces] == [None, None, 5, None]
    assert pieces[-1].ends and reader.finished(end)
    with pytest.raises(UsageError, match="takes no more records"):
        reader.push(lines(3))
    again = opened("push:", format="tsnt")
    assert isinstance(again, PushReader) and again.records == 2
    assert again.pieces(start, end) == pieces


def test_what_is_pushed_may_be_watched_and_slowed_down(opened: Open, clock: Clock) -> None:
    reader = opened("push:", format="tsnt", idle_ms=1000, rate=10)
    push_reader(reader).push(lines(1, 2))
    at = reader.latest(reader.start())
    clock.time += 0.5
    at = reader.latest(at)
    clock.time += 2
    end = reader.latest(at)
    assert [p.idle for p in reader.pieces(reader.start(), end)] == [False, False, True]
    with pytest.raises(UsageError, match="is not pushed on"):
        push_reader(opened("tcp://127.0.0.1:9", format="tsnt"))


def test_text_needs_a_format(opened: Open) -> None:
    reader = opened("push:")
    assert isinstance(reader, PushReader) and reader.format == ELEMENTS
    assert reader.push(Event(1, ())) == 1
    with pytest.raises(UsageError, match="has no format in which text could be read"):
        reader.push(lines(1))


def test_push_waits_for_who_reads(opened: Open) -> None:
    reader = opened("push:?waiting=3", format="tsnt")
    assert isinstance(reader, PushReader)
    reader.push(lines(1, 2))
    reader.push(lines(3, 4))
    with pytest.raises(BusyError, match="4 records of <http://ex/s> wait to be read, and at most 3 may"):
        reader.push(lines(5), wait=False)
    with pytest.raises(BusyError):
        reader.push(lines(5), timeout=0.01)
    pushing = threading.Thread(target=reader.push, args=(lines(5),))
    pushing.start()
    end = reader.latest(reader.start())
    assert end["records"] == 4, "it waits"
    reader.commit(end)
    pushing.join(20)
    assert text(reader.pieces(end, reader.latest(end))) == lines(5)


# ------------------------------------------------------------------------------------- replay


def test_replay_at_the_speed_of_event_time(tmp_path: Path, opened: Open, clock: Clock) -> None:
    #   event time   100 110 150      1100   2100 2050 2104    5000
    #   due at 2x      0   5  25       500   1000 1000 1002    2450 ms
    data = lines(100, 110, 150, 1100, 2100, 2050, 2104, 5000)
    for format in ("tsnt", "nquads"):
        path, _ = written(tmp_path, format, data)
        reader = opened(f"replay:{path}?speed=2")
        found: list[tuple[Offset, Offset]] = []
        at = reader.start()
        began = clock()
        due: list[int] = []
        for ms in (0, 5, 24, 25, 499, 500, 999, 1000, 1002, 1003, 2449, 2450, 9999):
            clock.time = began + ms / 1000 + (1e-6 if ms else 0)
            more = batches(reader, at=at)
            found += more
            at = more[-1][1] if more else at
            due.append(at["records"])
        assert due == [0, 0, 0, 3, 3, 4, 4, 4, 7, 7, 7, 8, 8]
        assert reader.finished(at)
        pieces = read(reader, found)
        assert text(pieces) == data
        # whatever the batches: late, all at once, or after a restart
        again = opened(f"replay:{path}?speed=2")
        assert read(again, batches(again)) == []
        clock.time += 60
        assert read(again, batches(again, 2)) == pieces
        assert read(opened(f"replay:{path}?speed=2"), found[1:]) == pieces[1:]


def test_replay_goes_on_after_a_restart_as_if_no_time_had_passed(
    tmp_path: Path, opened: Open, clock: Clock
) -> None:
    path, _ = written(tmp_path, "tsnt", lines(*range(0, 100_000, 1000)))
    for catchup, wanted in (("false", 6), ("true", 50)):
        url = f"replay:{path}?speed=1&catchup={catchup}"
        reader = opened(url)
        at = reader.latest(reader.start())
        clock.time += 5.0001 - 1
        at = through_json(reader.latest(at))
        assert at["records"] == 5
        clock.time += 44.9  # the process is gone for a while
        restarted = opened(url)
        at = restarted.latest(at)
        assert at["records"] == (5 if catchup == "false" else wanted - 1)
        clock.time += 1.01
        assert restarted.latest(at)["records"] == wanted


@pytest.mark.parametrize("format", ["tsnt", "messages"])
def test_replay_at_a_rate(format: str, tmp_path: Path, opened: Open, clock: Clock) -> None:
    data = lines(*range(1000)) if format == "tsnt" else b"<http://s> <http://p> 1, 2 .\nMESSAGE\n" * 500
    per_record = 1 if format == "tsnt" else 2
    path, _ = written(tmp_path, format, data)
    reader = opened(f"replay:{path}?rate=200")
    at = reader.start()
    reader.latest(at)
    for second in (1, 2, 3):
        clock.time += 1
        at = reader.latest(at)
        assert at["records"] * per_record == pytest.approx(200 * second, abs=20)
    assert max(p.records for p in reader.pieces(reader.start(), at)) * per_record <= 20


def test_a_file_without_times_has_no_speed(tmp_path: Path, opened: Open) -> None:
    path, _ = written(tmp_path, "messages", b"<http://s> <http://p> 1 .\nMESSAGE\n")
    reader = opened(f"replay:{path}")
    with pytest.raises(InputError, match="no event times were found"):
        reader.latest(reader.start())
    # what comes before the first time is due at once
    path, _ = written(tmp_path, "tsnt", b"nothing\nof value\n" + lines(5))
    reader = opened(f"replay:{path}")
    assert text(reader.pieces(reader.start(), reader.latest(reader.start()))) == path.read_bytes()


TIMED = rb"[ ]*(-?[0-9]{1,18})[ ]*\t"


@given(st.lists(st.sampled_from([b"1", b"23", b" ", b"\t", b"-", b"\n", b"x", b"9" * 18]), max_size=60))
def test_line_times(parts: list[bytes]) -> None:
    data = b"".join(parts)
    ends, times = np.empty(100, np.int64), np.empty(100, np.int64)
    count = line_times(np.frombuffer(data, np.uint8), ends, times)
    wanted = data.splitlines(keepends=True)
    assert list(ends[:count]) == list(np.cumsum([len(one) for one in wanted]))
    for one, found in zip(wanted, times[:count], strict=True):
        timed = re.match(TIMED, one)
        assert found == (int(timed[1]) if timed else NO_TIME)


# ------------------------------------------------------------------------- silence and speed


def test_an_idle_stream_says_so_once(tmp_path: Path, opened: Open, clock: Clock) -> None:
    path, _ = written(tmp_path, "tsnt", lines(1))
    url = f"tail:{path}"
    reader = opened(url, idle_ms=500)
    found = batches(reader)
    clock.time += 0.4
    assert batches(reader, at=found[-1][1]) == []
    clock.time += 0.2
    found += batches(reader, at=found[-1][1])
    clock.time += 100
    assert batches(reader, at=found[-1][1]) == [], "once is enough"
    with path.open("ab") as file:
        file.write(lines(2))
    found += batches(reader, at=found[-1][1])
    clock.time += 1
    found += batches(reader, at=found[-1][1])
    pieces = read(reader, found)
    assert [(p.records, p.idle, p.number) for p in pieces] == [
        (1, False, 0),
        (0, True, 1),
        (1, False, 2),
        (0, True, 3),
    ]
    assert read(opened(url, idle_ms=500), found) == pieces
    # over the silence in between: the stream had spoken again
    both = opened(url, idle_ms=500).pieces(found[0][0], found[-1][1])
    assert text(both) == lines(1, 2) and both[-1].idle and numbers_grow(both)


def test_a_stream_that_has_ended_is_not_idle(tmp_path: Path, opened: Open, clock: Clock) -> None:
    path, _ = written(tmp_path, "tsnt", lines(1))
    reader = opened(str(path), idle_ms=500)
    found = batches(reader)
    clock.time += 60
    assert batches(reader, at=found[-1][1]) == []


@pytest.mark.parametrize("rate", [1, 30, 1000])
def test_a_rate_limit(rate: int, tmp_path: Path, opened: Open, clock: Clock) -> None:
    path, _ = written(tmp_path, "tsnt", lines(*range(20_000)))
    reader = opened(str(path), rate=rate, idle_ms=100)
    at = reader.start()
    for _ in range(1000):
        at = reader.latest(at)
        clock.time += 0.01
    assert at["records"] == pytest.approx(10 * rate, abs=max(2, rate / 5))
    assert not any(piece.idle for piece in reader.pieces(reader.start(), at)), "held back is not silent"
    clock.time += 1000
    assert reader.latest(at)["records"] - at["records"] <= max(1, rate), "nothing is saved up"


# ------------------------------------------------------------------------------------ other pieces


@pytest.mark.parametrize("kind", ["file", "folder", "replay"])
@pytest.mark.parametrize(("before", "after"), [(7, 100), (100, 7), (100, 3)])
def test_a_batch_is_read_again_in_pieces_of_another_size(
    kind: str, before: int, after: int, tmp_path: Path, opened: Open, clock: Clock
) -> None:
    """A restart with other `--batch-events`: what lies between two offsets is still the same."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.tsnt").write_bytes(lines(*range(1, 60)))
    (folder / "b.tsnt").write_bytes(lines(*range(60, 95)))
    url = {
        "file": str(folder / "a.tsnt"),
        "folder": f"folder:{folder}",
        "replay": f"replay:{folder}/a.tsnt?rate=1000",
    }
    reader = opened(url[kind], piece_records=before)
    start = reader.start()
    first = through_json(reader.latest(start, 20))
    clock.time += 10.0
    steps = [(start, first)] if first != start else []
    steps += batches(reader, 20, first)
    texts = [text(reader.pieces(*step)) for step in steps]
    assert len(texts) >= 1 and b"".join(texts).count(b"\n") >= 59
    cold = opened(url[kind], piece_records=after)
    assert [text(cold.pieces(*step)) for step in steps] == texts


def test_spots_are_the_chunks_they_stand_for(tmp_path: Path) -> None:
    path = tmp_path / "a.tsnt"
    for begin in (b"", b"\xef\xbb\xbf"):  # with a byte order mark, too
        path.write_bytes(begin + lines(*range(50)) + b"50\t<s> <p> <o> .")
        source = StreamSource("http://ex/s", str(path))
        whole = open_reader(str(path), source, 0, spool=tmp_path, piece_records=9)
        spots = open_reader(str(path), source, 0, spool=tmp_path, piece_records=9, spots=True)
        steps = batches(whole, 20)
        assert batches(spots, 20) == steps
        found = read(spots, steps)
        assert any(isinstance(piece.chunk, Spot) for piece in found)
        assert [piece.loaded() for piece in found] == read(whole, steps)
        path.write_bytes(begin + lines(*range(100, 150)))
        with pytest.raises(InputError, match="has changed while it was read"):
            found[-1].loaded()
        whole.close()
        spots.close()


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.integers(0, 60), min_size=20, max_size=300),
    st.sets(st.integers(0, 300), max_size=5),
    st.sampled_from([40, 1000]),
    st.integers(1, 400),
)
def test_large_pieces_are_not_counted(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], bad: set[int], most: int, batch: int
) -> None:
    """They lie side by side, the same whenever they are asked for; a reject has its line all the same."""
    folder = tmp_path_factory.mktemp("large")
    path = folder / "a.tsnt"
    text_lines = [
        b"nonsense\n" if i in bad else b'%d\t<a:b> <a:p> "%s" .\n' % (i, b"x" * size)
        for i, size in enumerate(sizes)
    ]
    path.write_bytes(b"".join(text_lines))
    source = StreamSource("http://ex/s", str(path))
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(cutter, "LOOK", 64)
        changed.setattr(cutter, "PIECE_BYTES", 512)
        readers = [
            open_reader(str(path), source, 0, spool=folder, piece_records=most, spots=True) for _ in range(2)
        ]
        steps = [tuple(map(through_json, step)) for step in batches(readers[0], batch)]
        pieces = read(readers[0], steps)
        for begin, end in reversed(steps):  # who begins anywhere reads what the other did
            one, other = ([piece.loaded() for piece in r.pieces(begin, end)] for r in readers)
            assert text(one) == text(other)
    for reader in readers:
        reader.close()
    assert b"".join(piece.loaded().chunk.data for piece in pieces if piece.chunk) == path.read_bytes()
    line = 1
    for piece in pieces:
        if piece.chunk is not None:
            assert piece.chunk.begins_on() == line
            assert isinstance(piece.chunk, Spot) and piece.chunk.size <= 512
            line += piece.loaded().chunk.data.count(b"\n")
    routing = Routing()
    (parcel,) = ingest(pieces, [source], routing, 1, 0)
    _, parts, _ = unpack(parcel)
    assert [r.line for part in parts for r in part.rejects] == [i + 1 for i in sorted(bad) if i < len(sizes)]
    assert sum(part.size for part in parts) == len(sizes) - len([i for i in bad if i < len(sizes)])


def test_lines_of_a_large_piece_are_counted_when_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.tsnt"
    path.write_bytes(lines(*range(1000, 1300)))
    source = StreamSource("http://ex/s", str(path))
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(cutter, "LOOK", 64)
        changed.setattr(cutter, "PIECE_BYTES", 512)
        reader = open_reader(str(path), source, 0, spool=tmp_path, piece_records=1000, spots=True)
        chunks = [piece.chunk for piece in read(reader, batches(reader)) if piece.chunk]
        reader.close()
    assert [chunk.first_line for chunk in chunks].count(0) > len(chunks) // 2
    begins = [chunk.begins_on() for chunk in reversed(chunks)]  # in any order
    assert begins == sorted(begins, reverse=True) and begins[-1] == 1 and len(set(begins)) == len(chunks)
