"""Records that are too long, by the sources: rejected once, cut the same in every run, and never held."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from kelda.io.job import StreamSource
from kelda.io.sources import open_reader, push_reader
from kelda.io.sources.reader import Piece
from kelda.rdf.framing import read_chunk
from kelda.rdf.framings.base import MAX_RECORD

STREAM = "http://ex/s"
LINE = b"5\t<http://ex/a> <http://ex/p> <http://ex/o> .\n"
LONG = b'6\t<http://ex/a> <http://ex/p> "%s" .\n'


def outcome(pieces: list[Piece], format: str, max_record: int | None = None) -> tuple[int, list[int]]:
    """How many events there are, and the lines of rejects."""
    lines: list[int] = []
    events = 0
    for piece in pieces:
        if piece.chunk is not None:
            chunk = piece.chunk.load() if not piece.chunk.left_out else piece.chunk
            found = read_chunk(chunk, format, on_reject=lambda r: lines.append(r.line), max_record=max_record)
            events += len(list(found))
    return events, lines


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("spots", [False, True])
def test_lines_of_a_file(packed: bool, spots: bool, tmp_path: Path) -> None:
    path = tmp_path / "s.tsnt"
    data = LINE * 3 + LONG % (b"x" * MAX_RECORD) + LINE * 2 + LONG % (b"y" * MAX_RECORD)
    path.write_bytes(gzip.compress(data, 1) if packed else data)
    source = StreamSource(STREAM, str(path), "tsnt")
    reader = open_reader(source.path, source, 0, spool=tmp_path, spots=spots)
    at, ends, pieces = reader.start(), [], []
    while (end := reader.latest(at, 1)) != at:
        pieces += reader.pieces(at, end)
        ends.append(end)
        at = end
    assert outcome(pieces, "tsnt") == (5, [4, 7])
    assert sum(p.records for p in pieces) == 7
    assert all(len(p.chunk.data) < 2000 for p in pieces if p.chunk)
    for end in ends:  # a restart finds the file as it was, also behind a record that was passed over
        again = open_reader(source.path, source, 0, spool=tmp_path, spots=spots)
        rest = again.pieces(end, ends[-1])
        assert [p.chunk for p in rest] == [p.chunk for p in pieces[len(pieces) - len(rest) :]]


def test_large_pieces_without_counted_lines(tmp_path: Path) -> None:
    """The line of a record that was passed over is counted when it is to be told."""
    path = tmp_path / "s.tsnt"
    path.write_bytes(LINE * 60_000 + LONG % (b"x" * MAX_RECORD) + LINE * 60_000)
    source = StreamSource(STREAM, str(path), "tsnt")
    reader = open_reader(source.path, source, 0, spool=tmp_path, piece_records=200_000, spots=True)
    pieces = reader.pieces(reader.start(), reader.latest(reader.start()))
    assert outcome(pieces, "tsnt") == (120_000, [60_001])


@pytest.mark.parametrize("format", ["tsnt", "nquads", "messages", "ndjsonld"])
def test_a_connection_that_never_ends_its_line_is_not_kept_in_memory(format: str, tmp_path: Path) -> None:
    source = StreamSource(STREAM, "push:", format, max_record=1_000_000)
    reader = open_reader("push:", source, 0, spool=tmp_path)
    document = push_reader(reader)._document()
    document.add(b"x" * 10)
    for _ in range(100):
        document.add(b"x" * 100_000)
        held = len(document._text._data)
        window = document._cutter._window
        assert held + (len(window._rest) if window else 0) <= 2_500_000
    document.add(b"\nMESSAGE\n" + (LINE[2:] if format == "messages" else LINE) * 2, complete=True)
    pieces = reader.pieces(reader.start(), reader.latest(reader.start()))
    _, rejected = outcome(pieces, format, 1_000_000)
    assert rejected[0] == 1 and pieces[0].chunk is not None and pieces[0].chunk.left_out > 9_000_000
    reader.close()
