"""Compressed files are unpacked by a thread, which nobody notices but by the clock."""

from __future__ import annotations

import bz2
import gc
import gzip
import io
import lzma
import random
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from kelda.errors import InputError
from kelda.io.sources.text import PackedText
from kelda.rdf import compression
from kelda.rdf.compression import AHEAD, BLOCK, open_bytes

PACK: dict[str, Callable[[bytes], bytes]] = {
    "gz": lambda data: gzip.compress(data, 1),
    "bz2": lambda data: bz2.compress(data, 1),
    "xz": lambda data: lzma.compress(data, preset=0),
    "zst": zstandard.compress,
}
TEXT = b"".join(b"line %d of %d\n" % (i, i * i) for i in range(400_000))
assert len(TEXT) > (AHEAD + 3) * BLOCK


def unpackers() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "kelda-unpack"]


@pytest.fixture(autouse=True)
def no_thread_is_left() -> object:
    yield
    assert not unpackers()


@pytest.fixture(params=PACK)
def packed(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"text.{request.param}"
    path.write_bytes(PACK[request.param](TEXT))
    return path


def test_all_of_it(packed: Path) -> None:
    told: list[int] = []
    with open_bytes(packed, on_bytes=told.append) as file:
        assert file.read() == TEXT
        assert file.read(1) == b""
    assert sum(told) == packed.stat().st_size


def test_in_portions_of_any_size(packed: Path) -> None:
    choose, parts = random.Random(7), []
    with open_bytes(packed) as file:
        while some := file.read(choose.choice([1, 100, BLOCK - 1, BLOCK, 3 * BLOCK])):
            parts.append(some)
    assert b"".join(parts) == TEXT


def test_what_is_told_does_not_depend_on_who_is_faster(packed: Path) -> None:
    """How far into the file a text goes, at each of its blocks."""

    def places(wait: float) -> list[int]:
        text, found = PackedText(packed), []
        for at in range(0, len(TEXT), BLOCK):
            assert text.read(at, BLOCK) == TEXT[at : at + BLOCK]
            found.append(text.stored(at + 1))
            threading.Event().wait(wait)
        text.close()
        return found

    assert places(0) == places(0.02)


def test_closed_before_its_end(packed: Path) -> None:
    for blocks in range(4):
        file = open_bytes(packed)
        file.read(blocks * BLOCK + 1)
        assert len(unpackers()) == (blocks > 0)
        file.close()
        assert not unpackers() and file.closed
        file.close()


def test_forgotten_before_its_end(packed: Path) -> None:
    file = open_bytes(packed)
    file.read(3 * BLOCK)
    assert unpackers()
    del file
    gc.collect()


def test_no_further_than_a_few_blocks_ahead(tmp_path: Path) -> None:
    path = tmp_path / "text.gz"
    path.write_bytes(PACK["gz"](random.Random(1).randbytes(30 * BLOCK)))
    with open_bytes(path) as file:
        file.read(2 * BLOCK)
        threading.Event().wait(0.3)
        inner = file.raw._inner._raw._source  # type: ignore[attr-defined]
        assert inner.tell() < (AHEAD + 5) * BLOCK


@pytest.mark.parametrize("lost", [3, 1000, 300_000])
def test_a_file_that_is_cut_off(packed: Path, lost: int) -> None:
    """The same blocks, and then the same error, again and again, as where no thread is."""
    data = packed.read_bytes()[:-lost]
    packed.write_bytes(data)
    found = []
    for source in (packed, io.BytesIO(data)):
        parts, errors = [], []
        with open_bytes(source) as file:
            for _ in range(2):
                with pytest.raises(InputError, match=r"broken .*; fetch the file again") as error:
                    while some := file.read(BLOCK):
                        parts.append(some)
                errors.append(str(error.value).partition(":")[2])
        found.append((parts, errors[:1]))
    assert found[0] == found[1]
    assert TEXT.startswith(b"".join(found[0][0]))


def test_a_broken_file(packed: Path) -> None:
    data = bytearray(packed.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 50] = b"\xff" * 50
    packed.write_bytes(data)
    with pytest.raises(InputError, match="broken"), open_bytes(packed) as file:
        while file.read(BLOCK):
            pass


def test_what_is_small_needs_no_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression.threading, "Thread", pytest.fail)
    for kind, pack in PACK.items():
        path = tmp_path / f"small.{kind}"
        path.write_bytes(pack(b"text"))
        with open_bytes(path) as file:
            assert file.read(4) == b"text"
