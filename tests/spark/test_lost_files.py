"""Files of Spark that are lost or broken, with a real Spark: every answer once in the sink, or a line that
says why not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import kelda
from kelda.errors import CheckpointError
from tests.spark.scene import MASTER, PATIENCE

QUERY = "SELECT ?x ?y { STREAM <x:a> [RANGE 5s] { ?x <x:p> ?y } }"
EVENTS = 120


def run(folder: Path, batch_events: int) -> list[int]:
    """To the end of the stream; the times of the answers in the sink."""
    stream, sink = folder / "a.tsnt", folder / "q.ndjson"
    with kelda.connect(MASTER, checkpoint=folder / "cp", batch_events=batch_events) as engine:
        if not engine.queries:
            engine.stream("x:a", str(stream))
            engine.register(QUERY, name="q", sink=str(sink))
        engine.start()
        assert engine.wait(PATIENCE)
    return [json.loads(line)["time"] for line in sink.read_text().splitlines()]


@pytest.mark.spark
def test_lost_files_of_spark(tmp_path: Path) -> None:
    stream = tmp_path / "a.tsnt"
    lines = [f"{i}000\t<x:n{i % 7}> <x:p> <x:y{i}> .\n" for i in range(1, EVENTS + 1)]
    stream.write_text("".join(lines))
    wanted = [i * 1000 for i in range(1, EVENTS + 1)]
    assert run(tmp_path, 20) == wanted
    spark, kept = tmp_path / "cp" / "spark", tmp_path / "kept"
    shutil.copytree(tmp_path / "cp", kept)
    last = max(int(path.name) for path in (spark / "offsets").glob("[0-9]*"))
    assert last >= 4

    def damaged(*paths: Path) -> None:
        shutil.rmtree(tmp_path / "cp")
        shutil.copytree(kept, tmp_path / "cp")
        for path in paths:
            path.unlink()
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)

    state = [spark / "state" / "0" / "0" / f"{version}.changelog" for version in (last, last + 1)]
    # The state behind the last batch: the batch is taken again, and the sink has it.
    damaged(state[1])
    assert run(tmp_path, 20) == wanted
    assert list((tmp_path / "cp" / "lost").rglob("commits/*")), "what is set aside is kept"
    # What was done: the same.
    damaged(*(spark / "commits" / str(n) for n in (last - 1, last)))
    assert run(tmp_path, 20) == wanted
    # The offsets of batches that the sink has: what comes with their numbers now is something else.
    damaged(*(spark / kind / str(n) for kind in ("offsets", "commits") for n in (last - 1, last)))
    with pytest.raises(CheckpointError, match=rf"q\.ndjson has batch {last} already"):
        run(tmp_path, 33)
    # A file that is not what it was.
    damaged(spark / "commits" / str(last))
    state[0].write_bytes(state[0].read_bytes()[:-9])
    with pytest.raises(CheckpointError, match=rf"{state[0]} is broken") as refusal:
        run(tmp_path, 20)
    assert len(str(refusal.value).splitlines()) == 1
    assert [json.loads(line)["time"] for line in (tmp_path / "q.ndjson").read_text().splitlines()] == wanted
