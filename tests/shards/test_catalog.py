"""The catalog as files: what one process writes, all others read, in order and whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from kelda.plan.partition import Spread
from kelda.runner.job import QuerySpec
from kelda.shards.catalog import (
    CatalogFolder,
    Drop,
    Op,
    Pause,
    Register,
    RegisterMany,
    Switch,
    Warm,
)

SPEC = QuerySpec("q", "SELECT ?é { }", params={"x": '"a\\"b"@de'}, output="changes")
ENTRIES: list[list[Op]] = [
    [Register("q", SPEC, Spread((("x", 2), ("y", 3)), True), sink="answers.ndjson"), Drop("r")],
    [Register("whole", SPEC, None, 3)],
    [RegisterMany(("a", "b"), SPEC, {"x": ("<http://ex/1>", '"line\nbreak"')}, Spread((("x", 2),)))],
    [Pause("q"), Pause("q", False)],
    [Warm("whole", 1)],
    [Switch("whole", 1)],
]


def test_what_was_written_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "catalog"
    writer, reader = CatalogFolder(folder), CatalogFolder(folder)
    assert reader.refresh().version == 0, "there is no folder yet"
    for i, ops in enumerate(ENTRIES):
        assert writer.add(ops) == i + 1
        assert reader.refresh().entries[-1] == tuple(ops)
    assert reader.entries == writer.entries
    assert reader.between(1, 3) == [*ENTRIES[1], *ENTRIES[2]]
    assert reader.between(2, 2) == []
    assert CatalogFolder(folder).refresh().entries == writer.entries, "another process, later"


def test_a_version_is_read_up_to(tmp_path: Path) -> None:
    writer = CatalogFolder(tmp_path)
    for ops in ENTRIES:
        writer.add(ops)
    reader = CatalogFolder(tmp_path)
    assert reader.refresh(2).version == 2
    with pytest.raises(FileNotFoundError):
        reader.refresh(len(ENTRIES) + 1)


def test_a_second_writer_goes_on_behind_the_first(tmp_path: Path) -> None:
    CatalogFolder(tmp_path).add(ENTRIES[0])
    assert CatalogFolder(tmp_path).add(ENTRIES[1]) == 2
    assert CatalogFolder(tmp_path).refresh().entries == [tuple(ENTRIES[0]), tuple(ENTRIES[1])]
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]
