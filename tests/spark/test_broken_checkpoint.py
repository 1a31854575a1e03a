"""A checkpoint whose files are broken, cut or gone: it goes on as it was, or one line says which file and
what to do; never a traceback. No Spark here: its own files are looked at before it starts."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kelda.cli import main
from kelda.errors import CheckpointError, EnvironmentProblem, KeldaError, UsageError
from kelda.io.job import Job, QuerySpec, StreamSource
from kelda.io.sources.reader import Offset
from kelda.spark.pipeline import Pipeline
from kelda.spark.run import Ledger

FILE, PUSHED = "http://ex/file", "http://ex/pushed"
QUERY = "SELECT ?x { STREAM <http://ex/file> [RANGE 5s] { ?x <x:p> ?y } }"
NAMES = ["plain", "../../../evil", "/etc/evil", "..", "", "a\0b", "x" * 500]


def streams(folder: Path) -> list[StreamSource]:
    file = folder / "file.tsnt"
    if not file.exists():
        file.write_text("1000\t<x:a> <x:p> <x:b> .\n")
    return [StreamSource(FILE, str(file)), StreamSource(PUSHED, "push:", "tsnt")]


class Opened:
    """A pipeline that has taken up a checkpoint, as far as that goes without Spark."""

    def __init__(self, folder: Path, checkpoint: Path) -> None:
        self.pipeline = Pipeline(streams(folder), checkpoint, shards=2)
        try:
            self.ledger = Ledger(checkpoint, Job(queries=()))
            ops = self.pipeline.catalog.between(0, self.pipeline.catalog.version)
            for sink in self.pipeline._open_sinks(ops):
                self.pipeline.log.agree(sink.held, max(self.pipeline.log.begun(), default=0))
            self.pipeline.open_pushed()
            begun = self.pipeline.log.begun()
            at: Offset = self.pipeline.log.find(begun[-1], PUSHED) if begun else {"pieces": 0, "records": 0}
            self.pushed = self.pipeline.pushed[1].pieces(at, self.pipeline.pushed[1].latest(at))
        except BaseException:
            self.pipeline.close()
            raise

    def says(self) -> tuple[list[str], list[list[str]], int]:
        """What must be the same in every run that takes the checkpoint up."""
        waiting = [w.names for w in self.pipeline._waiting]
        return self.pipeline.queries, waiting, len(self.pushed)


def spark_files(folder: Path) -> None:
    """What Spark leaves of two batches."""
    conf = {"conf": {"spark.sql.shuffle.partitions": "2"}}
    for batch in (0, 1):
        at = {"pieces": 1 + batch, "records": 1 + batch, "ended": False}
        offset = {PUSHED: at, "catalog": {"version": 2}}
        text = "v1\n" + json.dumps(conf) + "\n" + json.dumps(offset)
        for path in ("offsets", "commits", "state/0/0", "state/0/1"):
            (folder / path).mkdir(parents=True, exist_ok=True)
        (folder / "offsets" / str(batch)).write_text(text)
        (folder / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')
        for partition in "01":
            (folder / "state" / "0" / partition / f"{batch + 1}.changelog").write_bytes(b"changes")


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """The folder of a job, with its checkpoint."""
    opened = Opened(tmp_path, tmp_path / "cp")
    pipeline = opened.pipeline
    pipeline.register(QuerySpec("plain", QUERY), sink=str(tmp_path / "plain.ndjson"))
    pipeline.register(QuerySpec("../../../evil", QUERY), sink="console")
    pipeline._done, pipeline._horizon, pipeline._now = -1, 5, 0  # so that the next one waits
    pipeline.register(QuerySpec("waits", QUERY))
    for i in range(4):
        pipeline.pushed[1].push(f"{i}\t<x:a> <x:p> <x:b> .")
    for sink in pipeline._open_sinks(pipeline.catalog.between(0, 2)):
        sink.write(1, [], content="0" * 40)
    pipeline.close()
    spark_files(tmp_path / "cp" / "spark")
    return tmp_path


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def garble(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 3 : len(data) // 3 + 9] = b"\xff\x00\xfe" * 3
    path.write_bytes(bytes(data))


DAMAGES: list[Callable[[Path], object]] = [cut, garble, Path.unlink, lambda path: path.write_bytes(b"")]


def test_any_file_may_be_broken(whole: Path) -> None:
    opened = Opened(whole, whole / "cp")
    wanted = opened.says()
    opened.pipeline.close()
    assert wanted == (["plain", "../../../evil", "waits"], [["waits"]], 2)
    files = sorted(path.relative_to(whole / "cp") for path in (whole / "cp").rglob("*") if path.is_file())
    assert len(files) > 12
    refused = 0
    for file in files:
        for number, damage in enumerate(DAMAGES):
            copy = whole / f"copy-{number}"
            shutil.copytree(whole / "cp", copy)
            damage(copy / file)
            try:
                again = Opened(whole, copy)
            except KeldaError as problem:
                said = str(problem)
                refused += 1
                assert len(said.splitlines()) == 1, said
                named = copy / file.parent if "spool" in file.parts else copy / file
                assert str(named) in said or (file.name == "kelda.json" and "no kelda.json" in said), said
            else:
                queries, waiting, pushed = again.says()
                assert (queries, waiting) == wanted[:2], f"{damage} {file}"
                # Without the last files of Spark's log, more is taken again; never less.
                more = 2 if file.parts[0] == "spark" else 0
                # What was pushed last and not read yet may be cut off, as by the end of a process.
                fewer = 2 if file.suffix == ".spool" else 0
                assert wanted[2] - fewer <= pushed <= wanted[2] + more, f"{damage} {file}"
                again.pipeline.close()
            shutil.rmtree(copy)
    assert refused > 20


@pytest.mark.parametrize("emptied", [("commits/1",), ("offsets/1", "commits/1"), ("offsets/1",)])
def test_names_without_content_are_what_a_power_failure_leaves(whole: Path, emptied: tuple[str, ...]) -> None:
    """Found by a crash round: they are set aside, and the batch is taken again."""
    for sink in ("plain.ndjson", "cp/sinks"):  # nobody has the batch: that would be refused
        path = whole / sink
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for journal in whole.glob(".*kelda*"):
        journal.unlink()
    for name in emptied:
        (whole / "cp" / "spark" / name).write_bytes(b"")
    opened = Opened(whole, whole / "cp")
    assert opened.pipeline.log.begun()[-1] == ("offsets/1" not in emptied)
    opened.pipeline.close()
    lost = {path.relative_to(path.parents[1]).as_posix() for path in (whole / "cp" / "lost").rglob("[01]")}
    assert set(emptied) <= lost


@pytest.mark.parametrize("name", NAMES)
def test_no_name_leaves_the_checkpoint(tmp_path: Path, name: str) -> None:
    checkpoint = tmp_path / "a" / "b" / "cp"
    pipeline = Pipeline(streams(tmp_path), checkpoint)
    pipeline.register(QuerySpec(name, QUERY), sink="console")
    assert pipeline.queries == [name]
    pipeline.close()
    (ledger,) = (checkpoint / "sinks").iterdir()
    assert ledger.is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "file.tsnt"]
    assert [path.name for path in (tmp_path / "a").rglob("*evil*")] in ([], [ledger.name])


def test_one_pipeline_at_a_time(tmp_path: Path) -> None:
    first = Pipeline(streams(tmp_path), tmp_path / "cp")
    first.run.flag.touch()  # it runs
    with pytest.raises(UsageError, match=f"held by pid {os.getpid()} on "):
        Pipeline(streams(tmp_path), tmp_path / "cp")
    assert first.run.flag.exists()
    first.close()
    assert not first.run.flag.exists()
    Pipeline(streams(tmp_path), tmp_path / "cp").close()


def test_one_that_was_refused_holds_nothing(tmp_path: Path) -> None:
    Pipeline(streams(tmp_path), tmp_path / "cp").close()
    with pytest.raises(UsageError, match="another job"):
        Pipeline(streams(tmp_path), tmp_path / "cp", shards=3)
    Pipeline(streams(tmp_path), tmp_path / "cp").close()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_a_disk_that_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    pipeline = Pipeline(streams(tmp_path), tmp_path / "cp")

    def fails(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(EnvironmentProblem, match=rf"cannot write {tmp_path}/cp/.*: {os.strerror(number)}; "):
        pipeline.register(QuerySpec("q", QUERY))
    monkeypatch.undo()
    pipeline.close()


def test_the_command_line_says_a_line(
    whole: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (whole / "q.rq").write_text(QUERY)
    (whole / "cp" / "kelda.json").write_text("{")
    words = ["query", "q.rq", "--stream", f"{FILE}=file.tsnt", "--runner", "spark", "--checkpoint", "cp"]
    monkeypatch.chdir(whole)
    monkeypatch.setattr("sys.argv", ["kelda", *words])
    with pytest.raises(SystemExit) as exit:
        main()
    assert exit.value.code == CheckpointError.exit_code
    said = capsys.readouterr().err
    assert (
        said.startswith(f"error: {whole / 'cp' / 'kelda.json'} is broken (") and len(said.splitlines()) == 1
    )
