"""The memory of the stored graphs is that of one store, however many shards there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import kelda
from kelda.shards import storing
from tests.spark.scene import MASTER, PATIENCE, hosts

SHARDS, FACTS = 4, 60_000
FIELD = re.compile(r"^(Pss|Private_Dirty|Rss): +(\d+) kB$", re.M)


def mapped(process: int) -> dict[str, int]:
    """Bytes that a process has of the image of a store."""
    try:
        text = Path(f"/proc/{process}/smaps").read_text()
    except OSError:
        return {}
    found: dict[str, int] = {}
    for part in re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", text, flags=re.M):
        if ".image" in part.partition("\n")[0]:
            for name, size in FIELD.findall(part):
                found[name] = found.get(name, 0) + int(size) * 1024
    return found


@pytest.mark.spark
def test_four_shards_share_one_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storing, "LEAST", FACTS // 2)
    facts = (f"<x:n{i}> <x:knows> <x:name-of-another-node-{i * 7 % FACTS}> .\n" for i in range(FACTS))
    (tmp_path / "facts.nt").write_text("".join(facts))
    joined = "SELECT ?x ?y { STREAM <x:s> [NOW] { ?x <x:p> ?v } ?x <x:knows> ?y }"
    with kelda.connect(MASTER, checkpoint=tmp_path / "state", shards=SHARDS) as engine:
        engine.load(tmp_path / "facts.nt")
        stream = engine.stream("x:s")
        query = engine.register(joined, "joined")
        engine.start()

        def push(number: int) -> None:
            for i in range(8):
                stream.push(f"<x:n{8 * number + i}> <x:p> <x:v{i}> .", time=1000 * number + i)
            stream.heartbeat(1000 * number + 500)
            assert engine.flush(PATIENCE)

        pushed = 0
        while sum(bool(mapped(host)) for host in hosts()) < SHARDS:
            pushed += 1
            push(pushed)
            assert pushed < 40, "hosts take up the image as batches come"
        push(pushed + 1)
        each = [mapped(host) for host in hosts()]
        (image,) = (tmp_path / "state" / "store" / "working").glob("*.image")
        whole = image.stat().st_size
        assert len(each) == SHARDS and all(found["Rss"] > whole / 4 for found in each)
        assert sum(found["Private_Dirty"] for found in each) < whole / 4, "nearly nothing is anybody's own"
        assert sum(found["Pss"] for found in each) < 1.5 * whole
        answers = {(str(a.bindings["x"]), str(a.bindings["y"])) for a in query.results() if a.bindings}
    assert len(answers) == 8 * (pushed + 1)
