"""The routing in a file: who reads it has the last change, or waits for it."""

from __future__ import annotations

import os
import pickle
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kelda.errors import KeldaError, WireError
from kelda.shards import seen
from kelda.shards.routing import Routing
from kelda.shards.routing_file import Change, RoutingFile, needed, routing_in
from tests.hostile import Touch


def routing(rules: int) -> Routing:
    made = Routing()
    for shard in range(rules):
        made.everything("http://ex/s", shard)
    return made


def test_the_last_change_is_read(tmp_path: Path) -> None:
    file = RoutingFile(tmp_path / "routing", "run")
    for rules in range(3):
        file.write(routing(rules))
        assert needed(file.path) == file.last == Change("run", rules + 1)
        assert routing_in(file.path).rules == rules
        assert routing_in(file.path, file.last) is routing_in(file.path), "read once"
    assert routing_in(file.path, Change("run", 1)).rules == 2, "a later one has all that is needed"


@pytest.mark.parametrize("told", [True, False], ids=["told with the batch", "by the file beside"])
def test_a_change_that_is_seen_late_is_waited_for(tmp_path: Path, told: bool) -> None:
    server = RoutingFile(tmp_path / "server", "run")
    server.write(routing(1))
    here = tmp_path / "here" / "routing"
    here.parent.mkdir()
    shutil.copy(server.path, here)
    assert routing_in(here, Change("run", 1)).rules == 1
    server.write(routing(2))
    shutil.copy(tmp_path / "server.at", here.with_name("routing.at"))  # written in place: seen at once

    def arrive() -> None:
        time.sleep(0.2)
        shutil.copy(server.path, tmp_path / "part")
        os.replace(tmp_path / "part", here)

    with ThreadPoolExecutor(1) as thread:
        arriving = thread.submit(arrive)
        assert routing_in(here, server.last if told else None).rules == 2
        arriving.result()


def test_one_that_does_not_come_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen, "PATIENCE", 0.05)
    with pytest.raises(KeldaError, match="must lie on a file system that all machines share"):
        routing_in(tmp_path / "routing", Change("run", 1))
    file = RoutingFile(tmp_path / "routing", "an earlier run")
    for rules in range(3):
        file.write(routing(rules))
    with pytest.raises(KeldaError, match="change 1 of the routing did not come to be seen"):
        routing_in(file.path, Change("run", 1))


def test_what_is_in_the_file_is_not_run(tmp_path: Path) -> None:
    file = RoutingFile(tmp_path / "routing", "run")
    file.write(routing(1))
    touched = tmp_path / "touched"
    file.path.write_bytes(pickle.dumps(Touch(touched)))
    with pytest.raises(WireError, match=r"the routing in .* is not in Kelda's form"):
        routing_in(file.path, file.last)
    assert not touched.exists()
    for damaged in (b"", b"run x", b"\xff\xfe"):
        (tmp_path / "routing.at").write_bytes(damaged)
        with pytest.raises(WireError, match=r"routing\.at .*start it again"):
            needed(file.path)
