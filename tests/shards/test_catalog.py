"""The catalog as files: what one process writes, all others read, in order and whole."""

from __future__ import annotations

import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kelda.errors import KeldaError
from kelda.io.job import QuerySpec
from kelda.plan.partition import Spread
from kelda.shards import seen
from kelda.shards.catalog import (
    Catalog,
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


def test_a_version_is_read_up_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = CatalogFolder(tmp_path)
    for ops in ENTRIES:
        writer.add(ops)
    reader = CatalogFolder(tmp_path)
    assert reader.refresh(2).version == 2
    monkeypatch.setattr(seen, "PATIENCE", 0.05)
    with pytest.raises(KeldaError, match="version 7 of the catalog did not come to be seen"):
        reader.refresh(len(ENTRIES) + 1)


def test_a_second_writer_goes_on_behind_the_first(tmp_path: Path) -> None:
    CatalogFolder(tmp_path).add(ENTRIES[0])
    assert CatalogFolder(tmp_path).add(ENTRIES[1]) == 2
    assert CatalogFolder(tmp_path).refresh().entries == [tuple(ENTRIES[0]), tuple(ENTRIES[1])]
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_catalog_that_lacks_a_version_says_so() -> None:
    catalog = Catalog()
    catalog.add(ENTRIES[0])
    assert catalog.between(0, 1) == ENTRIES[0] and catalog.between(1, 0) == []
    with pytest.raises(KeldaError, match="version 2 of the catalog is asked for, and there are 1"):
        catalog.between(1, 2)


def test_an_entry_that_another_machine_sees_late_is_waited_for(tmp_path: Path) -> None:
    server, here = CatalogFolder(tmp_path / "server"), CatalogFolder(tmp_path / "here")
    for ops in ENTRIES[:2]:
        server.add(ops)
    shutil.copytree(server.folder, here.folder)
    for ops in ENTRIES[2:4]:
        server.add(ops)

    def arrive() -> None:
        for number in (2, 3):
            time.sleep(0.1)
            name = f"{number:08d}.jsonl"
            shutil.copy(server.folder / name, tmp_path / name)
            os.replace(tmp_path / name, here.folder / name)

    with ThreadPoolExecutor(1) as thread:
        arriving = thread.submit(arrive)
        assert here.between(1, 4) == [op for ops in ENTRIES[1:4] for op in ops]
        arriving.result()
    assert here.version == 4
