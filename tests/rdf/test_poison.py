"""Records that ended a run once: each is a counted reject with its reason, and the stream goes on."""

from __future__ import annotations

import io
import resource
import time
from pathlib import Path

import pytest
import zstandard

from kelda.errors import InputError, UsageError
from kelda.rdf.compression import open_bytes
from kelda.rdf.event import Event, Reject
from kelda.rdf.framing import Chunker, read_events
from kelda.rdf.framings.base import MAX_RECORD

GOOD: dict[str, bytes] = {
    "tsnt": b"5\t<http://ex/a> <http://ex/p> <http://ex/o> .\n",
    "nquads": b"5\t<http://ex/a> <http://ex/p> <http://ex/o> .\n",
    "messages": b"<http://ex/a> <http://ex/p> 1 .\nMESSAGE\n",
    "ndjsonld": b'{"@id": "http://ex/a", "http://ex/p": 1}\n',
    "csv": b"5,x\n",
    "json": b'{"t": 5, "v": "x"}\n',
}
MAPPING = {
    "time": {"column": "t", "format": "epoch-ms"},
    "triples": [["http://ex/{v}", "http://ex/p", {"column": "v"}]],
}


def read(data: bytes, format: str, **options: object) -> tuple[list[Event], list[Reject]]:
    rejects: list[Reject] = []
    mapping = MAPPING if format in ("csv", "json") else None
    data = b"t,v\n" + data if format == "csv" else data
    events = read_events(data, format=format, mapping=mapping, on_reject=rejects.append, **options)  # type: ignore[arg-type]
    return list(events), rejects


def long_record(format: str, size: int) -> bytes:
    """A record that is in order, but for its length."""
    filled = b"x" * size
    return {
        "tsnt": b'6\t<http://ex/a> <http://ex/p> "%s" .\n' % filled,
        "nquads": b'6\t<http://ex/a> <http://ex/p> "%s" .\n' % filled,
        "messages": b'<http://ex/a> <http://ex/p> "%s" .\nMESSAGE\n' % filled,
        "ndjsonld": b'{"@id": "http://ex/a", "http://ex/p": "%s"}\n' % filled,
        "csv": b"6,%s\n" % filled,
        "json": b'{"t": 6, "v": "%s"}\n' % filled,
    }[format]


@pytest.mark.parametrize("format", GOOD)
def test_a_record_that_is_too_long_is_rejected_and_never_held(format: str) -> None:
    good = GOOD[format]
    begun = time.process_time()
    events, rejects = read(good + long_record(format, 25_000_000) + good, format)
    assert time.process_time() - begun < 10
    assert len(events) == 2 and len(rejects) == 1
    assert "25,000,0" in rejects[0].reason and f"{MAX_RECORD:,}" in rejects[0].reason
    chunker = Chunker(format, mapping=MAPPING if format in ("csv", "json") else None)
    for _ in range(40):
        chunker.feed(b"x" * 1_000_000)
    assert len(chunker._rest) <= 2 * MAX_RECORD


@pytest.mark.parametrize("format", GOOD)
def test_the_limit_can_be_set(format: str) -> None:
    good = GOOD[format]
    events, rejects = read(good + long_record(format, 100) + good, format, max_record=90)
    assert len(events) == 2 and "at most 90 are read" in rejects[0].reason
    events, rejects = read(good + long_record(format, 100) + good, format, max_record=200)
    assert len(events) == 3 and not rejects
    with pytest.raises(UsageError, match="at least 1"):
        read(good, format, max_record=0)
    if format in ("csv", "json"):
        assert len(read(long_record(format, 20_000_000), format, max_record=30_000_000)[0]) == 1
    else:
        with pytest.raises(UsageError, match="16,000,000 bytes at most"):
            read(good, format, max_record=30_000_000)


def test_the_longest_records_are_taken() -> None:
    """What fits the limit fits the parser, too; the parser of JSON-LD has a limit of its own."""
    for format in GOOD:
        room = MAX_RECORD - len(long_record(format, 0))
        events, rejects = read(long_record(format, room) + GOOD[format], format)
        assert len(events) + len(rejects) == 2
        assert [r.reason for r in rejects if format != "ndjsonld"] == []
        assert all("too long for the RDF parser" in reject.reason for reject in rejects)


def test_a_bomb_is_unpacked_no_further_than_it_is_read(tmp_path: Path) -> None:
    """0.6 GB in 20 kB: one line that is too long, of which no more than a few megabytes are ever held."""
    packer = zstandard.ZstdCompressor(level=19).compressobj()
    block = b"x" * (1 << 22)
    packed = b"".join(packer.compress(block) for _ in range(150)) + packer.flush()
    assert len(packed) < 100_000
    path = tmp_path / "bomb.tsnt.zst"
    path.write_bytes(packed + zstandard.compress(b"\n" + GOOD["tsnt"]))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.process_time()
    with open_bytes(path) as file:
        assert file.read(3) == b"xxx"
    rejects: list[Reject] = []
    events = list(read_events(path, on_reject=rejects.append))
    assert time.process_time() - begun < 20
    assert len(events) == 1 and "629,145,601 bytes" in rejects[0].reason
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB


def test_packed_data_that_is_cut_off_is_still_noticed() -> None:
    for data in (zstandard.compress(GOOD["tsnt"] * 1000)[:-3], zstandard.compress(b"x")[:5]):
        with pytest.raises(InputError, match="broken zstd"):
            list(read_events(data, format="tsnt", on_reject=pytest.fail))
    twice = zstandard.compress(GOOD["tsnt"]) * 2
    assert len(list(read_events(io.BytesIO(twice), format="tsnt", on_reject=pytest.fail))) == 2


@pytest.mark.parametrize(
    ("format", "bad", "reason"),
    [
        ("json", b'{"t": 5, "v": "\\ud800"}', "surrogate"),
        ("json", b'{"t": 5, "v": "x", "w": "\\udc00\\ud800"}', "surrogate"),
        ("json", b'{"t": 5, "v": "\xed\xa0\x80"}', "not UTF-8"),
        ("json", '{"t": 5, "v": "x"}'.encode("utf-16-le"), "not a JSON object"),
        ("json", b'{"t": 123456789012345678, "v": "x"}', "outside the years 1 to 9999"),
        ("json", b'{"t": [5], "v": "x"}', "'t' holds an array"),
        ("json", b'{"t": 5, "v": {}}', "'v' holds an object"),
        ("csv", b"99999999999999999,x", "outside the years"),
        ("csv", b"5,x\r6,y", "carriage return"),
        ("ndjsonld", b'{"@id": "http://ex/\\ud800", "http://ex/p": 1}', "surrogate"),
        ("ndjsonld", b'{"@id": "http://ex/a", "http://ex/p": "\\ud800"}', "surrogate"),
        ("tsnt", b'5\t<http://ex/a> <http://ex/p> "\\ud800" .', "D800"),
        ("tsnt", b"5000\t", "nothing behind it"),
        ("tsnt", b"5000\t # so", "nothing behind it"),
        ("tsnt", b"1264982552000000\t<http://ex/a> <http://ex/p> <http://ex/o> .", "outside the years"),
        ("tsnt", b"5\t<http://ex/a> <http://ex/p> <http://ex/o> .\r6\t<http://ex/a>", "carriage return"),
        ("nquads", b"5000\t", "nothing behind it"),
        ("nquads", b"<http://ex/a> <http://ex/p> 1 .\r<http://ex/a> <http://ex/p> <http://ex/o> .", ""),
    ],
)
def test_it_is_rejected_and_the_stream_goes_on(format: str, bad: bytes, reason: str) -> None:
    events, rejects = read(GOOD[format] + bad + b"\n" + GOOD[format], format)
    assert len(events) == 2 and len(rejects) == 1
    assert reason in rejects[0].reason


def test_pairs_of_surrogates_are_characters() -> None:
    events, rejects = read(b'{"t": 5, "v": "\\ud83d\\ude00"}\n{"t": 5, "v": "\\\\ud800"}\n', "json")
    assert not rejects
    assert [event.quads[0].object.value for event in events] == ["\U0001f600", "\\ud800"]


def test_a_context_that_is_none_is_rejected_and_the_one_before_it_stays() -> None:
    good = b'{"@context": {"@vocab": "http://ex/"}}\n'
    for bad in (
        b"5",
        b'{"@vocab": 7}',
        b'"http://nowhere.example/"',
        b'{"p": {"@id": 5}}',
        b'{"@version": 3}',
    ):
        events, rejects = read(
            good + b'{"p": 1}\n{"@context": ' + bad + b'}\n{"p": 2}\n{"p": 3}\n', "ndjsonld"
        )
        assert [event.quads[0].predicate.value for event in events] == ["http://ex/p"] * 3, bad
        assert [reject.line for reject in rejects] == [3]
    _, rejects = read(b'{"@context": "http://nowhere.example/"}\n', "ndjsonld")
    assert "Kelda fetches nothing from the network" in rejects[0].reason
