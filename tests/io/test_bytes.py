"""One meaning for every byte string: all runners give the same answers, counts and rejects of it.

KELDA_RANDOM=1 KELDA_CASES=5000 for more (`make fuzz`); a failure prints how to get it back.
"""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from pathlib import Path
from unittest.mock import patch

import pytest
import zstandard
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from kelda.io.sources import cutter
from tests.io.odd_bytes import TEXTS, streams
from tests.io.same_bytes import (
    EVERYTHING,
    SOME,
    Outcome,
    Way,
    by_inprocess,
    by_reference,
    by_shards,
    differences,
    source_of,
)

CASES = max(1, int(os.environ.get("KELDA_CASES", "280")) // len(TEXTS))
PACKED = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress}

ways = st.builds(
    Way,
    shards=st.sampled_from([1, 1, 2]),
    piece_records=st.sampled_from([1, 2, 7, 4096]),
    batch=st.sampled_from([None, 1, 3]),
    spots=st.booleans(),
    restart=st.booleans(),
    portions=st.sampled_from([(), (), (1,), (5, 1, 30), (64,)]),
)


PLAINLY = Way()


def compare(
    format: str,
    data: bytes,
    *,
    way: Way = PLAINLY,
    max_record: int | None = None,
    packed: str = "",
    piece_bytes: int = cutter.PIECE_BYTES,
    batch: int = 10_000,
    some: bool = False,
) -> Outcome:
    """What all runners make of the bytes."""
    queries = [SOME] if some else [EVERYTHING, SOME]
    with tempfile.TemporaryDirectory() as folder, patch.object(cutter, "PIECE_BYTES", piece_bytes):
        path = Path(folder, f"stream.{format}{packed}")
        path.write_bytes(PACKED[packed](data))
        mapping = None
        if TEXTS[format][1] is not None:
            mapping = Path(folder, "mapping.json")
            mapping.write_text(json.dumps(TEXTS[format][1]))
        source = source_of(path, format.partition("-")[0], mapping, max_record)
        expected = by_reference(source, queries, batch)
        others = {
            "inprocess": by_inprocess(source, queries, batch),
            "shards": by_shards(source, queries, way, Path(folder, "spool"), data),
        }
        for runner, found in others.items():
            assert not (wrong := differences(found, expected)), "\n  ".join([runner, *wrong])
        return expected


def records_in(format: str, data: bytes) -> int | None:
    """How many records there are, counted by themselves, where that is simple."""
    lines = [line.strip(b" \t\r") for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n")]
    if format == "tsnt":
        return sum(1 for line in lines if line and not line.startswith(b"#"))
    if format.startswith("json"):
        return sum(1 for line in lines if line.strip())  # any white space, mixed as it may be
    return None


LINE = b'%s\t<http://ex/a> <http://ex/p> "x" .'


@pytest.mark.parametrize(
    ("format", "data", "taken", "rejected"),
    [
        ("tsnt", b"\xef\xbb\xbf" + LINE % b"1", 1, 0),
        ("tsnt", LINE % b"1" + b"\n\xef\xbb\xbf" + LINE % b"2", 1, 1),
        ("tsnt", LINE % b"1" + b"\r" + LINE % b"2" + b"\n" + LINE % b"3", 1, 1),
        ("tsnt", LINE % b"1" + b"\r\n" + LINE % b"2" + b"\r\r\n" + LINE % b"3" + b"\r", 3, 0),
        ("tsnt", LINE % b" 1" + b"\n" + LINE % b"\t2" + b"\n" + LINE % b"3 ", 3, 0),
        ("tsnt", LINE % b"1" + b"\n5000\t\n5000\t# so\n5000\n# so\n\n \t\n", 1, 3),
        ("tsnt", LINE % b"007" + b"\n" + LINE % (b"0" * 30 + b"8") + b"\n" + LINE % b"-0", 2, 0),
        (
            "tsnt",
            LINE % b"253402300799999" + b"\n" + LINE % b"253402300800000" + b"\n" + LINE % (b"9" * 5000),
            1,
            2,
        ),
        (
            "tsnt",
            b'1\t<http://ex/a> <http://ex/p> "\x00" .\n\x00\n1\t<http://ex/a\x00> <http://ex/p> "" .',
            1,
            2,
        ),
        ("tsnt", LINE % b"1" + b" # \xff\n" + LINE % b"2" + b" # a\rb\n# a\rb", 1, 1),
        ("nquads", LINE % b"1" + b"\n5000\t\n" + LINE % b"2", 2, 1),
        ("csv", b"t,v,w\r\n1,a,b\r\n2,a\r,b\r\n3,a,b\r\r\n", 2, 1),
        (
            "messages",
            b"\xef\xbb\xbf<http://ex/a> <http://ex/p> 1 .\rMESSAGE\r<http://ex/a> <http://ex/p> 2 .",
            2,
            0,
        ),
    ],
)
def test_what_bytes_mean(format: str, data: bytes, taken: int, rejected: int) -> None:
    for piece_bytes in (40, cutter.PIECE_BYTES):
        for way in (
            Way(spots=True),
            Way(shards=2, piece_records=1, batch=1, restart=True),
            Way(portions=(1,)),
        ):
            found = compare(format, data, way=way, piece_bytes=piece_bytes)
            assert (found.taken, found.rejects.total()) == (taken, rejected), found.rejects


WHEN = b"<http://www.w3.org/ns/prov#generatedAtTime>"


@pytest.mark.parametrize(
    ("format", "data", "max_record", "piece_bytes", "way"),
    [
        # a line that is too long, in the look behind the end of a piece
        (
            "nquads",
            b'.\n<http://ex/a> %s "2" .\r\r\n<http://ex/a> %s "2" .\n' % (WHEN, WHEN),
            64,
            64,
            PLAINLY,
        ),
        # an event that is in order, behind one that is too long
        (
            "nquads",
            b'-\t<http://ex/a b>\n<http://ex/b> %s "1970-01-01T00:00:00Z" .\r4 \t\r\r\n' % WHEN
            + b'<http://ex/g> %s "5" .\n0\t<http://ex/b> %s "x" .' % (WHEN, WHEN),
            100,
            cutter.PIECE_BYTES,
            Way(piece_records=2, batch=3),
        ),
        # a quote that never closes, with a delimiter behind it
        (
            "messages",
            b"VERSION '1.2'\n<http://ex/a> <http://ex/p> ''' .\nMESSAGE\nx # " + b"y" * 60,
            64,
            64,
            PLAINLY,
        ),
        # an IRI that is too long to be one, with a comment in it
        (
            "messages",
            b'<a> <b> ; %s "3" message \nMESSAGE\n[] <p> 1 .' % WHEN,
            30,
            300,
            Way(portions=(5, 1, 30)),
        ),
        # a time at the end of all, in a window that goes beyond
        ("tsnt", LINE % b"253402300799999", None, 64, PLAINLY),
        # a record that is too long, but not longer than what is shown of it
        ("tsnt", b"\xef\xbb\xbf" + LINE % b"1", 30, 64, Way(portions=(1,))),
    ],
)
def test_what_was_found(format: str, data: bytes, max_record: int | None, piece_bytes: int, way: Way) -> None:
    compare(format, data, way=way, max_record=max_record, piece_bytes=piece_bytes)


@pytest.mark.parametrize("format", TEXTS)
def test_every_runner_reads_the_same(format: str) -> None:
    @settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        streams(format),
        ways,
        st.sampled_from([None, None, None, 30, 64, 100]),
        st.sampled_from(["", "", "", ".gz", ".zst"]),
        st.sampled_from([64, 300, cutter.PIECE_BYTES]),
        st.sampled_from([1, 3, 10_000]),
        st.booleans(),
    )
    def run(
        data: bytes, way: Way, longest: int | None, packed: str, piece: int, batch: int, some: bool
    ) -> None:
        note(f"{format}: {data!r}")
        found = compare(
            format,
            data,
            way=way,
            max_record=longest,
            packed=packed,
            piece_bytes=piece,
            batch=batch,
            some=some,
        )
        records = records_in(format, data) if longest is None else None
        assert records in (None, found.taken + found.late + found.rejects.total())

    run()
